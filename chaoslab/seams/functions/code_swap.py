"""Swaps a function's code in place, so that whoever holds the function calls its fake. The function object stays:
registries, validators written in Rust and classes that were made at run time call the fake without knowing of it.
Its signature, its kind (async, a generator) and its source's place stay as they were."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, TracebackType
from typing import Any

from chaoslab.base.boundary import reraise_unless_foreign

# Compared as a text: constants of code are compared by value.
_HOLD: Any = "the fake"
"""The constant of a trampoline in the place of what it calls."""
# Two folders up: the package's own.
_ROOT = f"{Path(__file__).resolve().parents[2]}/"

StandIn = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes the fake of a function."""


def can_swap(thing: Any) -> bool:
    """Tells if the object's code, or what it calls, can be swapped in place."""
    return _find_swap_target(thing) is not None or _is_partial(thing)


def find_inner_function(thing: Any) -> Any:
    """The function in its decorators, which know it as `__wrapped__`: a fault is met where the work is done, so that a
    decorator that retries or turns exceptions into words does so here too. A decorator that keeps results is gone into
    no further, nor is one of Python's own library: both may leave the function uncalled."""
    if type(thing) is MethodType:
        function = find_inner_function(thing.__func__)
        return thing if function is thing.__func__ else MethodType(function, thing.__self__)
    while type(thing) is FunctionType:
        inner = thing.__dict__.get("__wrapped__")
        if type(inner) is not FunctionType or _get_top_package(inner.__module__) in _OURS or _is_stdlib_or_cache(thing):
            break
        thing = inner
    return thing


def _is_stdlib_or_cache(decorated: FunctionType) -> bool:
    of_python = _get_top_package(decorated.__globals__.get("__name__")) in sys.stdlib_module_names - {"__main__"}
    return of_python or any(name in decorated.__dict__ for name in ("cache", "cache_clear", "cache_info"))


@contextmanager
def swap_code(thing: Any, stand_in: StandIn) -> Iterator[None]:
    """A context in which calls of a function, a bound method, an object with `__call__` or a partial are led to its
    fake. `stand_in` is given a callable that does what `thing` did. Of a method, only calls on the same object are
    led there. Raises TypeError: it is none of these; see `can_swap`."""
    if _is_partial(thing):
        with _swap_partial(thing, stand_in):
            yield
        return
    target = _find_swap_target(thing)
    if target is None:
        raise TypeError(f"{thing!r} has no code in Python")
    function, owner = target
    # Before the code is swapped: it is what the fake calls.
    real = copy_function(function)
    if owner is None:
        lead: Callable[..., Any] = stand_in(real)
    else:
        lead = _limit_to_owner(owner, real, stand_in(MethodType(real, owner)))
    code, signature = function.__code__, function.__dict__.get("__signature__")
    kind = _get_function_kind(function)
    # Stated, since a trampoline takes anything and frameworks read signatures.
    function.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    function.__code__ = _make_trampoline(kind, code, _HOLDS[kind](lead))
    try:
        yield
    finally:
        function.__code__ = code
        del function.__signature__  # type: ignore[attr-defined]
        # It may have had one before.
        if signature is not None:
            function.__signature__ = signature  # type: ignore[attr-defined]


def make_reference_replacement(thing: Any, stand_in: StandIn) -> tuple[Any, Callable[..., Any]]:
    """The object to be sought where a program holds it, and what is put in its place, for a thing without code of its
    own. A method kept behind a cache is sought in its class."""
    if type(thing) is MethodType:
        return thing.__func__, _limit_to_owner(thing.__self__, thing.__func__, stand_in(thing))
    return thing, stand_in(thing)


def copy_function(function: FunctionType) -> FunctionType:
    """A function with the same code, names and defaults, which keeps its code when the other's is swapped."""
    # A new object of the same code: the old one will run the trampoline.
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__qualname__, copy.__module__, copy.__doc__ = function.__qualname__, function.__module__, function.__doc__
    copy.__dict__.update(function.__dict__)
    return copy


def _find_swap_target(thing: Any) -> tuple[FunctionType, Any] | None:
    """The function whose code is swapped, and the object on which it must be called (None: any)."""
    if type(thing) is FunctionType:
        return None if _get_top_package(thing.__module__) in _OURS else (thing, None)
    function: Any
    if type(thing) is MethodType:
        function, owner = thing.__func__, thing.__self__
    elif isinstance(thing, type):
        return None
    else:
        function, owner = getattr(type(thing), "__call__", None), thing  # noqa: B004 - the class's own, as Python calls it
    if type(function) is FunctionType and _get_top_package(function.__module__) not in _OURS:
        return function, owner
    return None


_OURS = sys.stdlib_module_names | {"chaoslab"}
"""Packages whose functions the lab itself uses. Only the agent's references to these are swapped."""


