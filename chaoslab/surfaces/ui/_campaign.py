"""A campaign as its page shows it: its journal, and what its last look saw."""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from chaoslab.base import files, levers
from chaoslab.base.jsonable import line
from chaoslab.campaigns.journal import FILE, PAUSED, JournalStory, read

TEXT, SHOWN = 300, 200
"""The most characters of a text, and the latest steps that are shown."""
LEASE_S = 10.0
"""The lease of a campaign that does not tell its own, in seconds."""


def brief(folder: Path) -> dict[str, Any]:
    """A line on a campaign: its name and its state in words."""
    story = _story(folder)
    return {"name": folder.name, "state": line(_state(story, folder, _seen(folder)), TEXT), "steps": len(story.own)}


def state(folder: Path) -> dict[str, Any]:
    """A campaign as plain data, each text in one line."""
    story, seen = _story(folder), _seen(folder)
    said = _state(story, folder, seen)
    plain: dict[str, Any] = {
        "name": folder.name, "state": said, "why": story.why, "goes_on": said in ("under way", "paused"),
        "probed": seen.get("at", ""), "probes": seen.get("probes", []), "now": seen.get("now", {}),
        "spent": [*_spent(seen)], "not_undone": story.not_undone, "notes": story.notes,
        "open": sorted({each.name for each in story.open}) if not story.ended else [],
        "steps": [{**vars(each), "state": each.state or "under way"} for each in story.own[: -SHOWN - 1 : -1]],
    }  # fmt: skip
    found: dict[str, Any] = _lines(plain)
    return found


def _story(folder: Path) -> JournalStory:
    with suppress(OSError, files.Unreadable, LookupError, TypeError):
        held = (folder / FILE).stat()
        return _read(folder, held.st_size, held.st_mtime_ns)
    return JournalStory(why="its journal cannot be read")


@lru_cache(maxsize=16)
def _read(folder: Path, _size: int, _changed: int) -> JournalStory:
    """The story, which is read again when the journal has changed."""
    return read(folder)


def _seen(folder: Path) -> dict[str, Any]:
    """The content of the campaign's last look; nothing if it is not there or cannot be read."""
    with suppress(ValueError, OSError):
        found = files.json_of(folder / "seen.json")
        return found if isinstance(found, dict) else {}
    return {}


def _state(story: JournalStory, folder: Path, seen: dict[str, Any]) -> str:
    if not story.instance:
        return "not begun"
    lease_s = seen.get("lease_s")
    lapsed = levers.lapsed(folder / f"lease.{story.starts}", lease_s if isinstance(lease_s, int | float) else LEASE_S)
    return story.ended or ("broken off" if lapsed else "paused" if (folder / PAUSED).exists() else "under way")


def _spent(seen: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The amounts spent, each with its limit if the budget has one."""
    spent, budget = ({**given} if isinstance(given := seen.get(name), dict) else {} for name in ("spent", "budget"))
    for name in ("trials", "seconds", "dollars"):
        if isinstance(value := spent.get(name), int | float) and (value or name in budget):
            yield {"name": name, "value": value, "most": budget.get(name)}


def _lines(value: Any) -> Any:
    """The same with each text in one line."""
    if isinstance(value, str):
        return line(value, TEXT)
    if isinstance(value, dict):
        return {line(str(key), TEXT): _lines(each) for key, each in value.items()}
    return [_lines(each) for each in value] if isinstance(value, list | tuple) else value
