"""Measures what the planner and the memory are worth, each figure beside its goal:
`python benchmarks/plan.py [PART …]`. Parts: harm, predict, risk, dose, memory.

harm, predict and risk: agents of five shapes, each with one weakness at one target of its own; two of the shapes do
harm where the stories of the faults call it less likely. Each cell of each agent is run once, in virtual time, and
since equal trials end alike, orders of trials are compared on what came of them. The memory is empty at first. The
planner's constants were chosen with agents 1000 to 1019 of each shape; 0 and on are measured. Exits 1 if a goal is
missed.
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
from statistics import fmean, median
from typing import Any

import chaoslab as lab
from chaoslab.core.events import Effect
from chaoslab.execution.explore import ExploreArguments
from chaoslab.execution.exploring import open_agent_search
from chaoslab.memory._reading import Facts, make_experiment
from chaoslab.memory.store import Memory
from chaoslab.search.planning._risk import compute_risk
from chaoslab.search.planning.cells import KINDS, Cell
from chaoslab.search.planning.chances import Chances
from chaoslab.search.planning.evidence import Evidence, Experiment, TargetKnowledge
from chaoslab.search.planning.proposals import propose_experiments
from chaoslab.search.variation import TriedVariation, Variation

AGENTS = 20
"""The agents of each shape."""
SEEDS, PLANS = 50, 3
"""The orders by dice, and the seeds of the planner, for each agent."""
SPLITS, KNOWN = 5, (0.1, 0.3, 0.5)
"""The times that an agent's cells are split, and the shares that are known then."""
DUPLICATES = ("redelivery",)
"""Faults that do harm at each of these tools whatever the agent does: they are left out."""
FAULTS = ("lost_reply", "delay", "rate_limit", "server_error", "wrong_value", "malformed_json", "exception", "empty")
NAMES = ("charge", "mail", "book", "ship", "refund", "notify", "search", "crm", "rates", "stock", "quote", "weather")
SILENCE, UNREADABLE, TRUSTS, ELSEWHERE, GUESSES = SHAPES = (
    "repeats an effect after silence", "repeats an effect whose answer it cannot read",
    "acts on any value that it reads", "repeats an effect in another way after a clear error",
    "acts on a guess where a reading fails",
)  # fmt: skip
UNLIKELY = (ELSEWHERE, GUESSES)
"""The shapes whose harm the stories call less likely."""
Row = tuple[str, str, str, bool]


def main(parts: list[str]) -> int:
    rows: list[Row] = []
    for name in parts or ["harm", "predict", "risk", "dose", "memory"]:
        for row in globals()[f"of_{name}"]():
            rows.append(row)
            print("| {} | {} | {} |{}".format(*row[:3], "" if row[3] else " MISSED"), flush=True)
    return 0 if all(row[3] for row in rows) else 1


# Agents with a planted weakness.


def planted(shape: str, number: int) -> tuple[Callable[[str], str], list[Any], list[Any]]:
    """An agent of three readings and three effects that does harm in one way at one of them, and stops and says so at
    whatever else goes wrong. Also its tools and its readings."""
    dice = random.Random(f"{shape} {number}")
    names, weak = dice.sample(NAMES, 6), dice.randrange(3)

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
        except Exception:
            if own == GUESSES:
                return 99
            raise
        value = found["value"]
        if value != 12 + n and own != TRUSTS:
            raise ValueError("it looks wrong")
        return value

    def do(act: Callable[[int], Any], value: int, own: str) -> None:
        try:
            found = act(value)
        except TimeoutError:
            if own != SILENCE:
                raise
            found = act(value)
        except Exception:
            if own != ELSEWHERE:
                raise
            found = act(value + 1)
        if not isinstance(found, dict) and own == UNREADABLE:
            found = act(value)
        if not isinstance(found, dict):
            raise ValueError("no answer")

    def agent(prompt: str) -> str:  # noqa: ARG001
        done: dict[str, bool | None] = dict.fromkeys(names[3:], False)
        try:
            values = [value_of(n, shape if n == weak else "") for n in range(3)]
            for n, act in enumerate(tools):
                done[act.__name__] = None  # until it is known
                do(act, values[n], shape if n == weak else "")
                done[act.__name__] = True
        except Exception:  # noqa: BLE001
            pass
        return json.dumps(done)

    return agent, tools, reads


