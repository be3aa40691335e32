"""Measures the claims that conclusions rest on, each figure beside its goal: `python benchmarks/claims.py [PART …]`.
Parts: rates, costs, chance, noise, pairs, null, open, power, interval, bisect, baseline, gate.

The trials are simulated, their comparison is that of `chaoslab compare`. It is looked at after every round of prompts
and stops when it is decided. In each trial the agent draws its own chance. Prompts are of different difficulty, the
same on both sides: the shares that end well are spread by 0.2 around their mean. Where "prompts spread", the new side
is better or worse by 0.3 at each, with equal chances, so that it is no worse over all prompts. A bisection is that of
`chaoslab bisect` over 12 commits of a repository, of which the seventh is worse. Rates are those of the report, over
prompts whose shares spread. A baseline is asked 60 times, by an agent as good as it. Chance, noise and pairs are tried
with `lab.run_many` and `lab.explore`; what is right there is known by how the agents were made. The gate's trials are
real; its seconds are of the CPU, children included. Exits 1 if a goal is missed.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from time import process_time
from typing import NamedTuple

import chaoslab as lab
from chaoslab.analysis.measures.intervals import least_over, median_interval, rate_of
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


def of_rates() -> Iterator[Row]:
    spreads: dict[str, Sequence[float]] = {
        "spread from .1 to 1": (0.1, 0.3, 0.5, 0.7, 0.9, 1.0), "one in five at .2, else .98": (0.2, *[0.98] * 4),
        "one in twenty at 0, else 1": (0.0, *[1.0] * 19), "all .95": (0.95,),
    }  # fmt: skip
    for prompts, trials in ((4, 40), (8, 25), (26, 40)):
        for name, shares in spreads.items():
            dice, held, beyond, mean = random.Random(6), 0, 0, fmean(shares)
            for _ in range(RUNS):
                own = [dice.choice(shares) for _ in range(prompts)]
                counts = [(sum(dice.random() < each for _ in range(trials)), trials) for each in own]
                found = rate_of(counts)
                held += found is not None and mean in found.interval
                beyond += least_over(counts, ALPHA) > mean
            text = f"mean of other prompts covered, {prompts} prompts of {trials} trials, {name}"
            said = f"{held / RUNS:.1%}; nines too many in {beyond / RUNS:.1%}"
            yield text, "≥ 95 %; ≤ 5 %", said, held / RUNS >= 1 - ALPHA and beyond / RUNS <= ALPHA


def of_costs() -> Iterator[Row]:
    for size in (6, 20, 200):
        dice = random.Random(7)
        held = sum(1.0 in median_interval([dice.lognormvariate(0, 1.5) for _ in range(size)]).interval
                   for _ in range(RUNS))  # fmt: skip
        yield (
            f"median cost covered, lognormal σ 1.5, {size} prompts",
            "≥ 95 %",
            f"{held / RUNS:.1%}",
            held >= 0.95 * RUNS,
        )


def get() -> str:
    return "49"


def alt() -> str:
    return "49"


def pay() -> str:
    return "paid"


def drawing(_: str) -> str:
    get()
    if random.random() < 0.4:
        raise RuntimeError("no idea")
    return "It is 49."


def of_chance() -> Iterator[Row]:
    faults = [lab.inject("latency", "get", delay_s=1, chance=0.5)]
    runs = [lab.run_many(drawing, "How much?", reads=[get], trials=200, seed=seed, faults=faults, anyway=True)
            for seed in range(10)]  # fmt: skip
    failed = [sum(str(trial.verdict.outcome) == "failed" for trial in run) for run in runs]
    inside = all(56 <= each <= 104 for each in failed)  # 99.97 % of binomial draws
    yield "an agent that fails in 40 %, ten seeds of 200 trials", "56 to 104", f"{min(failed)} to {max(failed)}", inside


def noisy(_: str) -> str:
    for read in (get, alt):
        with suppress(Exception):
            read()
    pay()
    if random.random() < 0.04:
        pay()
    return "Paid."


def of_noise() -> Iterator[Row]:
    wrong = tried = 0
    for seed in range(20):
        found = lab.explore(noisy, "Pay.", tools=[pay], reads=[get, alt], seed=seed, by=["singles", "lasting"])
        tried += len(found.trials)
        wrong += sum(not any("pay" in each.targets for each in failure.faults) for failure in found.failures)
    yield f"causes among noise, 4 % pay twice, 20 explorations of {tried // 20} cells", "0", str(wrong), not wrong


def two_timeouts(_: str) -> str:
    slow = 0
    for read in (get, alt):
        try:
            read()
        except TimeoutError:
            slow += 1
        except Exception:  # noqa: BLE001
            pass
    for _ in range(2 if slow == 2 else 1):
        pay()
    return "Paid."


def of_pairs() -> Iterator[Row]:
    missed = 0
    for seed in range(12):
        found = lab.explore(two_timeouts, "Pay.", tools=[pay], reads=[get, alt], seed=seed)
        causes = {tuple(sorted(target for each in failure.faults for target in each.targets))
                  for failure in found.failures}  # fmt: skip
        missed += ("alt", "get") not in causes
    yield "a pair of two timeouts missed, 12 seeds", "0", str(missed), not missed


def of_baseline() -> Iterator[Row]:
    dice, baselines, looks = random.Random(8), 100, 60
    once = twice = 0
    for _ in range(baselines):
        kept = [clear(dice, 0.9) for _ in range(200)]
        alarms = [_worse(dice, kept) for _ in range(looks)]
        once += any(alarms)
        twice += any(_worse(dice, [clear(dice, 0.9) for _ in range(200)]) for alarm in alarms if alarm)
    text = f"baselines of which one of {looks} gates of an equal agent fails"
    yield f"{text}, asked once (no revision at hand)", "", f"{once / baselines:.1%}", True
    yield f"{text}, asked again on fresh seeds", "≤ 5 %", f"{twice / baselines:.1%}", twice <= ALPHA * baselines


def _worse(dice: random.Random, kept: Sequence[Side]) -> bool:
    found = Comparison(ALPHA)
    for number, base in enumerate(kept, 1):
        found.add(Pair(number, base, clear(dice, 0.9), ""))
        if found.decided:
            break
    return found.verdict == WORSE


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


PARTS = [
    "rates",
    "costs",
    "chance",
    "noise",
    "pairs",
    "null",
    "open",
    "power",
    "interval",
    "bisect",
    "baseline",
    "gate",
]


def main(parts: list[str]) -> int:
    rows: list[Row] = []
    print("| | goal | measured |\n|---|---|---|")
    for name in parts or PARTS:
        for row in globals()[f"of_{name}"]():
            rows.append(row)
            print("| {} | {} | {} |{}".format(*row[:3], "" if row[3] else " MISSED"), flush=True)
    return 0 if all(row[3] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
