"""One prompt's story in time order: calls, faults, retries, effects, the answer and the verdict."""

from __future__ import annotations

import json
import math
from typing import Any

from chaoslab.events import (
    UNTOLD,
    Budget,
    CallDisturbed,
    CallFinished,
    CallStarted,
    Effect,
    Event,
    Fallback,
    FaultArmed,
    FaultHealed,
    FaultInjected,
    FaultScheduled,
    FaultUnreached,
    FaultWitnessed,
    PromptAttempt,
    PromptFinished,
    PromptStarted,
    Retry,
    Usage,
)
from chaoslab.events import Warning as Told
from chaoslab.history import History, Record
from chaoslab.judge import judge
from chaoslab.measures.durations import duration

WIDTH = 200


def render(history: History, *, prompt: int | None = None) -> str:
    """The story of one prompt in each of its repeats, or of all prompts; `t` counts from the prompt's start.

    Raises:
        LookupError: the run has no such prompt.
    """
    starts = [
        (record, event)
        for record, event in history.of(PromptStarted)
        if record.trial is not None and prompt in (None, event.prompt_index)
    ]
    if not starts:
        known = sorted({event.prompt_index for _, event in history.of(PromptStarted)})
        there = f"its prompts are {known[0]} to {known[-1]}" if known else "no prompt was started in it"
        raise LookupError(f"this run has no prompt {'' if prompt is None else prompt}: {there}".replace(" :", ":"))
    records: dict[str | None, list[Record]] = {}
    for record in history.records:
        records.setdefault(record.trial, []).append(record)
    return "\n\n".join(_story(start, event, records[start.trial]) for start, event in starts) + "\n"


def _story(start: Record, event: PromptStarted, records: list[Record]) -> str:
    trial = start.trial or ""
    lines = [f"{trial}  prompt {event.prompt_index}: {_flat(event.prompt)}"]
    for record in records:
        said = _said(record.event)
        if said:
            lines.append(f"{record.t - start.t:+10.3f} s  {said}")
    verdict = judge(History(records), trial)
    lines.append(f"{'verdict':>12}  {verdict.outcome}: {_flat(verdict.why)}")
    return "\n".join(lines)


def _said(event: Event) -> str:
    """The event in words; empty for one that tells nothing new."""
    match event:
        case CallStarted():
            return f"call     {_place(event)} {event.tool}({_value(event.arguments)})"
        case CallFinished():
            how = "ok" if event.ok else "FAILED"
            status = "" if event.status is None else f" {event.status}"
            error = f" {_flat(event.error)}" if event.error else ""
            replayed = ", replayed" if event.replayed else ""
            return (
                f"result   {_place(event)} {how}{status}{error} in {_time(event.duration_s)} via {event.via}{replayed}"
            )
        case FaultScheduled():
            return (
                f"fault    {_place(event)} {event.fault} scheduled by {event.injection} {_value(event.params)}".rstrip()
            )
        case FaultArmed():
            return f"fault    {_place(event)} {event.fault} armed on lane {event.lane}"
        case FaultInjected():
            return f"fault    {_place(event)} {event.fault} injected"
        case FaultWitnessed():
            return f"fault    {_place(event)} {event.fault} witnessed: {_flat(event.evidence)}"
        case FaultHealed():
            return f"fault    {_place(event)} {event.fault} healed{'' if event.witnessed else ', NOT WITNESSED'}"
        case FaultUnreached():
            return f"fault    {event.target} {event.request} NOT REACHED by {event.injection}"
        case CallDisturbed():
            return f"lab      {_place(event)} disturbed: {_flat(event.why)}"
        case Retry():
            return f"retry    {_place(event)} after {_wait(event.wait_s)}: {_flat(event.reason)}"
        case Fallback():
            return f"fallback {_place(event)} to {event.address}"
        case Effect():
            return f"effect   {event.target} {event.effect} {_value(event.content)}"
        case _:
            return _said_of_the_prompt(event)


def _said_of_the_prompt(event: Event) -> str:
    match event:
        case Usage():
            return f"usage    model {event.request} {event.prompt_tokens} + {event.completion_tokens} tokens"
        case Budget():
            return f"budget   {event.limit}: {event.spent:g} of {event.allowed:g} ({event.mode})"
        case Told():
            return f"warning  {_flat(event.message)}"
        case PromptAttempt() if event.status != "ok":
            return f"attempt  {event.prompt_attempt} ended with a {event.error_type} error: {_flat(event.error)}"
        case PromptFinished():
            answer = _flat(event.answer) if event.answer.strip() else f"none ({event.error_type} error)"
            answer = "untold in such a log" if event.status == UNTOLD else answer
            attempts = UNTOLD if event.attempts is None else event.attempts
            return f"answer   after {_time(event.duration_s)}, {attempts} attempts: {answer}"
        case _:
            return ""


def _place(event: Any) -> str:
    return f"{event.target} {event.request}.{event.attempt}"


def _time(duration_s: float) -> str:
    return "untold time" if math.isnan(duration_s) else duration(duration_s)


def _wait(wait_s: float) -> str:
    return "untold time" if math.isnan(wait_s) else f"{wait_s:g} s"


def _value(value: Any) -> str:
    if value in (None, {}):
        return ""
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return f"{len(value['messages'])} messages"
    return _flat(json.dumps(value, ensure_ascii=False))


def _flat(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"
