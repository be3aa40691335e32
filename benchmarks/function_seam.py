"""Measures the seam of Python functions: its cost for a call, the trials a second on it, and the growth of memory.

    python benchmarks/function_seam.py [--calls N] [--trials N] [--rounds N]

One call: the same function bare, and with an armed seam whose injection has chance 0; the two take turns, the figure is
the median of the paired differences. "Log apart" notes nothing, "noted" keeps all that the log will say, "written"
makes the log's lines of it. "Whole catalogue": each fault that a function takes is armed at chance 0, and the figure is
beyond the seam without any. Trials: a plain-Python agent with six function tools, faults at 0.2, all events in memory;
on one core, judged, and in two processes. The best of all rounds comes first, since neighbours can only make it slower.
Exits 1 when a goal is missed by half.
"""

import argparse
import contextlib
import gc
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import chaoslab as lab
from chaoslab.base.identity import TrialId
from chaoslab.base.registry import names
from chaoslab.core.events import Event
from chaoslab.core.fault import GROUP
from chaoslab.core.inject import check
from chaoslab.core.plan import Injection, Plan
from chaoslab.record.trial_log import Later, TrialLog
from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.functions.wrapped import WrappedFunction

CALL_GOAL_US, TEN_GOAL_US, ONE_CORE_GOAL, TWO_CORES_GOAL, FLAT = 2.0, 6.0, 1500.0, 3000.0, 0.05
TEN, CATALOGUE, UNARMED = "ten triggers armed", "whole catalogue", "no fault at all"


class Deaf(TrialLog):
    """Notes nothing."""

    def note(self, noted: Event) -> None:
        pass

    def note_part(self, noted: Later, part: str) -> None:
        pass


def lookup(order: int) -> dict[str, int]:
    return {"order": order, "price": 30}


def stock(item: str) -> int:
    return len(item)


def rate(currency: str) -> float:
    return 1.1 if currency == "EUR" else 1.0


def refund(order: int, amount: float) -> dict[str, Any]:
    time.sleep(0.2)
    return {"order": order, "refunded": amount}


def book(day: str, title: str) -> str:
    return f"{title} on {day}"


def message(to: str, text: str) -> bool:
    return bool(to and text)


def tried(call: Callable[..., Any], *arguments: Any) -> Any:
    for wait_s in (1.0, 2.0):
        try:
            return call(*arguments)
        except (OSError, lab.ToolError):
            time.sleep(wait_s)
    return call(*arguments)


def agent(prompt: str) -> str:
    price = tried(lookup, 17)["price"] * tried(rate, "EUR")
    tried(stock, "lamp")
    tried(refund, 17, price)
    tried(book, "2026-06-02", "Review")
    tried(message, "ana", f"{prompt}: {price}")
    return f"refunded {price}"


def faults() -> list[Any]:
    names = ("lookup", "rate", "stock", "refund", "book", "message")
    return [lab.inject(fault, names, chance=0.1) for fault in ("lost_reply", "latency")]


def trials(count: int, jobs: int = 1) -> Any:
    return lab.run_many(
        agent, "Refund order 17", trials=count, jobs=jobs, tools=[refund, book, message], reads=[lookup, stock, rate],
        faults=faults(), timeout_s=10,
    )  # fmt: skip


def idle() -> list[Injection]:
    """Ten injections with a trigger of each kind, none of which ever holds here."""
    never: list[dict[str, Any]] = [
        {"calls": [10**9]}, {"attempts": [99]}, {"every": 10**9}, {"after_calls": 10**9}, {"on_turn": [9]},
        {"window_s": [1e8, 2e8]}, {"tool": "x*"}, {"when": 'to == "bob"'}, {"after": "0"},
        {"persistence": "for_good", "max_times": 3, "calls": [10**9]},
    ]  # fmt: skip
    return [lab.inject("latency", "message", name=str(n), **given) for n, given in enumerate(never)]


def catalogue() -> Plan:
    """Each fault that a function takes, at chance 0."""
    found: list[Injection] = []
    for fault in names(GROUP):
        injection = lab.inject(fault, "message", chance=0.0)
        with contextlib.suppress(ValueError):  # it works on a model's messages, or on bytes
            found += check([injection], ["message"], functions=["message"])
    return Plan(1, tuple(found))


