"""Breaks the lab's modules in small ways, one at a time, and counts the ways that no test notices.

    python tests/mutation/run.py [MODULE …] [--seed 1] [--each 12] [--jobs 1] [--list]

Each mutant is made in a copy of the tree, so that the tree itself is never changed, whatever becomes of this program. The tests of guards.py
run on it; it is killed when one of them fails, or when they hang. Survivors that mean the same as the original are named in equivalent.toml;
each other one is a test that is missing. Seed and names choose the mutants (dice), so that a table can be made again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import cache_from_source
from pathlib import Path

from guards import GUARDS
from mutants import Mutant, chosen, mutants
from reach import CHOSEN, NOTES, Reached, instrumented

from chaoslab.clock import system

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
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
"""A mutant may take so many times the time of the unchanged module, in seconds and in seconds of CPU, and SPARE_S more."""
SPARE_S = 5.0
MEMORY_MAX = 4 << 30

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


class Copy:
    """A copy of the tree in which mutants live, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self._notes, self._chosen = folder / "notes", folder / "chosen"
        left_out: Callable[[str, list[str]], set[str]] = lambda at, _: LEFT_OUT if Path(at) == ROOT else set()  # noqa: E731
        shutil.copytree(ROOT, self.root, ignore=left_out, symlinks=True)
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
        with self._changed(module, instrumented((self.root / module).read_bytes()).encode()):
            code, said = self._tests(module, wait_s=900.0, cpu_s=900.0, env={NOTES: str(self._notes)})
        if code:
            raise AssertionError(f"the tests of {module} fail before anything is changed:\n{said[-3000:]}")
        took_s, cpu_s = system.monotonic() - began_s, _children_cpu_s() - began_cpu_s
        self._known[module] = took_s, cpu_s, Reached(self._notes)

    def outcome(self, module: str, mutant: Mutant) -> Outcome:
        if module in self._broken:
            return Outcome(module, mutant, NOT_RUN, self._broken[module])
        if module not in self._known:
            try:
                with contextlib.suppress(
                    AssertionError
                ):  # a busy machine may fail a test that waits for another process
                    self.learn(module)
                if module not in self._known:
                    self.learn(module)
            except AssertionError as error:
                self._broken[module] = str(error)
                return self.outcome(module, mutant)
        took_s, cpu_s, reached = self._known[module]
        self._chosen.write_text(json.dumps(reached.tests(mutant.function)))
        env = {CHOSEN: str(self._chosen), "PYTHONDONTWRITEBYTECODE": "1"}
        wait_s, cpu_s = took_s * PATIENCE * 2 + SPARE_S, cpu_s * PATIENCE + SPARE_S
        with self._changed(module, mutant.of((self.root / module).read_bytes())):
            code, said = self._tests(module, wait_s=wait_s, cpu_s=cpu_s, env=env)
        if code is None or code in (-signal.SIGXCPU, -signal.SIGKILL):
            return Outcome(module, mutant, HUNG)
        failed = next((line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))), said[-200:])
        return Outcome(module, mutant, KILLED if code else SURVIVED, failed[:300] if code else "")

    @contextlib.contextmanager
    def _changed(self, module: str, source: bytes) -> Iterator[None]:
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

    def _tests(self, module: str, *, wait_s: float, cpu_s: float, env: Mapping[str, str]) -> tuple[int | None, str]:
        """The exit code, None when they had to be ended, and what was printed."""
        path = os.pathsep.join((str(self.root), str(self.root / "tests" / "mutation")))
        env = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **env}

        def bounded() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 3))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))

        with tempfile.TemporaryFile() as said:
            tests = subprocess.Popen(
                [sys.executable, *PYTEST, *GUARDS[module]],
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


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wanted(patterns: Sequence[str]) -> list[str]:
    """The modules of these names: `plan`, `measures/*`, `chaoslab/wire/lanes.py`; all of them when none is named."""
    if not patterns:
        return list(GUARDS)
    found = [m for m in GUARDS if any(fnmatch(m, p) or fnmatch(m.removesuffix(".py"), f"*/{p}") for p in patterns)]
    if not found:
        raise SystemExit(f"no module is called {', '.join(patterns)}; there are {', '.join(GUARDS)}")
    return found


def equivalents() -> dict[tuple[str, str], str]:
    """(module, mutant) → the reason."""
    named = tomllib.loads(EQUIVALENT.read_text())["mutant"] if EQUIVALENT.exists() else []
    return {(one["module"], one["mutant"]): one["reason"] for one in named}


def outcomes(todo: Sequence[tuple[str, Mutant]], *, jobs: int) -> Iterator[Outcome]:
    """Each mutant's end, as they come; every job has a copy of its own."""
    left: queue.SimpleQueue[tuple[str, Mutant]] = queue.SimpleQueue()
    done: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
    for each in todo:
        left.put(each)

    def work(folder: Path) -> None:
        try:
            copy = Copy(folder)
            while True:
                done.put(copy.outcome(*left.get_nowait()))
        except queue.Empty:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where the outcomes are wanted
            done.put(error)

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for n in range(jobs):
            threading.Thread(target=work, args=(Path(folder) / str(n),), daemon=True).start()
        try:
            for _ in todo:
                came = done.get()
                if isinstance(came, BaseException):
                    raise came
                yield came
        finally:
            for tests in tuple(RUNNING):
                _end(tests)


def table(found: Sequence[Outcome]) -> str:
    """Per module: how many mutants ended how, and the share of the killed among those that are not equivalent."""
    rows = [
        "| module | mutants | killed | timed out | survived | equivalent | not run | noticed |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    modules = list(dict.fromkeys(outcome.module for outcome in found))
    for name in [*modules, "all"]:
        ends = Counter(o.end for o in found if name in (o.module, "all"))
        real = ends[KILLED] + ends[HUNG] + ends[SURVIVED]
        share = f"{(ends[KILLED] + ends[HUNG]) / real:.0%}" if real else "–"
        cells = (name, ends.total(), ends[KILLED], ends[HUNG], ends[SURVIVED], ends[SAME], ends[NOT_RUN], share)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", nargs="*", help="such as plan, measures/*, wire/toxics/* (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=12, help="mutants of each module; 0: all (default 12)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="name the mutants and run nothing")
    parser.add_argument("--log", type=Path, help="a file that gets a line of JSON for each mutant")
    parser.add_argument("--again", type=Path, help="such a file: run only what survived in it")
    asked = parser.parse_args()
    todo = [
        (module, mutant)
        for module in wanted(asked.module)
        for mutant in chosen(mutants((ROOT / module).read_bytes()), seed=asked.seed, module=module, count=asked.each)
    ]
    if asked.again:
        was = [json.loads(line) for line in asked.again.read_text().splitlines()]
        survived = {(one["module"], one["mutant"]) for one in was if one["end"] == SURVIVED}
        todo = [(module, m) for module, m in _all(asked.module) if (module, m.name) in survived]
    if asked.list:
        for module, mutant in todo:
            print(f"{module}:{mutant.line}: {mutant.name}")
        print(f"{len(todo)} mutants")
        return 0
    return _run(todo, jobs=asked.jobs, log=asked.log)


def _all(patterns: Sequence[str]) -> Iterator[tuple[str, Mutant]]:
    for module in wanted(patterns):
        for mutant in mutants((ROOT / module).read_bytes()):
            yield module, mutant


def _run(todo: Sequence[tuple[str, Mutant]], *, jobs: int, log: Path | None) -> int:
    """Prints survivors as they come, and the table at the end; 1 when there are any."""
    known = equivalents()
    every = {(module, mutant.name) for module, mutant in _all(())}
    for module, name in known.keys() - every:
        print(f"equivalent.toml names a mutant that there is none of: {module}: {name}")
    same = [Outcome(module, m, SAME, known[module, m.name]) for module, m in todo if (module, m.name) in known]
    found = []
    for outcome in _with(same, outcomes([t for t in todo if (t[0], t[1].name) not in known], jobs=jobs)):
        found.append(outcome)
        if log:
            with log.open("a") as file:
                file.write(outcome.to_json() + "\n")
        if outcome.end == NOT_RUN and sum(o.module == outcome.module for o in found) == 1:
            print(outcome.detail, flush=True)
        if outcome.end == SURVIVED:
            print(f"survived: {outcome.module}:{outcome.mutant.line}: {outcome.mutant.name}", flush=True)
    order = list(GUARDS)
    print(table(sorted(found, key=lambda o: order.index(o.module))))
    return int(any(outcome.end in (SURVIVED, NOT_RUN) for outcome in found))


def _with(first: Sequence[Outcome], then: Iterator[Outcome]) -> Iterator[Outcome]:
    yield from first
    yield from then


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