def _get_top_package(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _get_function_kind(function: FunctionType) -> str:
    if inspect.iscoroutinefunction(function):
        return "coroutine"
    if inspect.isasyncgenfunction(function):
        return "async generator"
    return "generator" if inspect.isgeneratorfunction(function) else "function"


def _make_trampoline(kind: str, code: CodeType, hold: Callable[..., Any]) -> CodeType:
    """The trampoline's code under the names and at the place of the function's own."""
    # Of the same kind, since async functions and generators are known by flags of their code.
    blank: CodeType = _WAYS[kind].__code__
    return blank.replace(
        co_consts=tuple(hold if constant == _HOLD else constant for constant in blank.co_consts),
        # The count of free variables has to stay, or Python refuses the code.
        co_freevars=code.co_freevars,
        # Tracebacks and profilers tell the function by these.
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        # One line: a trampoline has more instructions than the function's first line.
        co_linetable=_make_line_table(len(blank.co_code) // 2),
    )


def _make_line_table(units: int) -> bytes:
    """A table of places that puts all code units in the first line, without columns. An entry holds up to eight units:
    a byte of kind 13 with the number of units less one, then the step in lines (CPython's Objects/locations.md)."""
    sizes = [8] * (units // 8) + [units % 8] * bool(units % 8)
    return b"".join(bytes((0x80 | 13 << 3 | size - 1, 0)) for size in sizes)


# The trampolines by kind of function. The first two raise the fake's error themselves, so that the traceback begins
# in the user's file; they get it in a list, since its traceback holds their frame, which then does not hold it.


def _call_stand_in(*args: Any, **kwargs: Any) -> Any:
    stand_in_of_the_lab: Any = "the fake"
    ok, value = stand_in_of_the_lab(args, kwargs)
    if ok:
        return value
    raise value.pop()


async def _call_stand_in_async(*args: Any, **kwargs: Any) -> Any:
    stand_in_of_the_lab: Any = "the fake"
    ok, value = await stand_in_of_the_lab(args, kwargs)
    if ok:
        return value
    raise value.pop()


def _call_stand_in_generator(*args: Any, **kwargs: Any) -> Any:
    stand_in_of_the_lab: Any = "the fake"
    return (yield from stand_in_of_the_lab(args, kwargs))


async def _call_stand_in_async_generator(*args: Any, **kwargs: Any) -> Any:
    stand_in_of_the_lab: Any = "the fake"
    async for value in stand_in_of_the_lab(args, kwargs):
        yield value


_WAYS: dict[str, Any] = {
    "function": _call_stand_in,
    "coroutine": _call_stand_in_async,
    "generator": _call_stand_in_generator,
    "async generator": _call_stand_in_async_generator,
}


def _limit_to_owner(owner: Any, real: Callable[..., Any], stand_in: Callable[..., Any]) -> Callable[..., Any]:
    """The fake for calls on the owner, the function itself for those on others. A class owns its subclasses'
    calls."""
    of_class = isinstance(owner, type)

    def dispatch_call(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else None
        # A class method is called with the subclass.
        if first is owner or (of_class and isinstance(first, type) and issubclass(first, owner)):
            return stand_in(*args[1:], **kwargs)
        return real(*args, **kwargs)

    return dispatch_call


# What a trampoline calls.

_Outcome = tuple[bool, Any]
"""True and the result, or False and a list of the exception."""


def _wrap_call_to_return_outcome(lead: Callable[..., Any]) -> Callable[..., Any]:
    def call_and_return_outcome(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Outcome:
        try:
            return True, lead(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - the trampoline raises it
            reraise_unless_foreign(error)
            return False, [strip_lab_frames(error)]

    return call_and_return_outcome


def _wrap_async_to_return_outcome(lead: Callable[..., Any]) -> Callable[..., Any]:
    async def call_and_return_outcome(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Outcome:
        try:
            return True, await lead(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - the trampoline raises it
            reraise_unless_foreign(error)
            return False, [strip_lab_frames(error)]

    return call_and_return_outcome


def _make_generator_call(lead: Callable[..., Any]) -> Callable[..., Any]:
    return lambda args, kwargs: lead(*args, **kwargs)


_HOLDS = {
    "function": _wrap_call_to_return_outcome, "coroutine": _wrap_async_to_return_outcome,
    "generator": _make_generator_call, "async generator": _make_generator_call,
}  # fmt: skip


def strip_lab_frames(error: BaseException) -> BaseException:
    """The error with a traceback that shows no file of the lab's own."""
    traces: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_ROOT):
            traces.append(trace)
        trace = trace.tb_next
    cleaned: TracebackType | None = None
    # Built from the end, as each entry holds the next.
    for frame in reversed(traces):
        cleaned = TracebackType(cleaned, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return error.with_traceback(cleaned)


# Partials.


def _is_partial(thing: Any) -> bool:
    return isinstance(thing, partial)


@contextmanager
def _swap_partial(thing: partial[Any], stand_in: StandIn) -> Iterator[None]:
    """Gives the partial its fake as the function that it calls, with no arguments of its own."""
    state = thing.func, thing.args, thing.keywords, thing.__dict__
    lead = stand_in(partial(thing.func, *thing.args, **thing.keywords))
    lead.__name__ = getattr(thing.func, "__name__", "partial")  # by which the partial is known
    partial.__setstate__(thing, (lead, (), {}, thing.__dict__))  # type: ignore[attr-defined]
    try:
        yield
    finally:
        partial.__setstate__(thing, state)  # type: ignore[attr-defined]
