"""Reads the logs of the first lab of this kind as a history of our own events. What they lack stays unknown. `scan`
finds the records in the text, `apart` separates the runs of one file, `tell` turns a run into events."""

import json
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any, get_args

from chaoslab.base.files import opened
from chaoslab.base.shapes import DEPTH_MAX, deeper
from chaoslab.core import events
from chaoslab.record.history import History
from chaoslab.record.lines import Record, log_files

# That lab's log is a text with JSON in it, of several runs, in local time, cut at any place, and its fields come and go
# with its version. So most of this finds records and runs; a shape refuses a field that is amiss, where here the rest
# of the record is still to be told.
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
class LegacyRecord:
    """One record, or a plain line about a late tool. `at_s`: its prefix in seconds since 1970, read as UTC. `kind`:
    tool, processed, fallback, end, late (info.log) or attempt (agent.log). `after_cut`: the record before it was cut
    off."""

    kind: str
    at_s: float | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    after_cut: bool = False


def scan(text: str) -> tuple[list[LegacyRecord], list[int]]:
    """The records in the order of the text, and the numbers of the lines in which a cut record begins."""
    entries: list[LegacyRecord] = []
    cut: list[int] = []
    place, line, counted, torn = 0, 1, 0, False
    while match := _START.search(text, place):
        begin, stamp = match.end(), match["stamp"]
        place = begin + (stamp is None)
        if not text.startswith("{", begin):
            late = _LATE.match(text, begin)
            if late:
                entries.append(LegacyRecord("late", moment(stamp), {"tool": late["tool"]}, after_cut=torn))
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
            entries.append(LegacyRecord(kind, moment(stamp), data, after_cut=torn))
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


QUARTER_S = 900.0
SHIFT_MAX_S = 14 * 3600.0


@dataclass
class LegacyRun:
    """The records of one run, by file. `shift_s` moves times with a zone to the local time of the prefixes."""

    info: list[LegacyRecord]
    attempts: list[LegacyRecord] = field(default_factory=list)
    shift_s: float = 0.0

    def when(self, entry: LegacyRecord, *names: str) -> float | None:
        """The first of these moments that the record has."""
        told = (moment(entry.data.get(name), shift_s=self.shift_s) for name in names)
        return next((at_s for at_s in told if at_s is not None), None)


def apart(entries: Sequence[LegacyRecord]) -> list[LegacyRun]:
    """The runs, the oldest first."""
    shift_s = _shift(entries)
    info = [entry for entry in entries if entry.kind != "attempt"]
    parts = [LegacyRun(info[a:b], shift_s=shift_s) for a, b in _between(_beginnings(info), len(info))]
    attempts = [entry for entry in entries if entry.kind == "attempt"]
    if not parts:
        return [LegacyRun([], attempts[a:b], shift_s) for a, b in _between(_asked_again(attempts), len(attempts))]
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


def _beginnings(info: Sequence[LegacyRecord]) -> list[int]:
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


def _again(entry: LegacyRecord, last: LegacyRecord) -> bool:
    count, before = whole(entry.data.get("processed_count")), whole(last.data.get("processed_count"))
    if count is not None and before is not None:
        return count <= before
    index, former = whole(entry.data.get("prompt_index")), whole(last.data.get("prompt_index"))
    return index is not None and former is not None and index < former


def _joint(info: Sequence[LegacyRecord], last: int, place: int) -> int:
    """The place where a new run begins, between the last prompt of one run and the first of the next."""
    span = range(last + 1, place + 1)
    torn = [n for n in span if info[n].after_cut]
    return torn[-1] if torn else max(span, key=lambda n: (info[n].at_s or 0.0) - (info[n - 1].at_s or 0.0))


def _asked_again(attempts: Sequence[LegacyRecord]) -> list[int]:
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


def _shift(entries: Sequence[LegacyRecord]) -> float:
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


SLACK_S = 1.0
"""The most seconds that a prompt may be marked as processed before its last attempt is logged."""


