"""Breaks the package in small ways, one at a time, and counts the ways that no test notices. Needs Python 3.12.

    python -m tests.mutation.run NOTES [MODULE …] [--seed 1] [--count 300] [--jobs 2] [--log FILE] [--list]

First, once for a folder NOTES, the tests run and note which lines each of them runs; a test that fails there guards
nothing. Then each mutant meets the tests that run its statement, in a copy of the tree: first those of files that name
its module, then the quickest of all others. Without a MODULE (`core/plan`, `wire/*`) the mutants are drawn from the
rooms by seed; with one, all of its mutants are tried unless --count says how many. Survivors that mean the same as the
original are named in equivalent.toml; each other one is a test that is missing.
"""

import argparse
import ast
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue

from chaoslab.base.dice import Dice
from chaoslab.record.provenance import PARTS
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.noting import NOTES, Noted
from tests.mutation.worker import HUNG, KILLED, NOT_RUN, SURVIVED, Asked

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("core", "analysis", "seams", "wire", "record", "execution", "worlds/virtual")
LEFT_OUT = {".git", ".venv", "logs", "state", "charts", "build", "site", ".hypothesis"}
SLOW = (
    "live/*", "warm/*", "planted/*", "mutation/*", "worlds/test_*", "gateway/test_exec.py", "gateway/test_same.py",
    "agent/test_main.py", "reports/test_charts.py", "reports/test_accessible.py", "reports/test_page.py",
    "reports/test_notebook.py", "hard/test_[ikst]*", "scenarios/test_examples.py", "scenarios/test_interrupted.py",
    "wire/test_server_stress.py", "wire/test_*_parity.py", "worlds/virtual/test_lab_same.py", "test_readme.py",
    "test_documents.py", "test_wheel.py", "test_import_cost.py", "test_frameworks.py", "test_contracts.py",
    "test_interrupt*.py", "test_contributing.py", "test_makefile.py",
)  # fmt: skip
"""Files of tests that take long, or that run another tree than their own."""
OWN_S, OTHERS_S, SURE_S = 15.0, 10.0, 4.0
"""The seconds of tests of a mutant, as they took once: of files that name its module, of others, and once more."""
SAME = "equivalent"


@dataclass(frozen=True)
class Outcome:
    """One mutant's end. `detail`: the test that failed, or why none ran."""

    module: str
    mutant: Mutant
    end: str
    detail: str = ""

    def to_json(self) -> str:
        told = {"module": self.module, "line": self.mutant.line, "mutant": self.mutant.name, "end": self.end}
        return json.dumps({**told, "detail": self.detail[-200:]}, ensure_ascii=False)


def copied(to: Path) -> None:
    """Copies the tree, with the lab's parts within the package too, as installed: else those of ROOT would run."""
    shutil.copytree(ROOT, to, symlinks=True, ignore=lambda at, _: LEFT_OUT if Path(at) == ROOT else set())
    for part in PARTS:
        (to / "chaoslab" / part).symlink_to(to / part)


def modules(patterns: Sequence[str]) -> list[str]:
    """Those of these names (`core/plan`, `wire/*`), or those of the rooms."""
    every = sorted(str(path.relative_to(ROOT / "chaoslab")) for path in (ROOT / "chaoslab").rglob("*.py"))
    wanted = patterns or [f"{room}/*" for room in ROOMS]
    found = [m for m in every if any(fnmatch(m, p) or fnmatch(m.removesuffix(".py"), p) for p in wanted)]
    if not found:
        raise SystemExit(f"no module is called {', '.join(patterns)}: write core/plan, or wire/*")
    return [f"chaoslab/{each}" for each in found]


def drawn(patterns: Sequence[str], seed: int, count: int) -> list[tuple[str, Mutant]]:
    """So many mutants of the modules by the dice of their names, so that a change elsewhere moves none; all for 0."""
    every = [(module, each) for module in modules(patterns) for each in mutants((ROOT / module).read_bytes())]
    every.sort(key=lambda pair: Dice(seed, pair[0], pair[1].name).uniform())
    return every[: count or None]


def equivalents() -> dict[tuple[str, str], str]:
    """(module, mutant) → the reason."""
    named = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text())["mutant"]
    return {(one["module"], one["mutant"]): one["reason"] for one in named}


