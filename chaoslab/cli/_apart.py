"""A command in a child process, so that an end of the process by foreign code is told from the end of the command."""

import os
import signal
import sys
from collections.abc import Callable

from chaoslab.base.commandline import LAB_DOWN
from chaoslab.base.interrupts import SIGNALS

OF_A_TERMINAL = 0x80
"""The origin of a signal that the kernel sends to all processes of a terminal at Ctrl-C."""


def apart(work: Callable[[], int]) -> int:
    """The exit code of `work`, in the child and in this process. It is 3, with a line that tells why, if the child ends
    before. In this process itself where none can be forked."""
    if not hasattr(signal, "sigwaitinfo") or not hasattr(os, "fork"):
        return work()
    from chaoslab.execution.forked import end_with_writer, ending

    verdict, verdict_end = os.pipe()
    lifeline, held = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*SIGNALS, signal.SIGCHLD})
    pid = os.fork()
    if pid == 0:
        os.close(verdict)
        os.close(held)
        end_with_writer(lifeline)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        code = work()
        sys.stdout.flush()
        os.write(verdict_end, bytes([code]))
        return code
    os.close(verdict_end)
    os.close(lifeline)
    status, came = _waited(pid)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if code_told := os.read(verdict, 1):
        return code_told[0]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in came:  # it was sent to the command
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    print(f"the lab is down: its process ended before the verdict ({ending(status)})", file=sys.stderr)
    return LAB_DOWN


def _waited(pid: int) -> tuple[int, set[int]]:
    """Waits for the child, and passes on to it the signals that it did not get itself. Returns its status, and the
    signals that came to this process."""
    seen = set[int]()
    while True:
        came = signal.sigwaitinfo({*SIGNALS, signal.SIGCHLD})
        if came.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status, seen | signal.sigpending()
            continue
        seen.add(came.si_signo)
        if came.si_code != OF_A_TERMINAL:
            os.kill(pid, came.si_signo)