@dataclass(frozen=True)
class LegacyPrompt:
    """One prompt. `since_s` and `until_s` are its first and last known moments. `took_s` may be unknown
    (`UNTOLD_S`)."""

    trial: str
    index: int
    text: str
    attempts: tuple[LegacyRecord, ...]
    since_s: float
    until_s: float
    took_s: float


def prompts_of(part: LegacyRun) -> list[LegacyPrompt]:
    """The prompts of a run in the order in which they ended."""
    groups = _groups(part)
    open_ = list(groups)
    pairs: list[tuple[LegacyRecord | None, tuple[LegacyRecord, ...]]] = []
    for entry in (e for e in part.info if e.kind == "processed"):
        at_s = entry.at_s or 0.0
        while open_ and len(open_) > 1 and at_s >= _ended(part, open_[1], at_s + 1.0):
            pairs.append((None, open_.pop(0)))  # this one was never marked as processed
        mine = open_.pop(0) if open_ and _ended(part, open_[0], at_s) <= at_s + SLACK_S else ()
        pairs.append((entry, mine))
    pairs += [(None, group) for group in open_]
    return _named(part, pairs)


def _named(part: LegacyRun, pairs: list[tuple[LegacyRecord | None, tuple[LegacyRecord, ...]]]) -> list[LegacyPrompt]:
    found: list[LegacyPrompt] = []
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
            LegacyPrompt(
                f"p{index}.r{repeats[index]}",
                index,
                group[0].data["prompt"] if group else "",
                group,
                before_s if began_s is None else began_s,
                until_s,
                _tried_for(part, group),
            )
        )
    return found


def _groups(part: LegacyRun) -> list[tuple[LegacyRecord, ...]]:
    """Groups of successive attempts at the same prompt. An attempt number that does not rise begins a new group."""
    groups: list[list[LegacyRecord]] = []
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


def _ended(part: LegacyRun, group: tuple[LegacyRecord, ...], otherwise_s: float) -> float:
    moments = [at_s for e in group if (at_s := part.when(e, "end_time", "start_time")) is not None]
    return max(moments, default=otherwise_s)


def _tried_for(part: LegacyRun, group: tuple[LegacyRecord, ...]) -> float:
    """The seconds from the first attempt's start to the last one's end, or else the sum of their durations."""
    began_s = part.when(group[0], "start_time") if group else None
    ended_s = part.when(group[-1], "end_time") if group else None
    if began_s is not None and ended_s is not None and ended_s >= began_s:
        return ended_s - began_s
    durations = [lasted(entry.data.get("duration")) for entry in group]
    known = [duration_s for duration_s in durations if duration_s is not None]
    return sum(known) if group and len(known) == len(group) else events.UNTOLD_S


def answered(entry: LegacyRecord) -> bool:
    """Tells if the attempt ended with an answer. A "validation error" with a response is an answer in plain
    language."""
    status, response = entry.data.get("status"), text(entry.data.get("response"))
    if status is None or str(status).strip().lower() == "validation error":
        return bool(response.strip())
    return _right(status)


