"""A child ends when its standard input closes, however its parent went."""

import signal
import subprocess
import sys

from tests.waiting import HUNG_S

CHILD = """
import os, signal
from chaoslab.base.lifeline import terminate_on_stdin_end
said = terminate_on_stdin_end()
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, said + b"\\n"), signal.signal(signal.SIGTERM, signal.SIG_DFL),
                                          signal.raise_signal(signal.SIGTERM)))
signal.alarm(60)
print("up", flush=True)
signal.pause()
"""
PARENT = f"""
import signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE)
signal.pause()
"""


def test_a_closed_stdin_is_a_sigterm() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        assert child.poll() is None
        child.stdin.write(b"the model has ended")
        child.stdin.flush()
        assert child.poll() is None
        child.stdin.close()
        assert child.stdout.readline() == b"the model has ended\n"
        assert child.wait(timeout=HUNG_S) == -signal.SIGTERM


def test_a_child_outlives_no_parent_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        parent.kill()
        said, _ = parent.communicate(timeout=HUNG_S)  # returns once the child, too, has let go of its end
        assert said == b"\n"
