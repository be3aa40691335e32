"""Structured answers (JSON objects and lists): their fields are values, and no word of them is read."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from chaoslab.base.alike import are_equal

# Models put JSON into a block of code.
_FENCED = re.compile(r"\s*```(?:json|JSON)?\s*\n(.*?)\n\s*```\s*", re.DOTALL)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_IDLE = frozenset(["attempt", "attempts", "retry", "retries", "tries", "elapsed", "took", "timestamp"])
_VAGUE = frozenset(["duration", "latency", "ms", "seconds"])
"""Words in keys of what an answer tells of its own making: idle ones, and those that may be what was asked for."""
MISSING = object()
Difference = tuple[str, Any, Any]
"""The path of a place, the expected value there and the given one; `MISSING` if there is none."""


def parse_json_structure(text: str) -> Any:
    """The object or list of a JSON text, else None."""
    fenced = _FENCED.fullmatch(text)
    text = fenced[1] if fenced else text
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def find_differences(expected: Any, actual: Any) -> list[Difference]:
    """The places in which the two differ, those of idle keys left out."""
    return [
        difference
        for difference in _iterate_differences(expected, actual, "")
        if not _split_key_words(difference) & _IDLE
    ]


def has_vague_key(difference: Difference) -> bool:
    """True if a difference may be one of the answer's own making."""
    return bool(_split_key_words(difference) & _VAGUE)


def _split_key_words(difference: Difference) -> set[str]:
    return {word.lower() for word in _WORD.findall(difference[0].rpartition(".")[2])}


def describe_first_difference(found_differences: Sequence[Difference]) -> str:
    """The first difference, as part of a line."""
    path, expected, actual = found_differences[0]
    suffix = f" and {len(found_differences) - 1} more" if found_differences[1:] else ""
    return f"{path or 'it'} is {_render_short_json(actual)} instead of {_render_short_json(expected)}{suffix}"


def is_number(value: Any) -> bool:
    """True for a number that is no flag."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _iterate_differences(expected: Any, actual: Any, path: str) -> Iterator[Difference]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            yield from _iterate_differences(
                expected.get(key, MISSING), actual.get(key, MISSING), f"{path}.{key}" if path else str(key)
            )
    elif (
        isinstance(expected, list)
        and isinstance(actual, list)
        and expected != actual
        and _sort_as_json(expected) == _sort_as_json(actual)
    ):
        yield path, expected, actual  # if their order counts is not known
    elif isinstance(expected, list) and isinstance(actual, list):
        for n in range(max(len(expected), len(actual))):
            pair = [items[n] if n < len(items) else MISSING for items in (expected, actual)]
            yield from _iterate_differences(pair[0], pair[1], f"{path}[{n}]")
    elif expected is not actual and (MISSING in (expected, actual) or not are_equal(expected, actual)):
        yield path, expected, actual


def _sort_as_json(items: list[Any]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)


def _render_short_json(value: Any) -> str:
    text = "lacking" if value is MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