def text(value: Any) -> str:
    """A field that should be text, as text."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


NEVER_TOLD = (*get_args(events.Stage), events.Usage, events.Effect, events.Budget)
ATTEMPTS_MAX = 100
"""The most attempts of one request; a larger number counts something else."""


def tell(part: LegacyRun, *, name: str, notes: Sequence[str], cut: Mapping[str, Sequence[int]]) -> History:
    """The run as a history of that name."""
    end = next((entry for entry in part.info if entry.kind == "end"), None)
    prompts = prompts_of(part)
    story = _Story(part, name, _began(part, prompts, end))
    _tell_run(story, end, prompts)
    for prompt in prompts:
        _tell_prompt(story, prompt)
    ends = list(accumulate((prompt.until_s for prompt in prompts), max))
    for entry in part.info:
        if entry.kind in ("late", "tool", "fallback"):  # a call belongs to the prompt that ended next
            place = bisect_left(ends, entry.at_s or story.began_s)
            _tell_call(story, entry, prompts[place].trial if place < len(prompts) else None)
    counted = [_count(entry) for entry in part.info if entry.kind == "processed"]
    own = [f"that lab itself counted {counted[-1]} as successes"] if counted and counted[-1] else []
    return History(story.records, cut=cut, unknown=NEVER_TOLD, notes=[*notes, *own])


def _count(entry: LegacyRecord) -> str:
    succeeded, processed = (whole(entry.data.get(name)) for name in ("success_count", "processed_count"))
    return "" if succeeded is None or processed is None else f"{succeeded} of {processed} prompts"


@dataclass
class _Story:
    """The events so far. `requests` counts each trial's requests to a tool, `late` its failures since the last
    answer."""

    part: LegacyRun
    run: str
    began_s: float
    records: list[Record] = field(default_factory=list)
    requests: Counter[tuple[str | None, str]] = field(default_factory=Counter)
    late: Counter[tuple[str | None, str]] = field(default_factory=Counter)

    def add(self, at_s: float, trial: str | None, event: events.Event, *, writer: str = "info") -> None:
        moment = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        t = round(at_s - self.began_s, 6)
        self.records.append(Record(moment, t, self.run, trial, writer, len(self.records), event))


def _began(part: LegacyRun, prompts: Sequence[LegacyPrompt], end: LegacyRecord | None) -> float:
    """The run's first known moment."""
    told = part.when(end, "start") if end else None
    moments = [entry.at_s - (_took(part, entry) or 0.0) for entry in part.info if entry.at_s is not None]
    moments += [prompt.since_s for prompt in prompts]
    first = min(moments, default=0.0)
    return min(first, told) if told is not None else first


def _tell_run(story: _Story, end: LegacyRecord | None, prompts: Sequence[LegacyPrompt]) -> None:
    data = end.data if end else {}
    stated = data.get("configuration")
    stated = stated if isinstance(stated, Mapping) else {}
    settings: dict[str, Any] = {}
    for own, name in (
        ("toxic_probability", "TOXIC_PROB"),
        ("tool_limit", "TOOL_LIMIT"),
        ("prompt_limit", "PROMPT_LIMIT"),
    ):
        if (value := number(stated.get(own))) is not None:
            settings[name] = value
    if "failure_probability" in stated:
        settings["failure_probability"] = stated["failure_probability"]
    received, processed, succeeded = (
        whole(data.get(f"# of {what}")) for what in ("requests received", "requests processed", "successful requests")
    )
    prompts_asked = len(prompts) if received is None else received
    story.add(
        story.began_s,
        None,
        events.RunStarted(seed=None, settings=settings, plan={}, prompts=prompts_asked, now="", model=""),
    )
    if end is None:
        return
    at_s = end.at_s or story.began_s
    took_s = lasted(data.get("duration"))
    if took_s is None:
        began_s, ended_s = story.part.when(end, "start"), story.part.when(end, "end")
        took_s = events.UNTOLD_S if began_s is None or ended_s is None or ended_s < began_s else ended_s - began_s
    counts = [-1 if count is None else count for count in (received, processed, succeeded)]
    story.add(
        at_s, None, events.RunFinished(received=counts[0], processed=counts[1], succeeded=counts[2], duration_s=took_s)
    )


