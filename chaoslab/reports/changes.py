"""The pairs of two runs, for `chaoslab compare`: a trial of one run and the trial of the other that has the same prompt
and the same repetition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from chaoslab.analysis.measures.trace_diff import Story
from chaoslab.analysis.verdict.exposure import has_planned_faults
from chaoslab.analysis.verdict.standing import OPEN_MAX, Standing
from chaoslab.base.jsonable import repr_one_line
from chaoslab.core.events import RunStarted
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._rows import TrialRow
from chaoslab.reports.page import format_count
from chaoslab.search.compared import Comparison
from chaoslab.search.comparing import ALPHA
from chaoslab.search.pairs import Pair, Side

WELL = {Standing.WELL: True, Standing.BAD: False, Standing.OPEN: None}


def compare_run_pairs(
    then: Contents,
    now: Contents,
    *,
    alpha: float = ALPHA,
    open_max: float = OPEN_MAX,
    load_story: Callable[[Contents, str], Story] | None = None,
) -> Comparison:
    """The comparison of a run with an earlier one. `load_story`: that of a trial, for the first difference of a
    pair."""
    before, after = _index_trials(then), _index_trials(now)
    keys = [key for key in before if key in after]
    notes = [text.rstrip(".") for text in describe_start_changes(then.report.started, now.report.started)]
    if unpaired := len(before) + len(after) - 2 * len(keys):
        notes.append(f"{format_count(unpaired, 'trial')} of one run alone, which count for nothing")
    comparison = Comparison(alpha, notes=notes, open_max=open_max, round_size=max(len(keys), 1))  # looked at once
    for number, key in enumerate(keys, 1):
        base, new = _make_pair_side(then, before[key], load_story), _make_pair_side(now, after[key], load_story)
        comparison.add(Pair(number, base, new, key[0]))
    return comparison


def describe_start_changes(then: RunStarted | None, now: RunStarted | None) -> Iterator[str]:
    """The differences in how the runs were started: without them, a pair that ends otherwise is the agent's doing."""
    if then is None or now is None:
        yield "The log of one run does not say how it was started."
        return
    for name, then_value, now_value in (("seed", then.seed, now.seed), ("world", then.world, now.world)):
        if then_value != now_value:
            yield f"The {name} is another: {then_value} then, {now_value} now."
    if then.plan != now.plan:
        yield "The planned faults are others."
    for name in sorted({*then.settings, *now.settings} - {"SEED", "WORLD"}):
        then_value, now_value = then.settings.get(name), now.settings.get(name)
        if then_value != now_value:
            yield f"The setting {name} is another: {repr_one_line(then_value)} then, {repr_one_line(now_value)} now."


def _index_trials(contents: Contents) -> dict[tuple[str, str, int], TrialRow]:
    """The trials by prompt and repetition; equal prompts of a run are numbered."""
    rows_by_key: dict[tuple[str, str, int], TrialRow] = {}
    counts: Counter[tuple[str, str]] = Counter()
    order = {trial: n for n, trial in enumerate(contents.report.trials)}
    for row in sorted(contents.all_rows, key=lambda row: order[row.trial]):
        key = (row.prompt, row.trial.rpartition(".")[2])
        counts[key] += 1
        rows_by_key[*key, counts[key]] = row
    return rows_by_key


def _make_pair_side(run: Contents, row: TrialRow, load_story: Callable[[Contents, str], Story] | None) -> Side:
    report = run.report
    figures = report.figures.value.figures_by_key[row.trial]
    return Side(
        WELL[row.standing],
        str(row.outcome),
        row.reason_text,
        row.calls,
        row.seconds or 0.0,
        figures.tokens,
        bool(row.harm),
        None if figures.unpriced else float(figures.usd),
        report.verdicts[row.trial].done,
        bool(row.met) if has_planned_faults(report.started) else None,
        prompt=row.prompt,
        story=partial(load_story, run, row.trial) if load_story is not None else None,
    )
