"""Reads the logs of the first lab of this kind as a history of our own events. What they lack stays unknown.

`scan` finds the records in the text, `runs` separates the runs of one file, `telling` turns a run into events.
"""

from __future__ import annotations

from pathlib import Path

from chaoslab.base.files import opened
from chaoslab.record.history import History
from chaoslab.record.legacy_logs.runs import apart
from chaoslab.record.legacy_logs.scan import scan
from chaoslab.record.legacy_logs.telling import tell
from chaoslab.record.lines import log_files


def read(folder: Path, *, number: int | None = None) -> History | None:
    """A run of that lab from a folder of its logs: the newest, or the one of `number` (from 1). None: no such log is
    here. Raises LookupError: there is no run of that number. OSError: a log cannot be read."""
    scanned = {path.name: scan(_text(path)) for path in log_files(folder)}
    found = [entry for entries, _ in scanned.values() for entry in entries]
    if not any(entry.kind != "late" for entry in found):
        return None
    parts = apart(found)
    chosen = len(parts) if number is None else number
    if not 1 <= chosen <= len(parts):
        raise LookupError(f"{folder}#{chosen}: this log holds {len(parts)} run(s), so #1 to #{len(parts)}")
    notes = ["read from a log of the first lab, which tells of no faults, tokens, effects, seed or model"]
    if len(parts) > 1:
        newest = ", the newest" if chosen == len(parts) else ""
        notes.append(f"{len(parts)} runs are in this log, this is #{chosen}{newest}; {folder}#1 is the first")
    name = folder.resolve().name + (f"#{chosen}" if len(parts) > 1 else "")
    cut = {file: lost for file, (_, lost) in scanned.items() if lost}
    return tell(parts[chosen - 1], name=name, notes=notes, cut=cut)


def _text(path: Path) -> str:
    with opened(path) as file:
        return file.read().decode("utf-8-sig", "replace")
