"""A lab in a folder of its own, on ports of its own, run as a person runs it."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chaoslab.base.clock import system
from chaoslab.worlds.local import WorldError, find_free_ports
from tests import warm
from tests.waiting import HUNG_S

COMPILING = shutil.ignore_patterns("*.pyc.*", "*-pytest-*")
"""With these left out, a copy of the package holds what is compiled too: files that are written just now, and tests."""
SLOTS, FIRST, APART = 4, 10020, 5500
"""Tests that run side by side look in slots of their own, below the ports that systems hand out by themselves.

A lab spans 3,500 ports.
"""


def _slot() -> int:
    """The number of this worker of the test run; a run that has no workers takes the last slot."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    return int(worker.removeprefix("gw")) % (SLOTS - 1) if worker else SLOTS - 1


def _bases(slot: int) -> Iterator[int]:
    return cycle(range(FIRST + slot * APART, FIRST + slot * APART + 2000, 100))


_mine, _last = _bases(_slot()), _bases(SLOTS - 1)


def free_base(*, last: bool = False) -> int:
    """A base whose ports are free; another one each time.

    `last`: of the last slot, for a test whose worker has the number of a worker of another run.
    """
    for base in islice(_last if last else _mine, 20):
        with contextlib.suppress(WorldError):
            return find_free_ports(base, system).base
    raise AssertionError("no free ports")


def environment() -> dict[str, str]:
    """This process's, without what would change the lab's settings."""
    from chaoslab.config.settings import Settings

    names = set(Settings().to_environment())
    return {key: value for key, value in os.environ.items() if key not in names}


def as_installed(folder: Path) -> None:
    """Copies the package into a folder, with the lab's parts where an installation has them, not a checkout."""
    for part in ("chaoslab", "agent", "flask_tools", "proxy_manager"):
        to = folder / "chaoslab" / ("" if part == "chaoslab" else part)
        shutil.copytree(Path(__file__).parents[1] / part, to, ignore=COMPILING)


class Ended(NamedTuple):
    """The outcome of a command."""

    code: int
    out: str
    err: str


class Typed:
    """`chaoslab`, called in this process with what a person types; a path may stand for its name."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> Ended:
        from chaoslab.cli import main

        self._capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *self._capsys.readouterr())

    def out(self, *words: object) -> str:
        """The output of a command that ends well."""
        code, out, _ = self(*words)
        assert code == 0
        return out

    def refused(self, *words: object) -> str:
        """The one line of a command that is refused, and prints nothing else."""
        code, out, err = self(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err


def command(*arguments: str, python: str = sys.executable) -> list[str]:
    return [python, "-m", "chaoslab", *arguments]


def execute(words: Sequence[str | Path], **how: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, with its output as text."""
    return subprocess.run(words, **{"capture_output": True, "text": True, "timeout": HUNG_S, "check": False, **how})


def chaoslab(
    folder: Path, *arguments: str, really: bool = False, drawn: bool = False
) -> subprocess.CompletedProcess[str]:
    """Runs the command in that folder, to its end.

    `really`: with a start of Python itself, where the start is part of what is tested. `drawn`: a run's charts are
    drawn, as they are then anyway.
    """
    typed = command(*arguments, python=sys.executable if really else warm.python())
    return execute(typed, cwd=folder, env=environment() | (warm.DRAWN if drawn else {}))


@contextlib.contextmanager
def warm_parts() -> Iterator[None]:
    """The parts that a supervisor in this process starts within are warm."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", warm.python())
        yield


def prompts(folder: Path, asked: Sequence[object]) -> str:
    """A prompt file, as a setting."""
    path = folder / "mine.json"
    path.write_text(json.dumps(list(asked)))
    return f"PROMPTS={path}"
