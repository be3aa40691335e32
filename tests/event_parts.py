"""An event of each kind, and the lines of a log that is wrong in one place."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

from chaoslab.core.events import Event

ENVELOPE = {"ts", "t", "run", "trial", "writer", "seq", "kind"}
SAMPLES: dict[str, Any] = {
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
    "dict[str, Any]": {"a": [1, None]},
    "list[str]": ["wire", "errors"],
    "list[list[str]]": [["20", "twenty"]],
    "list[dict[str, Any]]": [{"effect": "message_sent"}],
    "list[dict[str, Any]] | None": [{"effect": "message_sent"}],
    "str | None": "said",
    "int | None": 7,
    "Count | None": 503,
    "Amount | None": None,
}


def sample(kind: type[Event]) -> Event:
    made: list[Field[Any]] = list(fields(kind))  # type: ignore[arg-type]
    return kind(**{field.name: SAMPLES[str(field.type)] for field in made})
