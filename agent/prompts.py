"""`agent/prompts.json`, or the user's own file: what the agent is asked, and what a right answer must show."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chaoslab.settings import SettingError

FILE = Path(__file__).with_name("prompts.json")
LENGTH_MAX = 20_000


class Lookup(BaseModel):
    """A fact to be learnt from the service itself, around every proxy, when the prompt begins: the value at `path` of its reply."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    tool: str
    arguments: dict[str, Any] = {}
    path: str


class Prompt(BaseModel):
    """One prompt. A fact is a text, a list of texts of which one must show, or a `Lookup`. An effect names what must have happened.

    In facts and effects, `{today}`, `{tomorrow}` … stand for the days of the run (`{day+3}` for the third day from its first).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    prompt: Annotated[str, Field(min_length=1, max_length=LENGTH_MAX)]
    facts: list[str | list[str] | Lookup] = []
    effects: list[dict[str, Any]] = []

    @property
    def stated(self) -> bool:
        return bool(self.model_fields_set & {"facts", "effects"})


def load(path: Path = FILE) -> list[Prompt]:
    """The prompts of that file, in its order.

    Raises:
        SettingError: one line that says what is wrong, and at which prompt.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingError(f"PROMPTS={path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingError(f"PROMPTS={path} is not JSON: {error}") from None
    if not isinstance(data, list) or not data:
        raise SettingError(f'PROMPTS={path} should hold a list like [{{"prompt": "What is 6 times 7?"}}]')
    prompts = []
    for number, entry in enumerate(data, 1):
        try:
            prompts.append(Prompt.model_validate({"prompt": entry} if isinstance(entry, str) else entry))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise SettingError(f"PROMPTS={path}, prompt {number}: {place}: {first['msg']}") from None
        if not prompts[-1].prompt.strip():
            raise SettingError(f"PROMPTS={path}, prompt {number}: prompt: it is empty")
    return prompts


def dated(value: Any, now: datetime) -> Any:
    """The value with `{today}`, `{tomorrow}` and `{day+N}` as dates (2026-06-01)."""
    if isinstance(value, str) and "{" in value:
        days = {"{today}": 0, "{tomorrow}": 1} | {f"{{day+{n}}}": n for n in range(8)}
        for word, n in days.items():
            value = value.replace(word, (now + timedelta(days=n)).strftime("%Y-%m-%d"))
        return value
    if isinstance(value, list):
        return [dated(entry, now) for entry in value]
    if isinstance(value, dict):
        return {key: dated(entry, now) for key, entry in value.items()}
    return value


def at(value: Any, path: str) -> Any:
    """What stands at `items.0.summary` in a reply; None when nothing does."""
    for part in path.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value
