"""The changes between two runs as text, JSON, Markdown and HTML."""

import json
from collections.abc import Callable

from chaoslab.reports.changes import Changes, TrialChange, Way
from chaoslab.reports.changes._spending import MovedAmount
from chaoslab.reports.contents.outcomes import outcome_word
from chaoslab.reports.formats.markdown import format_code
from chaoslab.reports.page import render_table, wrap
from chaoslab.search.compared import figure_data

VERSION = 2
SHOWN = 20
"""The most pairs that the terminal lists."""
ROWS_MAX = 500
"""The most pairs that Markdown lists."""
SPENT, SPENT_COLUMNS = "median of a trial", ("then", "now", "difference", "95 % interval")


def render_text(changes: Changes) -> str:
    """The page for a terminal, at most 80 columns."""
    lines = [*wrap(f"{changes.then} → {changes.now}"), *wrap(changes.said), *wrap(changes.tested)]
    lines += [line for note in _collect_notes(changes) for line in wrap(f"note: {note}")]
    if changes.spent:
        lines += [
            "",
            *render_table([SPENT, *SPENT_COLUMNS], [[change.amount, *change.cells] for change in changes.spent]),
            "",
        ]
    moved_pairs = _select_changed(changes)
    for change in moved_pairs[:SHOWN]:
        lines += wrap(
            f"{_format_mark(change)} {change.trial}: {outcome_word(change.then)} → {outcome_word(change.now)}: "
            f"{change.why}",
            longest=300,
        )
        if change.new:
            lines.append(f"    {change.replay}")
    if len(moved_pairs) > SHOWN:
        lines.append(f"{len(moved_pairs) - SHOWN} more changed")
    return "\n".join(lines) + "\n"


def render_markdown(changes: Changes) -> str:
    """The changes for a pull request."""
    lines = [
        "## What changed",
        "",
        f"{format_code(changes.then)} → {format_code(changes.now)}",
        "",
        f"- **{changes.said}**",
    ]
    lines += [f"- {changes.tested}", *(f"- {format_code(line)}" for line in _collect_notes(changes))]
    if changes.spent:
        lines += ["", f"| {' | '.join([SPENT, *SPENT_COLUMNS])} |", "|---|--:|--:|--:|--:|"]
        lines += [f"| {' | '.join([change.amount, *change.cells])} |" for change in changes.spent]
    moved_pairs = _select_changed(changes)
    if moved_pairs:
        lines += ["", "| | trial | then | now | why | again |", "|---|---|---|---|---|---|"]
    for change in moved_pairs[:ROWS_MAX]:
        cells = (
            _format_mark(change),
            format_code(change.trial),
            outcome_word(change.then),
            outcome_word(change.now),
            format_code(change.why),
            format_code(change.replay),
        )
        lines.append(f"| {' | '.join(cells)} |")
    if len(moved_pairs) > ROWS_MAX:
        lines += ["", f"{len(moved_pairs) - ROWS_MAX} more changed."]
    return "\n".join(lines) + "\n"


def render_json(changes: Changes) -> str:
    """The changes for programs."""
    value = {
        "schema": VERSION,
        "then": changes.then,
        "now": changes.now,
        "counts": {str(direction): changes.count(direction) for direction in Way},
        "well": figure_data(changes.figure),
        "change": changes.change,
        "bad_only_now": len(changes.new),
        "bad_only_then": sum(change.fixed for change in changes.pairs),
        "spent": {change.amount: _spending_data(change) for change in changes.spent},
        "notes": list(changes.notes),
        "then_alone": list(changes.then_alone),
        "now_alone": list(changes.now_alone),
        "pairs": [
            {**vars(change), "then": str(change.then), "now": str(change.now), "way": str(change.way)}
            for change in changes.pairs
        ],
    }
    # JSON has no NaN: better an error here than a file that no parser takes.
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _spending_data(amount: MovedAmount) -> dict[str, object]:
    interval = None if amount.interval is None else [amount.interval.low, amount.interval.high]
    return {
        "pairs": amount.pairs,
        "then": amount.then,
        "now": amount.now,
        "difference": amount.difference,
        "interval": interval,
    }


def render_html(changes: Changes) -> str:
    """The changes as one page that loads nothing."""
    # Loaded here: Jinja takes its time, and the terminal needs none of it.
    from chaoslab.reports.formats.html import render_page
    from chaoslab.reports.svg import over_level

    worse, better = changes.count(Way.WORSE), changes.count(Way.BETTER)
    tone = "bad" if worse else "good" if better or changes.count(Way.SAME) else "open"
    levels = over_level.draw(changes.levels) if changes.levels else None
    context = {
        "rows": _select_changed(changes),
        "spent": SPENT,
        "columns": SPENT_COLUMNS,
        "notes": _collect_notes(changes),
        "tone": tone,
        "mark": _format_mark,
        "word": outcome_word,
    }
    return render_page("changes.html", it=changes, levels=levels, **context)


FORMATS: dict[str, tuple[str, Callable[[Changes], str]]] = {
    "html": ("changes.html", render_html),
    "json": ("changes.json", render_json),
    "markdown": ("changes.md", render_markdown),
}
"""Format → the file's name and its maker."""


def _select_changed(changes: Changes) -> list[TrialChange]:
    return [change for change in changes.pairs if change.way in (Way.WORSE, Way.BETTER)]


def _format_mark(change: TrialChange) -> str:
    return "NEW FAILURE" if change.new else str(change.way)


def _collect_notes(changes: Changes) -> list[str]:
    """A line on the trials of each run that have no partner."""
    return [*changes.notes] + [
        f"{len(trials)} without a partner in {run}, such as {trials[0]}"
        for run, trials in ((changes.then, changes.then_alone), (changes.now, changes.now_alone))
        if trials
    ]
