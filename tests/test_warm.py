"""A warm start is a real one in all that the lab and its tests look at, but for the time that loading takes."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.cli_parts import chaoslab, prompts
from tests.sure import sure
from tests.waiting import HUNG_S, eventually

TELLS = """
import json, os, signal, sys

def told(stream):
    raw = getattr(stream.buffer, "raw", stream.buffer)
    return [stream.encoding, stream.errors, stream.line_buffering, stream.write_through,
            type(stream.buffer).__name__, raw.fileno()]

pid, mask = os.getpid(), os.umask(0o77)
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "folder": os.getcwd(), "environment": dict(os.environ), "mask": mask,
    "leads": [os.getsid(0) == pid, os.getpgid(0) == pid], "name": __name__,
    "spec": __spec__ and __spec__.name, "file": globals().get("__file__"),
    "signals": {int(s): str(signal.getsignal(s)).split(" at ")[0] for s in signal.valid_signals()},
    "blocked": [int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
    "streams": [told(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)], "own": sys.stdout is sys.__stdout__,
    "fds": sorted(int(fd) for fd in os.listdir("/dev/fd")), "said": sys.stdin.read(),
}))
"""
WAITS = """
import select, sys
print("up", flush=True)
while not select.select([sys.stdin], [], [], 0.1)[0]:  # right before an endless wait none is heard
    pass
"""
LOADED = "import sys\nprint('langchain.agents' in sys.modules)"
KEPT = """
import sys
from pathlib import Path
sys.path[:0] = [{folder!r}, {server!r}]
from server import Own
own = Own.loaded()
file = Path(own.modules["chaoslab.part"].__file__)
{then}
own.kept()
import chaoslab.part
print(chaoslab.part is own.modules["chaoslab.part"])
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a chaoslab of its own in it, which `-m` finds first."""
    (tmp_path / "chaoslab").mkdir()
    return tmp_path


def program(folder: Path, text: str) -> None:
    (folder / "chaoslab" / "__main__.py").write_text(text)


def both(folder: Path, *arguments: str, **how: Any) -> list[subprocess.CompletedProcess[str]]:
    """The outcomes of a real start and of a warm one."""
    return [
        subprocess.run(
            [python, *arguments], cwd=folder, text=True, capture_output=True, timeout=HUNG_S, check=False, **how
        )
        for python in (sys.executable, warm.python())
    ]


def ignoring() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"start_new_session": True},
        {"process_group": 0},
        {"umask": 0o27},
        {"env": os.environ | {"TOXIC_PROB": "0.3", "ODD": "é=\udcff"}},
        {"preexec_fn": ignoring},
    ],
    ids=lambda how: " ".join(how),
)
def test_it_finds_what_a_real_start_finds(folder: Path, how: Mapping[str, Any]) -> None:
    program(folder, TELLS)
    for start in (("-m", "chaoslab"), ("-c", TELLS)):
        real, warmed = both(folder, *start, "show", "é", "--x=1", input="words", **how)
        assert (real.returncode, real.stderr) == (warmed.returncode, warmed.stderr) == (0, "")
        assert json.loads(real.stdout) == json.loads(warmed.stdout)


@pytest.mark.parametrize(
    "ends",
    [
        "", "sys.exit(3)", "sys.exit()", "sys.exit(-1)", "sys.exit(256)", "sys.exit('said')", "1/0", "os._exit(7)",
        "raise KeyboardInterrupt", "os.kill(os.getpid(), 9)", "os.abort()",
        "os.dup2(os.open('/dev/full', os.O_WRONLY), 1)", "sys.stdout = None",
    ],
)  # fmt: skip
def test_it_ends_as_a_real_one_ends(folder: Path, ends: str) -> None:
    program(folder, f"import atexit, os, sys\natexit.register(print, 'over')\nprint('begun', end='')\n{ends}")
    real, warmed = both(folder, "-m", "chaoslab")
    assert (real.returncode, real.stdout, real.stderr[-20:]) == (warmed.returncode, warmed.stdout, warmed.stderr[-20:])


UNDONE = """
class Thing:
    def __del__(self):
        print(self.name, type(helper))

def helper():
    return thing, turned

