"""LangChain's tools and agents: a tool's own `_run` and `_arun` are functions, an agent's `invoke` is a callable."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

from chaoslab.seams.adapters import Adapter
from chaoslab.seams.function import FunctionSeam, WrappedFunction
from chaoslab.seams.injected import injected

HIDDEN = frozenset({"config", "run_manager", "callbacks"})
"""Parameters that LangChain itself passes along. They are not arguments of a request."""

_inside: ContextVar[tuple[int, ...]] = ContextVar("inside", default=())
"""The tools being called in this context: an `_arun` that ends in its tool's `_run` is one call."""


class Langchain(Adapter):
    """LangChain: a tool is a `BaseTool`, an agent a `Runnable`."""

    tools = "a LangChain tool"
    agents = "a LangChain Runnable"

    def recognises(self, thing: Any) -> bool:
        return _is_a(thing, "langchain_core.tools", "BaseTool")

    def swapped(self, seam: FunctionSeam, tool: Any, *, effect: bool) -> AbstractContextManager[None]:
        return _in_place(seam, tool, effect=effect)

    def is_async_only(self, tool: Any) -> bool:
        return getattr(tool, "coroutine", None) is not None and getattr(tool, "func", None) is None

    def is_agent(self, thing: Any) -> bool:
        return _is_a(thing, "langchain_core.runnables", "Runnable")

    def callable_of(self, agent: Any, *, of_coroutine: bool) -> Callable[[Any], Any]:
        return _callable_of(agent, of_coroutine=of_coroutine)

    def answer(self, given: Any) -> Any:
        return spoken(given)


def _is_a(thing: Any, package: str, name: str) -> bool:
    return any(base.__name__ == name and base.__module__.startswith(package) for base in type(thing).__mro__)


@contextmanager
def _in_place(seam: FunctionSeam, tool: Any, *, effect: bool) -> Iterator[None]:
    """Leads the tool's `_run` and `_arun` through the seam. Its name, schema and signatures stay."""
    hidden = HIDDEN | _unseen(tool)
    with ExitStack() as undo:
        for way in ("_run", "_arun"):
            original = getattr(tool, way)
            stand_in = seam.stand_in(WrappedFunction(tool.name, original, effect, hidden))
            of_coroutine = way == "_arun"
            vars(tool)[way] = (_once_async if of_coroutine else _once)(tool, original, stand_in)
            undo.callback(vars(tool).pop, way, None)
        yield


def _unseen(tool: Any) -> frozenset[str]:
    """The tool's parameters that are not in the schema which its model is shown."""
    functions = [
        found for name in ("func", "coroutine", "_run", "_arun") if (found := getattr(tool, name, None)) is not None
    ]
    taken = {
        name
        for function in functions
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    taken |= set(getattr(tool.args_schema, "model_fields", ()))
    try:
        return frozenset(taken.difference(tool.args))
    except Exception:  # noqa: BLE001 - a schema that cannot be made, whatever its annotations hold
        return frozenset().union(*(injected(function) for function in functions))


def _once(tool: Any, original: Callable[..., Any], stand_in: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if id(tool) in _inside.get():
            return original(*args, **kwargs)
        token = _inside.set((*_inside.get(), id(tool)))
        try:
            return stand_in(*args, **kwargs)
        finally:
            _inside.reset(token)

    return call


def _once_async(tool: Any, original: Callable[..., Any], stand_in: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    async def call(*args: Any, **kwargs: Any) -> Any:
        if id(tool) in _inside.get():
            return await original(*args, **kwargs)
        token = _inside.set((*_inside.get(), id(tool)))
        try:
            return await stand_in(*args, **kwargs)
        finally:
            _inside.reset(token)

    return call


def _callable_of(runnable: Any, *, of_coroutine: bool) -> Callable[[Any], Any]:
    """The agent as a callable from prompt to answer. A graph with "messages" gets the prompt as the user's message and
    answers with the text of its last one. Any other Runnable gets the prompt as it is."""
    speaks = "messages" in (getattr(runnable, "channels", None) or {})

    def given(prompt: Any) -> Any:
        return {"messages": [("user", prompt)]} if speaks else prompt

    if of_coroutine:

        async def ask_async(prompt: Any) -> Any:
            return spoken(await runnable.ainvoke(given(prompt)))

        return ask_async

    def ask(prompt: Any) -> Any:
        return spoken(runnable.invoke(given(prompt)))

    return ask


def spoken(answer: Any) -> Any:
    """The text of a message, or of the last one of a conversation such as a LangGraph state; else the answer itself."""
    if isinstance(answer, Mapping) and isinstance(answer.get("messages"), Sequence) and answer["messages"]:
        last = answer["messages"][-1]
        return answer if spoken(last) is last and not isinstance(last, str) else spoken(last)
    if _is_a(answer, "langchain_core.messages", "BaseMessage"):
        return str(answer.text)
    if isinstance(answer, Mapping) and {"role", "content"} <= answer.keys():
        return answer["content"]
    return answer
