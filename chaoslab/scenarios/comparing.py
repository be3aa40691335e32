"""Compares two scenarios on the same trials: the same seeds and the same faults, pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chaoslab.core.events import CallStarted, Usage
from chaoslab.record.rulings import State
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.running import Ruling, run
from chaoslab.scenarios.scenario import Scenario
from chaoslab.search.comparing import WORSE, Comparison, Pair, Side

BATCH, BATCH_MAX = 10, 80
"""The pairs of the first round, and the most of one: each has as many as all rounds before it."""
PLACES = ("faults", "prompt", "turns", "chaos_level", "variants", "budget", "world", "timeout")
"""The keys in which both sides have to agree: their trials are not the same else."""


def check(base: Scenario, new: Scenario) -> None:
    """Checks that both sides have the same trials.

    Raises:
        ScenarioError: they differ in what they are asked or in their faults.
    """
    for key in PLACES:
        one, other = (getattr(each.spec, key, None) for each in (base, new))
        if one != other:
            raise ScenarioError(f"{base.name}: the sides differ in {key}, so their trials cannot be paired")


def compared(
    base: Scenario, new: Scenario, *, trials: int, seed: int | None = None, new_seed: int | None = None, jobs: int = 1,
    alpha: float, tell: Callable[[Comparison], object] = lambda _: None,
) -> Comparison:  # fmt: skip
    """The comparison of two sides, which ends as soon as it is decided. `trials`: the most pairs. `new_seed`: of the
    new side, in place of the base's, for a side that is compared with itself.

    Raises:
        ScenarioError: the trials are not the same, or something of the user's does not fit.
    """
    check(base, new)
    found = Comparison(alpha)
    while len(found.pairs) < trials and not found.decided:
        done = len(found.pairs)
        size = min(max(BATCH, done), BATCH_MAX, trials - done)
        numbers = range(done + 1, done + size + 1)
        sides = [
            list(_sides(scenario, numbers, own, jobs))
            for scenario, own in ((base, seed), (new, seed if new_seed is None else new_seed))
        ]
        for number, one, other in zip(numbers, *sides, strict=True):
            found.add(Pair(number, one, other))
            if found.decided:
                break
        tell(found)
    return found


def _sides(scenario: Scenario, numbers: Sequence[int], seed: int | None, jobs: int) -> Iterator[Side]:
    return map(side_of, run(scenario, only=numbers, seed=seed, jobs=jobs, apart=True))


def side_of(ruling: Ruling) -> Side:
    """One trial of a pair."""
    trial, verdict = ruling.trial, ruling.trial.verdict
    return Side(
        None if ruling.state is State.INVALID else ruling.state is State.PASSED,
        verdict.name,
        "; ".join(ruling.reasons) or verdict.why,
        sum(1 for _ in trial.history.of(CallStarted)),
        trial.seconds,
        sum(event.prompt_tokens + event.completion_tokens for _, event in trial.history.of(Usage)),
        bool(verdict.harm),
    )


def against_itself(
    base: Scenario, times: int, *, trials: int, seed: int, jobs: int = 1, alpha: float
) -> tuple[int, list[int]]:
    """The times that a side is called worse than itself with other seeds, and the trials that differ with the same
    seed, which a deterministic one has none of."""
    of_all: dict[str, Any] = {"jobs": jobs, "alpha": alpha}
    seeds = [(seed + 2 * n, seed + 2 * n + 1) for n in range(1, times + 1)]
    found = [compared(base, base, trials=trials, seed=one, new_seed=other, **of_all) for one, other in seeds]
    said = sum(each.verdict == WORSE for each in found)
    same = compared(base, base, trials=min(trials, BATCH), seed=seed, **of_all)
    return said, [each.number for each in same.pairs if each.change or each.base.outcome != each.new.outcome]