thing, turned = Thing(), Thing()
thing.name, turned.name = "kept", "in a circle"
turned.itself = turned
"""


@pytest.mark.parametrize("ends", ["", "raise SystemExit(3)", "raise SystemExit('said')"])
def test_what_a_start_has_made_is_undone_at_its_end(folder: Path, ends: str) -> None:
    (folder / "mine.py").write_text(UNDONE)
    for own in (UNDONE, "import mine"):
        real, warmed = both(folder, "-c", f"{own}\n{ends}")
        assert real.stdout.count("\n") == 2
        assert sorted(real.stdout.splitlines()) == sorted(warmed.stdout.splitlines())
        assert (real.returncode, real.stderr) == (warmed.returncode, warmed.stderr)


def test_where_the_folder_is_not_looked_into_the_labs_own_is_found(folder: Path) -> None:
    program(folder, "raise SystemExit('mine')")
    assert [ended.returncode for ended in both(folder, "-m", "chaoslab", "--version")] == [1, 1]
    assert [ended.stdout for ended in both(folder, "-P", "-m", "chaoslab", "--version")] == ["chaoslab 0.1.0\n"] * 2


def test_only_a_start_of_chaoslab_as_the_server_was_started_finds_the_libraries_loaded(folder: Path) -> None:
    program(folder, LOADED)
    (folder / "other.py").write_text(LOADED)
    start = ("-m", "chaoslab")
    assert both(folder, *start)[1].stdout == "True\n"
    real = ("False\n", "")
    assert both(folder, "-c", LOADED)[1].stdout == "True\n"
    for arguments in (("-m", "other"), ("other.py",), ("-X", "utf8", *start), ("-B", *start)):
        ended = both(folder, *arguments)[1]
        assert (ended.stdout, ended.stderr) == real, arguments
    for name, value in {"PYTHONHASHSEED": "1", "LANG": "de_DE", "TZ": "UTC+3", "MPLBACKEND": "svg"}.items():
        ended = both(folder, *start, env=os.environ | {name: value})[1]
        assert (ended.stdout, ended.stderr) == real, name
    for name in ("LANGSMITH_TRACING", "TZNAME", "GROQ_API_KEY"):  # read when it is wanted, whoever has set it meanwhile
        assert both(folder, *start, env=os.environ | {name: "x"})[1].stdout == "True\n", name
    closed = f"{shlex.quote(warm.python())} -m chaoslab 0<&-"
    assert subprocess.run(closed, shell=True, cwd=folder, capture_output=True, text=True, check=False).stdout == real[0]


def test_a_chaoslab_of_the_folder_is_loaded_in_place_of_the_labs_own(folder: Path) -> None:
    program(folder, "import sys\nprint(sorted(name for name in sys.modules if name.startswith('chaoslab')))")
    assert both(folder, "-m", "chaoslab")[1].stdout == "['chaoslab']\n"


@pytest.mark.parametrize(
    ("then", "kept"),
    [
        ("", True),
        ("file.write_text('changed = True')", False),
        ("file.write_text(file.read_text())", False),
        ("file.replace(file.with_name('moved.py')); file.with_name('part').mkdir()", False),
        ("sys.path.insert(0, str(file.parents[1] / 'nearer'))", False),
    ],
)
def test_a_start_keeps_the_labs_modules_only_as_long_as_it_would_load_the_same(
    folder: Path, then: str, *, kept: bool
) -> None:
    for name in ("chaoslab", "nearer/chaoslab"):
        server = folder / name / "wire" / "server"
        server.mkdir(parents=True)
        for package in (server, server.parent, server.parents[1]):
            (package / "__init__.py").touch()
        (folder / name / "part.py").touch()
    text = KEPT.format(folder=str(folder), server=str(warm.HERE), then=then)
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == (f"{kept}\n", "")


@contextlib.contextmanager
def up(python: str, folder: Path, **how: Any) -> Iterator[subprocess.Popen[str]]:
    """The program of the folder once it says that it is up; it is killed afterwards."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([python, "-m", "chaoslab"], cwd=folder, text=True, **pipes, **how) as process:
        try:
            assert sure(process.stdout).readline() == "up\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_reaches_it(folder: Path, number: signal.Signals) -> None:
    program(folder, WAITS)
    for python in (sys.executable, warm.python()):
        with heard(number), up(python, folder) as process:
            process.send_signal(number)
            eventually(lambda: process.poll() is not None)
            assert sure(process.stdout).read() == ""  # nobody has it open any more
        assert process.returncode == -number, python


HEARS = """
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit(9))
print("up", flush=True)
while signal.sigtimedwait([], 0.1) is None:
    pass
"""


def test_a_signal_reaches_a_handler_of_its_own_though_it_was_ignored_at_the_start(folder: Path) -> None:
    """A run that a script starts in the background ignores SIGINT at first, and chaoslab hears it all the same."""
    program(folder, HEARS)
    for python in (sys.executable, warm.python()):
        with up(python, folder, preexec_fn=ignoring) as process:
            process.send_signal(signal.SIGINT)
            eventually(lambda: process.poll() is not None)
        assert process.returncode == 9, python


def test_who_kills_the_child_kills_the_start(folder: Path) -> None:
    program(folder, "import os\nprint(os.getpid(), flush=True)\ninput()")
    start = [warm.python(), "-m", "chaoslab"]
    with subprocess.Popen(start, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        child = warm.child(process.pid)
        assert sure(process.stdout).readline() == f"{child}\n"
        os.kill(child, signal.SIGKILL)
        assert process.wait(HUNG_S) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_run_leaves_pictures_of_one_pixel(tmp_path: Path) -> None:
    assert chaoslab(tmp_path, "lab", "WORLD=virtual", prompts(tmp_path, ["What is 6 times 7?"])).returncode == 0
    pictures = [path.stat().st_size for path in (tmp_path / "charts").glob("*.png")]
    assert len(pictures) == 8
    assert max(pictures) < 100


@contextlib.contextmanager
def heard(number: signal.Signals) -> Iterator[None]:
    """A context in which a process that is started does not ignore the signal, as one does that was itself started in
    the background."""
    if number is signal.SIGKILL:
        yield
        return
    before = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, before)
