"""Measures what the planner and the memory are worth, each figure beside its goal:
`python benchmarks/plan.py [PART …]`. Parts: harm, risk, dose, memory.

harm and risk: agents with planted weaknesses at targets of their own names; each cell of each agent is run once, in
virtual time, and since equal trials end alike, the orders of trials are compared on what came of them. The agents are
unseen: the memory holds others alone. The constants of the planner were chosen with other agents (1000 and on).
Exits 1 if a goal is missed.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import chaoslab as lab
from chaoslab.core.events import CallStarted, Effect
from chaoslab.execution.explore import AskedExplore
from chaoslab.execution.exploring import SearchSession, session
from chaoslab.memory._reading import Facts, experiment_of
from chaoslab.memory.planning import injection_of
from chaoslab.memory.store import Memory
from chaoslab.search.planning._risk import risk_of
from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.evidence import Evidence, Experiment, TargetKnowledge
from chaoslab.search.planning.posterior import Posteriors
from chaoslab.search.planning.proposals import propose
from chaoslab.search.variation import Tried, Variation

AGENTS, OTHERS = 20, 60
"""The agents that are unseen, and those that the memory knows."""
SEEDS, PLANS = 20, 5
"""The orders by dice, and the seeds of the planner, of which each agent counts by the median."""
FAULTS = (
    "auth_error", "confident_wrong", "delay", "empty", "empty_response", "exception", "html_instead_of_json",
    "lost_reply", "malformed_json", "not_found", "partial_success", "rate_limit", "schema_drift", "server_error",
    "stale", "timeout_before_effect", "unit_error", "wrong_value",
)  # fmt: skip
NAMES = ("charge", "mail", "book", "ship", "refund", "notify", "search", "crm", "rates", "stock", "quote", "weather")
Row = tuple[str, str, str, bool]


def main(parts: list[str]) -> int:
    rows: list[Row] = []
    for name in parts or ["harm", "risk", "dose", "memory"]:
        for row in globals()[f"of_{name}"]():
            rows.append(row)
            print("| {} | {} | {} |{}".format(*row[:3], "" if row[3] else " MISSED"), flush=True)
    return 0 if all(row[3] for row in rows) else 1


# Agents with a planted weakness.


KINDS = ("repeats after silence", "repeats what it cannot read", "trusts", "invents", "fills in", "goes on")


def planted(number: int) -> tuple[Callable[[str], str], list[Any], list[Any]]:
    """An agent of three readings and three effects that does harm in one narrow way at one of them, and stops and says
    so at whatever else goes wrong. Also its tools and its readings."""
    dice = random.Random(number)
    kind, weak = dice.choice(KINDS), dice.randrange(3)
    names = dice.sample(NAMES, 6)

    def reading(name: str, value: int) -> Callable[[], dict[str, int]]:
        def function() -> dict[str, int]:
            return {"value": value}

        function.__name__ = function.__qualname__ = name
        return function

    def effect(name: str) -> Callable[[int], dict[str, Any]]:
        def function(amount: int) -> dict[str, Any]:
            return {"done": "yes", "amount": amount}

        function.__name__ = function.__qualname__ = name
        return function

    reads = [reading(name, 12 + n) for n, name in enumerate(names[:3])]
    tools = [effect(name) for name in names[3:]]

    def value_of(n: int, own: str) -> int:
        try:
            found = reads[n]()
        except Exception as error:
            if own == "invents" and "404" in str(error):
                return 99
            raise
        if own == "fills in" and not found:
            return 99
        value = found["value"]
        if value != 12 + n and own != "trusts":
            raise ValueError("it looks wrong")
        return value

    def do(act: Callable[[int], Any], value: int, own: str) -> None:
        try:
            found = act(value)
        except TimeoutError:
            if own != "repeats after silence":
                raise
            found = act(value)
        except Exception as error:
            if own != "goes on" or "429" not in str(error):
                raise
            found = act(value + 1)
        if not isinstance(found, dict) and own == "repeats what it cannot read":
            found = act(value)
        if not isinstance(found, dict):
            raise ValueError("no answer")

    def agent(prompt: str) -> str:  # noqa: ARG001
        done: dict[str, bool | None] = dict.fromkeys(names[3:], False)
        try:
            values = [value_of(n, kind if n == weak else "") for n in range(3)]
            for n, act in enumerate(tools):
                done[act.__name__] = None  # until it is known
                do(act, values[n], kind if n == weak else "")
                done[act.__name__] = True
        except Exception:  # noqa: BLE001
            pass
        return json.dumps(done)

    return agent, tools, reads


class Mapped:
    """All cells of one agent, with what came of each."""

    def __init__(self, number: int) -> None:
        agent, tools, reads = planted(number)
        self.subject = f"agent {number}"
        asked = AskedExplore(agent, "go", tools=tools, reads=reads, says=json.loads, seed=1)
        with session(asked) as trials:
            self.targets = calls(trials, self.subject)
            probes, _ = trials.probes(FAULTS)
            cells = [
                Cell.of(target, probe.fault, dict(probe.params), how)
                for target, own in probes.items() for probe in own for how in ("always", "once")
            ]  # fmt: skip
            asked_for = {Variation((injection_of(cell),)).key: cell for cell in cells}
            variations = [Variation((injection_of(cell),)) for cell in cells]
            done = [tried for tried, _ in trials.tried(variations, "plan")]
        assert len(asked_for) == len(cells)
        self.rows = {cell: row(self.subject, cell, tried) for cell, tried in zip(cells, done, strict=True)}
        self.rows = {cell: each for cell, each in self.rows.items() if each.tried}
        self.harmful = {cell for cell, each in self.rows.items() if each.harm}


def row(subject: str, cell: Cell, tried: Tried) -> Experiment:
    judged = not tried.void and (tried.failed or tried.certain)
    facts = Facts("", tried.outcome, judged, tried.failed, bool(tried.harm), (cell,), seconds=tried.seconds)
    return experiment_of(subject, cell, [facts], "virtual")


def calls(trials: SearchSession, subject: str) -> dict[tuple[str, str], TargetKnowledge]:
    ((_, calm),) = trials.tried([Variation()], "calm")
    effects = [event.target for _, event in calm.history.of(Effect)]
    there = {event.target for _, event in calm.history.of(CallStarted)}
    return {(subject, name): TargetKnowledge(1, 1, effects.count(name), 0) for name in there}


@cache
def maps(first: int, number: int) -> list[Mapped]:
    return [Mapped(first + n) for n in range(number)]


def remembered(own: Mapped, first: int) -> Evidence:
    """The memory of others. Of the agent itself it has what its trial without faults calls."""
    others = maps(first + 100, OTHERS)
    targets = {key: value for each in (*others, own) for key, value in each.targets.items()}
    return Evidence((row for each in others for row in each.rows.values()), targets)


def first_harm(own: Mapped, evidence: Evidence, seed: int) -> int:
    """The trials until the planner shows harm."""
    left = list(own.rows)
    for number in range(len(own.rows)):
        cell = propose(evidence, own.subject, left, n=1, seed=seed, round_=number).proposals[0].cell
        base = next((each for each in left if each.key == cell.key), None) or next(
            each for each in left if (each.target, each.fault, each.how) == (cell.target, cell.fault, cell.how)
        )
        left.remove(base)
        evidence.add(own.rows[base])
        if base in own.harmful:
            return number + 1
    return len(own.rows)


def of_harm(first: int = 0) -> Iterator[Row]:
    found = maps(first, AGENTS)
    by_random, planned, alone = [], [], []
    for own in found:
        if not own.harmful:
            continue
        draws = []
        for seed in range(SEEDS):
            order = random.Random(f"{own.subject} {seed}").sample(list(own.rows), len(own.rows))
            draws.append(next(n for n, cell in enumerate(order, 1) if cell in own.harmful))
        by_random.append(median(draws))
        planned.append(median(first_harm(own, remembered(own, first), seed) for seed in range(1, PLANS + 1)))
        alone.append(first_harm(own, Evidence(targets=dict(own.targets)), 1))
    share = median(planned) / median(by_random)
    cells = sum(len(each.rows) for each in found) / len(found)
    harmful = sum(len(each.harmful) for each in found) / len(found)
    yield (f"first harm, {len(planned)} unseen agents, {harmful:.1f} of {cells:.0f} cells harmful: trials, median",
           "≤ 25 % of random's", f"{median(planned):g} of {median(by_random):g}, {share:.0%} (most {max(planned)})",
           share <= 0.25)  # fmt: skip
    rest = median(alone) / median(by_random)
    yield "the same with an empty memory", "≤ random's", f"{median(alone):g}, {rest:.0%}", rest <= 1


def of_risk(first: int = 0) -> Iterator[Row]:
    found = maps(first, AGENTS)
    pairs: list[tuple[float, bool]] = []
    for own in found:
        posteriors = Posteriors(remembered(own, first), own.subject)
        pairs += [(risk_of(posteriors, cell).value, cell in own.harmful) for cell in own.rows]
    area, error = auroc(pairs), calibration(pairs)
    yield "risk over unseen agents: AUROC", "≥ .85", f"{area:.3f}, {len(pairs)} cells", area >= 0.85
    yield "the same: calibration error, ten bins", "≤ .05", f"{error:.3f}", error <= 0.05


def auroc(pairs: list[tuple[float, bool]]) -> float:
    """The chance that a harmful cell has the higher risk of two; equal ones count half."""
    ranked = sorted(pairs)
    ranks: dict[float, list[int]] = {}
    for n, (value, _) in enumerate(ranked, 1):
        ranks.setdefault(value, []).append(n)
    good = sum(harm for _, harm in pairs)
    total = sum(sum(ranks[value]) / len(ranks[value]) for value, harm in pairs if harm)
    return (total - good * (good + 1) / 2) / (good * (len(pairs) - good))


def calibration(pairs: list[tuple[float, bool]]) -> float:
    """The mean distance of the mean risk from the share of harm, over ten bins of equal width, by their sizes."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for value, harm in pairs:
        bins.setdefault(min(9, int(value * 10)), []).append((value, harm))
    return sum(abs(sum(v for v, _ in own) - sum(h for _, h in own)) for own in bins.values()) / len(pairs)


