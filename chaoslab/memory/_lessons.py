"""Components, ranges, relations and lessons: what the memory makes of its experiments. All of it is pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from chaoslab.analysis.measures.intervals import wilson
from chaoslab.base.durations import duration
from chaoslab.search.contrast import Contrast
from chaoslab.search.planning.dose import DoseRange, range_of
from chaoslab.search.planning.evidence import Experiment, Tally

ALPHA = 0.05
"""The largest chance of a contradiction or of a relation, over all that were tested, if there were none."""
Place = tuple[str, str, str, str]
"""A subject, a target, a fault and a kind of experiment."""


@dataclass(frozen=True)
class Component:
    """The trials at a place of the last revision at which it was tried, beside those of the one before. `joint`,
    `joint_bad`: of trials with other faults too, which count for nothing else."""

    revision: str
    now: Tally
    joint: int
    joint_bad: int
    incidents: int
    recovered: int
    repair_s: float
    before_revision: str
    before: Tally

    @classmethod
    def of(cls, rows: Sequence[Experiment]) -> Component:
        """The component of the rows of a place, in the order of the runs."""
        tallies: dict[str, Tally] = {}
        for each in rows:
            tallies[each.revision] = tallies.pop(each.revision, Tally()) + each
        *earlier, (revision, now) = tallies.items()
        own = [each for each in rows if each.revision == revision]
        before = next((each for each in reversed(earlier) if each[1].tried), ("", Tally()))
        names = ("joint", "joint_bad", "incidents", "recovered", "repair_s")
        joint, joint_bad, incidents, recovered, repair_s = (sum(getattr(each, name) for each in own) for name in names)
        return cls(revision, now, joint, joint_bad, incidents, recovered, repair_s, *before)

    @property
    def row(self) -> tuple[Any, ...]:
        now, interval = self.now, wilson(self.now.bad, self.now.tried)
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        return (
            self.revision, now.tried, now.bad, now.bad / now.tried if now.tried else None, low, high, now.harm,
            self.joint, self.joint_bad, self.incidents, self.recovered,
            self.repair_s / self.recovered if self.recovered else None, self.before_revision, self.before.tried,
            self.before.bad,
        )  # fmt: skip

    @property
    def contradicts(self) -> bool:
        """True if the trials before the last change and those since cannot both be of one chance."""
        now, was = self.now, self.before
        if not now.tried or not was.tried:
            return False
        if {(now.bad, was.bad)} & {(0, was.tried), (now.tried, 0)}:
            return True
        more = max((now, was), key=lambda each: each.bad / each.tried)
        less = was if more is now else now
        return Contrast(more.bad, more.tried, less.bad, less.tried).p <= ALPHA


def ranges_of(own: Sequence[Experiment]) -> Iterator[tuple[str, DoseRange]]:
    """The range of each parameter that is a number, the dose first."""
    tried: dict[str, dict[float, list[float]]] = {}
    for each in own:
        if each.cell is None or not each.tried:
            continue
        numbers = [(key, value) for key, value in each.cell.params if type(value) in (int, float)]
        doses = [(each.cell.dosed or "dose", each.cell.dose)] if each.cell.dose is not None else []
        for name, value in [*doses, *numbers]:
            at = tried.setdefault(name, {}).setdefault(float(value), [0.0, 0.0])
            at[0], at[1] = at[0] + each.tried, at[1] + each.bad
    return ((name, range_of(found)) for name, found in tried.items())


def relations_of(newest: Sequence[tuple[Place, Sequence[Experiment]]]) -> Iterator[tuple[Any, ...]]:
    """The targets whose calls fail with a fault elsewhere: in trials with that fault alone, each beside its twin. Where
    no trial drew chance of its own, the fault is all in which the two differ. Else an exact test of the pairs that
    differ (McNemar), with Holm's correction (S. Holm, Scandinavian Journal of Statistics 6, 1979) over all pairs of the
    agent."""
    sums: dict[str, dict[tuple[str, str, str], list[int]]] = defaultdict(dict)
    for (subject, target, fault, _), own in newest:
        for each in own:
            for other, counts in each.affected.items():
                at = sums[subject].setdefault((target, fault, other), [0, 0, 0, 0])
                at[:] = [a + b for a, b in zip(at, (*counts, each.drew), strict=True)]
    for subject, pairs in sums.items():
        tested = sorted((_by_chance(*counts[:2]), pair) for pair, counts in pairs.items() if counts[3])
        held, worst = dict[tuple[str, str, str], float](), 0.0
        for rank, (chance, pair) in enumerate(tested):
            worst = max(worst, chance * (len(tested) - rank))
            held[pair] = worst
        for pair, (lost, regained, all_, drew) in sorted(pairs.items()):
            shown = held[pair] <= ALPHA if drew else not regained
            if lost and shown:
                yield (subject, *pair, lost, all_, lost / all_, regained, held.get(pair))


def _by_chance(lost: int, regained: int) -> float:
    """The chance of so many of the pairs that differ, or more, on one side."""
    differ = lost + regained
    return float(sum(comb(differ, k) for k in range(lost, differ + 1)) / 2**differ)


def short(revision: str) -> str:
    """The start of a revision, to be read."""
    return ".".join(part[:7] for part in revision.split(".")) or "an unnamed revision"


def lessons_of(
    place: Place, found: Component, ranges: Sequence[tuple[str, DoseRange]], *, stale: bool
) -> Iterator[str]:
    """A sentence for each thing that was shown. `stale`: the agent's last revision is another one."""
    _, target, fault, how = place
    now, interval = found.now, wilson(found.now.bad, found.now.tried)
    more = f", tried at {short(found.revision)} and not since" if stale else ""
    if found.before.tried:
        more += (
            f"; at {short(found.before_revision)}, before it, {found.before.bad} of {found.before.tried} ended badly"
        )
        more += ", which it contradicts" if found.contradicts else ""
    if interval is not None and now.bad:
        shown = f"{now.bad} of {now.tried} trials ended badly ({interval.low:.0%}–{interval.high:.0%})"
        yield f"with {fault} at {target}, {how}, {shown}{f', {now.harm} with harm' if now.harm else ''}{more}"
    elif interval is not None:
        mttr = f", repaired in {duration(found.repair_s / found.recovered)}" if found.recovered else ""
        shown = f"survived {now.tried} of {now.tried} times (at most {interval.high:.0%} end badly){mttr}"
        yield f"{fault} at {target}, {how}, was {shown}{more}"
    elif found.joint_bad:
        yield f"with {fault} at {target}, {how}, {found.joint_bad} of {found.joint} trials ended badly, each with other faults too"  # noqa: E501
    for name, range_ in ranges:
        if range_.safe is not None or range_.unsafe is not None:
            yield f"{name} of {fault} at {target}, {how}: {range_.in_words(in_s=name.endswith('_s'))}"
