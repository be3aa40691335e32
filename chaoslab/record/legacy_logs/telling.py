"""Turns one run of the first lab into our own events.

The end of a prompt is known from agent.log alone: that lab's own count of successes took answers in plain language for
failures. A failed attempt is known from a line that its tool was late. Else only the number of attempts of the request
shows it; the failure's kind and time are not known then (`UNTOLD`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from chaoslab.core.events import (
    UNTOLD,
    UNTOLD_S,
    AttemptRef,
    Budget,
    CallFinished,
    CallStarted,
    Effect,
    Event,
    Fallback,
    FaultArmed,
    FaultHealed,
    FaultInjected,
    FaultScheduled,
    FaultWitnessed,
    PromptAttempt,
    PromptFinished,
    PromptStarted,
    Retry,
    RunFinished,
    RunStarted,
    Usage,
)
from chaoslab.record.history import History
from chaoslab.record.legacy_logs.prompts import Asked, answered, asked, text
from chaoslab.record.legacy_logs.runs import Part
from chaoslab.record.legacy_logs.scan import Entry, lasted, number, whole
from chaoslab.record.lines import Record

NEVER_TOLD = (
    FaultScheduled, FaultArmed, FaultInjected, FaultWitnessed, FaultHealed, Usage, Effect, Budget,
)  # fmt: skip
ATTEMPTS_MAX = 100
"""The most attempts of one request; a larger number counts something else."""


def tell(part: Part, *, name: str, notes: Sequence[str], cut: Mapping[str, Sequence[int]]) -> History:
    """The run as a history of that name."""
    end = next((entry for entry in part.info if entry.kind == "end"), None)
    prompts = asked(part)
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


def _count(entry: Entry) -> str:
    succeeded, processed = (whole(entry.data.get(name)) for name in ("success_count", "processed_count"))
    return "" if succeeded is None or processed is None else f"{succeeded} of {processed} prompts"


@dataclass
class _Story:
    """The events so far. `requests` counts each trial's requests to a tool, `late` its failures since the last
    answer."""

    part: Part
    run: str
    began_s: float
    records: list[Record] = field(default_factory=list)
    requests: Counter[tuple[str | None, str]] = field(default_factory=Counter)
    late: Counter[tuple[str | None, str]] = field(default_factory=Counter)

    def add(self, at_s: float, trial: str | None, event: Event, *, writer: str = "info") -> None:
        moment = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        t = round(at_s - self.began_s, 6)
        self.records.append(Record(moment, t, self.run, trial, writer, len(self.records), event))


def _began(part: Part, prompts: Sequence[Asked], end: Entry | None) -> float:
    """The run's first known moment."""
    told = part.when(end, "start") if end else None
    moments = [entry.at_s - (_took(part, entry) or 0.0) for entry in part.info if entry.at_s is not None]
    moments += [prompt.since_s for prompt in prompts]
    first = min(moments, default=0.0)
    return min(first, told) if told is not None else first


def _tell_run(story: _Story, end: Entry | None, prompts: Sequence[Asked]) -> None:
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
        story.began_s, None, RunStarted(seed=None, settings=settings, plan={}, prompts=prompts_asked, now="", model="")
    )
    if end is None:
        return
    at_s = end.at_s or story.began_s
    took_s = lasted(data.get("duration"))
    if took_s is None:
        began_s, ended_s = story.part.when(end, "start"), story.part.when(end, "end")
        took_s = UNTOLD_S if began_s is None or ended_s is None or ended_s < began_s else ended_s - began_s
    counts = [-1 if count is None else count for count in (received, processed, succeeded)]
    story.add(at_s, None, RunFinished(received=counts[0], processed=counts[1], succeeded=counts[2], duration_s=took_s))


