"""The journal of a campaign: a line of JSON for each thing that it did, so that it can go on after kill -9, and so that
what is not taken back is known."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaoslab.base import files
from chaoslab.base.clock import Clock, format_iso, system

FILE = "journal.jsonl"
LIMITS, LEASE, LEVER = "limits.json", "lease", "stop"
"""The names of the files that end its faults, beside the journal."""
PAUSED = "paused"
"""The lever that pauses a campaign, in its folder."""


@dataclass
class DoneUnit:
    """One unit of a round, as it ended. `state`: held, failed, breached, unproven or broken; empty while it runs.
    `undone`: it was taken back; `undoes`: there are commands of its own for that. `group`: that of its processes, if it
    had any; `stays`: they are a gateway's; `left`: they go on, and pass on what still comes."""

    round: int
    step: int
    name: str
    level: float | None = None
    state: str = ""
    why: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    undone: bool = False
    undoes: bool = False
    group: int | None = None
    stays: bool = False
    left: bool = False


@dataclass
class JournalContents:
    """The contents of a journal. `instance`: the number of the campaign's present start; `starts`: of all, resumes too.
    `ended`: its end; empty while it goes on, or if it was killed."""

    instance: int = 0
    starts: int = 0
    digest: str = ""
    pid: int = 0
    ended: str = ""
    why: str = ""
    done: list[DoneUnit] = field(default_factory=list)
    """The units of all instances."""
    first: int = 0
    """The index of the present instance's first unit."""
    not_undone: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def current_start_units(self) -> list[DoneUnit]:
        """The units of the present instance."""
        return self.done[self.first :]

    @property
    def units_to_roll_back(self) -> list[DoneUnit]:
        """The units that were begun and not taken back."""
        return [unit for unit in self.current_start_units if not unit.undone]

    @property
    def units_left_open(self) -> list[DoneUnit]:
        """The same, without the gateways that have nothing to be taken back: they stay in the path of traffic."""
        return [unit for unit in self.units_to_roll_back if not unit.stays or unit.undoes]

    @property
    def gateways_left_running(self) -> list[DoneUnit]:
        """The gateways that were left in the path of traffic, by any start."""
        return [unit for unit in self.done if unit.left]

    @property
    def running_and_left_gateways(self) -> list[DoneUnit]:
        """These, and the one that is under way, or was when the campaign was killed."""
        return [unit for unit in self.done if unit.left or (unit.stays and not unit.state)]


class Journal:
    """Appends to the journal in a folder; each line is on the disk before what it tells is done."""

    def __init__(self, folder: Path, *, clock: Clock = system) -> None:
        self._path, self._clock = folder / FILE, clock
        self.story = read_journal(folder)

    def append_entry(self, kind: str, **fields: Any) -> None:
        """Writes a line. Raises OSError: it cannot be written."""
        line = {"ts": format_iso(self._clock.utc()), "what": kind, **fields}
        with self._path.open("ab") as file:
            file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            file.flush()
            # Some file systems cannot do that.
            with suppress(OSError):
                os.fsync(file.fileno())
        apply_entry(self.story, line)


def read_journal(folder: Path) -> JournalContents:
    """The story in a folder's journal. A line that was cut off by a kill is left out. Raises Unreadable: it is there
    and cannot be read."""
    story, path = JournalContents(), folder / FILE
    for line in files.load_bytes(path).split(b"\n") if path.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            apply_entry(story, entry)
    return story


def apply_entry(story: JournalContents, entry: dict[str, Any]) -> None:
    """Takes one line of a journal."""
    match entry.get("what"):
        case "begun":
            story.instance, story.first = story.instance + 1, len(story.done)
            story.starts += 1
            story.digest, story.not_undone, story.notes = entry.get("digest", ""), [], []
            story.ended, story.why, story.pid = "", "", entry.get("pid", 0)
        case "resumed":
            story.ended, story.why, story.pid = "", "", entry.get("pid", 0)
            story.starts += 1
        case "step":
            undoes = entry.get("undoes", False)
            story.done.append(DoneUnit(entry["round"], entry["step"], entry["name"], entry.get("level"), undoes=undoes))
        case "process" if story.done:
            story.done[-1].group, story.done[-1].stays = entry.get("group"), entry.get("stays", False)
        case "left" | "ended step":
            for unit in story.done:
                if unit.group == entry.get("group"):
                    unit.left = unit.stays = entry["what"] == "left"
        case "over" if story.done:
            last = story.done[-1]
            last.state, last.why, last.figures = entry["state"], entry.get("why", ""), entry.get("figures", {})
        case "undone":
            for unit in story.current_start_units:
                unit.undone = unit.undone or entry.get("step") in (None, unit.step)
        case "not undone":
            story.not_undone.append(entry["which"])
        case "note":
            story.notes.append(entry["text"])
        case "ended":
            story.ended, story.why = entry["state"], entry.get("why", "")
