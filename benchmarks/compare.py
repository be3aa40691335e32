"""Measures how often comparisons and the gate are wrong, and what they take, each figure beside its goal:
`python benchmarks/compare.py [PART …]`. Parts: null, power, costs, gate.

Trials are simulated but for the gate's. "Coupled" trials share a difficulty, as the same seeds and faults make them: a
side is well if √.5 · difficulty + √.5 · its own chance, both normal, is below the quantile of its share. Seconds are
of the CPU, children included. Exits 1 if a goal is missed.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import NormalDist, median
from time import process_time

from chaoslab.analysis.measures.anytime import FIRST, decides, mean_sequence
from chaoslab.search.compared import Comparison
from chaoslab.search.pairs import WORSE, Pair, Side

NULLS, RUNS = 10_000, 4000
ALPHA = 0.05
SHARED = 0.5
"""The part of a trial's chance that both sides share, where they are coupled."""
WELL, BAD = Side(True, "correct", "", 1, 1.0), Side(False, "wrong", "", 1, 1.0)
Row = tuple[str, str, str, bool]
Draw = Callable[[random.Random], tuple[bool, bool]]
QUANTILE = NormalDist().inv_cdf


def main(parts: list[str]) -> int:
    rows: list[Row] = []
    print("| | goal | measured |\n|---|---|---|")
    for name in parts or ["null", "power", "costs", "gate"]:
        for row in globals()[f"of_{name}"]():
            rows.append(row)
            print("| {} | {} | {} |{}".format(*row[:3], "" if row[3] else " MISSED"), flush=True)
    return 0 if all(row[3] for row in rows) else 1


def independent(base: float, new: float) -> Draw:
    return lambda dice: (dice.random() < base, dice.random() < new)


def coupled(base: float, new: float, shared: float = SHARED) -> Draw:
    """Trials of one difficulty on both sides."""
    bounds, own, common = (QUANTILE(base), QUANTILE(new)), (1 - shared) ** 0.5, shared**0.5

    def draw(dice: random.Random) -> tuple[bool, bool]:
        hard = common * dice.gauss(0, 1)
        return hard + own * dice.gauss(0, 1) < bounds[0], hard + own * dice.gauss(0, 1) < bounds[1]

    return draw


def compared(dice: random.Random, draw: Draw, pairs: int) -> Comparison:
    """A comparison that is looked at after every pair, and stops when it is decided."""
    found = Comparison(ALPHA)
    for number in range(1, pairs + 1):
        base, new = draw(dice)
        found.add(Pair(number, WELL if base else BAD, WELL if new else BAD))
        if base != new and found.decided:
            break
    return found


def in_clusters(dice: random.Random, pairs: int, prompts: int) -> Comparison:
    """The same with prompts that are asked in turns. At each the new side is better or worse by 0.3, with equal
    chances, so that it is no worse over all prompts."""
    shares = [(0.65, 0.65 + dice.choice((-0.3, 0.3))) for _ in range(prompts)]
    found = Comparison(ALPHA)
    for number in range(1, pairs + 1):
        base, new = (dice.random() < share for share in shares[number % prompts])
        found.add(Pair(number, WELL if base else BAD, WELL if new else BAD, str(number % prompts)))
        if base != new and found.decided:
            break
    return found


def of_null() -> Iterator[Row]:
    dice = random.Random(1)
    cases: list[tuple[str, Callable[[], Comparison]]] = [
        ("independent, .75", lambda: compared(dice, independent(0.75, 0.75), 200)),
        ("coupled, .75", lambda: compared(dice, coupled(0.75, 0.75), 200)),
        ("20 prompts, ± .3 at each", lambda: in_clusters(dice, 200, 20)),
    ]
    for what, run in cases:
        said = sum(run().verdict == WORSE for _ in range(NULLS)) / NULLS
        yield f'false "worse", 200 pairs, {what}', "≤ 5 %", f"{said:.1%}", said <= ALPHA
    bounds, said = decides(ALPHA, 1000), 0
    for _ in range(NULLS):
        worse = discordant = 0
        for _ in range(1000):
            drawn = dice.random()
            if drawn < 0.375:  # as of .75 and .75, independent
                discordant += 1
                worse += drawn < 0.1875
                if worse >= bounds[discordant]:
                    said += 1
                    break
    yield 'false "worse", 1,000 pairs, independent, .75', "≤ 5 %", f"{said / NULLS:.1%}", said / NULLS <= ALPHA


