"""Trials as events, for the tests of the verdict."""

from typing import Any

from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.core.events import Effect, Event, PromptAttempt, PromptFinished, PromptStarted
from chaoslab.record.spoken import JudgeOpinions, Opinion
from tests.event_parts import prompt_finished, story

TRIAL = "p1.r1"


def started(facts: list[list[str]] | None = None, effects: list[dict[str, Any]] | None = None) -> PromptStarted:
    stated = facts is not None or effects is not None
    return PromptStarted(prompt_index=1, prompt="a prompt", facts=facts or [], effects=effects or [], stated=stated)


def compared(answer: str, effects: list[dict[str, Any]] | None = None) -> PromptStarted:
    """A trial whose twin without faults answered so, and had these effects."""
    return PromptStarted(prompt_index=1, prompt="a prompt", facts=[], effects=effects or [], stated=True, twin=answer)


def finished(answer: str, status: str = "ok", error_type: str = "") -> PromptFinished:
    error = error_type or ("none" if status == "ok" else "model")
    return prompt_finished(answer, prompt="a prompt", status=status, error_type=error)


def raised(error: str, kind: str = "agent") -> list[Event]:
    """A prompt that was tried once, and ended by this."""
    times = {"start_time": "", "end_time": ""}
    of: dict[str, Any] = {"response": "", "status": "error", "duration_s": 1.0, "prompt_attempt": 1, **times}
    tried = PromptAttempt(prompt_index=1, prompt="a prompt", error_type=kind, error=error, **of)
    return [started(), tried, finished("", "failed", kind)]


def effect(kind: str, request_id: str = "", **content: Any) -> Effect:
    of: dict[str, Any] = {"target": "messaging", "tool": "send_message", "reply": {}, "fingerprint": ""}
    return Effect(request_id=request_id, effect=kind, content=content, **of)


def message(to: str, text: str, request_id: str = "") -> Effect:
    return effect("message_sent", request_id, to=to, text=text)


def meeting(title: str, start: str, request_id: str = "") -> Effect:
    return effect("event_created", request_id, id="e1", title=title, start=start, end="2026-06-02T16:00:00Z")


ANA = {"effect": "message_sent", "to": "ana", "text": "21.4"}
REVIEW = {"effect": "event_created", "title": "Review", "start": "2026-06-02T15:00:00"}


def judged(*events: Event) -> Verdict:
    """The verdict on one trial of these events."""
    return judge_trial(story(*events), TRIAL)


class _Everything(dict[str, Opinion]):
    """The same reply to each question."""

    def get(self, _key: str, _default: Any = None) -> Any:
        return self["any"]


def everybody_says(said: str) -> JudgeOpinions:
    """The replies of a judge who says this of each answer that it is asked about."""
    return JudgeOpinions(_Everything(any=Opinion(said, "a-model")))
