"""Components, ranges, relations and lessons: what the memory makes of its experiments. All of it is pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from chaoslab.analysis.measures.intervals import wilson_interval
from chaoslab.base.durations import format_duration
from chaoslab.search.contrast import Contrast
from chaoslab.search.planning.dose import DoseRange, compute_dose_range
from chaoslab.search.planning.evidence import Experiment, Tally

ALPHA = 0.05
"""The largest chance of a contradiction or of a relation, over all that were tested, if there were none."""
FURTHER = "further trials of the same prompts"
"""The trials that an interval is about."""
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
    def from_experiments(cls, rows: Sequence[Experiment]) -> Component:
        """The component of the rows of a place, in the order of the runs."""
        tallies: dict[str, Tally] = {}
        for row in rows:
            # Taken out and put back, so that the last revision stands last.
            tallies[row.revision] = tallies.pop(row.revision, Tally()) + row
        *earlier, (revision, now) = tallies.items()
        latest_rows = [row for row in rows if row.revision == revision]
        before = next((row for row in reversed(earlier) if row[1].tried), ("", Tally()))
        names = ("joint", "joint_bad", "incidents", "recovered", "repair_s")
        joint, joint_bad, incidents, recovered, repair_s = (
            sum(getattr(row, name) for row in latest_rows) for name in names
        )
        return cls(revision, now, joint, joint_bad, incidents, recovered, repair_s, *before)

    @property
    def table_row(self) -> tuple[Any, ...]:
        now, interval = self.now, wilson_interval(self.now.bad, self.now.tried)
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        return (
            self.revision,
            now.tried,
            now.bad,
            now.bad / now.tried if now.tried else None,
            low,
            high,
            now.harm,
            self.joint,
            self.joint_bad,
            self.incidents,
            self.recovered,
            self.repair_s / self.recovered if self.recovered else None,
            self.before_revision,
            self.before.tried,
            self.before.bad,
        )

    @property
    def contradicts_earlier(self) -> bool:
        """True if the trials before the last change and those since cannot both be of one chance."""
        now, earlier = self.now, self.before
        if not now.tried or not earlier.tried:
            return False
        if {(now.bad, earlier.bad)} & {(0, earlier.tried), (now.tried, 0)}:
            return True
        worse_tally = max((now, earlier), key=lambda tally: tally.bad / tally.tried)
        better_tally = earlier if worse_tally is now else now
        return Contrast(worse_tally.bad, worse_tally.tried, better_tally.bad, better_tally.tried).p_value <= ALPHA


def find_dose_ranges(rows: Sequence[Experiment]) -> Iterator[tuple[str, DoseRange]]:
    """The range of each parameter that is a number, the dose first."""
    tried: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if row.cell is None or not row.tried:
            continue
        numbers = [(key, value) for key, value in row.cell.params if type(value) in (int, float)]
        doses = [(row.cell.dose_parameter or "dose", row.cell.dose)] if row.cell.dose is not None else []
        for name, value in [*doses, *numbers]:
            counts_at_value = tried.setdefault(name, {}).setdefault(float(value), [0.0, 0.0])
            counts_at_value[0], counts_at_value[1] = counts_at_value[0] + row.tried, counts_at_value[1] + row.bad
    return ((name, compute_dose_range(counts)) for name, counts in tried.items())


def find_knock_on_failures(newest: Sequence[tuple[Place, Sequence[Experiment]]]) -> Iterator[tuple[Any, ...]]:
    """The targets whose calls fail with a fault elsewhere: in trials with that fault alone, each beside its twin. Where
    no trial drew chance of its own, the fault is all in which the two differ. Else an exact test of the pairs that
    differ (McNemar), with Holm's correction (S. Holm, Scandinavian Journal of Statistics 6, 1979) over all pairs of the
    agent."""
    sums: dict[str, dict[tuple[str, str, str], list[int]]] = defaultdict(dict)
    for (subject, target, fault, _), rows in newest:
        for row in rows:
            for other_target, counts in row.affected.items():
                sums_at_pair = sums[subject].setdefault((target, fault, other_target), [0, 0, 0, 0])
                sums_at_pair[:] = [a + b for a, b in zip(sums_at_pair, (*counts, row.drew), strict=True)]
    for subject, pairs in sums.items():
        tested = sorted((_compute_sign_test_p(*counts[:2]), pair) for pair, counts in pairs.items() if counts[3])
        corrected, worst = dict[tuple[str, str, str], float](), 0.0
        for rank, (chance, pair) in enumerate(tested):
            # Holm's correction: never below that of a smaller chance.
            worst = max(worst, chance * (len(tested) - rank))
            corrected[pair] = worst
        for pair, (lost, regained, all_, drew) in sorted(pairs.items()):
            is_shown = corrected[pair] <= ALPHA if drew else not regained
            if lost and is_shown:
                yield (subject, *pair, lost, all_, lost / all_, regained, corrected.get(pair))


def _compute_sign_test_p(lost: int, regained: int) -> float:
    """The chance of so many of the pairs that differ, or more, on one side."""
    differ = lost + regained
    return float(sum(comb(differ, k) for k in range(lost, differ + 1)) / 2**differ)


def shorten_revision(revision: str) -> str:
    """The start of a revision, to be read."""
    return ".".join(piece[:7] for piece in revision.split(".")) or "an unnamed revision"


def describe_lessons(
    cell_place: Place, component: Component, ranges: Sequence[tuple[str, DoseRange]], *, stale: bool
) -> Iterator[str]:
    """A sentence for each thing that was shown. `stale`: the agent's last revision is another one."""
    _, target, fault, kind = cell_place
    now, interval = component.now, wilson_interval(component.now.bad, component.now.tried)
    suffix = f", tried at {shorten_revision(component.revision)} and not since" if stale else ""
    if component.before.tried:
        suffix += (
            f"; at {shorten_revision(component.before_revision)}, before it, {component.before.bad} of "
            f"{component.before.tried} ended badly"
        )
        suffix += ", which it contradicts" if component.contradicts_earlier else ""
    if interval is not None and now.bad:
        finding = f"{now.bad} of {now.tried} trials ended badly ({interval.low:.0%}–{interval.high:.0%} of {FURTHER})"
        yield f"with {fault} at {target}, {kind}, {finding}{f', {now.harm} with harm' if now.harm else ''}{suffix}"
    elif interval is not None:
        mttr = (
            f", repaired in {format_duration(component.repair_s / component.recovered)}" if component.recovered else ""
        )
        finding = (
            f"survived {now.tried} of {now.tried} times (at most {interval.high:.0%} of {FURTHER} end badly){mttr}"
        )
        yield f"{fault} at {target}, {kind}, was {finding}{suffix}"
    elif component.joint_bad:
        yield f"with {fault} at {target}, {kind}, {component.joint_bad} of {component.joint} trials ended badly, each with other faults too"  # noqa: E501
    for name, dose_range in ranges:
        if dose_range.safe is not None or dose_range.unsafe is not None:
            yield f"{name} of {fault} at {target}, {kind}: {dose_range.describe_in_words(in_s=name.endswith('_s'))}"
