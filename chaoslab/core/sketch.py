"""A request to a model in brief: enough to tell which of several is nearest to another one, and how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from chaoslab.base.identity import digest
from chaoslab.base.jsonable import brief, line
from chaoslab.core.dialog import Dialog, words_of

NEWEST = 6
"""The most messages that are told in words."""
WORDS, VALUE = 200, 60
"""The most characters of a message, and of another value."""


def sketch(dialog: Dialog, value: Any) -> dict[str, Any]:
    """The request's messages behind the model's last answer, in words, under `messages`; a digest of those before them
    under `earlier`; every other field as it is if it is short, else as a digest. Empty if the request is no object."""
    if not isinstance(value, Mapping):
        return {}
    messages = dialog.messages(value)
    roles = [dialog.role(each) for each in messages]
    last = max((n for n, role in enumerate(roles, 1) if role == "assistant"), default=0)
    first = max(last, len(messages) - NEWEST)
    newest = zip(roles[first:], messages[first:], strict=True)
    told = [f"{role}: {line(words_of(each), WORDS)}" for role, each in newest]
    rest = {str(key): _short(each) for key, each in value.items() if key != dialog.key}
    return {"messages": told, "earlier": digest(messages[:first]) if first else "none", **rest}


def nearness(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The likeness of two sketches, from 0 to 3: the earlier messages weigh most, then the newest ones, then the
    rest."""
    first, second = ("\n".join(map(str, each.get("messages") or ())) for each in (one, other))
    rest = {*one, *other} - {"messages", "earlier"}
    alike: float = sum(key in one and key in other and one[key] == other[key] for key in rest) / max(1, len(rest))
    before = 1.5 if one.get("earlier") == other.get("earlier") else 0.0
    return before + float(SequenceMatcher(None, first, second).ratio()) + alike / 2


def _short(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= VALUE else f"a text, {digest(value)[:8]}"
    told = brief(value, VALUE + 1)
    return told if len(told) <= VALUE else f"{len(value)} entries, {digest(value)[:8]}"
