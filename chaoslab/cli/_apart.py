"""A command in a child process, so that an end of the process by foreign code is told from the end of the command."""

import os
import signal
import sys
from collections.abc import Callable

from chaoslab.base.commandline import LAB_DOWN
from chaoslab.base.interrupts import SIGNALS

OF_A_TERMINAL = 0x80
"""The origin of a signal that the kernel sends to all processes of a terminal at Ctrl-C."""


def run_in_child(work: Callable[[], int]) -> int:
    """The exit code of `work`, in the child and in this process. It is 3, with a line that tells why, if the child ends
    before. In this process itself where none can be forked."""
    # Windows has neither.
    if not hasattr(signal, "sigwaitinfo") or not hasattr(os, "fork"):
        return work()
    from chaoslab.execution.forked import describe_exit_status, end_process_when_pipe_closes

    verdict, verdict_end = os.pipe()
    lifeline, held_end = os.pipe()
    # Else both processes would print what is in the buffer.
    sys.stdout.flush()
    sys.stderr.flush()
    # Blocked before the fork, so that no signal comes between it and the wait.
    mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, {*SIGNALS, signal.SIGCHLD})
    pid = os.fork()
    if pid == 0:
        os.close(verdict)
        os.close(held_end)
        # The child ends with this process, also if that is killed.
        end_process_when_pipe_closes(lifeline)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)
        code = work()
        sys.stdout.flush()
        # By a pipe: foreign code may end the process with any exit code, as by os._exit.
        os.write(verdict_end, bytes([code]))
        return code
    os.close(verdict_end)
    os.close(lifeline)
    status, signals = _wait_for_child(pid)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)
    if verdict_byte := os.read(verdict, 1):
        return verdict_byte[0]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in signals:  # it was sent to the command
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    print(f"the lab is down: its process ended before the verdict ({describe_exit_status(status)})", file=sys.stderr)
    return LAB_DOWN


def _wait_for_child(pid: int) -> tuple[int, set[int]]:
    """Waits for the child, and passes on to it the signals that it did not get itself. Returns its status, and the
    signals that came to this process."""
    signals = set[int]()
    while True:
        signal_info = signal.sigwaitinfo({*SIGNALS, signal.SIGCHLD})
        if signal_info.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                # Those that came at the same moment count too.
                return status, signals | signal.sigpending()
            continue
        signals.add(signal_info.si_signo)
        # The child belongs to the terminal's group too, and has that one already.
        if signal_info.si_code != OF_A_TERMINAL:
            os.kill(pid, signal_info.si_signo)
