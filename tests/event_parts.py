"""An event of each kind, and the lines of a log that is wrong in one place."""

import json
from dataclasses import Field, fields
from typing import Any

from chaoslab.core.events import AttemptRef, Event, PromptFinished, RunStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.log import encode_event

ENVELOPE = {"ts", "t", "run", "trial", "writer", "seq", "kind"}
SAMPLES: dict[str, Any] = {
    "Chance": 0.5,
    "AttemptRef": AttemptRef(trial="p1.r1", target="weather", request=3, attempt=2, request_id="id3"),
    "str": "text",
    "int": 3,
    "Count": 3,
    "Seconds": 0.25,
    "Amount": 0.25,
    "Moment": "2026-06-01T09:00:00Z",
    "Planned": {"seed": 1, "injections": [{"name": "wire", "choices": [{"fault": "latency"}], "chance": 0.5}]},
    "Answered": {"status": 200, "body": "{}", "headers": {}},
    "dict[str, Setting]": {"SEED": 7, "TOXICS": [["latency", 1.0]], "TOXIC_TARGETS": ["all"], "TOKEN_LIMIT": None},
    "bool": True,
    "Any": {"city": "Zürich"},
    "list[Any]": [{"prompt": "one"}],
    "dict[str, str]": {"log": "2"},
    "dict[str, Count]": {"manager": 1},
    "dict[str, dict[str, Count]]": {"latency": {"weather": 1}},
    "dict[str, Any]": {"a": [1, None]},
    "list[str]": ["wire", "errors"],
    "list[list[str]]": [["20", "twenty"]],
    "list[list[str]] | None": [["20", "twenty"]],
    "list[dict[str, Any]]": [{"effect": "message_sent"}],
    "list[dict[str, Any]] | None": [{"effect": "message_sent"}],
    "dict[str, str] | None": {"refund": "charge"},
    "dict[str, Any] | None": {"refund": True, "total": 42},
    "list[str] | None": ["set_temperature"],
    "bool | None": True,
    "str | None": "said",
    "int | None": 7,
    "Count | None": 503,
    "Amount | None": None,
    "Seconds | None": 0.25,
}


def run_started(**more: Any) -> RunStarted:
    """The first event of a run, with the fields that a test is about."""
    usual = {"plan": {"seed": 1, "injections": []}, "now": "2026-06-01T09:00:00Z", "model": "chaoslab-offline"}
    return RunStarted(**{"seed": 1, "settings": {}, "prompts": 1, **usual, **more})


def prompt_finished(answer: str = "yes", *, duration_s: float = 1.0, **more: Any) -> PromptFinished:
    """The end of a prompt, with the fields that a test is about."""
    usual = {"prompt_index": 1, "prompt": "?", "status": "ok", "attempts": 1}
    return PromptFinished(answer=answer, duration_s=duration_s, **{**usual, **more})


def story(*events: Event, trial: str = "p1.r1", run: str = "run") -> History:
    """These events, a second apart, in one trial."""
    return History(Record("", float(n), run, trial, "info", n, event) for n, event in enumerate(events))


def call_at(target: str, tool: str, request: int, attempt: int, request_id: str) -> dict[str, Any]:
    """The first fields of an event of a call."""
    at = AttemptRef(target=target, request=request, attempt=attempt, request_id=request_id)
    return {"at": at, "tool": tool}


def fault_at(fault: str, injection: str, target: str, request: int, attempt: int, request_id: str) -> dict[str, Any]:
    """The first fields of a stage of a fault."""
    at = AttemptRef(target=target, request=request, attempt=attempt, request_id=request_id)
    return {"fault": fault, "injection": injection, "at": at}


def sample(kind: type[Event]) -> Event:
    made: list[Field[Any]] = list(fields(kind))  # type: ignore[arg-type]
    return kind(**{field.name: SAMPLES[str(field.type)] for field in made})


def names(kind: type[Event]) -> list[str]:
    """The fields of a kind as a line of the log has them."""
    return [name for name in json.loads(f"{{{encode_event(sample(kind))}") if name != "kind"]
