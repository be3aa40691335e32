"""Measures what many trials cost, in processes of this machine and on a local cluster, each figure beside its goal:
`python benchmarks/scale.py [PART …] [--trials N]`. Parts: share, cluster, kills, many, report.

Seconds are by the clock, unless they are said to be of the CPU. Exits 1 if a goal is missed.
"""

import argparse
import os
import random
import resource
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import median
from subprocess import run
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import chaoslab as lab
from chaoslab.core.events import RunStarted
from chaoslab.execution.pipeline import replace_call_events_by_counts
from chaoslab.record.history import History
from chaoslab.worlds.virtual.run_writer import RunWriter

Row = tuple[str, str, str, bool]
PARTS = ("share", "cluster", "kills", "many", "report")
KILLS, TURNS, MILLION = 100, 5, 1_000_000


def reserve(order: int) -> str:
    return f"reserved {order}"


def charge(order: int) -> str:
    return f"charged {order}"


def look_up(order: int) -> dict[str, int]:
    return {"order": order, "price": 49}


def agent(prompt: str) -> str:
    """Three tools, and one more try after a lost reply, which charges twice."""
    price = look_up(17)["price"]
    for tool in (reserve, charge):
        for _ in range(2):
            try:
                tool(17)
                break
            except (OSError, lab.ToolError):
                continue
    return f"Order 17 is paid: {price} euros, as asked in {prompt!r}."


OPTIONS: Any = {
    "tools": [reserve, charge], "reads": [look_up], "seed": 1,
    "faults": [lab.inject("lost_reply", each, chance=0.1) for each in ("reserve", "charge", "look_up")],
    "anyway": True,
}  # fmt: skip


def trials(count: int, jobs: int, **more: Any) -> lab.Trials[lab.Trial]:
    return lab.run_many(agent, "pay order 17", trials=count, jobs=jobs, **OPTIONS, **more)


def outcomes(count: int, jobs: int) -> str:
    return "".join(str(trial.outcome)[0] for trial in trials(count, jobs))


def log(count: int, jobs: int) -> tuple[int, str]:
    """The number of trials in the log of a run, and a digest of its bytes."""
    with TemporaryDirectory() as folder:
        number = sum(1 for _ in trials(count, jobs, logs=folder))
        return number, sha256((Path(folder) / "latest" / "info.log").read_bytes()).hexdigest()


