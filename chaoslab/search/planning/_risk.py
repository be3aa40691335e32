"""The risk of an experiment, from 0 to 1.

risk = share · σ( ln(p / (1 − p)) + Σ weightᵢ · (factorᵢ − baseᵢ) )

- p: the posterior chance of harm (`posterior`);
- share: the blast radius, the share of the traffic that the fault may hit, 1 if nothing is stated;
- the factors (`risk_factors`, one file each, or a package's), each from 0 to 1: criticality, irreversibility and near
  misses. A factor at its base changes nothing.

Each value is cut to its range before it counts, and σ stays between 0 and 1, so that the risk does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import exp, isfinite, log
from typing import Any

from chaoslab.search.planning import hooks
from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.evidence import HARM, Evidence
from chaoslab.search.planning.posterior import Posteriors

TOP = 30.0
"""The largest log-odds: more changes no digit of the risk."""


@dataclass(frozen=True)
class Risk:
    """A risk with its parts. `factors`: each with its value, from 0 to 1."""

    value: float
    harm: float
    share: float = 1.0
    factors: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [
            f"harm {self.harm:.2f}",
            *(f"{name.replace('_', ' ')} {value:.2f}" for name, value in self.factors.items()),
        ]
        return f"{self.value:.2f} ({', '.join([*parts, *([f'share {self.share:.0%}'] if self.share < 1 else [])])})"


@dataclass(frozen=True)
class RiskQuestion:
    """The question to a factor. `stated`: criticalities that the user states, by target."""

    subject: str
    cell: Cell
    evidence: Evidence
    stated: Mapping[str, float] = field(default_factory=dict)


def risk_of(
    posteriors: Posteriors, cell: Cell, *, share: float = 1.0, stated: Mapping[str, float] | None = None
) -> Risk:
    """The risk of an experiment. `share`: of the traffic. `stated`: as in `RiskQuestion`. Raises BrokenPlugin: a factor
    raised, or gave no number."""
    asked = RiskQuestion(posteriors.subject, cell, posteriors.evidence, stated or {})
    harm, share = posteriors.of(cell, HARM).mean, cut(share)
    odds, values = log(harm / (1 - harm)), {}
    for name, factor in posteriors.factors:
        value, weight, base = hooks.ask_plugin("risk_factors", name, partial(_of_factor, factor, asked))
        values[name] = value
        odds += weight * (value - base)
    odds = max(-TOP, min(TOP, odds))
    return Risk(share / (1 + exp(-odds)), harm, share, values)


def _of_factor(factor: Any, asked: RiskQuestion) -> tuple[float, float, float]:
    return cut(factor.value(asked)), float(factor.weight), cut(factor.base)


def cut(value: float) -> float:
    """The value, from 0 to 1. Raises ValueError: it is no number."""
    value = float(value)
    if not isfinite(value):
        raise ValueError(f"{value} is no number from 0 to 1")
    return max(0.0, min(1.0, value))