def of_power() -> Iterator[Row]:
    for new, pairs, least, stop, shared in (
        (0.75, 200, 0.99, 45, None), (0.75, 200, 0.99, 45, SHARED),
        (0.85, 200, 0.0, None, None), (0.85, 200, 0.9, None, SHARED), (0.85, 200, 0.9, None, 1.0),
        (0.90, 400, 0.0, None, None), (0.90, 400, 0.75, None, SHARED), (0.90, 400, 0.75, None, 1.0),
    ):  # fmt: skip
        dice = random.Random(2)
        draw = independent(0.95, new) if shared is None else coupled(0.95, new, shared)
        shown = [len(each.pairs) for _ in range(RUNS)
                 if (each := compared(dice, draw, pairs)).verdict == WORSE]  # fmt: skip
        share, at = len(shown) / RUNS, median(shown)
        how = {None: "independent", SHARED: "coupled", 1.0: "alike but for the change"}[shared]
        goal = f"≥ {least:g}{f', median stop ≤ {stop}' if stop else ''}" if least else ""
        text = f"{share:.3f}, median stop {at:g}"
        yield f".95 → {new:g} within {pairs} pairs, {how}", goal, text, share >= least and (not stop or at <= stop)


def of_costs() -> Iterator[Row]:
    cases: list[tuple[str, Callable[[random.Random], float]]] = [
        ("normal", lambda dice: dice.gauss(0, 1)),
        ("one more call in one pair of ten", lambda dice: (dice.random() < 0.1) - 0.1),
        ("skewed: exponential", lambda dice: dice.expovariate(1) - 1),
    ]
    for what, draw in cases:
        dice, missed, runs = random.Random(3), 0, 1000
        for _ in range(runs):
            values: list[float] = []
            for n in range(1, 401):
                values.append(draw(dice))
                interval = mean_sequence(values, alpha=ALPHA) if n >= FIRST and n % 4 == 0 else None
                if interval is not None and 0 not in interval:
                    missed += 1
                    break
        goal = "" if what.startswith("skewed") else "≤ 5 %"
        yield (f"mean cost outside its confidence sequence at any look up to 400 pairs, {what}", goal,
               f"{missed / runs:.1%}", not goal or missed / runs <= ALPHA)  # fmt: skip


AGENT = """
def charge(order: int) -> str:
    return "charged"


def answer(prompt):
    for _ in range(3):
        try:
            return f"Order 17: {charge(17)}."
        except OSError:
            continue
    return "I could not charge order 17."
"""
SCENARIO = """
name: charge
agent: plain_agent:answer
tools: [plain_agent:charge]
prompt: Charge order 17.
accept: [correct, degraded, harm]
faults:
  - {fault: timeout_before_effect, target: charge, chance: 0.3}
"""


def of_gate() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "plain_agent.py").write_text(AGENT)
        Path(folder, "charge.chaos.yml").write_text(SCENARIO)
        words = [sys.executable, "-m", "chaoslab", "gate", "charge.chaos.yml", "--baseline", "baseline.json", "-q"]
        subprocess.run([*words, "--write"], cwd=folder, check=True, capture_output=True)
        began_s = cpu_s()
        done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
        took_s = cpu_s() - began_s
    assert "gate passed: no scenario became worse, in 200 trials" in done.stdout
    yield "a gate of a plain Python agent, 200 pairs", "< 5 s", f"{took_s:.1f} s", took_s < 5


def cpu_s() -> float:
    times = os.times()
    return process_time() + times.children_user + times.children_system


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
