"""The changes between two runs, trial by trial, before they have a format.

A trial of one run is paired with the trial of the other that has the same prompt and the same repetition. A pair counts
as worse or better by the order of the outcomes; one of which a trial allows no conclusion counts for neither. The share
of trials that ended well is compared as by `chaoslab compare`, with the prompt as the unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.jsonable import shown
from chaoslab.core.events import RunStarted
from chaoslab.reports.changes._spending import MovedAmount, moved
from chaoslab.reports.charts.series import lines
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._rows import TrialRow
from chaoslab.reports.frames import summarize_run
from chaoslab.reports.levels import PassRate, pooled
from chaoslab.reports.page import count
from chaoslab.search.compared import figure_text
from chaoslab.search.comparing import ALPHA, ComparedFigure
from chaoslab.search.pairs import BETTER, WORSE

KNOWN = {Standing.WELL: True, Standing.BAD: False, Standing.OPEN: None}


class Way(StrEnum):
    """The direction of a change; OPEN: one of the two trials allows no conclusion."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    OPEN = "no conclusion"


@dataclass(frozen=True)
class TrialChange:
    """One pair. `trial`: its key in the newer run. `new`: it ended well before and ends badly now. `replay`: the
    command that runs the newer trial again."""

    trial: str
    prompt: str
    then: Outcome
    now: Outcome
    way: Way
    new: bool
    fixed: bool
    why: str
    replay: str


@dataclass(frozen=True)
class Changes:
    """The comparison. `pairs`: worse first, then better, the same and those without a conclusion. `then_alone`,
    `now_alone`: trials without a partner. `notes`: the differences between the runs beside the agent's code."""

    then: str
    now: str
    pairs: Sequence[TrialChange]
    then_alone: Sequence[str]
    now_alone: Sequence[str]
    notes: Sequence[str] = ()
    spent: Sequence[MovedAmount] = ()
    """The means of what a trial took then and now, over the pairs that ended."""
    figure: ComparedFigure = field(default_factory=lambda: ComparedFigure("well", ALPHA))
    """The trials that ended well then and now, by prompt."""
    levels: PassRate | None = None
    """The share of correct trials at the two levels of chaos, if the runs differ in nothing else."""

    @classmethod
    def of(cls, then: Contents, now: Contents) -> Changes:
        """The changes from one run to another."""
        before, after = keyed(then), keyed(now)
        both = [(before[key], row) for key, row in after.items() if key in before]
        pairs = [_change(one, now, other) for one, other in both]
        figure = ComparedFigure("well", ALPHA)
        for one, other in both:
            figure.add((KNOWN[one.standing], KNOWN[other.standing]), other.prompt)
        order = list(Way)
        return cls(
            then=then.where,
            now=now.where,
            pairs=sorted(pairs, key=lambda one: (order.index(one.way), not one.new)),
            then_alone=[row.trial for key, row in before.items() if key not in after],
            now_alone=[row.trial for key, row in after.items() if key not in before],
            notes=tuple(differences(then.report.started, now.report.started)),
            spent=moved(then, now, both),
            figure=figure,
            levels=_levels(then.report, now.report),
        )

    def count(self, way: Way) -> int:
        """The number of pairs that went this way."""
        return sum(one.way is way for one in self.pairs)

    @property
    def new(self) -> list[TrialChange]:
        """The new failures."""
        return [one for one in self.pairs if one.new]

    @property
    def said(self) -> str:
        """The result in one line."""
        if not self.pairs:
            return "No trial of one run has the prompt and the repetition of one of the other: nothing to compare"
        counts = ", ".join(f"{self.count(way)} {way}" for way in Way if self.count(way) or way is not Way.OPEN)
        return f"{count(len(self.pairs), 'pair')} of trials: {counts}"

    @property
    def change(self) -> str:
        """worse or better if that is shown of the share of trials that ended well; else empty."""
        return next((each for each in (WORSE, BETTER) if self.figure.shown(each)), "")

    @property
    def tested(self) -> str:
        """The share of trials that ended well then and now, and if a change is shown, in one sentence."""
        prompts = len(self.figure.by_prompt)
        if self.figure.change is None:
            return "No pair is judged in both runs, so there is nothing to test."
        over = f" (the mean over {prompts} prompts)" if prompts > 1 else ""
        shown = f"shown to be {self.change}" if self.change else "no change is shown"
        return f"Trials that {figure_text(self.figure)}{over}: {shown}."


def differences(then: RunStarted | None, now: RunStarted | None) -> Iterator[str]:
    """The differences in how the runs were started: without them, a pair that ends otherwise is the agent's doing."""
    if then is None or now is None:
        yield "The log of one run does not say how it was started."
        return
    for name, one, other in (("seed", then.seed, now.seed), ("world", then.world, now.world)):
        if one != other:
            yield f"The {name} is another: {one} then, {other} now."
    if then.plan != now.plan:
        yield "The planned faults are others."
    for name in sorted({*then.settings, *now.settings} - {"SEED", "WORLD"}):
        one, other = then.settings.get(name), now.settings.get(name)
        if one != other:
            yield f"The setting {name} is another: {shown(one)} then, {shown(other)} now."


def _levels(then: RunReport, now: RunReport) -> PassRate | None:
    runs = [summarize_run(then), summarize_run(now)]
    found = {run["level"] for run in runs}
    alone = len(lines(runs, of_levels=True)) == 1  # else the line would show what another difference did
    return pooled("", runs) if alone and len(found) > 1 and None not in found else None


def keyed(contents: Contents) -> dict[tuple[str, str, int], TrialRow]:
    """The trials by prompt and repetition; equal prompts of a run are numbered."""
    found: dict[tuple[str, str, int], TrialRow] = {}
    seen: Counter[tuple[str, str]] = Counter()
    place = {trial: n for n, trial in enumerate(contents.report.trials)}
    for row in sorted(contents.all_rows, key=lambda row: place[row.trial]):
        key = (row.prompt, row.trial.rpartition(".")[2])
        seen[key] += 1
        found[*key, seen[key]] = row
    return found


def _change(before: TrialRow, now: Contents, after: TrialRow) -> TrialChange:
    standings = (before.standing, after.standing)
    new, fixed = standings == (Standing.WELL, Standing.BAD), standings == (Standing.BAD, Standing.WELL)
    ranks = [list(Outcome).index(row.outcome) for row in (before, after)]
    way = Way.OPEN
    if new or fixed:
        way = Way.WORSE if new else Way.BETTER
    elif Standing.OPEN not in standings:
        way = Way.WORSE if ranks[1] > max(ranks[0], 0) else Way.BETTER if max(ranks[1], 0) < ranks[0] else Way.SAME
    return TrialChange(
        trial=after.trial, prompt=after.prompt, then=before.outcome, now=after.outcome, way=way, new=new, fixed=fixed,
        why=after.in_words, replay=now.replay(after.trial),
    )  # fmt: skip
