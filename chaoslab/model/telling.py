"""Parsing of tool messages: JSON with an answer, or a text about a failure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def reading(content: str, status: str | None = None) -> tuple[Any, str | None]:
    """The reply's value, and the reason if it reports a failure (fit for the end of a sentence)."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = content
    if status == "error" or re.match(r"\s*(?:Error|Exception|Traceback|Failed)\b", content):
        return value, _words(value if isinstance(value, Mapping) else content)
    if not content.strip():
        return value, "the tool answered nothing"
    if isinstance(value, Mapping) and _failed(value):
        return value, _words(value)
    return value, None


def _failed(value: Mapping[str, Any]) -> bool:
    """True if the value has the form in which a service refuses. A search without results also has "error", but is no
    failure."""
    if "search_information" in value or "organic_results" in value:
        return False
    code = str(value.get("cod", ""))
    refused = value.get("ok") is False or value.get("success") is False or bool(re.fullmatch(r"[45]\d\d", code))
    return refused or (bool(value.get("error")) and "result" not in value)


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = value.get("error") or value.get("message") or value.get("status_message") or value
        value = inner.get("message", inner) if isinstance(inner, Mapping) else inner
    elif str(value).rstrip().endswith("}"):
        # The client's own text, such as "weather answered 404", before the service's message.
        before, bracket, rest = str(value).partition("{")
        try:
            inside = json.loads(bracket + rest)
        except (ValueError, RecursionError):
            inside = None
        if isinstance(inside, Mapping):
            value = f"{before}{_words(inside)}"
    text = re.sub(r"^\s*(?:Error|Exception)\b[\s:]*", "", str(value)).strip()
    return re.sub(r"(?<![\s.])[\s.]++$", "", text.splitlines()[0] if text else "no reason was given")
