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
from chaoslab.base.jsonable import show_value
from chaoslab.core.events import RunStarted
from chaoslab.reports.changes._spending import MovedAmount, compare_spending
from chaoslab.reports.charts.series import group_lines
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._rows import TrialRow
from chaoslab.reports.frames import summarize_run
from chaoslab.reports.levels import PassRate, pool_levels
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
        before, after = key_trials(then), key_trials(now)
        both = [(before[key], row) for key, row in after.items() if key in before]
        pairs = [_compare_trial(before_row, now, after_row) for before_row, after_row in both]
        figure = ComparedFigure("well", ALPHA)
        for before_row, after_row in both:
            figure.add((KNOWN[before_row.standing], KNOWN[after_row.standing]), after_row.prompt)
        order = list(Way)
        # In the order in which people read them.
        return cls(
            then=then.where,
            now=now.where,
            pairs=sorted(pairs, key=lambda before_row: (order.index(before_row.way), not before_row.new)),
            then_alone=[row.trial for key, row in before.items() if key not in after],
            now_alone=[row.trial for key, row in after.items() if key not in before],
            notes=tuple(differences(then.report.started, now.report.started)),
            spent=compare_spending(then, now, both),
            figure=figure,
            levels=_pool_levels(then.report, now.report),
        )

    def count(self, way: Way) -> int:
        """The number of pairs that went this way."""
        return sum(pair.way is way for pair in self.pairs)

    @property
    def new(self) -> list[TrialChange]:
        """The new failures."""
        return [pair for pair in self.pairs if pair.new]

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
            # The figure has no change where no prompt has a pair that is judged in both.
            return "No pair is judged in both runs, so there is nothing to test."
        over = f" (the mean over {prompts} prompts)" if prompts > 1 else ""
        shown = f"shown to be {self.change}" if self.change else "no change is shown"
        return f"Trials that {figure_text(self.figure)}{over}: {shown}."


def differences(then: RunStarted | None, now: RunStarted | None) -> Iterator[str]:
    """The differences in how the runs were started: without them, a pair that ends otherwise is the agent's doing."""
    if then is None or now is None:
        yield "The log of one run does not say how it was started."
        return
    for name, then_value, now_value in (("seed", then.seed, now.seed), ("world", then.world, now.world)):
        if then_value != now_value:
            yield f"The {name} is another: {then_value} then, {now_value} now."
    if then.plan != now.plan:
        yield "The planned faults are others."
    # Told above already, by their own names.
    for name in sorted({*then.settings, *now.settings} - {"SEED", "WORLD"}):
        then_value, now_value = then.settings.get(name), now.settings.get(name)
        if then_value != now_value:
            yield f"The setting {name} is another: {show_value(then_value)} then, {show_value(now_value)} now."


def _pool_levels(then: RunReport, now: RunReport) -> PassRate | None:
    runs = [summarize_run(then), summarize_run(now)]
    levels = {run["level"] for run in runs}
    is_single_line = len(group_lines(runs, of_levels=True)) == 1  # else the line would show what another difference did
    return pool_levels("", runs) if is_single_line and len(levels) > 1 and None not in levels else None


def key_trials(contents: Contents) -> dict[tuple[str, str, int], TrialRow]:
    """The trials by prompt and repetition; equal prompts of a run are numbered."""
    rows_by_key: dict[tuple[str, str, int], TrialRow] = {}
    counts: Counter[tuple[str, str]] = Counter()
    # all_rows is worst first: equal prompts would be numbered otherwise in each run.
    order = {trial: n for n, trial in enumerate(contents.report.trials)}
    for row in sorted(contents.all_rows, key=lambda row: order[row.trial]):
        key = (row.prompt, row.trial.rpartition(".")[2])
        counts[key] += 1
        rows_by_key[*key, counts[key]] = row
    return rows_by_key


def _compare_trial(before: TrialRow, now: Contents, after: TrialRow) -> TrialChange:
    standings = (before.standing, after.standing)
    new, fixed = standings == (Standing.WELL, Standing.BAD), standings == (Standing.BAD, Standing.WELL)
    ranks = [list(Outcome).index(row.outcome) for row in (before, after)]
    direction = Way.OPEN
    if new or fixed:
        direction = Way.WORSE if new else Way.BETTER
    elif Standing.OPEN not in standings:
        direction = (
            Way.WORSE if ranks[1] > max(ranks[0], 0) else Way.BETTER if max(ranks[1], 0) < ranks[0] else Way.SAME
        )
    return TrialChange(
        trial=after.trial,
        prompt=after.prompt,
        then=before.outcome,
        now=after.outcome,
        way=direction,
        new=new,
        fixed=fixed,
        why=after.in_words,
        replay=now.replay(after.trial),
    )