@cache
def _names(file: str, module: str) -> bool:
    """True if a file of tests imports a module, or is called like it."""
    name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    outer, _, last = name.rpartition(".")
    text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).exists() else ""
    return name in text or f"from {outer} import {last}" in text or f"test_{last.strip('_')}." in file


@cache
def _statements(module: str) -> list[tuple[int, int, range, tuple[str, int] | None]]:
    """Of each statement the begin and end in bytes, the lines that run when it does, and the outermost function."""
    source = (ROOT / module).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []

    def walk(node: ast.AST, names: tuple[str, ...], function: tuple[str, int] | None) -> None:
        for each in ast.iter_child_nodes(node):
            inside, called = function, names
            if isinstance(each, ast.stmt):
                assert each.end_lineno is not None
                assert each.end_col_offset is not None
                inner = getattr(each, "body", None)
                first = getattr(each, "decorator_list", None) or [each]
                begin = starts[each.lineno - 1] + each.col_offset
                last = inner[0].lineno - 1 if isinstance(inner, list) else each.end_lineno
                lines = range(each.lineno, max(last, each.lineno) + 1)
                found.append((begin, starts[each.end_lineno - 1] + each.end_col_offset, lines, function))
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    called = (*names, each.name)
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and function is None:
                    inside = ".".join(called), min(part.lineno for part in first)
                    # a default belongs to what is around the function
                    end = starts[each.body[0].lineno - 1] + each.body[0].col_offset
                    found.append((begin, end, range(0), None))
            walk(each, called, inside)

    walk(ast.parse(source), (), None)
    return found


def asked(module: str, mutant: Mutant, noted: Noted, more: Sequence[str]) -> Asked:
    """The mutant with its tests; of those in files of `more`, all that are new."""
    around = [s for s in _statements(module) if s[0] <= mutant.begin and mutant.end <= s[1]]
    _, _, lines, function = min(around, key=lambda s: s[1] - s[0])
    found = noted.tests(module, lines) if function else []
    if not function:  # it runs when the module is imported
        found = noted.tests(module, range(1, 100_000))
    own = _within([test for test in found if _names(test.partition("::")[0], module)], OWN_S, noted)
    others = _within([test for test in found if test not in {*own}], OTHERS_S, noted)
    sure = _within(own or others, SURE_S, noted)
    took_s = sum(noted.took_s[test] for test in (*own, *others))
    place = mutant.begin, mutant.end, mutant.code
    return Asked(module, *place, function, [*own, *others], sure, took_s, [*more], [*noted.took_s] if more else [])


def _within(tests: Sequence[str], limit_s: float, noted: Noted) -> list[str]:
    chosen, sum_s = [], 0.0
    for test in tests:
        sum_s += noted.took_s[test]
        if sum_s > limit_s:
            break
        chosen.append(test)
    return chosen


def note(notes: Path) -> None:
    """Runs the tests once in a copy."""
    notes.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="noting-") as folder:
        root = Path(folder) / "tree"
        copied(root)
        options = ("-q", "-W", "ignore", "-p", "no:cacheprovider", "-p", "tests.mutation.noting")
        command = [sys.executable, "-m", "pytest", *options]
        slow = [f"--ignore-glob={root / 'tests' / name}" for name in SLOW]
        path = f"{root}{os.pathsep}{root / 'tests/mutation/child'}"
        env = {**os.environ, "PYTHONPATH": path, NOTES: str(notes / "notes")}
        with (notes / "said").open("wb") as said:
            subprocess.run([*command, "-n", "2", "--dist", "loadfile", *slow, "tests"], cwd=root, env=env, stdout=said)