class Mapped:
    """All cells of one agent that meet their fault, with what came of each."""

    def __init__(self, shape: str, number: int) -> None:
        agent, tools, reads = planted(shape, number)
        self.name = f"{shape} {number}"
        with open_agent_search(
            ExploreArguments(agent, "go", tools=tools, reads=reads, says=json.loads, seed=1)
        ) as trials:
            ((calm, trial),) = trials.assess_variations([Variation()], "calm")
            effects = [event.target for _, event in trial.history.find_events(Effect)]
            self.targets = {
                name: TargetKnowledge(1, 1, effects.count(name), 0)
                for name in {site.target for site in calm.attempt_sites}
            }
            probes, _ = trials.find_applicable_probes(())
            cells = [
                Cell.build(target, probe.fault, dict(probe.params), how)
                for target, own in probes.items() for probe in own for how in KINDS if probe.fault not in DUPLICATES
            ]  # fmt: skip
            done = trials.assess_variations([Variation((cell.injection,)) for cell in cells], "plan")
            self.rows = {cell: row(cell, tried) for cell, (tried, _) in zip(cells, done, strict=True) if tried.met}
        self.harmful = {cell for cell, each in self.rows.items() if each.harm}

    def evidence(self, cells: list[Cell]) -> Evidence:
        return Evidence("agent", (self.rows[cell] for cell in cells), self.targets)


def row(cell: Cell, tried: TriedVariation) -> Experiment:
    facts = Facts(
        "", tried.outcome, not tried.is_inconclusive, tried.failed, bool(tried.harm), (cell,), seconds=tried.seconds
    )
    return make_experiment("agent", cell, [facts], "virtual")


@cache
def maps(shape: str) -> list[Mapped]:
    return [Mapped(shape, number) for number in range(AGENTS)]


def named(shape: str) -> str:
    return shape + (" (said to be less likely)" if shape in UNLIKELY else "")


def first_harm(own: Mapped, seed: int) -> int:
    """The trials until the planner shows harm, from an empty memory."""
    left, evidence = list(own.rows), own.evidence([])
    for number in range(len(own.rows)):
        cell = propose_experiments(evidence, left, n=1, seed=seed, round_=number).proposals[0].cell
        base = next(each for each in left if replace_dose(each) == replace_dose(cell))
        left.remove(base)
        evidence.add_row(own.rows[base])
        if base in own.harmful:
            return number + 1
    return len(own.rows)


def replace_dose(cell: Cell) -> tuple[Any, ...]:
    return cell.target, cell.fault, cell.how, cell.params


def of_harm() -> Iterator[Row]:
    halves = 0
    for shape in SHAPES:
        found = maps(shape)
        drawn, planned = list[int](), list[int]()
        for own in found:
            for seed in range(SEEDS):
                order = random.Random(f"{own.name} {seed}").sample(list(own.rows), len(own.rows))
                drawn.append(next(n for n, cell in enumerate(order, 1) if cell in own.harmful))
            planned += [first_harm(own, seed) for seed in range(PLANS)]
        share = fmean(planned) / fmean(drawn)
        halves += share <= 0.5
        cells, harmful = fmean(len(own.rows) for own in found), fmean(len(own.harmful) for own in found)
        medians = f"median {median(planned):g} of {median(drawn):g}"
        told = f"{fmean(planned):.1f} of {fmean(drawn):.1f}, {share:.0%}; {medians}"
        yield (f"first harm, {named(shape)} ({harmful:.0f} of {cells:.0f} cells): trials, mean", "≤ 120 % of random's",
               f"{told}, most {max(planned)}", share <= 1.2)  # fmt: skip
    yield "shapes with first harm in at most half of random's trials", "≥ 4 of 5", str(halves), halves >= 4


