"""The troubles of a structured answer: flags, states, errors, and values that are lacking."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from chaoslab.analysis.stance.clauses import Clause, clauses

_BAD = re.compile(r"\s*(?:error|fail\w*|denied|rejected|refused|aborted)\b", re.IGNORECASE)
_OUTCOME = {"status", "state", "result", "outcome"}
_GOOD = {"success", "ok", "done", "succeeded", "completed", "complete", "finished", "accepted"}
_YES = {"ok", "success", "succeeded", "done", "completed", "fresh", "current", "verified", "found", "available", "sent"}
_NO = {"stale", "cached", "failed", "outdated", "partial", "unknown", "uncertain", "timed_out", "timeout"}
_TROUBLES = {"error", "errors", "failure", "failures", "failed", "exception"}
_HELD = {"answer", "value", "result", "data", "figure", "price", "temperature"}


def structure(text: str) -> Any:
    """The object or list of a JSON text, else None."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def of_structure(held: Any) -> Iterator[Clause]:
    """The troubles of a structured answer: flags, states, errors, and values that are lacking."""
    if isinstance(held, list):
        for each in held:
            yield from of_structure(each)
    if not isinstance(held, dict):
        return
    keys = {str(key).casefold(): value for key, value in held.items()}
    well = any(keys.get(key) is True for key in _YES) or any(
        isinstance(keys.get(key), str) and keys[key].casefold() in _GOOD for key in _OUTCOME
    )
    for key, value in keys.items():
        if key.startswith(("last_", "first_", "previous_")):  # of an attempt that was not the last
            continue
        text = f"{key}: {value}"
        if isinstance(value, dict | list):
            if key in _TROUBLES and value and not well:
                yield Clause(text, True, False, False, False)
            else:
                yield from of_structure(value)
        elif isinstance(value, str):
            if well and key not in _HELD:
                continue
            told = [c for c in clauses(value) if c.trouble]
            if _BAD.match(value):
                text = f"{key}: failed"
            if (key in _TROUBLES and value.strip()) or told:
                yield Clause(text, True, any(c.doubt for c in told) and key not in _TROUBLES, False, False)
        elif (key in _YES and value in (False, None)) or (key in _NO and value is True):
            yield Clause(text, True, value is None, False, False)
        elif value is None and not well and key not in _TROUBLES:
            yield Clause(text, True, False, False, False)
