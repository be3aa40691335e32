"""The findings of an exploration: the map of calls and faults, the failures, and what was not tried."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from chaoslab.analysis.verdict.answer import UNDECIDED
from chaoslab.search import causes
from chaoslab.search.roots import RANK, has_unnoticeable_root
from chaoslab.search.strategies import ORDER
from chaoslab.search.strategies.pairs import build_pair_variation, list_pairs_by_kind
from chaoslab.search.strategies.singles import adapt_delays_to_timeouts
from chaoslab.search.variation import (
    LOST,
    Probe,
    SearchKnowledge,
    Site,
    TriedVariation,
    Variation,
    get_injection_site,
    is_lasting_injection,
)

GOES_ON = "it goes on"
"""In place of the reason that it ended, of an exploration that is under way."""
INTERRUPTED = "interrupted"
"""The beginning of the reason, after Ctrl-C."""


@dataclass(frozen=True)
class MapRow:
    """An attempt, and the faults that have to hit first for it to be made; none for one of the trial without faults."""

    site: Site
    after: Variation = Variation()
    lasts: bool = False
    """Its faults hit all attempts from this one on."""

    def __str__(self) -> str:
        if self.lasts:
            return f"{self.site} and all after it"
        return (
            f"{self.site} (after {causes.describe_variation(self.after)})" if self.after.injections else str(self.site)
        )


@dataclass(frozen=True)
class Untried:
    """A cell that was not tried, or of which nothing can be said. `then`: what would try it; empty if nothing does."""

    row: str
    fault: str
    why: str
    then: str = ""

    def __str__(self) -> str:
        return f"{self.fault} at {self.row}: {self.why}{f'; {self.then}' if self.then else ''}"


@dataclass(frozen=True)
class OrderTried:
    """The part of one order of faults that was tried. `of`: the whole; None: not known before the single faults."""

    name: str
    tried: int
    of: int | None

    def __str__(self) -> str:
        if self.of is None:
            return f"{self.name} {f'{self.tried} so far' if self.tried else 'not begun'}"
        return f"{self.name} {self.tried} of {self.of}"


@dataclass(frozen=True, repr=False)
class Map:
    """Each attempt with each fault that applies. A cell is the trial with that fault at that attempt, beside those that
    bring it up."""

    known: SearchKnowledge
    others: Mapping[str, Mapping[str, str]]
    """The reason that a fault does not apply, by target and fault."""
    ended: str = ""
    """The reason that the search ended before all was tried; empty if it did not."""
    folds: bool = True
    """A failure that no agent could have noticed makes no single point of failure."""

    @cached_property
    def rows(self) -> list[MapRow]:
        rows_by_name = {str(row): row for row in map(MapRow, self.known.calm.attempt_sites)}
        for tried in self.known.tried.values():
            if tried.by in ("lasting", "born"):
                *before, last = tried.variation.injections
                row = MapRow(get_injection_site(last), Variation(tuple(before)), is_lasting_injection(last))
                rows_by_name.setdefault(str(row), row)
        return [*rows_by_name.values()]

    @cached_property
    def columns(self) -> list[str]:
        """The faults that some cell was tried with, in the order of the alphabet."""
        return sorted({probe.label for row in self.rows for probe in self.list_faults_to_try(row)})

    def list_faults_to_try(self, row: MapRow) -> list[Probe]:
        """The faults that apply to an attempt."""
        target = row.site.target
        return [
            adapted
            for probe in self.known.probes.get(target, ())
            for adapted in adapt_delays_to_timeouts(self.known, probe, target)
        ]

    def cell(self, row: MapRow, label: str) -> TriedVariation | None:
        """The trial of a cell; None if it was not run, or the fault does not apply."""
        return self._trial_by_cell.get((str(row), label))

    def outcome(self, row: MapRow, label: str) -> str:
        """The outcome of a cell; "–" if it was not run, "" if the fault does not apply."""
        if (str(row), label) not in self._trial_by_cell:
            return ""
        cell = self.cell(row, label)
        return "–" if cell is None else cell.outcome

    @cached_property
    def cells(self) -> list[tuple[MapRow, Probe, TriedVariation | None]]:
        """Each attempt with each fault that applies, and its trial; None if it was not run."""
        return [
            (row, probe, self._find_trial(row, probe)) for row in self.rows for probe in self.list_faults_to_try(row)
        ]

    @cached_property
    def _trial_by_cell(self) -> dict[tuple[str, str], TriedVariation | None]:
        return {(str(row), probe.label): tried for row, probe, tried in self.cells}

    @cached_property
    def untried(self) -> list[Untried]:
        """The cells that were not tried and those of which nothing can be said, with the reason."""
        untried = []
        for row, probe, tried in self.cells:
            if tried is None:
                reason = self.ended or "it was not reached"
                untried.append(Untried(str(row), probe.label, reason, self._way_on))
            elif tried.is_inconclusive:
                # Of an answer alone: a trial that is unknown for another reason stays so whatever is stated.
                then = "facts=, says= or judge= would decide it" if UNDECIDED in tried.why else ""
                untried.append(Untried(str(row), probe.label, f"{tried.outcome}: {tried.why}", then))
        untried += self._unprobed_attempts
        for target, reasons in self.others.items():
            untried += [Untried(target, fault, f"not applicable: {reason}") for fault, reason in reasons.items()]
        return untried

    @property
    def _way_on(self) -> str:
        if self.ended.startswith(INTERRUPTED):
            return "--resume tries it"
        return "a larger budget tries it" if self.ended else ""

    @property
    def _unprobed_attempts(self) -> Iterator[Untried]:
        """The attempts that some trial made and no fault was tried at."""
        known_sites = {row.site for row in self.rows}
        for tried in self.known.tried.values():
            for site in tried.attempt_sites if tried.variation.order is None else ():
                if site in known_sites:
                    continue
                known_sites.add(site)
                after = f"{site} (after {causes.describe_variation(tried.variation)})"
                if tried.outcome in LOST:
                    yield Untried(
                        after, "every fault", f"it is made behind {tried.outcome}", "mend that, and explore again"
                    )
                elif self.ended:
                    yield Untried(after, "every fault", self.ended, self._way_on)
                elif any(map(is_lasting_injection, tried.variation.injections)):
                    yield Untried(after, "every other fault", "only a fault that lasts brings it up")
                else:
                    yield Untried(
                        after, "every fault", f"only {len(tried.variation.injections)} faults together bring it up"
                    )

    @property
    def trial_counts_by_strategy(self) -> dict[str, int]:
        """The trials of each strategy."""
        counts = Counter(tried.by for tried in self.known.tried.values())
        return {name: counts[name] for name in ORDER if counts[name]}

    @cached_property
    def coverage_by_fault_count(self) -> list[OrderTried]:
        """The part that was tried, by the number of faults: single ones, those that last, those at calls that others
        bring up, and pairs by the kind of what the caller sees. Higher orders are tried by dice alone."""
        pairs = [
            self.known.find_trial(build_pair_variation(pair)) is not None for pair in list_pairs_by_kind(self.known)
        ]
        singles = self._coverage_by_row_kind[:1]
        # Which pairs there are depends on what the callers of the single faults saw.
        is_complete = not self.ended or (singles and singles[0].tried == singles[0].of)
        return [
            *self._coverage_by_row_kind,
            OrderTried("pairs by kind", sum(pairs), len(pairs) if is_complete else None),
        ]

    @cached_property
    def _coverage_by_row_kind(self) -> list[OrderTried]:
        calm = [MapRow(site) for site in self.known.calm.attempt_sites]
        behind = [row for row in self.rows if row.after.injections]
        parts = (("single faults", calm), ("lasting", self._lasting_rows), ("behind another", behind))
        return [self._compute_row_coverage(name, rows) for name, rows in parts if rows]

    @property
    def _lasting_rows(self) -> list[MapRow]:
        return [MapRow(site, lasts=True) for site in self.known.calm.first_site_per_target]

    def _compute_row_coverage(self, name: str, rows: Sequence[MapRow]) -> OrderTried:
        cells = [self._find_trial(row, probe) for row in rows for probe in self.list_faults_to_try(row)]
        return OrderTried(name, sum(tried is not None for tried in cells), len(cells))

    def _find_trial(self, row: MapRow, probe: Probe) -> TriedVariation | None:
        return self.known.find_trial(
            Variation((*row.after.injections, probe.make_injection(row.site, lasts=row.lasts)))
        )

    @property
    def many_faults_text(self) -> str:
        """The trials with more faults than two, in words."""
        count = sum(len(tried.variation.injections) > 2 and tried.by != "born" for tried in self.known.tried.values())
        return f"{count} plans of three faults or more, not all" if count else "higher orders not tried"

    @property
    def has_lasting_trials(self) -> bool:
        """A fault that lasts was tried."""
        return any(tried.by == "lasting" for tried in self.known.tried.values())

    @cached_property
    def decided_calls(self) -> list[Site]:
        """The calls without faults of which it is known if they are single points of failure."""
        # One failure tells that a call is one; that it is none, only all cells together tell, and one that is open
        # may be a failure.
        points = {*self.single_points_of_failure}
        lasting_rows = self._lasting_rows if self.has_lasting_trials else []
        return [
            site for site in self.known.calm.attempt_sites
            if site in points or all(
                (tried := self._find_trial(row, probe)) is not None and not tried.is_inconclusive
                for row in (MapRow(site), *(row for row in lasting_rows if row.site == site))
                for probe in self.list_faults_to_try(row)
            )
        ]  # fmt: skip

    @property
    def single_points_of_failure(self) -> list[Site]:
        """The calls without faults at which one fault alone is enough for a failure, whether it lasts or not."""
        failed = {
            row.site for row in self.rows if not row.after.injections
            for _, _, tried in self.iterate_tried_cells(row)
            if tried.failed and not (self.folds and has_unnoticeable_root(tried))
        }  # fmt: skip
        return [site for site in self.known.calm.attempt_sites if site in failed]

    def iterate_tried_cells(self, row: MapRow) -> Iterator[tuple[MapRow, Probe, TriedVariation]]:
        for probe in self.list_faults_to_try(row):
            if (tried := self.cell(row, probe.label)) is not None:
                yield row, probe, tried

    def render_map_text(self) -> str:
        """The map in words."""
        calls = len(self.known.calm.attempt_sites)
        undecided = calls - len(self.decided_calls)
        tried = [tried for _, _, tried in self.cells if tried is not None]
        counts = Counter(trial.outcome for trial in tried)
        points = self.single_points_of_failure
        text = f"{self.ended}: " if self.ended and self.ended != GOES_ON else ""
        of = sum(trial.of or 0 for trial in self._coverage_by_row_kind)
        text += f"{sum(trial.tried for trial in self._coverage_by_row_kind)} of {of} cells tried"
        text += (": " + ", ".join(f"{count} {name}" for name, count in counts.most_common()) if counts else "") + ". "
        text += f"Single points of failure{'' if self.has_lasting_trials else ', by faults that hit once'}: "
        text += f"{len(points)} of {calls} call{'s' if calls != 1 else ''}"
        text += f" ({', '.join(map(str, points))})" if points else ""
        return f"{text}, {undecided} undecided." if undecided else f"{text}."

    def __str__(self) -> str:
        return self.render_map_text()

    __repr__ = __str__

    def to_json_data(self) -> dict[str, Any]:
        """The map as JSON values."""
        return {
            "cells": [
                {
                    "call": str(row.site), "lasts": row.lasts,
                    "after": causes.describe_variation(row.after) if row.after.injections else "",
                    "fault": probe.label, "outcome": "not tried" if tried is None else tried.outcome,
                    "failed": bool(tried and tried.failed), "why": "" if tried is None else tried.why,
                    "trial": None if tried is None else tried.number,
                }
                for row, probe, tried in self.cells
            ],
            "untried": [vars(entry) for entry in self.untried],
            "tried_by": self.trial_counts_by_strategy,
            "by_order": [vars(entry) for entry in self.coverage_by_fault_count],
        }  # fmt: skip


def group_alike_failures(tried: Sequence[TriedVariation]) -> list[list[TriedVariation]]:
    """The trials that failed, of these in the order of trying: those that failed alike at the same calls together, the
    smallest first in each; worst first. One that holds all faults of a smaller one that failed alike, or hits its calls
    among others, shows nothing new, and is left out."""
    failed = sorted((trial for trial in tried if trial.failed), key=lambda trial: trial.variation.part_count)
    nth = {trial.variation.key: n for n, trial in enumerate(tried)}  # their numbers begin anew where a search goes on
    minimal = defaultdict[str, list[TriedVariation]](list)
    groups: dict[tuple[str, frozenset[tuple[str, int]]], list[TriedVariation]] = {}
    for trial in failed:
        if not any(_is_subset_of(smaller.variation, trial.variation) for smaller in minimal[trial.kind]):
            minimal[trial.kind].append(trial)
            groups.setdefault((trial.kind, trial.variation.targeted_requests_and_moments), []).append(trial)
    return sorted(
        groups.values(), key=lambda group: (RANK.get(group[0].outcome, len(RANK)), nth[group[0].variation.key])
    )


def _is_subset_of(smaller: Variation, larger: Variation) -> bool:
    """Tells if its faults are some of the other's, or hit only the target that the other's one fault hits for good."""
    if len(larger.injections) == 1 and is_lasting_injection(larger.injections[0]) and not smaller.order:
        (targets,) = {injection.targets for injection in larger.injections}
        return bool(smaller.injections) and all(
            injection.targets == targets and not is_lasting_injection(injection) for injection in smaller.injections
        )
    return smaller.part_texts < larger.part_texts
