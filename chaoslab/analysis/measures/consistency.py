"""The next trials of a prompt, by those that repeated it.

pass^k, pass@k and consistency: pass@k is the unbiased estimator 1 − C(n−c, k)/C(n, k) of Chen et al. (2021, arXiv
2107.03374); pass^k is C(c, k)/C(n, k) of τ-bench (Yao et al. 2024, arXiv 2406.12045), each as the mean over prompts;
outcome consistency is (2p − 1)², which is 1 where all trials of a prompt end alike and 0 where half of them pass.

R(k, ε, λ) is the chance that k trials of a prompt all pass, at perturbation ε of the user's words and fault rate λ.
Source: ReliabilityBench (arXiv 2601.06112), which measures pass^k over a surface of ε and λ; here a run is one point of
it. ε is the chance that a request's words of the user are perturbed, λ the chance that a call meets one of the plan's
other faults, both as 1 − Π(1 − chance) over the injections for its target. They are those of the called target where
they are highest: a plan may have other faults for a model than for services, and no call meets both. With a trigger
other than a chance there is no such rate, and so no point.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import comb, prod

from chaoslab.core.events import RunStarted, faults_of

K_MAX = 8
"""The largest k that is told."""


@dataclass(frozen=True)
class Consistency:
    """`prompts`: those with at least two judged trials. `trials`: the fewest judged trials of one of them. `all_pass`,
    `one_passes`: by k, the chance that k trials all pass, and that one of k passes. `consistency`: the mean of
    (2p − 1)²."""

    prompts: int
    trials: int
    all_pass: Mapping[int, float]
    one_passes: Mapping[int, float]
    consistency: float


def consistency(passed: Mapping[str, Iterable[bool]]) -> Consistency | None:
    """The figures for these trials, passed or not, by prompt; None if no prompt has two."""
    counts = [(sum(each), len(each)) for each in (list(trials) for trials in passed.values()) if len(each) > 1]
    if not counts:
        return None
    least = min(n for _, n in counts)
    ks = range(1, min(least, K_MAX) + 1)
    return Consistency(
        prompts=len(counts),
        trials=least,
        all_pass={k: _mean(comb(c, k) / comb(n, k) for c, n in counts) for k in ks},
        one_passes={k: _mean(1 - comb(n - c, k) / comb(n, k) for c, n in counts) for k in ks},
        consistency=_mean((2 * c / n - 1) ** 2 for c, n in counts),
    )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


PERTURBS = frozenset({"garble_input"})
"""The faults that change the user's words and nothing else."""


@dataclass(frozen=True)
class SurfacePoint:
    """One point. `epsilon`, `rate`: ε and λ, from 0 to 1. `at`: R by k."""

    epsilon: float
    rate: float
    at: Mapping[int, float]


def point(run: RunStarted | None, found: Consistency | None, called: Iterable[str]) -> SurfacePoint | None:
    """The point of a run, from its first event. `found`: its consistency. `called`: its targets. None if no prompt has
    two judged trials, the plan is not known, or its faults do not come by chance alone."""
    if found is None or run is None:
        return None
    perturbing: list[_Chance] = []
    others: list[_Chance] = []
    for injection in run.injections:
        if injection.get("calls") or injection.get("triggers"):
            return None
        chance = (tuple(injection.get("targets") or ["*"]), float(injection.get("chance", 1.0)))
        (perturbing if faults_of(injection) <= PERTURBS else others).append(chance)
    targets = tuple(called)
    return SurfacePoint(_highest(perturbing, targets), _highest(others, targets), found.all_pass)


_Chance = tuple[Sequence[str], float]
"""The targets of an injection, or patterns of them, and its chance."""


def _highest(chances: Sequence[_Chance], called: Iterable[str]) -> float:
    """The chance that at least one of them hits, at the target where it is highest."""
    return max((1 - prod(1 - chance for on, chance in chances if _fits(target, on)) for target in called), default=0.0)


def _fits(target: str, patterns: Iterable[str]) -> bool:
    return any(target == pattern or fnmatchcase(target, pattern) for pattern in patterns)
