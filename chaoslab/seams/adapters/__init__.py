"""Adapters to frameworks, one file each: how a framework's tools and agents are recognised, named, called and swapped.

A package registers its own under the entry-point group `chaoslab.seams.adapters`. No framework is imported: whoever has
one of its objects has loaded it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, ClassVar

from chaoslab.base import registry
from chaoslab.seams.function import FunctionSeam

GROUP = "seams.adapters"


class Adapter:
    """One framework's tools and agents; by default it has neither.

    `tools` and `agents` name them in messages, as in "a LangChain tool".
    """

    tools: ClassVar[str] = ""
    agents: ClassVar[str] = ""

    def recognises(self, thing: Any) -> bool:  # noqa: ARG002
        """Tells if this is a tool of the framework."""
        return False

    def name(self, tool: Any) -> str:
        """The tool's name, as its model knows it."""
        return str(tool.name)

    def swapped(self, seam: FunctionSeam, tool: Any, *, effect: bool) -> AbstractContextManager[None]:
        """A context in which calls of the tool go through the seam, which turns them into exchanges and back."""
        raise NotImplementedError

    def is_async_only(self, tool: Any) -> bool:  # noqa: ARG002
        """Tells if the tool can only be called async."""
        return False

    def is_agent(self, thing: Any) -> bool:  # noqa: ARG002
        """Tells if this is an agent of the framework."""
        return False

    def callable_of(self, agent: Any, *, of_coroutine: bool) -> Callable[[Any], Any]:
        """The agent as a function from prompt to answer; async if `of_coroutine`."""
        raise NotImplementedError

    def answer(self, given: Any) -> Any:
        """The plain answer in an answer of the framework's kind; any other as it is."""
        return given


@cache
def adapters() -> tuple[Adapter, ...]:
    """All adapters. The cache is cleared when a run begins, so one that was installed meanwhile is found.

    Raises:
        BrokenPlugin: one of another package cannot be loaded; the line names the package.
    """
    return tuple(map(_loaded, registry.names(GROUP)))


def _loaded(name: str) -> Adapter:
    kind = registry.load(GROUP, name)
    if not (isinstance(kind, type) and issubclass(kind, Adapter)):
        raise registry.broken(GROUP, name, "it is no Adapter")
    return kind()


def of_tool(thing: Any) -> Adapter | None:
    """The adapter that recognises this tool, if any."""
    return next((adapter for adapter in adapters() if adapter.recognises(thing)), None)


def of_agent(thing: Any) -> Adapter | None:
    """The adapter whose framework this agent is of, if any."""
    return next((adapter for adapter in adapters() if adapter.is_agent(thing)), None)


def answer_of(given: Any) -> Any:
    """The plain answer in what an agent returned."""
    for adapter in adapters():
        given = adapter.answer(given)
    return given


def words(first: str, kinds: Iterable[str]) -> str:
    """The kinds of objects that are taken, as in "a function, or a LangChain tool"."""
    known: Sequence[str] = [kind for kind in kinds if kind]
    return ", or ".join([first, *known])
