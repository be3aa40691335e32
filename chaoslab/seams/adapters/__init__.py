"""Adapters to frameworks, one file each: how a framework's tools and agents are recognised, named, called and swapped.
A tool is led back to the user's functions in it, whose code is swapped. A package registers its own adapter under the
entry-point group `chaoslab.seams.adapters`. No framework is imported: whoever has one of its objects has loaded it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, ClassVar

from chaoslab.base import registry
from chaoslab.seams.functions import code_swap
from chaoslab.seams.functions.inside import find_enclosed_function as find_enclosed_function
from chaoslab.seams.functions.inside import find_held_function, find_unpassed_parameters, get_tool_name
from chaoslab.seams.functions.references import References
from chaoslab.seams.functions.seam import Wrapping

GROUP = "seams.adapters"


class Adapter:
    """One framework's tools and agents; by default it has neither. `tools` and `agents` name them in messages, as in "a
    LangChain tool"."""

    tools: ClassVar[str] = ""
    agents: ClassVar[str] = ""

    def recognises(self, thing: Any) -> bool:  # noqa: ARG002
        """Tells if this is a tool of the framework."""
        return False

    def name(self, tool: Any) -> str:
        """The tool's name, as its model knows it."""
        return str(tool.name)

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        """The user's functions that the tool calls: one, or a sync and an async form of the same."""
        raise NotImplementedError

    def parameters(self, tool: Any) -> Collection[str] | None:  # noqa: ARG002
        """The parameters that the tool's model is shown; None if that is unknown. The framework fills in all others, so
        they are no arguments of a request."""
        return None

    def hidden(self, tool: Any) -> frozenset[str]:
        """The parameters of the tool's functions that its framework fills in."""
        functions, visible = self.functions(tool), self.parameters(tool)
        if visible is None:
            # Without a schema the annotations tell, by the names of the frameworks' classes.
            return frozenset().union(*map(find_unpassed_parameters, functions))
        return frozenset(name for function in functions for name in _list_parameters(function)).difference(visible)

    @contextmanager
    def swapped(self, tool: Any, wrapping: Wrapping) -> Iterator[None]:
        """A context in which calls of the tool go through the seam, which turns them into exchanges and back. Raises
        TypeError: a function of it cannot be swapped."""
        functions, name, hidden = self.functions(tool), self.name(tool), self.hidden(tool)
        inner = [code_swap.find_inner_function(function) for function in functions]
        if len({id(form) for form in inner}) == len(functions):  # else two forms decorate one function
            functions = inner
        with ExitStack() as stack:
            for function in functions:

                def make_fake_function(real: Callable[..., Any]) -> Callable[..., Any]:
                    lead = wrapping.make_fake_function(name, real, hidden)
                    return lead if len(functions) == 1 else _let_inner_calls_through(tool, real, lead)

                if code_swap.can_swap(function):
                    stack.enter_context(code_swap.swap_code(function, make_fake_function))
                # A function without code of its own is sought where the tool holds it, and has to be found there.
                elif not stack.enter_context(References([tool], [(function, make_fake_function(function))])).count[0]:
                    raise TypeError(
                        f"{self.tools} '{name}' calls {function!r}, which cannot be watched: give it a function in "
                        "Python that calls this one"
                    )
            yield

    def is_async_only(self, tool: Any) -> bool:
        """Tells if the tool can only be called async."""
        return all(map(inspect.iscoroutinefunction, self.functions(tool)))

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
def load_adapters() -> tuple[Adapter, ...]:
    """All adapters. The cache is cleared when a run begins, so one that was installed meanwhile is found. Raises
    BrokenPlugin: one of another package cannot be loaded; the line names the package."""
    return tuple(map(_load_adapter, registry.list_plugins(GROUP)))


def _load_adapter(name: str) -> Adapter:
    kind = registry.load_plugin(GROUP, name)
    if not (isinstance(kind, type) and issubclass(kind, Adapter)):
        raise registry.make_broken_plugin_error(GROUP, name, "it is no Adapter")
    return kind()


def find_tool_adapter(thing: Any) -> Adapter | None:
    """The adapter that recognises this tool, if any. An object of no known framework has the one function in it."""
    # A framework's own object first: its adapter knows names and schemas that an object's attributes do not tell.
    match = next((adapter for adapter in load_adapters() if adapter.recognises(thing)), None)
    return match or (_OBJECT if find_held_function(thing) is not None else None)


class _Object(Adapter):
    """Any object that holds its one function; see `find_held_function`."""

    tools = "the object"

    def name(self, tool: Any) -> str:
        return get_tool_name(tool) or str(getattr(find_held_function(tool), "__name__", type(tool).__name__))

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        function = find_held_function(tool)
        return [] if function is None else [function]


_OBJECT = _Object()


def find_agent_adapter(thing: Any) -> Adapter | None:
    """The adapter whose framework this agent is of, if any."""
    return next((adapter for adapter in load_adapters() if adapter.is_agent(thing)), None)


def extract_answer(answer: Any) -> Any:
    """The plain answer in what an agent returned."""
    # An answer may be one framework's in another's.
    for adapter in load_adapters():
        answer = adapter.answer(answer)
    return answer


def is_a(thing: Any, package: str, name: str) -> bool:
    """Tells if the object is of the class of that name, in that package or a module of it."""
    # By name, so that no framework is imported to ask.
    return any(
        base.__name__ == name and f"{base.__module__}.".startswith(f"{package}.") for base in type(thing).__mro__
    )


def of_schema(schema: Any) -> set[str] | None:
    """The names of the properties in a JSON schema of an object; None if it has none to show."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return set(properties) if isinstance(properties, Mapping) else None


def _list_parameters(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters, without `*args` and `**kwargs`."""
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


_inside: ContextVar[tuple[int, ...]] = ContextVar("inside", default=())
"""The tools being called in this context: an async form that ends in its tool's sync one is one call."""


def _let_inner_calls_through(tool: Any, real: Callable[..., Any], lead: Callable[..., Any]) -> Callable[..., Any]:
    """A fake that leaves calls from within the tool to the function itself."""

    def mark_inside_tool() -> Any:
        return _inside.set((*_inside.get(), id(tool)))

    @wraps(real)
    def call_stand_in_or_real(*args: Any, **kwargs: Any) -> Any:
        if id(tool) in _inside.get():
            return real(*args, **kwargs)
        token = mark_inside_tool()
        try:
            return lead(*args, **kwargs)
        finally:
            _inside.reset(token)

    @wraps(real)
    async def call_stand_in_or_real_async(*args: Any, **kwargs: Any) -> Any:
        if id(tool) in _inside.get():
            return await real(*args, **kwargs)
        token = mark_inside_tool()
        try:
            return await lead(*args, **kwargs)
        finally:
            _inside.reset(token)

    # Both wrappers, as a sync call led through a coroutine makes a RuntimeError of a StopIteration.
    return call_stand_in_or_real_async if inspect.iscoroutinefunction(real) else call_stand_in_or_real


def describe_accepted_kinds(first: str, kinds: Iterable[str]) -> str:
    """The kinds of objects that are taken, as in "a function, or a LangChain tool"."""
    names: Sequence[str] = [kind for kind in kinds if kind]
    return ", or ".join([first, *names])
