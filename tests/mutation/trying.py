"""Tries a mutant: in a copy of the tree, with the tests that reach it, for a bounded time."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from chaoslab.base.clock import system
from chaoslab.record.provenance import PARTS
from tests.mutation.guards import GUARDS
from tests.mutation.mutants import Mutant
from tests.mutation.reach import CHOSEN, NOTES, Reached, instrumented

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = {".git", ".venv", "logs", "state", "charts", "build", ".hypothesis"}
PYTEST = (
    "-m",
    "pytest",
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "_hypothesis_pytestplugin",
    "-p",
    "reach",
    "--hypothesis-seed=0",
)
PATIENCE = 4
"""A mutant may take so many times the unchanged module's seconds and seconds of CPU, and SPARE_S more."""
SPARE_S = 5.0
MEMORY_MAX = 4 << 30

NO_TESTS = 5
"""The exit code of pytest that found none."""

KILLED, HUNG, SURVIVED, SAME, NOT_RUN = "killed", "timed out", "survived", "equivalent", "not run"


@dataclass(frozen=True)
class Outcome:
    """One mutant's end. `detail`: the test that failed."""

    module: str
    mutant: Mutant
    end: str
    detail: str = ""

    def to_json(self) -> str:
        told = {"module": self.module, "line": self.mutant.line, "mutant": self.mutant.name, "end": self.end}
        return json.dumps({**told, "detail": self.detail}, ensure_ascii=False)


def copied(to: Path) -> None:
    """Copies the tree, with the lab's parts within the package too, as installed: else those of ROOT would run."""
    shutil.copytree(ROOT, to, symlinks=True, ignore=lambda at, _: LEFT_OUT if Path(at) == ROOT else set())
    for part in PARTS:
        (to / "chaoslab" / part).symlink_to(to / part)


class Copy:
    """A copy of the tree in which mutants live, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self._notes, self._chosen = folder / "notes", folder / "chosen"
        copied(self.root)
        self._known: dict[str, tuple[float, float, Reached]] = {}
        self._broken: dict[str, str] = {}

    def learn(self, module: str) -> None:
        """Runs the guards of an unchanged module, which must pass, and learns how long they take and what each reaches.

        Raises:
            AssertionError: they fail.
        """
        began_s, began_cpu_s = system.monotonic(), _children_cpu_s()
        for old in self._notes.parent.glob(f"{self._notes.name}.*"):
            old.unlink()
        with self.changed(module, instrumented((self.root / module).read_bytes()).encode()):
            code, said = self.tests(GUARDS[module], wait_s=900.0, cpu_s=900.0, env={NOTES: str(self._notes)})
        if code:
            raise AssertionError(f"the tests of {module} fail before anything is changed:\n{said[-3000:]}")
        took_s, cpu_s = system.monotonic() - began_s, _children_cpu_s() - began_cpu_s
        self._known[module] = took_s, cpu_s, Reached(self._notes)

    def outcome(self, module: str, mutant: Mutant) -> Outcome:
        if module in self._broken:
            return Outcome(module, mutant, NOT_RUN, self._broken[module])
        if module not in self._known:
            try:
                with contextlib.suppress(AssertionError):  # on a busy machine a test may have failed by itself
                    self.learn(module)
                if module not in self._known:
                    self.learn(module)
            except AssertionError as error:
                self._broken[module] = str(error)
                return self.outcome(module, mutant)
        took_s, cpu_s, reached = self._known[module]
        tests = reached.tests(mutant.function)
        wait_s, cpu_s = took_s * PATIENCE + SPARE_S, cpu_s * PATIENCE + SPARE_S
        return self.met(module, mutant, GUARDS[module], tests, wait_s=wait_s, cpu_s=cpu_s)

    def met(
        self, module: str, mutant: Mutant, given: Sequence[str], tests: Sequence[str], *, wait_s: float, cpu_s: float
    ) -> Outcome:
        """The mutant's end after these tests, in their order. `given`: what pytest is given, that has them."""
        self._chosen.write_text(json.dumps(tests))
        env = {CHOSEN: str(self._chosen), "PYTHONDONTWRITEBYTECODE": "1"}
        with self.changed(module, mutant.of((self.root / module).read_bytes())):
            code, said = self.tests(given, wait_s=wait_s, cpu_s=cpu_s, env=env)
        if code is None or code in (-signal.SIGXCPU, -signal.SIGKILL):
            return Outcome(module, mutant, HUNG)
        if code == NO_TESTS:
            return Outcome(module, mutant, NOT_RUN, "no test was chosen")
        failed = next((line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))), said[-200:])
        return Outcome(module, mutant, KILLED if code else SURVIVED, failed[:300] if code else "")

    @contextlib.contextmanager
    def changed(self, module: str, source: bytes) -> Iterator[None]:
        """Old bytecode of the module would hide a change of it."""
        file = self.root / module
        right, bytecode = file.read_bytes(), Path(cache_from_source(str(file)))
        try:
            bytecode.unlink(missing_ok=True)
            file.write_bytes(source)
            yield
        finally:
            file.write_bytes(right)
            bytecode.unlink(missing_ok=True)

    def tests(
        self, given: Sequence[str], *, wait_s: float, cpu_s: float, env: Mapping[str, str]
    ) -> tuple[int | None, str]:
        """The exit code, None when they had to be ended, and what was printed."""
        path = os.pathsep.join((str(self.root), str(self.root / "tests" / "mutation")))
        env = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **env}

        def bounded() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 3))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))

        with tempfile.TemporaryFile() as said:
            tests = subprocess.Popen(
                [sys.executable, *PYTEST, *given],
                cwd=self.root,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                preexec_fn=bounded,
            )
            RUNNING.add(tests)
            code: int | None = None
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = tests.wait(wait_s)
            _end(tests)
            said.seek(0)
            return code, said.read().decode("utf-8", "replace")


RUNNING: set[subprocess.Popen[bytes]] = set()


def _end(tests: subprocess.Popen[bytes]) -> None:
    """The tests and what they started in their session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(tests.pid, signal.SIGKILL)
    tests.wait()
    RUNNING.discard(tests)


def end_all() -> None:
    """Ends all tests that still run."""
    for tests in tuple(RUNNING):
        _end(tests)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
