"""The changes between two runs as text, JSON, Markdown and HTML."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html import escape

from chaoslab.reports.changes import Change, Changes, Way
from chaoslab.reports.contents.outcomes import word
from chaoslab.reports.formats.markdown import code
from chaoslab.reports.page import wrapped

VERSION = 1
SHOWN = 20
"""The most pairs that the terminal lists."""
ROWS_MAX = 500
"""The most pairs that Markdown lists."""
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.3rem .6rem;"
    "border-bottom:1px solid #8886}code{overflow-wrap:anywhere}"
)


def text(found: Changes) -> str:
    """The page for a terminal, at most 80 columns."""
    lines = [*wrapped(f"{found.then} → {found.now}"), *wrapped(found.said), *wrapped(found.tested)]
    changed = _changed(found)
    for one in changed[:SHOWN]:
        lines += wrapped(f"{_mark(one)} {one.trial}: {word(one.then)} → {word(one.now)}: {one.why}", longest=300)
        if one.new:
            lines.append(f"    {one.replay}")
    if len(changed) > SHOWN:
        lines.append(f"{len(changed) - SHOWN} more changed")
    return "\n".join([*lines, *(f"note: {line}" for line in _alone(found))]) + "\n"


def markdown(found: Changes) -> str:
    """The changes for a pull request."""
    lines = ["## What changed", "", f"{code(found.then)} → {code(found.now)}", "", f"- **{found.said}**"]
    lines += [f"- {found.tested}", *(f"- {line}" for line in _alone(found))]
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
        "mcnemar": {
            "discordant": found.discordant,
            "bad_only_now": len(found.new),
            "bad_only_then": found.discordant - len(found.new),
            "p": found.p,
        },
        "then_alone": list(found.then_alone),
        "now_alone": list(found.now_alone),
        "pairs": [
            {**vars(one), "then": str(one.then), "now": str(one.now), "way": str(one.way)} for one in found.pairs
        ],
    }
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def html(found: Changes) -> str:
    """The changes as one page that loads nothing."""
    digest = b64encode(sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    rows = "\n".join(
        f"<tr><td>{_mark(one)}</td><td>{escape(one.trial)}</td><td>{word(one.then)}</td><td>{word(one.now)}</td>"
        f"<td>{escape(one.why)}</td><td><code>{escape(one.replay)}</code></td></tr>"
        for one in _changed(found)
    )
    table = (
        "<table>\n<thead><tr><th></th><th>trial</th><th>then</th><th>now</th><th>why</th><th>again</th></tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>"
    )
    notes = "".join(f"<p>{escape(line)}</p>\n" for line in _alone(found))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(found.said)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>What changed</h1>\n"
        f"<p><code>{escape(found.then)}</code> → <code>{escape(found.now)}</code></p>\n"
        f"<p><b>{escape(found.said)}</b></p>\n<p>{escape(found.tested)}</p>\n"
        f"{notes}{table if rows else ''}\n</main>\n</body>\n</html>\n"
    )


FORMATS: dict[str, tuple[str, Callable[[Changes], str]]] = {
    "html": ("changes.html", html),
    "json": ("changes.json", as_json),
    "markdown": ("changes.md", markdown),
}
"""Format → the file's name and its maker."""


def _changed(found: Changes) -> list[Change]:
    return [one for one in found.pairs if one.way in (Way.WORSE, Way.BETTER)]


def _mark(one: Change) -> str:
    return "NEW FAILURE" if one.new else str(one.way)


def _alone(found: Changes) -> list[str]:
    """A line on the trials of each run that have no partner."""
    return [
        f"{len(trials)} without a partner in {run}, such as {trials[0]}"
        for run, trials in ((found.then, found.then_alone), (found.now, found.now_alone))
        if trials
    ]
