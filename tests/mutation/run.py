"""Breaks the lab's modules in small ways, one at a time, and counts the ways that no test notices.

    python -m tests.mutation.run [MODULE …] [--seed 1] [--each 12] [--jobs 1] [--list]

Each mutant is made in a copy of the tree, so that the tree itself is never changed, whatever becomes of this program.
The tests of guards.py run on it; it is killed when one of them fails, or when they hang. Survivors that mean the same
as the original are named in equivalent.toml; each other one is a test that is missing. Seed and names choose the
mutants (dice), so that a table can be made again.
"""

from __future__ import annotations

import argparse
import json
import queue
import signal
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from tests.mutation.guards import GUARDS
from tests.mutation.mutants import Mutant, chosen, mutants
from tests.mutation.trying import HUNG, KILLED, NOT_RUN, ROOT, SAME, SURVIVED, Copy, Outcome, end_all

EQUIVALENT = Path(__file__).with_name("equivalent.toml")


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
            end_all()


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
