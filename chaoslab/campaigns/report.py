"""The report over all of a campaign: what could not be undone, its end, and the trend of each step over the rounds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaoslab.campaigns.journal import DoneUnit, JournalStory
from chaoslab.reports.page import table

SHOWN = 8
"""The most rounds of a trend."""


def text(story: JournalStory, name: str) -> str:
    """The report as text."""
    return "\n".join(_lines(story, name))


def _lines(story: JournalStory, name: str) -> Iterator[str]:
    for each in story.not_undone:
        yield f"COULD NOT BE UNDONE: {each}"
    still = sorted({each.name for each in story.open}) if not story.ended else []
    for one in still:
        yield f"NOT TAKEN BACK YET: {one}"
    for unit in story.left:
        yield f"LEFT, PASSING ON: {unit.name} (process {unit.group}), until nothing comes or it is stopped"
    yield f"{name}: {story.ended or 'not ended'}{f': {story.why}' if story.why else ''}"
    for note in story.notes:
        yield f"  {note}"
    rows = [
        [str(each.round), each.name, each.state or "under way", *_figures(each), each.why[:60]] for each in story.own
    ]
    if rows:
        yield from table(["round", "step", "end", "passed", "open", "harm", "failed calls", "faults", ""], rows)
    for step in dict.fromkeys(each.name for each in story.done):
        passed = [_passed(each) for each in story.done if each.name == step]
        shares = [well / judged for well, judged in passed if judged]
        if len(shares) > 1:  # told without an interval: trials of one prompt, and calls of one trial, go together
            yield f"trend of {step}: {' → '.join(f'{each:.0%}' for each in shares[-SHOWN:])} of the trials passed"


def _passed(done: DoneUnit) -> tuple[int, int]:
    """The trials that passed, of those that were judged."""
    well, failed = (int(done.figures.get(name, 0)) for name in ("well", "failed"))
    return well, well + failed


def _figures(done: DoneUnit) -> list[str]:
    found = done.figures
    return [
        _share(*_passed(done)), f"{found.get('open', 0):g}", f"{found.get('harm', 0):g}",
        _share(int(found.get("failed_calls", 0)), int(found.get("calls", 0))), f"{found.get('faults', 0):g}",
    ]  # fmt: skip


def _share(count: int, total: int) -> str:
    return f"{count}/{total} ({count / total:.0%})" if total else "–"


def plain(story: JournalStory) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "state": story.ended or "not ended", "why": story.why, "not_undone": story.not_undone, "notes": story.notes,
        "steps": [vars(each) for each in story.own],
    }  # fmt: skip


def page(folder: Path) -> Path | None:
    """Writes the page over all of its runs, with the trend of each scenario; None if there is no run, or no Jinja."""
    from chaoslab.reports import index

    try:
        return index.write(folder)
    except (LookupError, ModuleNotFoundError):
        return None
