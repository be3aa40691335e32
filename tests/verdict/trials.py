"""Trials as events, for the tests of the verdict."""

from typing import Any

from chaoslab.analysis.verdict.judge import judge
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.core.events import Effect, Event, PromptAttempt, PromptFinished, PromptStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record

TRIAL = "p1.r1"


def history(*events: Event, trial: str = TRIAL) -> History:
    return History(Record("", float(n), "run", trial, "info", n, event) for n, event in enumerate(events))


def started(facts: list[list[str]] | None = None, effects: list[dict[str, Any]] | None = None) -> PromptStarted:
    stated = facts is not None or effects is not None
    return PromptStarted(prompt_index=1, prompt="a prompt", facts=facts or [], effects=effects or [], stated=stated)


def compared(answer: str, effects: list[dict[str, Any]] | None = None) -> PromptStarted:
    """A trial whose twin without faults answered so, and had these effects."""
    return PromptStarted(prompt_index=1, prompt="a prompt", facts=[], effects=effects or [], stated=True, twin=answer)


def finished(answer: str, status: str = "ok") -> PromptFinished:
    return PromptFinished(
        prompt_index=1,
        prompt="a prompt",
        status=status,
        answer=answer,
        attempts=1,
        duration_s=1.0,
        error_type="none" if status == "ok" else "model",
    )


def raised(error: str, kind: str = "agent") -> list[Event]:
    """A prompt that was tried once, and ended by this."""
    tried = PromptAttempt(
        prompt_index=1,
        prompt="a prompt",
        response="",
        status="error",
        start_time="",
        end_time="",
        duration_s=1.0,
        error_type=kind,
        prompt_attempt=1,
        error=error,
    )
    return [
        started(),
        tried,
        PromptFinished(
            prompt_index=1, prompt="a prompt", status="failed", answer="", attempts=1, duration_s=1.0, error_type=kind
        ),
    ]


def effect(kind: str, request_id: str = "", **content: Any) -> Effect:
    return Effect(
        target="messaging",
        tool="send_message",
        request_id=request_id,
        effect=kind,
        content=content,
        reply={},
        fingerprint="",
    )


def message(to: str, text: str, request_id: str = "") -> Effect:
    return effect("message_sent", request_id, to=to, text=text)


def meeting(title: str, start: str, request_id: str = "") -> Effect:
    return effect("event_created", request_id, id="e1", title=title, start=start, end="2026-06-02T16:00:00Z")


ANA = {"effect": "message_sent", "to": "ana", "text": "21.4"}
REVIEW = {"effect": "event_created", "title": "Review", "start": "2026-06-02T15:00:00"}


def judged(*events: Event) -> Verdict:
    """The verdict on one trial of these events."""
    return judge(history(*events), TRIAL)