def a_call(calls: int, rounds: int) -> dict[str, list[float]]:
    """Microseconds beyond the bare function."""
    calm, armed = Plan(1, (lab.inject("latency", "message", chance=0.0),)), Plan(1, tuple(idle()))

    def took_us(call: Callable[..., Any]) -> float:
        began = time.perf_counter()
        for number in range(calls):
            call("ana", number)
        return (time.perf_counter() - began) / calls * 1e6

    plans = {TEN: armed, CATALOGUE: catalogue(), UNARMED: Plan(1)}
    kinds = {"log apart": Deaf, "noted": TrialLog, "written": TrialLog, TEN: Deaf, CATALOGUE: Deaf, UNARMED: Deaf}
    beyond: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        bare_us = took_us(message)
        for name, kind in kinds.items():
            seam = FunctionSeam(plans.get(name, calm), timeout_s=30)
            seam.begin(kind(TrialId("bench", 1), began=datetime(2026, 6, 1, tzinfo=UTC)))
            began = time.perf_counter()
            us = took_us(seam.stand_in(WrappedFunction("message", message, effect=False)))
            if name == "written":
                _ = seam.book.kept if seam.book is not None else None
                us = (time.perf_counter() - began) / calls * 1e6
            beyond[name].append(us - bare_us)
    beyond[CATALOGUE] = [us - unarmed_us for us, unarmed_us in zip(beyond[CATALOGUE], beyond[UNARMED], strict=True)]
    return beyond


def a_second(
    count: int, *, judged: bool = False, jobs: int = 1, clock: Callable[[], float] = time.process_time
) -> float:
    """Trials a second of processor time, since neighbours take the rest; the twin and all done once included."""
    gc.collect()
    began = clock()
    done = 0
    for trial in trials(count, jobs):
        done += 1
        if judged:
            _ = trial.outcome
    assert done == count
    return count / (clock() - began)


def resident_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def growth(count: int) -> float:
    """The growth of memory from the first tenth of the trials to the last trial, as a share."""
    early = 0
    for number, trial in enumerate(trials(count), 1):
        _ = trial.history
        if number == count // 10:
            early = resident_kb()
    return resident_kb() / early - 1


def main() -> int:
    parser = argparse.ArgumentParser(description="the cost of the function seam")
    parser.add_argument("--calls", type=int, default=20_000, help="per round (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=10_000, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="(default: %(default)s)")
    given = parser.parse_args()
    missed = []
    print("a call at chance 0, µs beyond the bare function")
    found = a_call(given.calls, given.rounds)
    goals = {"log apart": CALL_GOAL_US, TEN: TEN_GOAL_US, CATALOGUE: CALL_GOAL_US}
    for name, us in found.items():
        print(
            f"  {name:26}{min(us):8.2f}"
            f"   median {median(us):.2f}{f'   (goal {goals[name]:g})' if name in goals else ''}"
        )
    if min(found["log apart"]) > CALL_GOAL_US * 1.5:
        missed.append("a call")
    if median(found[CATALOGUE]) > CALL_GOAL_US * 1.5:
        missed.append(CATALOGUE)
    if min(found[TEN]) > TEN_GOAL_US * 1.5:
        missed.append(TEN)
    print("trials a second, six function tools, faults at 0.2")
    several = max(200, given.trials // 10)
    measured: list[tuple[str, float, Callable[[], float]]] = [
        ("one core, of its time", ONE_CORE_GOAL, lambda: a_second(several)),
        ("one core, all judged", 0.0, lambda: a_second(several, judged=True)),
        ("two processes, real time", TWO_CORES_GOAL, lambda: a_second(several * 2, jobs=2, clock=time.perf_counter)),
    ]
    found_s: dict[str, list[float]] = {name: [] for name, _, _ in measured}
    for _ in range(given.rounds):
        for name, _, measure in measured:
            found_s[name].append(measure())
    for name, goal, _ in measured:
        rate_, middle = max(found_s[name]), median(found_s[name])
        print(f"  {name:26}{rate_:8.0f}   median {middle:.0f}{f'   (goal {goal:g})' if goal else ''}")
        if rate_ < goal / 1.5:
            missed.append(name)
    grown = growth(given.trials)
    print(f"memory after {given.trials} trials   {grown:+.1%} since the first tenth   (goal ±{FLAT:.0%})")
    if abs(grown) > FLAT * 1.5:
        missed.append("memory")
    print("missed: " + ", ".join(missed) if missed else "all goals are met, or nearly")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
