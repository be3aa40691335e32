"""Separates the runs that were appended to one file.

A run is over at its closing record, or where the count of processed prompts starts again. In the second case it ends at
a record that was cut, or else at the longest pause since its last prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from chaoslab.record.legacy_logs.scan import Entry, moment, whole

QUARTER_S = 900.0
SHIFT_MAX_S = 14 * 3600.0


@dataclass
class Part:
    """The records of one run, by file. `shift_s` moves times with a zone to the local time of the prefixes."""

    info: list[Entry]
    attempts: list[Entry] = field(default_factory=list)
    shift_s: float = 0.0

    def when(self, entry: Entry, *names: str) -> float | None:
        """The first of these moments that the record has."""
        told = (moment(entry.data.get(name), shift_s=self.shift_s) for name in names)
        return next((at_s for at_s in told if at_s is not None), None)


def apart(entries: Sequence[Entry]) -> list[Part]:
    """The runs, the oldest first."""
    shift_s = _shift(entries)
    info = [entry for entry in entries if entry.kind != "attempt"]
    parts = [Part(info[a:b], shift_s=shift_s) for a, b in _between(_beginnings(info), len(info))]
    attempts = [entry for entry in entries if entry.kind == "attempt"]
    if not parts:
        return [Part([], attempts[a:b], shift_s) for a, b in _between(_asked_again(attempts), len(attempts))]
    lasts = [max(entry.at_s or 0.0 for entry in part.info) for part in parts]
    place = 0
    for attempt in attempts:  # those without a moment go with the one before
        at_s = parts[0].when(attempt, "end_time", "start_time")
        while at_s is not None and place < len(parts) - 1 and at_s > lasts[place]:
            place += 1
        parts[place].attempts.append(attempt)
    return parts


def _between(beginnings: Sequence[int], end: int) -> list[tuple[int, int]]:
    return [(a, b) for a, b in zip(beginnings, [*beginnings[1:], end], strict=True) if a < b]


def _beginnings(info: Sequence[Entry]) -> list[int]:
    found, since, last = [0], 0, None
    for place, entry in enumerate(info):
        if place and info[place - 1].kind == "end":
            found.append(place)
            since, last = place, None
        if entry.kind != "processed":
            continue
        if last is not None and _again(entry, last):
            found.append(_joint(info, since, place))
        since, last = place, entry
    return found


def _again(entry: Entry, last: Entry) -> bool:
    count, before = whole(entry.data.get("processed_count")), whole(last.data.get("processed_count"))
    if count is not None and before is not None:
        return count <= before
    index, former = whole(entry.data.get("prompt_index")), whole(last.data.get("prompt_index"))
    return index is not None and former is not None and index < former


def _joint(info: Sequence[Entry], last: int, place: int) -> int:
    """The place where a new run begins, between the last prompt of one run and the first of the next."""
    span = range(last + 1, place + 1)
    torn = [n for n in span if info[n].after_cut]
    return torn[-1] if torn else max(span, key=lambda n: (info[n].at_s or 0.0) - (info[n - 1].at_s or 0.0))


def _asked_again(attempts: Sequence[Entry]) -> list[int]:
    """The beginnings of runs by agent.log alone: a run begins at the first attempt at the very first prompt."""
    if not attempts:
        return []
    first = attempts[0].data
    return [
        n
        for n, entry in enumerate(attempts)
        if not n
        or (
            entry.data["prompt"] == first["prompt"]
            and (whole(entry.data.get("prompt_attempt_no")) or 0) <= (whole(first.get("prompt_attempt_no")) or 0)
        )
    ]


def _shift(entries: Sequence[Entry]) -> float:
    """Seconds by which the prefixes' local time is ahead of UTC, in quarters of an hour, from records with both."""
    ahead = [
        entry.at_s - own_s
        for entry in entries
        if entry.kind in ("tool", "processed")
        and entry.at_s is not None
        and (own_s := moment(entry.data.get("network_end", entry.data.get("timestamp")))) is not None
    ]
    shift_s = round(median(ahead) / QUARTER_S) * QUARTER_S if ahead else 0.0
    return shift_s if abs(shift_s) <= SHIFT_MAX_S else 0.0
