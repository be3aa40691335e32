"""The changes between two runs, as `chaoslab compare` tells them, as text, JSON, Markdown and HTML. A trial of one run
is paired with the trial of the other that has the same prompt and the same repetition."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from chaoslab.analysis.measures.trace_diff import Story
from chaoslab.analysis.verdict.exposure import has_planned_faults
from chaoslab.analysis.verdict.standing import OPEN_MAX, Standing
from chaoslab.base.jsonable import show_value
from chaoslab.core.events import RunStarted
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._rows import TrialRow
from chaoslab.reports.formats.markdown import format_code
from chaoslab.reports.page import count, wrap
from chaoslab.search.compared import Comparison
from chaoslab.search.comparing import ALPHA
from chaoslab.search.pairs import BETTER, WORSE, Pair, Side

VERSION = 3
SHOWN, ROWS_MAX = 20, 500
"""The most changed pairs that the terminal and Markdown list."""
WELL = {Standing.WELL: True, Standing.BAD: False, Standing.OPEN: None}


@dataclass(frozen=True)
class Changes:
    """The comparison of a run with an earlier one. `rows`: the newer trial of each pair, in their order."""

    then: Contents
    now: Contents
    comparison: Comparison
    rows: Sequence[TrialRow]

    @classmethod
    def build(
        cls, then: Contents, now: Contents, *, alpha: float = ALPHA, open_max: float = OPEN_MAX,
        load_story: Callable[[Contents, str], Story] | None = None,
    ) -> Changes:  # fmt: skip
        """The changes from one run to another. `load_story`: that of a trial, for the first difference of a pair."""
        before, after = _key_trials(then), _key_trials(now)
        keys = [key for key in before if key in after]
        notes = [text.rstrip(".") for text in describe_differences(then.report.started, now.report.started)]
        if unpaired := len(before) + len(after) - 2 * len(keys):
            notes.append(f"{count(unpaired, 'trial')} of one run alone, which count for nothing")
        comparison = Comparison(alpha, notes=notes, open_max=open_max, period=max(len(keys), 1))  # looked at once
        for number, key in enumerate(keys, 1):
            base, new = _make_side(then, before[key], load_story), _make_side(now, after[key], load_story)
            comparison.add(Pair(number, base, new, key[0]))
        return cls(then, now, comparison, [after[key] for key in keys])

    @property
    def lines(self) -> list[str]:
        """The comparison in lines, without its pairs."""
        return self.comparison.in_words(0) if self.rows else ["no trial of one run has its pair in the other"]

    @property
    def changed(self) -> list[tuple[Pair, str, str]]:
        """The pairs that became worse, then those that became better, each with the key of its newer trial and the
        command that runs it again."""
        pairs = [pair for change in (WORSE, BETTER) for pair in self.comparison.pairs if pair.change == change]
        keys = [self.rows[pair.number - 1].trial for pair in pairs]
        return [(pair, key, self.now.replay(key)) for pair, key in zip(pairs, keys, strict=True)]


def describe_differences(then: RunStarted | None, now: RunStarted | None) -> Iterator[str]:
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
            yield f"The setting {name} is another: {show_value(then_value)} then, {show_value(now_value)} now."


def _key_trials(contents: Contents) -> dict[tuple[str, str, int], TrialRow]:
    """The trials by prompt and repetition; equal prompts of a run are numbered."""
    rows_by_key: dict[tuple[str, str, int], TrialRow] = {}
    counts: Counter[tuple[str, str]] = Counter()
    order = {trial: n for n, trial in enumerate(contents.report.trials)}
    for row in sorted(contents.all_rows, key=lambda row: order[row.trial]):
        key = (row.prompt, row.trial.rpartition(".")[2])
        counts[key] += 1
        rows_by_key[*key, counts[key]] = row
    return rows_by_key


def _make_side(run: Contents, row: TrialRow, load_story: Callable[[Contents, str], Story] | None) -> Side:
    report = run.report
    figures = report.figures.value.by_key[row.trial]
    return Side(
        WELL[row.standing], str(row.outcome), row.in_words, row.calls, row.seconds or 0.0, figures.tokens,
        bool(row.harm), None if figures.unpriced else float(figures.usd), report.verdicts[row.trial].done,
        bool(row.met) if has_planned_faults(report.started) else None, prompt=row.prompt,
        story=partial(load_story, run, row.trial) if load_story is not None else None,
    )  # fmt: skip


def render_text(changes: Changes) -> str:
    """The page for a terminal, at most 80 columns but for commands."""
    lines = [line for text in (f"{changes.then.where} → {changes.now.where}", *changes.lines) for line in wrap(text)]
    for pair, key, replay in changes.changed[:SHOWN]:
        text = f"{pair.change} {key}: {pair.base.outcome} → {pair.new.outcome}: {pair.new.why}"
        lines += [*wrap(text, longest=300), *([f"    {replay}"] if pair.change == WORSE else [])]
    if hidden := changes.changed[SHOWN:]:
        lines.append(f"{len(hidden)} more changed")
    return "\n".join(lines) + "\n"


def render_markdown(changes: Changes) -> str:
    """The changes for a pull request."""
    lines = ["## What changed", "", f"{format_code(changes.then.where)} → {format_code(changes.now.where)}", ""]
    lines += [f"- {format_code(line)}" for line in changes.lines]
    if changes.changed:
        lines += ["", "| | trial | then | now | why | again |", "|---|---|---|---|---|---|"]
    for pair, key, replay in changes.changed[:ROWS_MAX]:
        cells = (pair.change, format_code(key), pair.base.outcome, pair.new.outcome, format_code(pair.new.why))
        lines.append(f"| {' | '.join((*cells, format_code(replay)))} |")
    if hidden := changes.changed[ROWS_MAX:]:
        lines += ["", f"{len(hidden)} more changed."]
    return "\n".join(lines) + "\n"


def render_json(changes: Changes) -> str:
    """The changes for programs: the members of `chaoslab compare --json`, with the keys of the newer trials."""
    value = {
        "schema": VERSION, "then": changes.then.where, "now": changes.now.where, **changes.comparison.data(),
        "changed": [
            {"trial": key, "change": pair.change, "base": pair.base.plain(), "new": pair.new.plain(), "replay": replay}
            for pair, key, replay in changes.changed
        ],
    }  # fmt: skip
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def render_html(changes: Changes) -> str:
    """The changes as one page that loads nothing."""
    from chaoslab.reports.formats.html import render_page

    worse, comparison = changes.comparison.count(WORSE), changes.comparison
    tone = "bad" if worse else "good" if any(pair.new.well for pair in comparison.pairs) else "open"
    return render_page("changes.html", it=changes, tone=tone)


FORMATS: dict[str, tuple[str, Callable[[Changes], str]]] = {
    "html": ("changes.html", render_html),
    "json": ("changes.json", render_json),
    "markdown": ("changes.md", render_markdown),
}
"""Format → the file's name and its maker."""