# The safe dose of a delay.


def of_dose() -> Iterator[Row]:
    took, errors = [], []
    for number in range(AGENTS):
        limit_s = 10 ** random.Random(number).uniform(-1, 1.4)

        def search() -> str:
            return "12"

        def agent(prompt: str, limit_s: float = limit_s) -> str:  # noqa: ARG001
            began_s = time.monotonic()
            found = search()
            if time.monotonic() - began_s > limit_s:
                raise TimeoutError("too late")
            return f"It is {found}."

        evidence, trials = Evidence(), 0
        with session(AskedExplore(agent, "go", reads=[search], seed=1)) as made:
            while True:
                cells = [Cell.of("search", "delay", {})]
                found = propose(evidence, "agent", cells, n=1).proposals
                if not found:
                    break
                cell = found[0].cell
                ((tried, _),) = made.tried([Variation((injection_of(cell),))], "plan")
                evidence.add(row("agent", cell, tried))
                trials += 1
        edge = evidence.range("agent", Cell.of("search", "delay", {})).edge or 0.0
        took.append(trials)
        errors.append(abs(edge / limit_s - 1))
    yield (f"the safe dose of a delay, {AGENTS} timeouts from 0.1 to 25 s: trials", "≤ 12",
           f"median {median(took):g}, most {max(took)}", max(took) <= 12)  # fmt: skip
    yield "the same: error", "≤ 15 %", f"median {median(errors):.1%}, most {max(errors):.1%}", max(errors) <= 0.15


