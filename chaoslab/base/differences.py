"""Differences between two values in words: each place with both values, as in "list[0].temperature 12 → 21"."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from chaoslab.base.jsonable import DEPTH_MAX, UNCHANGING, brief, cut, line

SHOWN = 4
"""The most differences that are listed."""
LOOKED_AT = 20_000
"""The most pairs of values that are compared, besides equal numbers and texts."""
VALUE_MAX, KEY_MAX, BEFORE = 60, 40, 20
"""The most characters shown of a value, of a key, and of a long text before the first that differs."""
BRIEF_MAX = 1000
NOTHING = "nothing"


def differences(before: Any, after: Any, *, most: int) -> str:
    """The differences in one line of at most `most` characters; empty if there are none."""
    found = list(islice(_found(before, after, "", 0, iter(range(LOOKED_AT))), SHOWN + 1))
    return cut("; ".join([*found[:SHOWN], *(["…"] if len(found) > SHOWN else [])]), most)


def _found(one: Any, other: Any, path: str, depth: int, budget: Iterator[int]) -> Iterator[str]:
    """The differences of both values, in the order of the first."""
    if _equal(one, other) or next(budget, None) is None:
        return
    if depth < DEPTH_MAX and type(one) is dict and type(other) is dict:
        for key in (*one, *(key for key in other if key not in one)):
            was, now = one.get(key, _Nothing), other.get(key, _Nothing)
            if _equal(was, now):
                continue
            name = line(key, KEY_MAX) if isinstance(key, str) else brief(key, KEY_MAX)
            here = f"{path}.{name}" if path else name
            yield from _found(was, now, here, depth + 1, budget)
    elif depth < DEPTH_MAX and type(one) is list and type(other) is list and len(one) == len(other):
        for n, pair in enumerate(zip(one, other, strict=True)):
            if not _equal(*pair):
                yield from _found(*pair, f"{path}[{n}]", depth + 1, budget)
    elif not _same(one, other):
        yield f"{path} {_parted(one, other)}".lstrip()


class _Nothing:
    """The value of a key that only the other value has."""


def _equal(one: Any, other: Any) -> bool:
    """Tells if both are surely equal, by a quick comparison."""
    return one is other or (type(one) is type(other) and type(one) in UNCHANGING and bool(one == other))


def _same(one: Any, other: Any) -> bool:
    if type(one) in UNCHANGING and type(other) in UNCHANGING:
        return _equal(one, other)
    lengths = [len(value) for value in (one, other) if type(value) is list]
    return len(set(lengths)) < 2 and brief(one, BRIEF_MAX) == brief(other, BRIEF_MAX)


def _parted(one: Any, other: Any) -> str:
    if type(one) is list and type(other) is list and len(one) != len(other):
        return f"{len(one)} → {len(other)}{_left_out(one, other)}"
    texts = _texts(one, other)
    start = max(0, _first_unlike(*texts) - BEFORE) if max(map(len, texts)) > VALUE_MAX else 0
    return " → ".join(_window(text, start) for text in texts)


def _texts(one: Any, other: Any) -> tuple[str, str]:
    """Both values as JSON; two texts without quotation marks, unless they differ in their spaces."""
    if (
        type(one) is str
        and type(other) is str
        and all(text and text == " ".join(text.split()) for text in (one, other))
    ):
        return one, other
    first, second = (NOTHING if value is _Nothing else brief(value, BRIEF_MAX) for value in (one, other))
    return first, second


def _window(text: str, start: int) -> str:
    lead = "…" if start else ""
    return lead + text[start : start + VALUE_MAX] + ("…" if len(text) > start + VALUE_MAX else "")


def _first_unlike(one: str, other: str) -> int:
    """The length of the common start of both texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _left_out(one: Sequence[Any], other: Sequence[Any]) -> str:
    """The entries, counted from 1, that the second list lacks, in words; empty if it has others."""
    if len(other) >= len(one) or len(one) > LOOKED_AT:
        return ""
    gone, at = [], 0
    for number, held in enumerate(one, 1):
        if at < len(other) and (_equal(held, other[at]) or _same(held, other[at])):
            at += 1
        else:
            gone.append(number)
    if at < len(other):
        return ""
    whole = gone[-1] - gone[0] + 1 == len(gone)
    if not whole:
        return f" ({len(gone)} left out)"
    return f" (number {gone[0]} left out)" if len(gone) == 1 else f" (numbers {gone[0]} to {gone[-1]} left out)"
