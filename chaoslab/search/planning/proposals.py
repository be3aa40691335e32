"""The experiments to do next: those with the most expected new knowledge per cost, under the risk that is allowed.

Thompson sampling (W. R. Thompson, Biometrika 25, 1933): of each cell, a chance of harm and a chance of a bad end are
drawn from their posteriors, all cells of a fault of one kind with the same dice, since they share what is not known.
The score is (harm · gain(harm) + BADLY · (bad − harm) · gain(bad)) / cost, where a gain is what one more trial takes
from the variance, over what it takes of a cell never tried. So what is known, good or bad, is left alone, what was
never tried comes up in proportion to the damage that it may do, and nothing is left out for being dangerous but by the
risk allowed. Dice are named by seed, round, fault and kind.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chaoslab.base.dice import Dice
from chaoslab.search.planning._risk import Risk, risk_of
from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.dose import DoseRange
from chaoslab.search.planning.evidence import HARM, Evidence
from chaoslab.search.planning.posterior import Beta, Posteriors

BADLY = 0.3
"""The worth of showing a bad end, beside that of showing harm."""
UNTRIED = Beta(0.5, 0.5).gain
"""The variance that the first trial takes away of a cell of which nothing is known."""


@dataclass(frozen=True)
class Proposal:
    """An experiment to do. `bad`, `harm`: the posteriors. `cost`: a trial's, in seconds, or 1 where
    no time passes. `score`: by which it was chosen. `seen`: the known doses of the fault there."""

    subject: str
    cell: Cell
    reason: str
    bad: Beta
    harm: Beta
    risk: Risk
    cost: float
    score: float
    seen: DoseRange = field(default_factory=DoseRange)


@dataclass(frozen=True)
class Proposed:
    """The proposals, the best first. `too_risky`: the cells whose risk is above the allowed one, with it. `posteriors`:
    those that they were chosen by."""

    proposals: Sequence[Proposal]
    too_risky: Sequence[tuple[Cell, Risk]]
    posteriors: Posteriors = field(compare=False)


def propose(
    evidence: Evidence, subject: str, cells: Iterable[Cell], *, n: int = 5, seed: int = 0, risk: float = 1.0,
    costs: Mapping[Cell, float] | None = None, share: float = 1.0, stated: Mapping[str, float] | None = None,
    round_: int = 0,
) -> Proposed:  # fmt: skip
    """The best `n` of these cells, each once. `risk`: the most that is allowed. `costs`: of a trial; 1 by default.
    `round_`: counts the plans that are made one after the other with one seed."""
    posteriors = Posteriors(evidence, subject)
    scored: list[tuple[float, Cell, float, DoseRange, Beta, Beta]] = []
    for cell in dict.fromkeys(cells):
        seen, dice = evidence.range(subject, cell), Dice(seed, "plan", round_, subject, cell.fault, cell.how)
        cost = (costs or {}).get(cell, 1.0)
        if cell.dose is not None and seen != DoseRange():
            if seen.next is None:
                continue  # its edge is known
            cell = replace(cell, dose=seen.next)
        bad, harm = posteriors.of(cell), posteriors.of(cell, HARM)
        drawn = harm.sample(dice("harm"))
        known = drawn * harm.gain + BADLY * max(0.0, bad.sample(dice("bad")) - drawn) * bad.gain
        scored.append((known / UNTRIED / cost, cell, cost, seen, bad, harm))
    found: list[Proposal] = []
    risky: list[tuple[Cell, Risk]] = []
    for score, cell, cost, seen, bad, harm in sorted(scored, key=lambda each: (-each[0], each[1].key)):
        if len(found) >= n and risk >= 1:
            break
        of_cell = risk_of(posteriors, cell, share=share, stated=stated)
        if of_cell.value > risk:
            risky.append((cell, of_cell))
        elif len(found) < n:
            reason = _reason(posteriors, cell, bad, seen)
            found.append(Proposal(subject, cell, reason, bad, harm, of_cell, cost, score, seen))
    return Proposed(found, sorted(risky, key=lambda each: (-each[1].value, each[0].key)), posteriors)


def _reason(posteriors: Posteriors, cell: Cell, bad: Beta, seen: DoseRange) -> str:
    """The reason for a proposal, in one line."""
    if bad.own:
        times = round(posteriors.evidence.cells[posteriors.subject, cell.key].bad, 1)
        said = f"tried {bad.own:.0f} times: it broke {times:g}"
        return (
            f"{said}; {seen}" if cell.dose is not None else f"{said}, which leaves {bad.mean:.0%} ± {bad.deviation:.0%}"
        )
    said = f"never tried: {cell.fault} at {cell.target}"
    if (own := posteriors.evidence.places.get((posteriors.subject, cell.fault, cell.target))) and own.weight:
        broke = f"broke {own.bad:.0f} of {math.ceil(own.weight)}"
        said = f"never tried {cell.how}: {cell.fault} at {cell.target} {broke} otherwise"
    if cell.dose is not None and (seen.safe is not None or seen.unsafe is not None):
        return f"never tried at this dose: {seen}"
    for target, count in posteriors.siblings(cell)[:1]:
        return f"{said}; its sibling {target} broke {count.bad:.0f} of {math.ceil(count.weight)}"
    if (far := posteriors.at_other_targets(cell)).weight:
        return f"{said}; elsewhere it broke {far.bad:.0f} of {math.ceil(far.weight)}"
    return f"{said}, and nothing like it"
