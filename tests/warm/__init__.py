"""Warm starts: `python -m chaoslab`, and `python -c` with a program that uses it, without loading LangChain, Flask and
matplotlib anew, which takes two to three seconds of CPU.

`python()` is a program to start in place of Python. It hands its arguments, folder, environment, streams and session to
a server process that has loaded the libraries and the modules of chaoslab. The server forks a child, and the child goes
on as Python does. It loads chaoslab anew if it would find another one, or if a file has changed.

A warm start cannot show: the cost of imports, what happens during them or when the libraries and the lab's modules are
taken apart at the end, who is whose parent, a limit set on the process, another hash seed. Tests of these start
`sys.executable`. The charts that `run` and `lab` leave are pictures of one pixel, unless the environment holds `DRAWN`.
A test that kills a process, or looks at its session, takes the one that `child` names. The program itself starts the
real Python for anything but `[-P] -m chaoslab` and `[-P] -c` with three open streams.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
DRAWN = {"CHAOSLAB_WARM_DRAWN": "1"}
SETTLED = ("PYTHON", "LC_", "LANG=", "LANGUAGE=", "TZ=", "LD_", "MPL")
"""Variables that begin so are read while Python or a library starts: a start with other values is a real one."""


os.environ.pop("PYTHONUNBUFFERED", None)  # else no test would see that what is written must be flushed
_START = dict(os.environ)
"""The environment before any test has changed it."""


def settled() -> dict[bytes, bytes]:
    """Such variables, as they were before any test."""
    found = {os.fsencode(name): os.fsencode(value) for name, value in _START.items()}
    return {name: value for name, value in found.items() if f"{name.decode('latin-1')}=".startswith(SETTLED)}


def child(pid: int) -> int:
    """The process for which the program with that number stands; there is none yet just after its start."""
    if python() == sys.executable:
        return pid
    from tests.waiting import eventually

    link = Path(python()).with_name(f"socket.{pid}")
    eventually(lambda: link.is_symlink() or _went_on(pid))
    return int(os.readlink(link)) if link.is_symlink() else pid


def _went_on(pid: int) -> bool:
    """True if the program has gone on as the real Python, which stands for itself."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return bool(line) and b"\0-IS\0" not in line  # it is empty for a moment while a program is replaced


def python_but(folder: Path, *named: str) -> str:
    """A program like `python()`, to be put into that folder, which starts the real Python where one of its arguments
    is one of these words: a part that is stopped, or one whose imports matter."""
    if python() == sys.executable:
        return python()
    path, text, real = folder / "python", Path(python()).read_text(), sys.executable
    really = f"if {set(named)!r} & {{*sys.argv}}:\n    os.execv({real!r}, [{real!r}, *sys.argv[1:]])\n"
    at = text.rindex("main(")
    path.write_text(text[:at] + really + text[at:])
    path.chmod(0o700)
    return str(path)


@cache
def python() -> str:
    """The program, for this test run's worker; its process starts with the first that asks.

    Where there is no fork, the real Python.
    """
    if not hasattr(os, "fork"):
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="chaoslab-warm-"))
    address, program = folder / "socket", folder / "python"
    program.write_text(
        f"#!{sys.executable} -IS\n{(HERE / 'client.py').read_text()}\n"
        f"main({sys.executable!r}, {str(address)!r}, {SETTLED!r}, {settled()!r})\n"
    )
    program.chmod(0o700)
    server = subprocess.Popen(
        [sys.executable, str(HERE / "server.py"), str(address)],
        env={**_START, "OPENBLAS_NUM_THREADS": "1"},  # who has threads should not fork
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    server.stdout.close()

    def end() -> None:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(10)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return str(program)
