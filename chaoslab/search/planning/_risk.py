"""The risk of an experiment, from 0 to 1.

risk = share · σ( ln(p / (1 − p)) + Σ weightᵢ · (factorᵢ − baseᵢ) )

- p: the chance of harm (`chances`), which is the fault's story where nothing was tried;
- share: the blast radius, the share of the traffic that the fault may hit, 1 if nothing is stated;
- the factors, each from 0 to 1. A factor at its base changes nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import exp, log

from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.chances import Chances
from chaoslab.search.planning.evidence import HARM, Evidence, TargetKnowledge

SURE = 0.005
"""The chance is kept so far from 0 and 1."""


@dataclass(frozen=True)
class Risk:
    """A risk with its parts. `factors`: each with its value, from 0 to 1."""

    value: float
    harm: float
    share: float = 1.0
    factors: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [f"harm {self.harm:.2f}", *(f"{name} {value:.2f}" for name, value in self.factors.items())]
        return f"{self.value:.2f} ({', '.join([*parts, *([f'share {self.share:.0%}'] if self.share < 1 else [])])})"


def compute_risk(
    chances: Chances, cell: Cell, *, share: float = 1.0, stated: Mapping[str, float] | None = None
) -> Risk:
    """The risk of an experiment. `share`: of the traffic. `stated`: criticalities that the user states, by target."""
    harm = min(1 - SURE, max(SURE, chances.compute_bad_end_chance(cell, HARM)))
    factors = [*_list_factors(chances.evidence, cell.target, stated or {})]
    odds = log(harm / (1 - harm)) + sum(weight * (value - base) for _, value, weight, base in factors)
    return Risk(share / (1 + exp(-odds)), harm, share, {name: value for name, value, _, _ in factors})


def _list_factors(
    evidence: Evidence, target: str, criticalities: Mapping[str, float]
) -> Iterator[tuple[str, float, float, float]]:
    """The name, value, weight and base of each factor."""
    knowledge, tried = evidence.targets.get(target, TargetKnowledge()), evidence.sum_trial_tallies(target).tried
    effects = sum(target_knowledge.effects for target_knowledge in evidence.targets.values())
    calls = (
        (knowledge.called / knowledge.trials + (knowledge.effects / effects if effects else 0.0)) / 2
        if knowledge.trials
        else 0.5
    )
    undone = (1 - knowledge.undoable / knowledge.effects if knowledge.effects else 0.0) if knowledge.trials else 0.5
    yield "criticality", criticalities.get(target, calls), 0.4, 0.5
    yield "irreversibility", undone, 0.4, 0.5
    yield "near misses", evidence.near[target] / tried if tried else 0.0, 0.5, 0.0
