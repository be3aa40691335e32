"""Structured answers (JSON objects and lists): their fields are values, and no word of them is read."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from chaoslab.base.alike import alike

_FENCED = re.compile(r"\s*```(?:json|JSON)?\s*\n(.*?)\n\s*```\s*", re.DOTALL)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_IDLE = frozenset(["attempt", "attempts", "retry", "retries", "tries", "elapsed", "took", "timestamp"])
_VAGUE = frozenset(["duration", "latency", "ms", "seconds"])
"""Words in keys of what an answer tells of its own making: idle ones, and those that may be what was asked for."""
LACKING = object()
Difference = tuple[str, Any, Any]
"""The path of a place, the expected value there and the given one; `LACKING` if there is none."""


def parse_structure(text: str) -> Any:
    """The object or list of a JSON text, else None."""
    fenced = _FENCED.fullmatch(text)
    text = fenced[1] if fenced else text
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def differences(expected: Any, given: Any) -> list[Difference]:
    """The places in which the two differ, those of idle keys left out."""
    return [place for place in _leaves(expected, given, "") if not _key(place) & _IDLE]


def is_of_making(place: Difference) -> bool:
    """True if a difference may be one of the answer's own making."""
    return bool(_key(place) & _VAGUE)


def _key(place: Difference) -> set[str]:
    return {word.lower() for word in _WORD.findall(place[0].rpartition(".")[2])}


def differences_text(differing: Sequence[Difference]) -> str:
    """The first difference, as part of a line."""
    path, one, other = differing[0]
    more = f" and {len(differing) - 1} more" if differing[1:] else ""
    return f"{path or 'it'} is {_short(other)} instead of {_short(one)}{more}"


def is_number(value: Any) -> bool:
    """True for a number that is no flag."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _leaves(one: Any, other: Any, path: str) -> Iterator[Difference]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            yield from _leaves(one.get(key, LACKING), other.get(key, LACKING), f"{path}.{key}" if path else str(key))
    elif isinstance(one, list) and isinstance(other, list) and one != other and _sorted(one) == _sorted(other):
        yield path, one, other  # if their order counts is not known
    elif isinstance(one, list) and isinstance(other, list):
        for n in range(max(len(one), len(other))):
            pair = [held[n] if n < len(held) else LACKING for held in (one, other)]
            yield from _leaves(pair[0], pair[1], f"{path}[{n}]")
    elif one is not other and (LACKING in (one, other) or not alike(one, other)):
        yield path, one, other


def _sorted(items: list[Any]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)


def _short(value: Any) -> str:
    text = "lacking" if value is LACKING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
