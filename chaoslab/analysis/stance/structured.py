"""The troubles of a structured answer: flags, states, errors, and values that are lacking."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from chaoslab.analysis.stance.clauses import Clause, clauses

_FENCED = re.compile(r"\s*```(?:json|JSON)?\s*\n(.*?)\n\s*```\s*", re.DOTALL)
_ATTEMPTS = re.compile(r"(?:attempts?|tries|retries|calls|history|log)")
_BAD = re.compile(r"\s*(?:error|fail\w*|denied|rejected|refused|aborted)\b", re.IGNORECASE)
_OUTCOME = {"status", "state", "result", "outcome"}
_GOOD = {"success", "ok", "done", "succeeded", "completed", "complete", "finished", "accepted"}
_YES = {
    "ok", "success", "succeeded", "done", "completed", "fresh", "current", "verified", "found", "available",
    "sent", "performed", "executed", "processed", "applied", "created", "booked", "delivered", "live", "confirmed",
    "acknowledged", "ack",
}  # fmt: skip
_KNOWN = {"confirmed", "acknowledged", "ack", "verified"}
"""The keys of what is known of a deed rather than of what was done."""
_NO = {"stale", "cached", "failed", "outdated", "partial", "unknown", "uncertain", "timed_out", "timeout"}
_DEEDS = {"paid", "ordered", "placed", "reserved", "transferred", "submitted"}
"""The keys of things that may be left undone on purpose where others were done."""
_TROUBLES = {
    "error",
    "errors",
    "failure",
    "failures",
    "failed",
    "exception",
    "not_completed",
    "incomplete",
    "not_done",
    "unfinished",
}
_HELD = {"answer", "value", "result", "data", "figure", "price", "temperature"}


def structure(text: str) -> Any:
    """The object or list of a JSON text, else None."""
    fenced = _FENCED.fullmatch(text)
    text = fenced[1] if fenced else text
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return _settled(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _settled(held: Any) -> Any:
    """The same without the records of a list that tell of a failed attempt at what a later record tells of too."""
    if not isinstance(held, list):
        return held
    about = [_about(each) for each in held]
    return [
        each for n, each in enumerate(held) if not (about[n] and about[n] in about[n + 1 :] and any(of_structure(each)))
    ]


def _about(record: Any) -> dict[str, Any]:
    """The subject of a record: its texts that tell neither of an error nor of an outcome."""
    if not isinstance(record, dict):
        return {}
    told = _TROUBLES | _OUTCOME | {"note", "notes", "message", "reason", "detail", "time", "attempt"}
    return {key: value for key, value in record.items() if isinstance(value, str) and key.casefold() not in told}


def of_structure(held: Any, about: str = "") -> Iterator[Clause]:
    """The troubles of a structured answer: flags, states, errors, and values that are lacking. `about`: the keys above;
    the row of a trouble below one names its subject by them and by the texts and numbers beside it."""
    if isinstance(held, list):
        for each in held:
            yield from of_structure(each, about or " ")
    if not isinstance(held, dict):
        return
    keys = {str(key).casefold(): value for key, value in held.items()}
    well = any(keys.get(key) is True for key in _YES) or any(
        isinstance(keys.get(key), str) and keys[key].casefold() in _GOOD for key in _OUTCOME
    )
    beside = [str(value) for value in keys.values() if isinstance(value, str | int | float) and value is not False]
    row = " ".join([about, *beside]) if about else ""
    for key, value in keys.items():
        if key.startswith(("last_", "first_", "previous_")):  # of an attempt that was not the last
            continue
        text = f"{key}: {value}"
        if _ATTEMPTS.fullmatch(key) and isinstance(value, list):
            value = value[-1:]  # the last attempt is what came of it
        if isinstance(value, dict | list):
            if (key in _TROUBLES or key.startswith("not_")) and value and not well:
                yield Clause(text, True, False, False, False, row)
            else:
                yield from of_structure(value, f"{about} {key}")
        elif isinstance(value, str):
            if well and key not in _HELD:
                continue
            told = [c for c in clauses(value) if c.trouble]
            if _BAD.match(value):
                text = f"{key}: failed"
            if (key in _TROUBLES and value.strip()) or told:
                yield Clause(text, True, any(c.doubt for c in told) and key not in _TROUBLES, False, False, row)
        elif key in _DEEDS and value is False and not well:
            yield Clause(text, True, False, False, False, row)
        elif (key in _YES and value in (False, None)) or (key in _NO and value is True):
            yield Clause(text, True, value is None or key in _KNOWN, False, False, row)
        elif value is None and not well and key not in _TROUBLES:
            yield Clause(text, True, False, False, False, row)
