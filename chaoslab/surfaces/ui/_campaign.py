"""A campaign as its page shows it: its journal, and what its last look saw."""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from chaoslab.base import files, levers
from chaoslab.base.jsonable import to_one_line
from chaoslab.campaigns.journal import FILE, PAUSED, JournalContents, read_journal
from chaoslab.core.limits import LEASE_S

TEXT, SHOWN = 300, 200
"""The most characters of a text, and the latest steps that are shown."""


def summarize_campaign(folder: Path) -> dict[str, Any]:
    """A line on a campaign: its name and its state in words."""
    story = _load_journal_story(folder)
    return {
        "name": folder.name,
        "state": to_one_line(_describe_campaign_state(story, folder, _read_last_snapshot(folder)), TEXT),
        "steps": len(story.current_start_units),
    }


def describe_campaign(folder: Path) -> dict[str, Any]:
    """A campaign as plain data, each text in one line."""
    story, last_look = _load_journal_story(folder), _read_last_snapshot(folder)
    state_text = _describe_campaign_state(story, folder, last_look)
    plain: dict[str, Any] = {
        "name": folder.name, "state": state_text, "why": story.why, "goes_on": state_text in ("under way", "paused"),
        "probed": last_look.get("at", ""), "probes": last_look.get("probes", []), "now": last_look.get("now", {}),
        "spent": [*_iterate_spent_amounts(last_look)], "not_undone": story.not_undone, "notes": story.notes,
        "open": sorted({step.name for step in story.units_left_open}) if not story.ended else [],
        "steps": [{**vars(step),
            "state": step.state or "under way"} for step in story.current_start_units[: -SHOWN - 1 : -1]],
    }  # fmt: skip
    one_line_values: dict[str, Any] = _to_one_line(plain)
    return one_line_values


def _load_journal_story(folder: Path) -> JournalContents:
    with suppress(OSError, files.Unreadable, LookupError, TypeError):
        file_stat = (folder / FILE).stat()
        # By size and time: a journal of thousands of steps is read when it has changed.
        return _read_journal_cached(folder, file_stat.st_size, file_stat.st_mtime_ns)
    return JournalContents(why="its journal cannot be read")


@lru_cache(maxsize=16)
def _read_journal_cached(folder: Path, _size: int, _changed: int) -> JournalContents:
    """The story, which is read again when the journal has changed."""
    return read_journal(folder)


def _read_last_snapshot(folder: Path) -> dict[str, Any]:
    """The content of the campaign's last look; nothing if it is not there or cannot be read."""
    with suppress(ValueError, OSError):
        content = files.read_json(folder / "seen.json")
        return content if isinstance(content, dict) else {}
    return {}


def _describe_campaign_state(story: JournalContents, folder: Path, last_look: dict[str, Any]) -> str:
    if not story.instance:
        return "not begun"
    # A campaign of another version may tell no lease.
    lease_s = last_look.get("lease_s")
    lapsed = levers.is_lease_expired(
        folder / f"lease.{story.starts}", lease_s if isinstance(lease_s, int | float) else LEASE_S
    )
    return story.ended or ("interrupted" if lapsed else "paused" if (folder / PAUSED).exists() else "under way")


def _iterate_spent_amounts(last_look: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The amounts spent, each with its limit if the budget has one."""
    spent, budget = (
        {**amounts} if isinstance(amounts := last_look.get(name), dict) else {} for name in ("spent", "budget")
    )
    for name in ("trials", "seconds", "dollars"):
        # What has a limit is shown from 0 on.
        if isinstance(value := spent.get(name), int | float) and (value or name in budget):
            yield {"name": name, "value": value, "most": budget.get(name)}


def _to_one_line(value: Any) -> Any:
    """The same with each text in one line."""
    if isinstance(value, str):
        return to_one_line(value, TEXT)
    if isinstance(value, dict):
        return {to_one_line(str(key), TEXT): _to_one_line(item) for key, item in value.items()}
    return [_to_one_line(item) for item in value] if isinstance(value, list | tuple) else value
