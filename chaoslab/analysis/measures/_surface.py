"""R(k, ε, λ): the chance that k trials of a prompt all pass, at perturbation ε of the user's words and fault rate λ.

Source: ReliabilityBench (arXiv 2601.06112), which measures pass^k over a surface of ε and λ; here a run is one point of
it. ε is the chance that a request's words of the user are perturbed, λ the chance that a call meets one of the plan's
other faults, both as 1 − Π(1 − chance) over the injections for its target. They are those of the called target where
they are highest: a plan may have other faults for a model than for services, and no call meets both. With a trigger
other than a chance there is no such rate, and so no point.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod

from chaoslab.analysis.measures.consistency import Consistency
from chaoslab.core.events import RunStarted, faults_of

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