def _tell_prompt(story: _Story, prompt: LegacyPrompt) -> None:
    story.add(prompt.since_s, prompt.trial, events.PromptStarted(prompt_index=prompt.index, prompt=prompt.text))
    for nth, entry in enumerate(prompt.attempts, 1):
        data, ok = entry.data, answered(entry)
        took_s = lasted(data.get("duration"))
        event = events.PromptAttempt(
            prompt_index=prompt.index,
            prompt=prompt.text,
            response=text(data.get("response")),
            status="ok" if ok else "error",
            start_time=str(data.get("start_time", "")),
            end_time=str(data.get("end_time", "")),
            duration_s=events.UNTOLD_S if took_s is None else took_s,
            error_type=str(data.get("error_type") or "none"),
            prompt_attempt=whole(data.get("prompt_attempt_no")) or nth,
            error="" if ok else str(data.get("status", events.UNTOLD)),
        )
        at_s = story.part.when(entry, "end_time", "start_time")
        story.add(prompt.until_s if at_s is None else at_s, prompt.trial, event, writer="agent")
    last = prompt.attempts[-1] if prompt.attempts else None
    ok, answer = last is not None and answered(last), text(last.data.get("response")) if last else ""
    status = events.UNTOLD if last is None or (ok and "response" not in last.data) else "ok" if ok else "failed"
    error = str(last.data.get("error_type") or "none") if last and not ok else "none"
    finished = events.PromptFinished(
        prompt_index=prompt.index, prompt=prompt.text, status=status, answer=answer if ok else "",
        attempts=len(prompt.attempts) or None, duration_s=prompt.took_s, error_type=error,
    )  # fmt: skip
    story.add(prompt.until_s, prompt.trial, finished)


def _tell_call(story: _Story, entry: LegacyRecord, trial: str | None) -> None:
    data, at_s = entry.data, entry.at_s or story.began_s
    tool = str(data["tool"]).strip()
    key = (trial, tool)
    request, late = story.requests[key] + 1, story.late[key]

    def at(attempt: int) -> events.AttemptRef:
        return events.AttemptRef(trial=trial, target=tool, request=request, attempt=attempt, request_id="")

    def failed(attempt: int, when_s: float, error: str) -> None:
        story.add(
            when_s,
            trial,
            events.CallFinished(at=at(attempt), tool=tool, ok=False, duration_s=events.UNTOLD_S, error=error),
        )

    if entry.kind == "late":
        story.late[key] += 1
        failed(late + 1, at_s, "timed_out")
        return
    took_s = _took(story.part, entry)
    began_s = at_s - (took_s or 0.0)
    tries = whole(data.get("total_tool_attempts" if entry.kind == "tool" else "tool_attempts")) or 0
    failures = max(late, (tries if tries <= ATTEMPTS_MAX else 0) - (entry.kind == "tool"))
    for attempt in range(late + 1, failures + 1):
        failed(attempt, began_s, events.UNTOLD)
    for attempt in range(2, failures + 1 + (entry.kind == "tool")):
        story.add(began_s, trial, events.Retry(at=at(attempt), tool=tool, wait_s=events.UNTOLD_S, reason=events.UNTOLD))
    story.requests[key], story.late[key] = request, 0
    duration_s = events.UNTOLD_S if took_s is None else took_s
    if entry.kind == "tool":
        story.add(began_s, trial, events.CallStarted(at=at(failures + 1), tool=tool))
        story.add(at_s, trial, events.CallFinished(at=at(failures + 1), tool=tool, ok=True, duration_s=duration_s))
    elif data.get("fallback_used", True):
        address = str(data.get("direct_url") or data.get("endpoint") or "")
        story.add(at_s, trial, events.Fallback(at=at(failures + 1), tool=tool, address=address))
        if (status := data.get("status")) is not None:
            ok = _right(status)
            error = None if ok else text(data.get("message")) or str(status)
            finished = events.CallFinished(
                at=at(failures + 1), tool=tool, ok=ok, duration_s=duration_s, status=whole(status), error=error,
                via="direct",
            )  # fmt: skip
            story.add(at_s, trial, finished)


def _right(status: Any) -> bool:
    code = whole(status)
    return 200 <= code < 400 if code is not None else str(status).strip().lower() in ("success", "ok", "true")


def _took(part: LegacyRun, entry: LegacyRecord) -> float | None:
    """The duration of the record's call in seconds."""
    took_s = lasted(entry.data.get("network_latency"))
    began_s, ended_s = part.when(entry, "network_start"), part.when(entry, "network_end")
    if took_s is None and began_s is not None and ended_s is not None and ended_s >= began_s:
        return ended_s - began_s
    return took_s


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
