"""Times all measures of a run with many events beside a bare `json.loads` loop over the same lines, and their memory.

    python benchmarks/measures.py [--events N] [--rounds N]

The log is of real trials of Python functions (six tools, faults at 0.2), repeated under new keys and at later times
until there are enough events. Each way runs in a process of its own, by turns: *bare* parses every line and keeps
nothing, *read* makes the history, *report* makes every section of the report. Times are of the
processor, the least of all rounds, since neighbours only ever add to it; memory is the process's peak (VmHWM). Exits 1
if the report takes more than 1.5 times as long as the bare loop or more than 200 MB.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

TIMES_GOAL, MEMORY_GOAL_MB = 1.5, 200.0
TRIALS = 400
_ENVELOPE = re.compile(rb'\{"ts": ("[^"]*"), "t": ([^,]*), "run": ("[^"]*"), "trial": "p1\.r(\d+)", (.*?"seq": )(\d+)')


def made(folder: Path, events: int) -> int:
    """Writes a log of at least so many events; their number."""
    from function_seam import agent, book, faults, lookup, message, rate, refund, stock

    import chaoslab as lab

    ran = lab.run_many(
        agent, "Refund order 17", trials=TRIALS, tools=[refund, book, message], reads=[lookup, stock, rate],
        faults=faults(), timeout_s=10, logs=folder / "few",
    )  # fmt: skip
    for _ in ran:
        pass
    few = {path.name: path.read_bytes().splitlines(True) for path in (folder / "few" / "latest").glob("*.log")}
    of_trials = {name: [(line, _ENVELOPE.match(line)) for line in lines] for name, lines in few.items()}
    once = sum(found is not None for lines in of_trials.values() for _, found in lines)
    copies = -(-events // once)
    lasts_s = max(float(found[2]) for lines in of_trials.values() for _, found in lines if found) + 1
    (folder / "many").mkdir()
    count = 0
    for name, lines in of_trials.items():
        with (folder / "many" / name).open("wb") as file:
            for line in _repeated(lines, copies, lasts_s):
                file.write(line)
                count += 1
    return count


def _repeated(lines: list[tuple[bytes, re.Match[bytes] | None]], copies: int, lasts_s: float) -> Iterator[bytes]:
    """The lines of trials, many times over, between the run's own first and last lines."""
    first = next((n for n, (_, found) in enumerate(lines) if found), len(lines))
    last = next((n for n in range(len(lines) - 1, first, -1) if lines[n][1]), first)
    step = last - first + 1  # each writer numbers its lines without a gap
    yield from (line for line, _ in lines[:first])
    for copy in range(copies):
        for line, found in lines[first : last + 1]:
            if found:
                t, trial, seq = float(found[2]) + copy * lasts_s, int(found[4]) + copy * TRIALS, int(found[6])
                envelope = (found[1], b"%.6f" % t, found[3], trial, found[5], seq + copy * step)
                yield b'{"ts": %b, "t": %b, "run": %b, "trial": "p1.r%d", %b%d' % envelope + line[found.end() :]
    for line, _ in lines[last + 1 :]:  # the run ends after its last trial
        found = re.match(rb'(.*?"t": )([^,]*)(.*?"seq": )(\d+)', line)
        assert found is not None
        t, seq = float(found[2]) + (copies - 1) * lasts_s, int(found[4]) + (copies - 1) * step
        yield b"%b%.6f%b%d" % (found[1], t, found[3], seq) + line[found.end() :]


def bare(folder: Path) -> str:
    """Parses every line, and keeps none."""
    count = 0
    for path in folder.glob("*.log"):
        with path.open("rb") as file:
            for line in file:
                json.loads(line)
                count += 1
    return f"{count} lines"


def read(folder: Path) -> str:
    """Makes the history."""
    from chaoslab.record.history import History

    history = History.read(folder)
    if history.cut:
        raise RuntimeError(f"lines could not be read: {history.notes}")
    return repr(history)


def report(folder: Path) -> str:
    """Makes every section of the report."""
    from chaoslab.analysis.measures.run_report import RunReport
    from chaoslab.analysis.verdict.guard import Section

    found = RunReport.read(folder)
    if found.notes:
        raise RuntimeError(f"the log is not whole: {found.notes}")
    sections = {f.name: getattr(found, f.name) for f in fields(found)}
    failed = {name: one.unknown for name, one in sections.items() if isinstance(one, Section) and one.unknown}
    if failed:
        raise RuntimeError(f"measures failed: {failed}")
    return f"{len(found.trials)} trials, {found.recovery.value.overall.n} incidents"


WAYS: dict[str, Callable[[Path], str]] = {"bare": bare, "read": read, "report": report}


def peak_mb() -> float:
    """The most memory that this process has had at once."""
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) / 1024


def one(way: str, folder: Path) -> int:
    """Runs a way in this process and prints its figures as JSON."""
    began_s = time.process_time()
    told = WAYS[way](folder)
    print(json.dumps({"seconds": time.process_time() - began_s, "mb": peak_mb(), "told": told}))
    return 0


def measured(way: str, folder: Path) -> dict[str, Any]:
    """The figures of a way in a process of its own."""
    command = [sys.executable, __file__, "--one", way, str(folder)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="the cost of all measures of a long run")
    parser.add_argument("--events", type=int, default=1_000_000, help="in the log (default: 1000000)")
    parser.add_argument("--rounds", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--one", nargs=2, metavar=("WAY", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return one(given.one[0], Path(given.one[1]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = made(folder, given.events)
        logs = list((folder / "many").glob("*.log"))
        print(f"{count:,} events, {sum(path.stat().st_size for path in logs) / 1e6:.0f} MB of logs")
        found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for _ in range(given.rounds):
            for way in WAYS:
                found[way].append(measured(way, folder / "many"))
    least = {way: min(figures["seconds"] for figures in rounds) for way, rounds in found.items()}
    missed = False
    for way, rounds in found.items():
        times, mb = least[way] / least["bare"], max(figures["mb"] for figures in rounds)
        over = way == "report" and (times > TIMES_GOAL or mb > MEMORY_GOAL_MB)
        goal = f"   (goal {TIMES_GOAL:g} ×, {MEMORY_GOAL_MB:.0f} MB{', MISSED' if over else ''})"
        print(
            f"{way:8}{least[way]:8.2f} s {times:6.2f} × {mb:8.0f} MB   {rounds[0]['told']}"
            f"{goal if way == 'report' else ''}"
        )
        missed |= over
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