# The memory.


def of_memory(runs: int = 10_000) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as place:
        logs = Path(place)
        for number in range(40):
            agent, tools, reads = planted(number % AGENTS)
            faults = [lab.inject(FAULTS[number % len(FAULTS)], "*", chance=0.2)]
            for _ in lab.run_many(
                agent,
                "go",
                tools=tools,
                reads=reads,
                faults=faults,
                says=json.loads,
                trials=3,
                seed=number,
                logs=logs / "made",
            ):
                pass
        made = sorted(path for path in (logs / "made").glob("2*"))
        there = logs / "logs"
        for number in range(runs):
            source, folder = made[number % len(made)], there / f"2026{number:04d}-{number:06d}"
            name = json.loads((source / "run.json").read_text())["name"]
            shutil.copytree(source, folder)
            for path in folder.glob("*.*"):
                path.write_text(path.read_text().replace(name, f"{name[:8]}{number:08d}"))
        with Took() as took:
            store = Memory(there / "memory.db", make=True)
            added = store.add(sorted(there.glob("2*")))
        yield (
            f"a memory of {added.new} runs of three trials made anew",
            "≤ 60 s of the CPU",
            str(took),
            took.cpu_s <= 60,
        )
        with Took() as took:
            found = lab.plan(store, subject=store.subjects()[0])
        yield f"a plan from it, {len(found)} proposals", "≤ 2 s of the CPU", str(took), took.cpu_s <= 2
        with Took() as took:
            again = store.add(sorted(there.glob("2*")))
        yield f"all added again: {again}", "none is new", str(took), again.new == again.changed == 0


class Took:
    """Measures what its block takes: of the CPU, and by the clock, which other programs lengthen."""

    def __enter__(self) -> Took:
        self.cpu_s, self.clock_s = -time.process_time(), -time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu_s += time.process_time()
        self.clock_s += time.perf_counter()

    def __str__(self) -> str:
        return f"{self.cpu_s:.1f} s, by the clock {self.clock_s:.1f} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