def of_share(count: int) -> Iterator[Row]:
    """The processor time of the process that takes the results, a trial."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    outcomes(count, 1)
    alone_us = (resource.getrusage(resource.RUSAGE_SELF).ru_utime - before) / count * 1e6
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    outcomes(count, 2)
    own_us = (resource.getrusage(resource.RUSAGE_SELF).ru_utime - before) / count * 1e6
    yield (f"CPU of a judged trial in one process · of the parent of two, {count:,} trials", "",
           f"{alone_us:.0f} µs · {own_us:.0f} µs, so {alone_us / own_us:.0f} workers keep it busy", True)  # fmt: skip


def of_cluster(count: int) -> Iterator[Row]:
    """A local cluster and processes by turns, since both share the machine with others."""
    shares, same = [], True
    for _ in range(TURNS):
        began_s = perf_counter()
        two = outcomes(count, 2)
        two_s = perf_counter() - began_s
        with lab.cluster("local", workers=2, tell=lambda _: None):
            outcomes(50, 2)
            began_s = perf_counter()
            there = outcomes(count, 2)
            shares.append(two_s / (perf_counter() - began_s))
        same = same and two == there
    share, every = median(shares), ", ".join(f"{share:.2f}" for share in shares)
    yield (f"a local cluster of two workers, of the trials a second of two processes, {count:,} trials, "
           f"median of {TURNS} turns", "≥ .9", f"{share:.2f} ({every})", share >= 0.9)  # fmt: skip
    yield "the same outcomes in the same order", "all", "yes" if same else "no", same


def of_kills(count: int) -> Iterator[Row]:
    """Workers that are killed at random moments while trials go on."""
    from distributed import default_client

    alone = log(count, 1)
    dice, killed, over = random.Random(1), 0, False

    def kill(client: Any) -> None:
        nonlocal killed
        while killed < KILLS and not over:
            sleep(dice.uniform(0.2, 1.0))
            try:
                pids = list(client.run(os.getpid, on_error="ignore").values())
                if len(pids) < 2:  # Dask gives up a worker that dies while it begins
                    client.cluster.scale(2)
                    continue
                os.kill(dice.choice(pids), signal.SIGKILL)
                killed += 1
                if killed % 10 == 0:
                    print(f"{killed} kills", file=sys.stderr, flush=True)
            except (OSError, IndexError, TypeError):
                continue

    told: list[str] = []
    with lab.cluster("local", workers=2, tell=told.append), ThreadPoolExecutor(1) as other:
        done = other.submit(kill, default_client())  # type: ignore[no-untyped-call]
        same, runs = True, 0
        while not done.done():
            same = log(count, 2) == alone and same
            runs += 1
        over = True
    found = f"{killed} kills, {len(told)} told; logs {'the bytes' if same else 'other than those'} of one process"
    yield (f"{KILLS} random kills of workers, in {runs} runs of {count:,} trials", "0 lost, 0 doubled, same bytes",
           found, same and killed == KILLS)  # fmt: skip


def of_many(count: int) -> Iterator[Row]:
    """A long run that keeps the stories of failed trials alone, and all figures of it."""
    with TemporaryDirectory() as folder:
        began_s, cpu_s, early = perf_counter(), spent_s(), 0.0
        for n, trial in enumerate(trials(count, 2, logs=folder, keep="failed")):
            _ = trial.outcome
            if n == count // 10:
                early = resident_mb()
        took_s, cpu_s, late = perf_counter() - began_s, spent_s() - cpu_s, resident_mb()
        there = Path(folder) / "latest"
        size_mb = sum(path.stat().st_size for path in there.iterdir()) / 1e6
        done = run([sys.executable, "-c", REPORT, str(there)], capture_output=True, text=True, check=True)
        report_s, report_cpu_s, peak = map(float, done.stdout.split())
    scale = 1_000_000 / count
    each_s = cpu_s * scale / 2
    yield (f"{count:,} judged trials with three tools, lost replies and logs, two processes", "10⁶ in ≤ 360 s",
           f"{took_s:.0f} s, {cpu_s:.0f} s of CPU: 10⁶ in {took_s * scale:.0f} s, {each_s:.0f} s of each CPU",
           took_s * scale <= 360)  # fmt: skip
    yield "memory of the parent from a tenth to the end", "flat", f"{early:.0f} → {late:.0f} MB", late <= early * 1.2
    yield "log", "10⁶ ≤ 4.5 GB", f"{size_mb:.0f} MB: 10⁶ in {size_mb * scale / 1000:.2f} GB", size_mb * scale <= 4500
    yield ("all figures of it", "10⁶ in ≤ 300 s and 500 MB",
           f"{report_s:.1f} s, {report_cpu_s:.1f} s of CPU, {peak:.0f} MB at most: "
           f"10⁶ in {report_s * scale:.0f} s, {report_cpu_s * scale:.0f} s of CPU",
           report_s * scale <= 300 and peak <= 500)  # fmt: skip


def of_report(count: int) -> Iterator[Row]:
    """All figures of 10⁶ trials without the stories that ended well: `count` that were run, again and again under
    further keys."""
    with TemporaryDirectory() as folder:
        done = list(trials(count, 1, logs=folder))
        started = History.read(Path(folder) / "latest").find_first_event(RunStarted)
    kept = [
        each._result.buffered_events
        if str(each.outcome) == "harm"
        else replace_call_events_by_counts(each._result.buffered_events)
        for each in done
    ]
    with TemporaryDirectory() as folder:
        with RunWriter(Path(folder), done[0].history.run_name, started.now) as book:
            book.write_start(replace(started, prompts=MILLION))
            for number in range(MILLION):
                of = number % count
                again = [event._replace(trial=f"p1.r{number + 1}") for event in kept[of]]
                book.write_trial(again, seconds=done[of].seconds, ok=done[of].ok)
            book.write_end("done")
        found = run([sys.executable, "-c", REPORT, folder], capture_output=True, text=True, check=True)
        took_s, cpu_s, peak = map(float, found.stdout.split())
        size_mb = sum(path.stat().st_size for path in Path(folder).glob("*.log")) / 1e6
    yield (f"all figures of {MILLION:,} trials, with the stories of the failed", "≤ 300 s, ≤ 1,500 MB",
           f"{took_s:.0f} s, {cpu_s:.0f} s of CPU, {peak:.0f} MB at most; a log of {size_mb:.0f} MB",
           took_s <= 300 and peak <= 1500)  # fmt: skip


REPORT = """
import resource, sys, time
from pathlib import Path
from chaoslab.analysis.measures.run_report import RunReport
began_s, cpu_s = time.perf_counter(), time.process_time()
RunReport.read(Path(sys.argv[1]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(time.perf_counter() - began_s, time.process_time() - cpu_s, peak)
"""


def spent_s() -> float:
    """The processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description="the cost of many trials")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them by default")
    parser.add_argument("--trials", type=int, default=5000, help="(default: %(default)s)")
    given = parser.parse_args()
    rows = []
    for part in given.parts or PARTS:
        for row in globals()[f"of_{part}"](given.trials):
            rows.append(row)
            print("| {} | {} | {} |{}".format(*row[:3], "" if row[3] else " MISSED"), flush=True)
    return 0 if all(row[3] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
