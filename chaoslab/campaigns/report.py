"""The report over all of a campaign: what could not be undone, its end, and the trend of each step over the rounds."""

import textwrap
from collections.abc import Iterator
from typing import Any

from chaoslab.base.jsonable import to_one_line
from chaoslab.campaigns.journal import DoneUnit, JournalContents
from chaoslab.campaigns.presence import Presence
from chaoslab.reports.page import render_table

SHOWN, NAME = 8, 36
"""The most rounds of a trend, and the most characters of a step's name in the table: a command has up to 80."""


def render_report_text(story: JournalContents, name: str, presence: Presence, file: str) -> str:
    """The report as text. `file`: the campaign's, for the commands in it."""
    return "\n".join(_render_report_lines(story, name, presence, file))


def _render_report_lines(story: JournalContents, name: str, presence: Presence, file: str) -> Iterator[str]:
    for entry in story.not_undone:
        yield f"COULD NOT BE UNDONE: {entry}"
    killed = not story.ended and not presence.runs
    for name_text in sorted({entry.name for entry in story.units_left_open}) if killed else ():
        yield f"NOT ROLLED BACK YET: {name_text}"
    for unit in presence.gateways:
        faults = f"with faults for {presence.faults_s:g} s at most, " if presence.faults_s else "without faults, "
        until = f"until none comes or chaoslab campaign stop {file}"
        yield f"STILL PASSING TRAFFIC ON: {unit.name} (process {unit.group}), {faults}{until}"
    why = f"its process is gone, so chaoslab campaign run {file} rolls it back and goes on" if killed else story.why
    yield f"{name}: {story.ended or ('not ended' if killed else 'under way')}{f': {why}' if why else ''}"
    for note in story.notes:
        yield f"  {note}"
    rows = [
        [
            _shorten_name(entry.name),
            str(entry.round),
            entry.state or ("cut off" if killed else "under way"),
            *_render_unit_figures(entry),
        ]
        for entry in story.current_start_units
    ]
    if rows:
        yield from render_table(["step", "round", "end", "passed", "open", "harm", "failed calls", "faults"], rows)
    for ended_unit in story.current_start_units:  # no column has room for a sentence
        if ended_unit.why and ended_unit.why != why:
            yield f"{_shorten_name(ended_unit.name)}, round {ended_unit.round}: {ended_unit.why}"
    for step in dict.fromkeys(entry.name for entry in story.done):
        passed = [_count_passed_and_judged(entry) for entry in story.done if entry.name == step]
        shares = [well / judged for well, judged in passed if judged]
        if len(shares) > 1:  # told without an interval: trials of one prompt, and calls of one trial, go together
            yield f"trend of {step}: {' → '.join(f'{entry:.0%}' for entry in shares[-SHOWN:])} of the trials passed"


def _shorten_name(name: str) -> str:
    """A step's name for the table; that of a long command ends at a word, as its options may hold JSON."""
    line = to_one_line(name, 80)
    shortened = textwrap.shorten(line, NAME, placeholder=" …")
    return to_one_line(line, NAME) if shortened == "…" else shortened


def _count_passed_and_judged(unit: DoneUnit) -> tuple[int, int]:
    """The trials that passed, of those that were judged."""
    well, failed = (int(unit.figures.get(name, 0)) for name in ("well", "failed"))
    return well, well + failed


def _render_unit_figures(unit: DoneUnit) -> list[str]:
    texts = unit.figures
    return [
        _format_share(*_count_passed_and_judged(unit)), f"{texts.get('open', 0):g}", f"{texts.get('harm', 0):g}",
        _format_share(int(texts.get("failed_calls", 0)), int(texts.get("calls", 0))), f"{texts.get('faults', 0):g}",
    ]  # fmt: skip


def _format_share(count: int, total: int) -> str:
    return f"{count}/{total} ({count / total:.0%})" if total else "–"


def journal_to_json(story: JournalContents, presence: Presence) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "state": story.ended or ("under way" if presence.runs else "not ended"), "why": story.why,
        "not_undone": story.not_undone, "notes": story.notes,
        "gateways": [
            {"name": unit.name, "process": unit.group, "faults_s": presence.faults_s} for unit in presence.gateways
        ],
        "steps": [vars(entry) for entry in story.current_start_units],
    }  # fmt: skip
