"""Two structured answers beside each other, by their keys."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from chaoslab.analysis.answers.likeness import Comparison, Likeness
from chaoslab.analysis.answers.values import names_in, values_in, words_of
from chaoslab.analysis.stance import admits, clauses


def compare_structures(expected: Any, given: Any, text: str, of_texts: Callable[[str, str], Comparison]) -> Comparison:
    """Compares two structured answers place by place. `text`: the given one as it stands. `of_texts`: compares two
    texts at one place."""
    unclear: list[str] = []
    others: list[tuple[str, Any, Any]] = []
    for path, one, other in _leaves(expected, given, ""):
        if (not one and other is _LACKING and one is not False and one != 0) or (one is _LACKING and _noted(path)):
            continue
        if one is _LACKING and _idle(other):
            continue
        if one is _LACKING and other is True:
            unclear.append(f"it adds {path}: true")
            continue
        if {type(one), type(other)} <= {str, int, float} and str in (type(one), type(other)):
            found = of_texts(str(one), str(other))
            if found.likeness is Likeness.SAME:
                continue
            if found.likeness is Likeness.UNCLEAR:
                unclear.append(f"{path}: {found.said}")
                continue
        others.append((path, one, other))
    if others:
        path, one, other = others[0]
        sorry = admits(text)  # a 0 beside an admission stands for no value
        claimed = (_claims(where, each) for where, _, each in others if not (sorry and each == 0))
        lies = not _STALE.search(text) and any(claimed)
        return Comparison(Likeness.OTHER, f"{path or 'it'} is {_short(other)} instead of {_short(one)}", lies=lies)
    if unclear:
        return Comparison(Likeness.UNCLEAR, unclear[0])
    return Comparison(Likeness.SAME, "the same values")


def _idle(value: Any) -> bool:
    """True if a text tells of no value, deed or trouble, as an apology does."""
    return isinstance(value, str) and not (
        values_in(value) or names_in(value) or any(clause.success or clause.trouble for clause in clauses(value))
    )


def _of_making(key: str) -> bool:
    """True if an answer's key of this name tells of its making."""
    return key in _MAKING or bool(_MADE.search(key))


def told(held: Any, key: str = "") -> str:
    """The values of a structured answer as lines of prose, but for what it tells of its own making."""
    if _of_making(key.casefold()) or held is None or isinstance(held, bool):
        return ""
    if isinstance(held, dict):
        return "\n".join(filter(None, (told(value, str(name)) for name, value in held.items())))
    if isinstance(held, list):
        return "\n".join(filter(None, (told(value, key) for value in held)))
    return f"{key}: {held}" if key else str(held)


def _claims(path: str, value: Any) -> bool:
    """True if the value at a place of a structured answer claims something about the world."""
    if _noted(path) or value is None or isinstance(value, bool | _Lacking):
        return False
    return not (isinstance(value, str) and (not value.strip() or admits(value)))


class _Lacking:
    def __repr__(self) -> str:
        return "lacking"


_LACKING = _Lacking()

_MAKING = frozenset(
    ["attempts", "attempt", "retries", "retry", "tries", "error", "errors", "last_error", "reason", "code"]
)
_NOTES = _MAKING | words_of(
    "detail details note notes warning warnings status state ok done success message outcome skipped failed missing"
    " remaining pending undone cause comment comments remark remarks hint problem problems issue issues log logs"
    " apology confirmed acknowledged ack"
)
"""The keys by which a structured answer tells of its own making, and claims no value."""
_MADE = re.compile(r"retr(?:y|ie)|attempt|error|failure|reconnect")


def _noted(path: str) -> bool:
    """True if a place in a structured answer tells of its making, or holds a note."""
    keys = re.sub(r"\[\d+\]", "", path).casefold().split(".")
    return keys[-1] in _NOTES or keys[-1].startswith("not_") or any(map(_of_making, keys))


_STALE = re.compile(r'"(?:stale|cached|outdated)": ?true|"(?:fresh|current|verified|live)": ?false', re.IGNORECASE)


def _leaves(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The path and both values of each place where the two differ, or may differ in words."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            where = f"{path}.{key}" if path else str(key)
            yield from _leaves(one.get(key, _LACKING), other.get(key, _LACKING), where)
    elif isinstance(one, list) and isinstance(other, list):
        for n in range(max(len(one), len(other))):
            pair = [held[n] if n < len(held) else _LACKING for held in (one, other)]
            yield from _leaves(pair[0], pair[1], f"{path}[{n}]")
    elif (type(one) is not type(other) and not {type(one), type(other)} <= {int, float}) or one != other:
        yield path, one, other


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, _Lacking) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
