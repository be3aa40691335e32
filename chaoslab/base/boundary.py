"""The boundary to foreign code: agents, tools, plug-ins, applications and hooks. What they raise is theirs, whatever
its class, and never ends the lab."""

import signal
import sys
from opcode import opmap

_RAISE = opmap["RAISE_VARARGS"]
_HEAR = ("chaoslab.base.interrupts", "asyncio.runners")
"""The modules that raise KeyboardInterrupt with a statement because a signal came."""
_ENDS = (("asyncio", "CancelledError"), ("greenlet", "GreenletExit"))
"""The exceptions by which a task, or a thread of a virtual world, is told to end."""


class Through(BaseException):
    """An end of the lab's own, which passes every boundary. It is no `Exception`, since an agent would take it for an
    error of its tool, and a framework would try again."""


def let_through(error: BaseException) -> None:
    """Raises the error again if it is not the foreign code's own: an end of the lab's, Ctrl-C, or the end of a
    generator, a task or a thread of a virtual world."""
    if not is_foreign(error):
        raise error


def is_foreign(error: BaseException) -> bool:
    """Tells if foreign code raised the error itself."""
    if isinstance(error, Exception | SystemExit):
        return True
    if isinstance(error, KeyboardInterrupt):
        return not _of_a_signal(error)
    if isinstance(error, GeneratorExit):
        return _is_raised(error)
    ends = (getattr(sys.modules.get(module), name, None) for module, name in _ENDS)
    return not isinstance(error, (Through, *filter(None, ends)))


def _is_raised(error: BaseException) -> bool:
    """Tells if a statement raised the error first. A generator that is closed gets it where it waits."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE


def _of_a_signal(error: BaseException | None) -> bool:
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
