"""Breaks whole rooms of the package in small ways, drawn by seed, and counts the ways that no test notices.

    python -m tests.mutation.rooms NOTES [--seed 1] [--count 300] [--jobs 2] [--log FILE] [--list]

First, once for a folder NOTES, the tests run over a copy in which each function notes the tests that reach it; a test
that fails there guards nothing. Then each mutant meets the tests that reach its function, in two tries: those of files
that name its module, the quickest first, and then all others. The rooms share the mutants by their lines. A mutant that
FILE has as killed is not run again.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate
from math import inf
from pathlib import Path
from queue import SimpleQueue

from chaoslab.base.dice import Dice
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.reach import NOTES, Reached, instrumented
from tests.mutation.run import equivalents
from tests.mutation.trying import HUNG, KILLED, NOT_RUN, PATIENCE, ROOT, SAME, SURVIVED, Copy, Outcome, end_all

ROOMS = ("core", "analysis", "seams", "wire", "record", "execution", "worlds/virtual")
SLOW = (
    "live/*", "warm/*", "planted/*", "mutation/*", "worlds/test_*", "gateway/test_exec.py", "gateway/test_same.py",
    "agent/test_main.py", "reports/test_charts.py", "reports/test_accessible.py", "reports/test_page.py",
    "reports/test_notebook.py", "hard/test_[ikst]*", "scenarios/test_examples.py", "scenarios/test_interrupted.py",
    "wire/test_server_stress.py", "wire/test_*_parity.py", "worlds/virtual/test_lab_same.py", "test_readme.py",
    "test_documents.py", "test_wheel.py", "test_import_cost.py", "test_frameworks.py", "test_contracts.py",
    "test_interrupt*.py", "test_contributing.py", "test_makefile.py",
)  # fmt: skip
"""Files of tests that take long, or that run another tree than their own."""
TRIES_S = (20.0, 90.0)
"""The seconds of tests in a try, as they took once."""
SPARE_S = 60.0
NOTED_S = 3600.0


def modules(room: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "chaoslab" / room).rglob("*.py"))


def drawn(seed: int, count: int) -> list[tuple[str, Mutant]]:
    """About so many mutants of all rooms, by the dice of their names."""
    lines = {room: sum(len((ROOT / each).read_bytes().splitlines()) for each in modules(room)) for room in ROOMS}
    found: list[tuple[str, Mutant]] = []
    for room in ROOMS:
        every = [(module, each) for module in modules(room) for each in mutants((ROOT / module).read_bytes())]
        every.sort(key=lambda pair: Dice(seed, pair[0], pair[1].name).uniform())
        found += every[: round(count * lines[room] / sum(lines.values()))]
    return sorted(found, key=lambda pair: Dice(seed, "order", pair[0], pair[1].name).uniform())


@cache
def names(file: str, module: str) -> bool:
    """True if a file of tests imports a module, or is called like it."""
    name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    outer, _, last = name.rpartition(".")
    text = (ROOT / file).read_text(encoding="utf-8")
    return name in text or f"from {outer} import {last}" in text or f"test_{last}" in file


class Room(Copy):
    """A copy of the tree whose mutants meet the tests that reach them."""

    def note(self, notes: Path) -> None:
        """Runs the tests once over functions that note."""
        notes.mkdir(parents=True)
        for module in (module for room in ROOMS for module in modules(room)):
            file = self.root / module
            file.write_text(instrumented(file.read_bytes(), f"{module}|"))
        slow = [f"--ignore-glob={self.root / 'tests' / name}" for name in SLOW]
        more = ("--maxfail=0", "-n", "2", "--dist", "loadfile", *slow, "tests")
        code, said = self.tests(more, wait_s=NOTED_S, cpu_s=NOTED_S, env={NOTES: str(notes / "notes")})
        (notes / "said").write_text(f"{code}\n{said}")

    def outcome_of(self, reached: Reached, module: str, mutant: Mutant) -> Outcome:
        """The mutant's end after at most two tries."""
        found = reached.tests(f"{module}|{mutant.function}" if mutant.function else module)
        found = [test for test in found if reached.took_s[test] < inf]
        left = sorted(found, key=lambda test: not names(test.partition("::")[0], module))
        told = Outcome(module, mutant, SURVIVED)
        for limit_s in TRIES_S:
            sums = accumulate(reached.took_s[test] for test in left)
            tests = [test for test, sum_s in zip(left, sums, strict=True) if sum_s <= limit_s]
            left = sorted({*left}.difference(tests), key=lambda test: reached.took_s[test])
            if tests and told.end == SURVIVED:
                wait_s = SPARE_S + PATIENCE * sum(reached.took_s[test] for test in tests)
                files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
                told = self.met(module, mutant, files, tests, wait_s=wait_s, cpu_s=wait_s)
        return told


def table(found: Sequence[Outcome]) -> str:
    """Per room: how many mutants ended how, and the share of the killed among those that are not equivalent."""
    rows = [
        "| room | mutants | killed | timed out | survived | equivalent | noticed |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for room in (*ROOMS, ""):
        ends = Counter(each.end for each in found if each.module.startswith(f"chaoslab/{room}"))
        share = (ends[KILLED] + ends[HUNG]) / max(ends.total() - ends[SAME], 1)
        cells = (room or "all", ends.total(), ends[KILLED], ends[HUNG], ends[SURVIVED], ends[SAME], f"{share:.1%}")
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notes", type=Path, help="the folder of what the tests reach; made if it is not there")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", type=Path, help="a file that gets a line of JSON for each mutant")
    parser.add_argument("--list", action="store_true", help="name the mutants and run nothing")
    asked = parser.parse_args()
    todo = drawn(asked.seed, asked.count)
    if asked.list:
        print("\n".join(f"{module}:{mutant.line}: {mutant.name}" for module, mutant in todo))
        return 0
    with tempfile.TemporaryDirectory(prefix="rooms-") as folder:
        if not asked.notes.exists():
            Room(Path(folder) / "noting").note(asked.notes.resolve())
        found = list(_run(todo, Reached(asked.notes / "notes"), Path(folder), jobs=asked.jobs, log=asked.log))
    print(table(found))
    return int(any(each.end in (SURVIVED, NOT_RUN) for each in found))


def _run(
    todo: Sequence[tuple[str, Mutant]], reached: Reached, folder: Path, *, jobs: int, log: Path | None
) -> Iterator[Outcome]:
    """Prints survivors as they come."""
    known, rooms = equivalents(), SimpleQueue[Room]()
    before = [json.loads(line) for line in log.read_text().splitlines()] if log and log.exists() else []
    ends = {(was["module"], was["mutant"]): was["end"] for was in before}

    def each(pair: tuple[str, Mutant]) -> Outcome:
        name = pair[0], pair[1].name
        if name in known or ends.get(name) in (KILLED, HUNG):
            return Outcome(*pair, SAME if name in known else ends[name])
        room = rooms.get()
        try:
            return room.outcome_of(reached, *pair)
        finally:
            rooms.put(room)

    for n in range(jobs):
        rooms.put(Room(folder / str(n)))
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for told in pool.map(each, todo):
                if told.end in (SURVIVED, NOT_RUN):
                    print(f"{told.end}: {told.module}:{told.mutant.line}: {told.mutant.name}", flush=True)
                if log and ends.get((told.module, told.mutant.name)) != told.end:
                    with log.open("a") as file:
                        file.write(told.to_json() + "\n")
                yield told
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            end_all()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
