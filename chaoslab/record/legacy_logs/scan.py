"""Finds the records of the first lab's logs in their text.

A record is a JSON object over several lines. In info.log it follows `<asctime> [agent] `, in agent.log it stands alone.
A writer that was killed leaves its last record cut, and the next run goes on in the same line. So a record may begin
anywhere in a line. An object inside a record does not match: its line is indented, and quotation marks in a string are
escaped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from chaoslab.base.shapes import DEPTH_MAX, deeper

_START = re.compile(
    r'(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[,.]\d{1,6})?) \[agent\] |^(?=\{)|(?=\{\r?\n  ")', re.MULTILINE
)
_LATE = re.compile(r"Tool (?P<tool>[\w.-]{1,60}) not responding in time")
_OPENED = re.compile(r'\{\s*(?:"|$)')
_CLOCKED = re.compile(r"(?:(?P<h>\d{1,4}):)?(?P<m>\d{1,2}):(?P<s>\d{1,2}(?:\.\d+)?)")
_DECODER = json.JSONDecoder()
LASTS_MAX_S = 1e7
MOMENTS_S = (1e8, 4e9)
"""The range of a moment in seconds since 1970. `LASTS_MAX_S` limits a duration. Other numbers are not taken for one."""


@dataclass(frozen=True)
class Entry:
    """One record, or a plain line about a late tool. `at_s`: its prefix in seconds since 1970, read as UTC. `kind`:
    tool, processed, fallback, end, late (info.log) or attempt (agent.log). `after_cut`: the record before it was cut
    off."""

    kind: str
    at_s: float | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    after_cut: bool = False


def scan(text: str) -> tuple[list[Entry], list[int]]:
    """The records in the order of the text, and the numbers of the lines in which a cut record begins."""
    entries: list[Entry] = []
    cut: list[int] = []
    place, line, counted, torn = 0, 1, 0, False
    while match := _START.search(text, place):
        begin, stamp = match.end(), match["stamp"]
        place = begin + (stamp is None)
        if not text.startswith("{", begin):
            late = _LATE.match(text, begin)
            if late:
                entries.append(Entry("late", moment(stamp), {"tool": late["tool"]}, after_cut=torn))
                torn = False
            continue
        try:
            data, place = _DECODER.raw_decode(text, begin)
            if deeper(data, DEPTH_MAX):
                raise ValueError("nobody nests a record so deep")
        except (ValueError, RecursionError):
            if _OPENED.match(text, begin):
                line, counted = line + text.count("\n", counted, begin), begin
                cut.append(line)
                torn = True
            place = begin + 1
            continue
        kind = _kind(data) if stamp is not None else "attempt" if _is_attempt(data) else None
        if kind:
            entries.append(Entry(kind, moment(stamp), data, after_cut=torn))
            torn = False
    return entries, cut


def _kind(data: Mapping[str, Any]) -> str | None:
    """The kind of a record of info.log, by the fields that only this kind has; None if it is none."""
    if data.get("event_type") == "request_processed":
        return "processed"
    if "configuration" in data or any(key.startswith("# of ") for key in data):
        return "end"
    if isinstance(data.get("tool"), str) and data["tool"].strip():
        if any(key in data for key in ("fallback_used", "direct_url", "prompt_attempts")):
            return "fallback"
        if any(key in data for key in ("network_latency", "network_start", "network_end", "total_tool_attempts")):
            return "tool"
    return None


def _is_attempt(data: Mapping[str, Any]) -> bool:
    fields = ("response", "status", "start_time", "end_time", "error_type", "prompt_attempt_no")
    return isinstance(data.get("prompt"), str) and any(name in data for name in fields)


def number(value: Any) -> float | None:
    """A finite number, also one given as text; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        read = float(value)
    except (ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None


def whole(value: Any) -> int | None:
    """A whole number of 0 or more; else None."""
    read = number(value)
    return int(read) if read is not None and read == int(read) and 0 <= read < 2**53 else None


def lasted(value: Any) -> float | None:
    """A duration in seconds: a number, `1.5 s`, or `0:00:01.5` as Python writes it."""
    if isinstance(value, str):
        value = value.strip().removesuffix("s").rstrip()
        clocked = _CLOCKED.fullmatch(value)
        if clocked:
            return int(clocked["h"] or 0) * 3600 + int(clocked["m"]) * 60 + float(clocked["s"])
    read = number(value)
    return read if read is not None and 0 <= read <= LASTS_MAX_S else None


def moment(value: Any, *, shift_s: float = 0.0) -> float | None:
    """Seconds since 1970 of ISO 8601 text or of a number. Local time is read as UTC; times with a zone are moved by
    `shift_s`."""
    read = number(value)
    if read is None:
        try:
            when = datetime.fromisoformat(value.strip().replace(",", "."))
            local = when.tzinfo is None
            read = (when.replace(tzinfo=UTC) if local else when).timestamp()
        except (AttributeError, ValueError, OverflowError):
            return None
        shift_s = 0.0 if local else shift_s
    return read + shift_s if MOMENTS_S[0] < read < MOMENTS_S[1] else None