def of_predict() -> Iterator[Row]:
    """Brier's score of a bad end of cells that were not tried. A baseline is smoothed as the prediction is."""
    for shape in SHAPES:
        for share in KNOWN:
            scores, silent, all_ = list[list[float]](), 0, 0
            for own in maps(shape):
                judged = [cell for cell, each in own.rows.items() if each.tried]
                for seed in range(SPLITS):
                    order = random.Random(f"{own.name} {seed}").sample(judged, len(judged))
                    known = int(len(order) * share)
                    chances = Chances(own.evidence(order[:known]))
                    for cell in order[known:]:
                        all_ += 1
                        told = chances.predict([cell])
                        silent += bool(told.why)
                        if not told.why:
                            bad = own.rows[cell].bad
                            others = [
                                chances.compute_mean_over_levels(cell, levels)
                                for levels in (("",), ("", "target"), ("", "fault"))
                            ]
                            scores.append([(each - bad) ** 2 for each in (told.bad, *others)])
            if not scores:
                yield f"Brier, {share:.0%} known, {named(shape)}", "", "nothing is told", True
                continue
            mean, *others = map(fmean, zip(*scores, strict=True))
            rates = ", ".join(f"{each:.4f}" for each in others)
            yield (f"Brier, {share:.0%} known, {named(shape)}", "≤ base rate, same target, same fault",
                   f"{mean:.4f}; {rates}; {silent / all_:.0%} not told", mean <= min(others))  # fmt: skip


def of_risk() -> Iterator[Row]:
    pairs: list[tuple[float, bool]] = []
    for own in (each for shape in SHAPES for each in maps(shape)):
        order = random.Random(own.name).sample(list(own.rows), len(own.rows))
        known, rest = order[: len(order) // 4], order[len(order) // 4 :]
        chances = Chances(own.evidence(known))
        pairs += [(compute_risk(chances, cell).value, cell in own.harmful) for cell in rest]
    area = auroc(pairs)
    yield "risk, a quarter of the cells known: AUROC of harm", "≥ .85", f"{area:.3f}, {len(pairs)} cells", area >= 0.85


def auroc(pairs: list[tuple[float, bool]]) -> float:
    """The chance that a harmful cell has the higher risk of two; equal ones count half."""
    ranked = sorted(pairs)
    ranks: dict[float, list[int]] = {}
    for n, (value, _) in enumerate(ranked, 1):
        ranks.setdefault(value, []).append(n)
    good = sum(harm for _, harm in pairs)
    total = sum(sum(ranks[value]) / len(ranks[value]) for value, harm in pairs if harm)
    return (total - good * (good + 1) / 2) / (good * (len(pairs) - good))


# The safe dose of a delay.


def of_dose() -> Iterator[Row]:
    took, errors = [], []
    for number in range(20):
        limit_s = 10 ** random.Random(number).uniform(-1, 1.4)

        def search() -> str:
            return "12"

        def agent(prompt: str, limit_s: float = limit_s) -> str:  # noqa: ARG001
            began_s = time.monotonic()
            found = search()
            if time.monotonic() - began_s > limit_s:
                raise TimeoutError("too late")
            return f"It is {found}."

        evidence, trials = Evidence("agent"), 0
        with open_agent_search(ExploreArguments(agent, "go", reads=[search], seed=1)) as made:
            while True:
                cells = [Cell.build("search", "delay", {})]
                found = propose_experiments(evidence, cells, n=1).proposals
                if not found:
                    break
                cell = found[0].cell
                ((tried, _),) = made.assess_variations([Variation((cell.injection,))], "plan")
                evidence.add_row(row(cell, tried))
                trials += 1
        edge = evidence.get_dose_range(Cell.build("search", "delay", {})).estimated_edge or 0.0
        took.append(trials)
        errors.append(abs(edge / limit_s - 1))
    yield ("the safe dose of a delay, 20 timeouts from 0.1 to 25 s: trials", "≤ 12",
           f"median {median(took):g}, most {max(took)}", max(took) <= 12)  # fmt: skip
    yield "the same: error", "≤ 15 %", f"median {median(errors):.1%}, most {max(errors):.1%}", max(errors) <= 0.15


# The memory.


def of_memory(runs: int = 10_000) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as place:
        logs = Path(place)
        for number in range(40):
            agent, tools, reads = planted(SHAPES[number % 5], number)
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
            found = lab.plan(store, subject=store.list_agents()[0])
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