def outcomes(todo: Sequence[tuple[str, Mutant]], noted: Noted, more: Sequence[str], *, jobs: int) -> Iterator[Outcome]:
    """Each mutant's end, as they come; every job has a copy of its own."""
    left: SimpleQueue[tuple[Mutant, Asked]] = SimpleQueue()
    done: SimpleQueue[Outcome | BaseException] = SimpleQueue()
    named = {*more}
    for module, mutant in todo:
        one = asked(module, mutant, noted, more)
        left.put((mutant, one))
        named |= {test.partition("::")[0] for test in one.tests}
    files = sorted(file for file in named if (ROOT / file).exists())  # the notes may be older than the tests

    def work(folder: Path) -> None:
        try:
            copied(folder / "tree")
            worker = subprocess.Popen(
                [sys.executable, "-m", "tests.mutation.worker"],
                cwd=folder / "tree",
                env={
                    **os.environ,
                    "PYTHONPATH": str(folder / "tree"),
                    "PYTHONDONTWRITEBYTECODE": "1",  # old bytecode of a module would hide a mutant
                    "TMPDIR": str(folder),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=(folder / "said").open("wb"),
                text=True,
            )
            running.append(worker)
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(json.dumps(files) + "\n")
            while True:
                mutant, one = left.get_nowait()
                with contextlib.suppress(BrokenPipeError):  # it has ended, and its last words say why
                    worker.stdin.write(json.dumps(one) + "\n")
                    worker.stdin.flush()
                answer = worker.stdout.readline()
                if not answer:
                    raise RuntimeError((folder / "said").read_text()[-2000:])
                done.put(Outcome(one.module, mutant, *json.loads(answer)))
        except Empty:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where the outcomes are wanted
            done.put(error)

    running: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        for n in range(jobs):
            threading.Thread(target=work, args=(Path(folder) / str(n),), daemon=True).start()
        try:
            for _ in todo:
                came = done.get()
                if isinstance(came, BaseException):
                    raise came
                yield came
        finally:
            for worker in running:
                worker.kill()


def table(found: Sequence[Outcome], names: Sequence[str]) -> str:
    """Per room or module: how many mutants ended how, and the share of the killed among those that are not
    equivalent."""
    rows = [
        "| where | mutants | killed | timed out | survived | equivalent | not run | noticed |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in (*names, "chaoslab/"):
        ends = Counter(o.end for o in found if o.module.startswith(name))
        real = ends.total() - ends[SAME]
        share = f"{(ends[KILLED] + ends[HUNG]) / real:.1%}" if real else "–"
        cells = (name, ends.total(), *(ends[each] for each in (KILLED, HUNG, SURVIVED, SAME, NOT_RUN)), share)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notes", type=Path, help="the folder of what the tests reach; made if it is not there")
    parser.add_argument("module", nargs="*", help="such as core/plan, wire/* (default: the rooms)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, help="mutants in all; 0: all (default 300, or all of named modules)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="name the mutants and run nothing")
    parser.add_argument(
        "--log", type=Path, help="a file that gets a line of JSON for each mutant; what it has is skipped"
    )
    parser.add_argument("--again", type=Path, help="such a file: run only what survived in it")
    parser.add_argument(
        "--more", nargs="+", default=[], metavar="FILE", help="tests that are newer than NOTES: all run"
    )
    given = parser.parse_args()
    count = (0 if given.module or given.again else 300) if given.count is None else given.count
    todo, known = drawn(given.module, given.seed, count), equivalents()
    for file, ends in ((given.log, None), (given.again, (SURVIVED, NOT_RUN))):
        was = [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []
        listed = {(one["module"], one["mutant"]) for one in was if ends is None or one["end"] in ends}
        if file:
            todo = [pair for pair in todo if ((pair[0], pair[1].name) in listed) == (ends is not None)]
    if given.list:
        print("\n".join(f"{module}:{mutant.line}: {mutant.name}" for module, mutant in todo))
        return 0
    if not given.notes.exists():
        note(given.notes.resolve())
    same = [Outcome(*pair, SAME) for pair in todo if (pair[0], pair[1].name) in known]
    found = list(same)
    left = [pair for pair in todo if (pair[0], pair[1].name) not in known]
    for outcome in outcomes(left, Noted(given.notes / "notes"), given.more, jobs=given.jobs):
        found.append(outcome)
        if given.log:
            with given.log.open("a") as file:
                file.write(outcome.to_json() + "\n")
        if outcome.end in (SURVIVED, NOT_RUN):
            print(f"{outcome.end}: {outcome.module}:{outcome.mutant.line}: {outcome.mutant.name}", flush=True)
    print(table(found, sorted({o.module for o in found}) if given.module else [f"chaoslab/{room}/" for room in ROOMS]))
    return int(any(outcome.end in (SURVIVED, NOT_RUN) for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
