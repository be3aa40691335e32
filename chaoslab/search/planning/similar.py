"""The likeness of experiments: Gower's (J. C. Gower, Biometrics 27, 1971), the mean over what both have.

- target, fault, kind: 1 if equal, else 0. The fault counts twice. Of faults that differ, those of one layer have ½.
- dose: 1 − |log₂(a/b)| / 10, not below 0: doses that differ by a factor of 1,000 have nothing in common.
- other parameters: the share of names whose values are equal.
- affected targets: Jaccard's index, the size of the intersection over that of the union.

What neither has is left out; what only one has counts 0.
"""

import math
from collections.abc import Iterable

from chaoslab.search.planning.cells import Cell, load_fault_class
from chaoslab.search.planning.evidence import Experiment

DECADES = 10.0
"""The powers of two between doses that have nothing in common."""


def rate_experiment_likeness(left: Experiment, right: Experiment) -> float:
    """The likeness of two experiments, from 0 to 1."""
    a, b = left.cell, right.cell
    if a is None or b is None:
        return float(a is b)
    parts = [float(a.target == b.target), *[_fault_likeness(a, b)] * 2, float(a.how == b.how)]
    if a.dose is not None or b.dose is not None:
        parts.append(_dose_likeness(a.dose, b.dose))
    if names := {key for key, _ in (*a.params, *b.params)}:
        parts.append(len({key for key, _ in {*a.params} & {*b.params}}) / len(names))
    hit, other_hit = (
        {name for name, (failed, *_) in experiment.affected.items() if failed} for experiment in (left, right)
    )
    if hit | other_hit:
        parts.append(len(hit & other_hit) / len(hit | other_hit))
    return sum(parts) / len(parts)


def find_similar_experiments(
    experiment: Experiment, among: Iterable[Experiment], n: int = 5
) -> list[tuple[float, Experiment]]:
    """The `n` experiments that are most like this one, each with its likeness, the most alike first."""
    scored = [
        (rate_experiment_likeness(experiment, candidate), candidate)
        for candidate in among
        if candidate is not experiment and candidate.cell is not None
    ]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].subject, str(pair[1].cell)))[: max(0, n)]


def _fault_likeness(a: Cell, b: Cell) -> float:
    if a.fault == b.fault:
        return 1.0
    layers = [getattr(load_fault_class(cell.fault), "layer", None) for cell in (a, b)]
    return 0.5 if layers[0] is not None and layers[0] == layers[1] else 0.0


def _dose_likeness(a: float | None, b: float | None) -> float:
    if a is None or b is None or (a <= 0) != (b <= 0):
        return 0.0
    return 1.0 if a == b else max(0.0, 1 - abs(math.log2(a / b)) / DECADES)
