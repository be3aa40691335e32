"""Measures the pages of `chaoslab ui`, each figure beside its target: `python benchmarks/ui.py`.

A headless Chromium opens the list of 1,000 runs and a run of 10,000 trials; looks on while a log grows by 2,500 trials
a second, and while a run goes on with and without a page of it; and says what an open page has in memory afterwards.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, sleep, time

sys.path.insert(0, str(Path(__file__).parents[1]))

from chaoslab.record.held import hold
from tests.ui.parts import trials
from tests.ui.walking import Browser, browser

RUNS, TRIALS, SPEED, GROWN, SLOWED, ROUNDS = 1000, 10_000, 2500, 100_000, 12_000, 7
SHOWN = """
window.shown = [];
new MutationObserver(() => {
  const said = document.getElementById("done-said").textContent.match(/^([0-9,]+) of/);
  if (said) window.shown.push([Number(said[1].replaceAll(",", "")), Date.now() / 1000]);
}).observe(document.getElementById("done-said"), { childList: true, subtree: true, characterData: true });
"""
SIZE = """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, one) => sum + one.transferSize, 0)"""


@contextmanager
def ui(logs: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "chaoslab", "ui", str(logs), "--port", "0", "--no-open"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait()


def opened_s(page: Browser, address: str, ready: str) -> tuple[float, int]:
    """The seconds until the page shows what is asked for, and the bytes that it took."""
    began = perf_counter()
    page.open(address, ready=ready)
    return perf_counter() - began, int(page.do(SIZE))


def told(what: str, value: float, unit: str, most: float) -> bool:
    met = value <= most
    print(f"{what:58} {value:9.2f} {unit:4} (target {most:g} {unit}): {'met' if met else 'MISSED'}", flush=True)
    return met


def grow(template: bytes, log: Path, number: int, written: list[float], stop: threading.Event) -> None:
    """Writes trials like this one into a log, at SPEED a second, and notes when each was there."""
    began, done = perf_counter(), 0
    with log.open("ab", buffering=0) as file:
        hold(file)
        while done < number and not stop.is_set():
            due = min(number, int((perf_counter() - began) * SPEED) + 1)
            if due > done:
                file.write(b"".join(template.replace(b"p1.r1", b"p1.r%d" % n) for n in range(done + 1, due + 1)))
                written += [time()] * (due - done)
                done = due
            sleep(0.004)
        stop.wait()


def main() -> int:
    well = True
    with tempfile.TemporaryDirectory() as name, browser(Path(name)) as page:
        logs = Path(name) / "logs"
        page.patience_s = 300.0
        list(trials(logs, trials=20))
        small = (logs / "latest").resolve()
        for n in range(RUNS - 1):
            shutil.copytree(small, logs / f"2025{n // 60 // 24 % 12 + 1:02}{n // 60 % 24 + 1:02}-{n % 60:02}0000")
        with ui(logs) as address:
            base = address.partition("/in/")[0]
            said = "document.getElementById('count').textContent"
            there = f"{said}.includes('of {RUNS} runs') && document.querySelectorAll('#rows tbody tr').length === 100"
            read = f"{there} && !{said}.includes('read')"
            page.open(f"{base}/nothing")  # the browser's own start is no part of it
            first, _ = opened_s(page, address, there)
            began = perf_counter()
            page.until(read)
            whole = first + perf_counter() - began
            warm, size = opened_s(page, base, read)
        well &= told(f"{RUNS:,} runs: all listed, the logs not read before", first, "s", 1)
        print(f"{'  and each with its outcomes':58} {whole:9.2f} s")
        well &= told(f"{RUNS:,} runs: all with their outcomes, opened again", warm, "s", 1)
        well &= told(f"{RUNS:,} runs: size", size / 1e6, "MB", 2)
        shutil.rmtree(logs)

        list(trials(logs, trials=TRIALS))
        run = (logs / "latest").resolve()
        lines = (run / "info.log").read_bytes().splitlines(keepends=True)
        with ui(logs) as address:
            base = address.partition("/in/")[0]
            page.open(address)
            rows = "document.querySelectorAll('#rows tbody tr').length === 100"
            done = f"{rows} && document.getElementById('found').textContent.includes('of {TRIALS:,} trials')"
            first, _ = opened_s(page, f"{base}/run/{run.name}", rows)
            began = perf_counter()
            page.until(done)
            whole = first + perf_counter() - began
            warm, size = opened_s(page, f"{base}/run/{run.name}", done)
            story, _ = opened_s(
                page, f"{base}/run/{run.name}/trial/p1.r{TRIALS - 1}", "document.querySelector('.plot svg')"
            )
        well &= told(f"{TRIALS:,} trials: the first page, the logs not read before", first, "s", 1)
        print(f"{'  and all of them judged':58} {whole:9.2f} s")
        well &= told(f"{TRIALS:,} trials: all, opened again", warm, "s", 1)
        well &= told(f"{TRIALS:,} trials: size", size / 1e6, "MB", 2)
        well &= told(f"{TRIALS:,} trials: the story of one", story, "s", 1)

        began_at = next(line for line in lines if b'"run_started"' in line).replace(
            b'"prompts": %d' % TRIALS, b'"prompts": %d' % GROWN
        )
        template = b"".join(line for line in lines if json.loads(line)["trial"] == "p1.r1")
        shutil.rmtree(logs)
        folder = logs / "20260101-000000"
        shutil.copytree(run, folder) if run.exists() else folder.mkdir(parents=True)
        (folder / "info.log").write_bytes(began_at)
        written: list[float] = []
        stop = threading.Event()
        with ui(logs) as address:
            base = address.partition("/in/")[0]
            page.open(address)
            writer = threading.Thread(target=grow, args=(template, folder / "info.log", GROWN, written, stop))
            page.open(
                f"{base}/run/{folder.name}", ready="document.getElementById('done-said').textContent.includes('of')"
            )
            page.do(SHOWN)
            heap_before = heap(page)
            writer.start()
            while len(written) < GROWN:
                sleep(1)
            sleep(1)
            heap_after = heap(page)
            seen = page.do("window.shown")
            stop.set()
            writer.join()
        late, at = [], 0
        for count, when in seen:
            while at < min(count, len(written)):
                late.append(when - written[at])
                at += 1
        late.sort()
        print(f"{len(seen)} changes of the screen for {at:,} of {GROWN:,} trials at {SPEED:,} a second")
        well &= at == GROWN
        well &= told("from an event to the screen, the median", late[len(late) // 2] * 1000, "ms", 500)
        well &= told("from an event to the screen, 99 of 100", late[len(late) * 99 // 100] * 1000, "ms", 500)
        well &= told(f"an open page grew, over {GROWN:,} trials", (heap_after - heap_before) / 1e6, "MB", 20)

        shares, cpu = [], []
        for _ in range(ROUNDS):
            shutil.rmtree(logs, ignore_errors=True)
            alone = run_s(logs)
            before_s = cpu_of_children_s()
            with ui(logs) as address:
                page.open(address)
                watched = run_s(logs, page, address.partition("/in/")[0])
            shares.append([watched[n] / alone[n] - 1 for n in (0, 1)])
            cpu.append((cpu_of_children_s() - before_s) / alone[1])
        for n, what in ((0, "a run of {:,} trials takes longer"), (1, "  and more CPU of its own")):
            share = 100 * median(each[n] for each in shares)
            well &= told(f"{what.format(SLOWED)} (median of {ROUNDS})", share, "%", 2)
            print("  each round: " + ", ".join(f"{100 * each[n]:+.1f} %" for each in shares))
        waited = 100 * median(each[0] - each[1] for each in shares)
        print(f"{'  more waiting for a processor, about':58} {waited:9.2f} %")
        print(f"{'  CPU of the pages, of the CPU of the run':58} {100 * median(cpu):9.2f} %")
    return 0 if well else 1


def heap(page: Browser) -> float:
    """The bytes that the page's objects take, without garbage."""
    page.ask("HeapProfiler.collectGarbage")
    return float(page.ask("Runtime.getHeapUsage")["usedSize"])


def cpu_of_children_s() -> float:
    """The CPU seconds of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_s(logs: Path, page: Browser | None = None, base: str = "") -> tuple[float, float]:
    """The seconds of a run, which the page shows meanwhile, and its CPU seconds."""
    going = trials(logs, trials=SLOWED)
    next(going)
    if page is not None:
        page.open(f"{base}/run/{(logs / 'latest').resolve().name}")
    began, used = perf_counter(), process_time()
    for _ in going:
        pass
    return perf_counter() - began, process_time() - used


if __name__ == "__main__":
    sys.exit(main())
