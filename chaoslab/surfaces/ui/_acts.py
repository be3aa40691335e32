"""The acts of the pages, each of which is a command too: start a run."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaoslab.base.jsonable import line
from chaoslab.config.settings import program
from chaoslab.reports.places import LOGS
from chaoslab.reports.text import visible
from chaoslab.scenarios.files import found as scenario_files

CHILDREN = 4
"""The most runs that the pages have under way at once."""
TAIL = 2000
"""The most characters of a child's output that are shown."""
TEXT = 200
DONE = 10
OPTIONS = {"trials": "--trials", "seed": "--seed", "level": "--chaos-level"}
LAB = "the lab"


class Children:
    """The runs that were started from a page. They go on when the pages are closed."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[tuple[str, subprocess.Popen[bytes], Any]] = []
        self._done: list[dict[str, Any]] = []
        self.scenarios: list[str] | None = None
        """Those that were found last; None before the first look."""

    def start(self, asked: Mapping[str, Any]) -> str:
        """Starts a scenario with other knobs; returns the command as a user would type it. Raises ValueError: something
        that was asked for is wrong; the message says what."""
        if len([each for each in self._running if each[1].poll() is None]) >= CHILDREN:
            raise ValueError(f"{CHILDREN} runs that were started here are under way: wait, or stop one")
        words = self.words(asked)
        output = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
        child = subprocess.Popen(
            [sys.executable, "-m", "chaoslab", *words], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        told = shlex.join([program(), *words])
        self._running.append((told, child, output))
        return told

    def words(self, asked: Mapping[str, Any]) -> list[str]:
        """The words of the command, each checked: none can be taken for another option."""
        what, given = str(asked.get("scenario", "")), {key: str(asked.get(key, "")).strip() for key in OPTIONS}
        for key in ("trials", "seed"):
            if given[key] and not (given[key].isascii() and given[key].isdigit()):
                raise ValueError(f"{key} should be a whole number, and not {given[key][:40]!r}")
        sets = str(asked.get("set", "")).split()
        if wrong := next((each for each in sets if each.startswith("-") or "=" not in each), None):
            raise ValueError(f"{wrong[:40]!r} should be NAME=VALUE, as in TOXIC_PROB=0.3")
        if given["level"].startswith("-"):
            raise ValueError(f"the level should be from 0 to 10, and not {given['level'][:40]!r}")
        if what not in self.look():
            raise ValueError(f"{line(what, TEXT)!r} is no scenario below this folder")
        if what == LAB:
            knobs = {"TRIALS": given["trials"], "SEED": given["seed"], "CHAOS_LEVEL": given["level"]}
            return ["run", "--world", "virtual", *(f"{key}={value}" for key, value in knobs.items() if value), *sets]
        options = [word for key, value in given.items() if value for word in (OPTIONS[key], value)]
        changes = [word for each in sets for word in ("--set", each)]
        return ["test", what, "--logs", str(self._logs), *options, *changes]

    def look(self) -> list[str]:
        """Looks for the scenario files below the current folder, which takes seconds in a large one."""
        found: list[str] = []
        with suppress(LookupError, OSError):
            found += map(str, scenario_files([]))
        found += [LAB] if self._logs.resolve() == LOGS.resolve() else []  # it writes its runs nowhere else
        self.scenarios = found
        return found

    def listed(self) -> list[dict[str, Any]]:
        """The children, the last first: the command, and the exit code and output of one that has ended."""
        for each in [*self._running]:
            command, child, output = each
            if (code := child.poll()) is not None:
                self._running.remove(each)
                output.seek(0)
                said = output.read().decode(errors="replace")[-TAIL:]
                output.close()
                self._done = [{"command": command, "code": code, "said": visible(said, TAIL)}, *self._done][:DONE]
        return [
            {"command": command, "code": None, "said": ""} for command, _, _ in reversed(self._running)
        ] + self._done