def _tell_prompt(story: _Story, prompt: Asked) -> None:
    story.add(prompt.since_s, prompt.trial, PromptStarted(prompt_index=prompt.index, prompt=prompt.text))
    for nth, entry in enumerate(prompt.attempts, 1):
        data, ok = entry.data, answered(entry)
        took_s = lasted(data.get("duration"))
        event = PromptAttempt(
            prompt_index=prompt.index,
            prompt=prompt.text,
            response=text(data.get("response")),
            status="ok" if ok else "error",
            start_time=str(data.get("start_time", "")),
            end_time=str(data.get("end_time", "")),
            duration_s=UNTOLD_S if took_s is None else took_s,
            error_type=str(data.get("error_type") or "none"),
            prompt_attempt=whole(data.get("prompt_attempt_no")) or nth,
            error="" if ok else str(data.get("status", UNTOLD)),
        )
        at_s = story.part.when(entry, "end_time", "start_time")
        story.add(prompt.until_s if at_s is None else at_s, prompt.trial, event, writer="agent")
    last = prompt.attempts[-1] if prompt.attempts else None
    ok, answer = last is not None and answered(last), text(last.data.get("response")) if last else ""
    status = UNTOLD if last is None or (ok and "response" not in last.data) else "ok" if ok else "failed"
    error = str(last.data.get("error_type") or "none") if last and not ok else "none"
    finished = PromptFinished(
        prompt_index=prompt.index, prompt=prompt.text, status=status, answer=answer if ok else "",
        attempts=len(prompt.attempts) or None, duration_s=prompt.took_s, error_type=error,
    )  # fmt: skip
    story.add(prompt.until_s, prompt.trial, finished)


def _tell_call(story: _Story, entry: Entry, trial: str | None) -> None:
    data, at_s = entry.data, entry.at_s or story.began_s
    tool = str(data["tool"]).strip()
    key = (trial, tool)
    request, late = story.requests[key] + 1, story.late[key]

    def at(attempt: int) -> AttemptRef:
        return AttemptRef(trial=trial, target=tool, request=request, attempt=attempt, request_id="")

    def failed(attempt: int, when_s: float, error: str) -> None:
        story.add(when_s, trial, CallFinished(at=at(attempt), tool=tool, ok=False, duration_s=UNTOLD_S, error=error))

    if entry.kind == "late":
        story.late[key] += 1
        failed(late + 1, at_s, "timed_out")
        return
    took_s = _took(story.part, entry)
    began_s = at_s - (took_s or 0.0)
    tries = whole(data.get("total_tool_attempts" if entry.kind == "tool" else "tool_attempts")) or 0
    failures = max(late, (tries if tries <= ATTEMPTS_MAX else 0) - (entry.kind == "tool"))
    for attempt in range(late + 1, failures + 1):
        failed(attempt, began_s, UNTOLD)
    for attempt in range(2, failures + 1 + (entry.kind == "tool")):
        story.add(began_s, trial, Retry(at=at(attempt), tool=tool, wait_s=UNTOLD_S, reason=UNTOLD))
    story.requests[key], story.late[key] = request, 0
    duration_s = UNTOLD_S if took_s is None else took_s
    if entry.kind == "tool":
        story.add(began_s, trial, CallStarted(at=at(failures + 1), tool=tool))
        story.add(at_s, trial, CallFinished(at=at(failures + 1), tool=tool, ok=True, duration_s=duration_s))
    elif data.get("fallback_used", True):
        address = str(data.get("direct_url") or data.get("endpoint") or "")
        story.add(at_s, trial, Fallback(at=at(failures + 1), tool=tool, address=address))
        if (status := data.get("status")) is not None:
            ok = _right(status)
            error = None if ok else text(data.get("message")) or str(status)
            finished = CallFinished(
                at=at(failures + 1), tool=tool, ok=ok, duration_s=duration_s, status=whole(status), error=error,
                via="direct",
            )  # fmt: skip
            story.add(at_s, trial, finished)


def _right(status: Any) -> bool:
    code = whole(status)
    return 200 <= code < 400 if code is not None else str(status).strip().lower() in ("success", "ok", "true")


def _took(part: Part, entry: Entry) -> float | None:
    """The duration of the record's call in seconds."""
    took_s = lasted(entry.data.get("network_latency"))
    began_s, ended_s = part.when(entry, "network_start"), part.when(entry, "network_end")
    if took_s is None and began_s is not None and ended_s is not None and ended_s >= began_s:
        return ended_s - began_s
    return took_s
