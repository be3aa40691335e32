"""Measures the claims of comparisons, each figure beside its goal: how often equal sides are called worse, whenever one
looks, and how often a fall is shown: `python benchmarks/compare_claims.py [PART …]`. Parts: null, open, power,
interval, bisect, gate.

The trials are simulated, their comparison is that of `chaoslab compare`. It is looked at after every round of prompts
and stops when it is decided. In each trial the agent draws its own chance. Prompts are of different difficulty, the
same on both sides: the shares that end well are spread by 0.2 around their mean. Where "prompts spread", the new side
is better or worse by 0.3 at each, with equal chances, so that it is no worse over all prompts. A bisection is that of
`chaoslab bisect` over 12 commits of a repository, of which the seventh is worse. The gate's trials are real; its
seconds are of the CPU, children included. Exits 1 if a goal is missed.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import process_time
from typing import NamedTuple

from chaoslab.scenarios.bisecting import bisect
from chaoslab.scenarios.revisions import SideWork
from chaoslab.search.compared import Comparison
from chaoslab.search.pairs import WORSE, Pair, Side

RUNS, BISECTIONS = 500, 200
COMMITS, WORSE_FROM = 12, 7
ALPHA = 0.05
WELL = Side(True, "correct", "", 1, 1.0, done=True)
BAD = Side(False, "wrong", "", 1, 1.0, done=False)
Row = tuple[str, str, str, bool]
Trial = Callable[[random.Random, float], Side]


class Case(NamedTuple):
    """The prompts, the most pairs, and both sides: the share that ends well at each prompt, and how a trial is made
    of it."""

    prompts: int
    pairs: int
    base: Trial
    new: Trial
    shares: Callable[[random.Random], tuple[float, float]]


def clear(dice: random.Random, share: float) -> Side:
    return WELL if dice.random() < share else BAD


def unclear(part: float, side: Side) -> Trial:
    """A trial that is open with this chance, if it is as this one. What was done is known of all."""

    def draw(dice: random.Random, share: float) -> Side:
        found = clear(dice, share)
        if found is side and dice.random() < part:
            return replace(found, well=None, outcome="unknown" if found.done else "undone")
        return found

    return draw


def equal(mean: float) -> Callable[[random.Random], tuple[float, float]]:
    return lambda dice: ((share := mean + dice.uniform(-0.2, 0.2)), share)


def spread(mean: float, by: float) -> Callable[[random.Random], tuple[float, float]]:
    return lambda dice: (mean, mean + dice.choice((-by, by)))


def fallen(base: float, new: float) -> Callable[[random.Random], tuple[float, float]]:
    return lambda _: (base, new)


def compared(dice: random.Random, case: Case) -> Comparison:
    shares = [case.shares(dice) for _ in range(case.prompts)]
    found = Comparison(ALPHA, period=case.prompts)
    for number in range(case.pairs - case.pairs % case.prompts):
        prompt = number % case.prompts
        base, new = case.base(dice, shares[prompt][0]), case.new(dice, shares[prompt][1])
        found.add(Pair(number + 1, base, new, str(prompt)))
        if found.decided:
            break
    return found


def share_of(case: Case, verdict: str, seed: int = 1) -> tuple[float, float]:
    """The share of comparisons with this verdict, and the median of their pairs."""
    dice = random.Random(seed)
    ended = [each for each in (compared(dice, case) for _ in range(RUNS)) if each.verdict == verdict]
    return len(ended) / RUNS, median([len(each.pairs) for each in ended] or [0])


def of_null() -> Iterator[Row]:
    for prompts, pairs in ((1, 200), (1, 1000), (2, 200), (4, 200), (8, 200), (8, 1000), (26, 200), (26, 1040)):
        share, _ = share_of(Case(prompts, pairs, clear, clear, equal(0.75)), WORSE)
        yield f'false "worse", {pairs} pairs, prompts {prompts}', "≤ 5 %", f"{share:.1%}", share <= ALPHA
    for prompts, pairs in ((2, 200), (4, 200), (8, 200), (8, 1000), (26, 1040)):
        share, _ = share_of(Case(prompts, pairs, clear, clear, spread(0.65, 0.3)), WORSE)
        text = f'false "worse", {pairs} pairs, prompts {prompts}, prompts spread by ± .3'
        yield text, "≤ 5 %", f"{share:.1%}", share <= ALPHA


def of_open() -> Iterator[Row]:
    for prompts, base, new in ((1, 0.0, 0.5), (1, 0.5, 0.5), (1, 0.0, 0.05), (8, 0.0, 0.5), (8, 0.0, 0.05)):
        case = Case(prompts, 200, unclear(base, WELL), unclear(new, WELL), equal(0.75))
        share, _ = share_of(case, WORSE)
        how = f"good answers unclear in {base:.0%} → {new:.0%}"
        yield f'false "worse", 200 pairs, prompts {prompts}, {how}', "≤ 5 %", f"{share:.1%}", share <= ALPHA
    for prompts in (1, 8):
        case = Case(prompts, 200, clear, unclear(1.0, BAD), fallen(0.9, 0.6))
        share, at = share_of(case, WORSE)
        said = f"{share:.3f}, median stop {at:g}"
        yield f".9 → .6, bad answers unclear, 200 pairs, prompts {prompts}", "≥ 0.9", said, share >= 0.9


def of_power() -> Iterator[Row]:
    for base, new, prompts, pairs, least in (
        (0.95, 0.75, 1, 200, 0.9), (0.95, 0.75, 4, 200, 0), (0.95, 0.75, 8, 200, 0.9), (0.95, 0.75, 26, 208, 0.9),
        (0.95, 0.85, 1, 400, 0), (0.95, 0.85, 8, 400, 0), (0.95, 0.9, 8, 1600, 0),
    ):  # fmt: skip
        share, at = share_of(Case(prompts, pairs, clear, clear, fallen(base, new)), WORSE)
        said = f"{share:.3f}, median stop {at:g}"
        goal = f"≥ {least:g}" if least else ""
        yield f"{base:g} → {new:g}, {pairs} pairs, prompts {prompts}", goal, said, share >= least


def of_interval() -> Iterator[Row]:
    for prompts, pairs, base, new in ((1, 200, 0.95, 0.75), (8, 200, 0.95, 0.75), (8, 200, 0.75, 0.8)):
        dice, missed = random.Random(4), 0
        case = Case(prompts, pairs, clear, clear, fallen(base, new))
        for _ in range(RUNS):
            interval = compared(dice, case).figures["well"].interval
            missed += not interval.low <= new - base <= interval.high
        text = f"interval misses the change at the stop, {base:g} → {new:g}, prompts {prompts}"
        yield text, "≤ 5 %", f"{missed / RUNS:.1%}", missed / RUNS <= ALPHA


class Commit:
    """The simulated side of a commit."""

    period = 1

    def __init__(self, dice: random.Random, share: float) -> None:
        self._dice, self._share = dice, share

    def take(self, numbers: Sequence[int]) -> list[Side]:
        return [clear(self._dice, self._share) for _ in numbers]

    def cause(self, _: int) -> str:
        return ""


def of_bisect() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        name = ["-c", "user.name=n", "-c", "user.email=n@x.test"]
        git(folder, "init", "--quiet")
        for number in range(1, COMMITS + 1):
            git(folder, *name, "commit", "--quiet", "--allow-empty", "--message", str(number))
            git(folder, "tag", f"v{number}")
        place = Path(folder, "a.chaos.yml")
        place.touch()
        numbers = {git(folder, "rev-parse", f"v{number}"): number for number in range(1, COMMITS + 1)}
        for base, new, trials in ((0.95, 0.85, 2000), (0.95, 0.85, 200), (0.95, 0.75, 2000)):
            dice = random.Random(5)

            @contextmanager
            def opened(_: SideWork, commit: str) -> Iterator[Commit]:
                yield Commit(dice, base if numbers[commit] < WORSE_FROM else new)  # noqa: B023

            named, right, several = 0, 0, 0
            for _ in range(BISECTIONS):
                made = bisect(SideWork(place), "v1", f"v{COMMITS}", trials=trials, alpha=ALPHA, opened=opened)
                several += len(made.first) != 1
                if len(made.first) == 1:
                    named += 1
                    right += numbers[made.first[0].commit] == WORSE_FROM
            wrong = (named - right) / BISECTIONS
            text = f"wrong commit named, {base:g} → {new:g}, at most {trials} pairs a commit"
            measured = f"{wrong:.1%}; the right one {right / BISECTIONS:.1%}, between two {several / BISECTIONS:.1%}"
            yield text, "≤ 5 %", measured, wrong <= ALPHA


def git(folder: str, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout.strip()


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


def main(parts: list[str]) -> int:
    rows: list[Row] = []
    print("| | goal | measured |\n|---|---|---|")
    for name in parts or ["null", "open", "power", "interval", "bisect", "gate"]:
        for row in globals()[f"of_{name}"]():
            rows.append(row)
            print("| {} | {} | {} |{}".format(*row[:3], "" if row[3] else " MISSED"), flush=True)
    return 0 if all(row[3] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
