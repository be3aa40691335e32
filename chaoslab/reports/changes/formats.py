"""The changes between two runs as text, JSON, Markdown and HTML."""

import json
from collections.abc import Callable

from chaoslab.reports.changes import Changes, TrialChange, Way
from chaoslab.reports.changes._spending import MovedAmount
from chaoslab.reports.contents.outcomes import word
from chaoslab.reports.formats.markdown import code
from chaoslab.reports.page import table, wrapped
from chaoslab.search.compared import figure_data

VERSION = 2
SHOWN = 20
"""The most pairs that the terminal lists."""
ROWS_MAX = 500
"""The most pairs that Markdown lists."""
SPENT, SPENT_COLUMNS = "median of a trial", ("then", "now", "difference", "95 % interval")


def text(found: Changes) -> str:
    """The page for a terminal, at most 80 columns."""
    lines = [*wrapped(f"{found.then} → {found.now}"), *wrapped(found.said), *wrapped(found.tested)]
    lines += [line for note in _notes(found) for line in wrapped(f"note: {note}")]
    if found.spent:
        lines += ["", *table([SPENT, *SPENT_COLUMNS], [[one.amount, *one.cells] for one in found.spent]), ""]
    changed = _changed(found)
    for one in changed[:SHOWN]:
        lines += wrapped(f"{_mark(one)} {one.trial}: {word(one.then)} → {word(one.now)}: {one.why}", longest=300)
        if one.new:
            lines.append(f"    {one.replay}")
    if len(changed) > SHOWN:
        lines.append(f"{len(changed) - SHOWN} more changed")
    return "\n".join(lines) + "\n"


def markdown(found: Changes) -> str:
    """The changes for a pull request."""
    lines = ["## What changed", "", f"{code(found.then)} → {code(found.now)}", "", f"- **{found.said}**"]
    lines += [f"- {found.tested}", *(f"- {code(line)}" for line in _notes(found))]
    if found.spent:
        lines += ["", f"| {' | '.join([SPENT, *SPENT_COLUMNS])} |", "|---|--:|--:|--:|--:|"]
        lines += [f"| {' | '.join([one.amount, *one.cells])} |" for one in found.spent]
    changed = _changed(found)
    if changed:
        lines += ["", "| | trial | then | now | why | again |", "|---|---|---|---|---|---|"]
    for one in changed[:ROWS_MAX]:
        cells = (_mark(one), code(one.trial), word(one.then), word(one.now), code(one.why), code(one.replay))
        lines.append(f"| {' | '.join(cells)} |")
    if len(changed) > ROWS_MAX:
        lines += ["", f"{len(changed) - ROWS_MAX} more changed."]
    return "\n".join(lines) + "\n"


def as_json(found: Changes) -> str:
    """The changes for programs."""
    value = {
        "schema": VERSION,
        "then": found.then,
        "now": found.now,
        "counts": {str(way): found.count(way) for way in Way},
        "well": figure_data(found.figure),
        "change": found.change,
        "bad_only_now": len(found.new),
        "bad_only_then": sum(one.fixed for one in found.pairs),
        "spent": {one.amount: _spent(one) for one in found.spent},
        "notes": list(found.notes),
        "then_alone": list(found.then_alone),
        "now_alone": list(found.now_alone),
        "pairs": [
            {**vars(one), "then": str(one.then), "now": str(one.now), "way": str(one.way)} for one in found.pairs
        ],
    }
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _spent(one: MovedAmount) -> dict[str, object]:
    interval = None if one.interval is None else [one.interval.low, one.interval.high]
    return {"pairs": one.pairs, "then": one.then, "now": one.now, "difference": one.difference, "interval": interval}


def html(found: Changes) -> str:
    """The changes as one page that loads nothing."""
    from chaoslab.reports.formats.html import page
    from chaoslab.reports.svg import over_level

    worse, better = found.count(Way.WORSE), found.count(Way.BETTER)
    tone = "bad" if worse else "good" if better or found.count(Way.SAME) else "open"
    levels = over_level.draw(found.levels) if found.levels else None
    given = {
        "rows": _changed(found), "spent": SPENT, "columns": SPENT_COLUMNS, "notes": _notes(found), "tone": tone,
        "mark": _mark, "word": word,
    }  # fmt: skip
    return page("changes.html", it=found, levels=levels, **given)


FORMATS: dict[str, tuple[str, Callable[[Changes], str]]] = {
    "html": ("changes.html", html),
    "json": ("changes.json", as_json),
    "markdown": ("changes.md", markdown),
}
"""Format → the file's name and its maker."""


def _changed(found: Changes) -> list[TrialChange]:
    return [one for one in found.pairs if one.way in (Way.WORSE, Way.BETTER)]


def _mark(one: TrialChange) -> str:
    return "NEW FAILURE" if one.new else str(one.way)


def _notes(found: Changes) -> list[str]:
    """A line on the trials of each run that have no partner."""
    return [*found.notes] + [
        f"{len(trials)} without a partner in {run}, such as {trials[0]}"
        for run, trials in ((found.then, found.then_alone), (found.now, found.now_alone))
        if trials
    ]
