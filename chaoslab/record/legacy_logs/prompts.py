"""Joins the attempts of agent.log and the processed prompt of info.log that are one prompt."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from chaoslab.core.events import UNTOLD_S
from chaoslab.record.legacy_logs.runs import Part
from chaoslab.record.legacy_logs.scan import Entry, lasted, whole

SLACK_S = 1.0
"""The most seconds that a prompt may be marked as processed before its last attempt is logged."""


@dataclass(frozen=True)
class Asked:
    """One prompt. `since_s` and `until_s` are its first and last known moments. `took_s` may be unknown
    (`UNTOLD_S`)."""

    trial: str
    index: int
    text: str
    attempts: tuple[Entry, ...]
    since_s: float
    until_s: float
    took_s: float


def asked(part: Part) -> list[Asked]:
    """The prompts of a run in the order in which they ended."""
    groups = _groups(part)
    open_ = list(groups)
    pairs: list[tuple[Entry | None, tuple[Entry, ...]]] = []
    for entry in (e for e in part.info if e.kind == "processed"):
        at_s = entry.at_s or 0.0
        while open_ and len(open_) > 1 and at_s >= _ended(part, open_[1], at_s + 1.0):
            pairs.append((None, open_.pop(0)))  # this one was never marked as processed
        mine = open_.pop(0) if open_ and _ended(part, open_[0], at_s) <= at_s + SLACK_S else ()
        pairs.append((entry, mine))
    pairs += [(None, group) for group in open_]
    return _named(part, pairs)


def _named(part: Part, pairs: list[tuple[Entry | None, tuple[Entry, ...]]]) -> list[Asked]:
    found: list[Asked] = []
    repeats: Counter[int] = Counter()
    moments = [entry.at_s for entry in part.info] + [part.when(e, "start_time", "end_time") for e in part.attempts]
    first_s = min((at_s for at_s in moments if at_s is not None), default=0.0)
    for entry, group in pairs:
        told = whole(entry.data.get("prompt_index")) if entry else None
        index = told if told is not None else found[-1].index + 1 if found else 1
        repeats[index] += 1
        before_s = found[-1].until_s if found else first_s
        began_s = part.when(group[0], "start_time") if group else None
        until_s = max(_ended(part, group, before_s), entry.at_s or 0.0 if entry else 0.0)
        found.append(
            Asked(
                f"p{index}.r{repeats[index]}",
                index,
                group[0].data["prompt"] if group else "",
                group,
                before_s if began_s is None else began_s,
                until_s,
                _took(part, group),
            )
        )
    return found


def _groups(part: Part) -> list[tuple[Entry, ...]]:
    """Groups of successive attempts at the same prompt. An attempt number that does not rise begins a new group."""
    groups: list[list[Entry]] = []
    for entry in part.attempts:
        last = groups[-1][-1] if groups else None
        nth = whole(entry.data.get("prompt_attempt_no"))
        before = whole(last.data.get("prompt_attempt_no")) if last else None
        follows = nth is None or before is None or nth > before
        if last is not None and last.data["prompt"] == entry.data["prompt"] and follows:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return [tuple(group) for group in groups]


def _ended(part: Part, group: tuple[Entry, ...], otherwise_s: float) -> float:
    moments = [at_s for e in group if (at_s := part.when(e, "end_time", "start_time")) is not None]
    return max(moments, default=otherwise_s)


def _took(part: Part, group: tuple[Entry, ...]) -> float:
    """The seconds from the first attempt's start to the last one's end, or else the sum of their durations."""
    began_s = part.when(group[0], "start_time") if group else None
    ended_s = part.when(group[-1], "end_time") if group else None
    if began_s is not None and ended_s is not None and ended_s >= began_s:
        return ended_s - began_s
    durations = [lasted(entry.data.get("duration")) for entry in group]
    known = [duration_s for duration_s in durations if duration_s is not None]
    return sum(known) if group and len(known) == len(group) else UNTOLD_S


def answered(entry: Entry) -> bool:
    """Tells if the attempt ended with an answer. A "validation error" with a response is an answer in plain
    language."""
    status, response = entry.data.get("status"), text(entry.data.get("response"))
    code = whole(status)
    if code is not None:
        return 200 <= code < 400
    if status is None:
        return bool(response.strip())
    word = str(status).strip().lower()
    return word in ("ok", "success") or (word == "validation error" and bool(response.strip()))


def text(value: Any) -> str:
    """A field that should be text, as text."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
