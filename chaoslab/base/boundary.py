"""The boundary to foreign code: agents, tools, plug-ins, applications and hooks. What they raise is theirs, whatever
its class, and never ends the lab."""

import signal
import sys
from collections.abc import Callable
from opcode import opmap
from types import TracebackType
from typing import Any

_OWN = __name__.partition(".")[0]
_RAISE = opmap["RAISE_VARARGS"]
_HEAR = ("chaoslab.base.interrupts", "asyncio.runners")
"""The modules that raise KeyboardInterrupt with a statement because a signal came."""
_ENDS = (("asyncio", "CancelledError"), ("greenlet", "GreenletExit"))
"""The exceptions by which a task, or a thread of a virtual world, is told to end."""


class Through(BaseException):
    """An end of the lab's own, which passes every boundary. It is no `Exception`, since an agent would take it for an
    error of its tool, and a framework would try again."""


def reraise_unless_foreign(error: BaseException) -> None:
    """Raises the error again if it is not the foreign code's own: an end of the lab's, Ctrl-C, or the end of a
    generator, a task or a thread of a virtual world."""
    if not is_foreign_error(error):
        raise error


def is_foreign_error(error: BaseException) -> bool:
    """Tells if foreign code raised the error itself."""
    kind = type(error)  # `isinstance` would ask the error for its `__class__`, which may raise
    if issubclass(kind, Exception | SystemExit):
        return True
    if issubclass(kind, KeyboardInterrupt):
        return not _is_from_signal(error)
    if issubclass(kind, Through):
        return False
    # Only those that are loaded: nobody can have raised another.
    ends = [class_ for module, name in _ENDS if (class_ := getattr(sys.modules.get(module), name, None)) is not None]
    return _is_from_raise_statement(error) if issubclass(kind, (GeneratorExit, *ends)) else True


def passes_test(test: Callable[[Any], bool], value: Any) -> bool:
    """The result of a test of a foreign value, such as its truth; False if the value's own code raises."""
    try:
        return bool(test(value))
    except BaseException as error:  # noqa: BLE001
        reraise_unless_foreign(error)
        return False


def is_raised_by_value(error: BaseException, *modules: str) -> bool:
    """True if the code of a value raised the error when somebody looked at it: one outside of the standard library, of
    this package, and of these modules."""
    trace = _find_last_traceback(error)
    name = "" if trace is None else _get_module_name(trace)
    package = name.partition(".")[0]
    ours = package == _OWN or name in modules
    return bool(name) and not ours and package not in sys.stdlib_module_names - {"__main__"}


def _is_from_raise_statement(error: BaseException) -> bool:
    """Tells if a statement of a program raised the error first. A generator that is closed, a task and a thread that
    are told to end get it where they wait."""
    trace = _find_last_traceback(error)
    if trace is None or _get_module_name(trace).startswith((f"{_OWN}.worlds.", "asyncio.")):
        return False
    # The bytecode tells: only a `raise` statement leaves the frame at this instruction.
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE


def _find_last_traceback(error: BaseException) -> TracebackType | None:
    """The place at which the error was raised."""
    # Not error.__traceback__, which its class may define anew.
    trace = BaseException.__getattribute__(error, "__traceback__")
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace  # type: ignore[no-any-return]


def _get_module_name(trace: TracebackType) -> str:
    return str(trace.tb_frame.f_globals.get("__name__", ""))


def _is_from_signal(error: BaseException | None) -> bool:
    """Tells if a signal raised this KeyboardInterrupt, or the one that it was raised for: a statement of a program did
    not, unless it is a handler's."""
    handler = getattr(signal.getsignal(signal.SIGINT), "__code__", None)
    while isinstance(error, KeyboardInterrupt):
        trace, raised = error.__traceback__, False
        while trace is not None:
            frame = trace.tb_frame
            if frame.f_code is handler:
                return True
            raised = frame.f_code.co_code[trace.tb_lasti] == _RAISE and frame.f_globals.get("__name__") not in _HEAR
            trace = trace.tb_next
        if not raised:
            return True
        error = error.__cause__ or error.__context__
    return False
