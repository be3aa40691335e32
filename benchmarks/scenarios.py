"""Measures what a user of scenarios waits for, each figure beside its target: `python benchmarks/scenarios.py`.

1,000 judged trials of a plain-Python agent with logs, 100 of a LangChain agent (the lab's own), `chaoslab check` of 100
files, and the time in which pytest loads the plug-in; all in processes of their own.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter

TRIALS, FILES = 1000, 100
OF_LANGCHAIN = """\
name: weather
agent: lab
prompt: What is the weather in Oslo?
trials: 100
accept: [correct, degraded, failed]
faults:
  - {fault: server_error, target: weather, chance: 0.3}
"""
ADDED_S = 0.005
LOADED = 7
"""Processes that load the plug-in. The median counts."""
AGENT = """\
def refund(order: int) -> str:
    return "refunded"


def agent(prompt: str) -> str:
    for _ in range(3):
        try:
            return f"order 17 is {refund(17)}"
        except Exception:  # any error of the tool
            continue
    return "I could not refund order 17."
"""
SCENARIO = """\
name: refund {n}
agent: shop:agent
tools: [shop:refund]
prompt: Refund order 17.
trials: {trials}
accept: [correct, degraded, harm, unknown, wrong, false_success]
faults:
  - fault: server_error
    target: refund
    chance: 0.3
"""


def took_s(*words: str, folder: Path) -> tuple[float, float]:
    """The seconds that a command takes, and those of the CPU (all processes). It must not find anything wrong."""
    began, used = perf_counter(), cpu_s()
    done = subprocess.run([sys.executable, "-m", "chaoslab", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"chaoslab {' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return perf_counter() - began, cpu_s() - used


def added_s(folder: Path) -> float:
    """The seconds that pytest takes to load the plug-in, which is all that it does unless it is used. Whole runs of
    pytest differ by ten times as much from one to the next."""
    code = (
        "import pytest, time\n"
        "began = time.process_time()\n"
        "import chaoslab.surfaces.pytest_plugin\n"
        "print(time.process_time() - began)"
    )
    found = [
        float(subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=True).stdout)
        for _ in range(LOADED)
    ]
    return median(found)


def cpu_s() -> float:
    """The CPU seconds of the processes that have ended."""
    spent = getrusage(RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "shop.py").write_text(AGENT)
        one = folder / "one.chaos.yaml"
        one.write_text(SCENARIO.format(n=0, trials=TRIALS))
        (folder / "lang.chaos.yaml").write_text(OF_LANGCHAIN)
        many = folder / "many"
        many.mkdir()
        for n in range(FILES):
            (many / f"s{n}.chaos.yaml").write_text(SCENARIO.format(n=n, trials=1))
        figures = [
            (f"{TRIALS:,} trials, judged, with logs, 2 jobs", 3.0,
             took_s("test", str(one), "--jobs", "2", "--logs", "logs", folder=folder)),
            ("100 trials of LangChain's agent, judged", 5.0, took_s("test", "lang.chaos.yaml", folder=folder)),
            (f"chaoslab check of {FILES} files", 2.0, took_s("check", "many", folder=folder)),
        ]  # fmt: skip
        added = added_s(folder)
    for what, target, (found, used) in figures:
        met = "met" if found <= target else "MISSED"
        print(f"{what:42} {found:6.2f} s   CPU {used:6.2f} s   target {target:.0f} s   {met}")
    met = "met" if added <= ADDED_S else "MISSED"
    print(f"{'pytest loads the plug-in':42} {1000 * added:6.1f} ms  of CPU{'':14}target 5 ms  {met}")


if __name__ == "__main__":
    main()
