"""Differences between two values in words: each place with both values, as in "list[0].temperature 12 → 21"."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from chaoslab.base.jsonable import DEPTH_MAX, UNCHANGING, cut_text, render_brief, to_one_line

SHOWN = 4
"""The most differences that are listed."""
LOOKED_AT = 20_000
"""The most pairs of values that are compared, besides equal numbers and texts."""
VALUE_MAX, KEY_MAX, BEFORE = 60, 40, 20
"""The most characters shown of a value, of a key, and of a long text before the first that differs."""
BRIEF_MAX = 1000
NOTHING = "nothing"


def describe_differences(before: Any, after: Any, *, most: int) -> str:
    """The differences in one line of at most `most` characters; empty if there are none."""
    # One more than is shown tells that there are more.
    pieces = list(islice(_iterate_differences(before, after, "", 0, iter(range(LOOKED_AT))), SHOWN + 1))
    return cut_text("; ".join([*pieces[:SHOWN], *(["…"] if len(pieces) > SHOWN else [])]), most)


def _iterate_differences(before: Any, after: Any, path: str, depth: int, budget: Iterator[int]) -> Iterator[str]:
    """The differences of both values, in the order of the first."""
    if _are_surely_equal(before, after) or next(budget, None) is None:
        return
    if depth < DEPTH_MAX and type(before) is dict and type(after) is dict:
        for key in (*before, *(key for key in after if key not in before)):
            was, now = before.get(key, _Nothing), after.get(key, _Nothing)
            if _are_surely_equal(was, now):
                continue
            name = to_one_line(key, KEY_MAX) if isinstance(key, str) else render_brief(key, KEY_MAX)
            inner_path = f"{path}.{name}" if path else name
            yield from _iterate_differences(was, now, inner_path, depth + 1, budget)
    elif depth < DEPTH_MAX and type(before) is list and type(after) is list and len(before) == len(after):
        for n, pair in enumerate(zip(before, after, strict=True)):
            if not _are_surely_equal(*pair):
                yield from _iterate_differences(*pair, f"{path}[{n}]", depth + 1, budget)
    elif not _are_rendered_alike(before, after):
        yield f"{path} {_render_change(before, after)}".lstrip()


class _Nothing:
    """The value of a key that only the other value has."""


def _are_surely_equal(left: Any, right: Any) -> bool:
    """Tells if both are surely equal, by a quick comparison."""
    return left is right or (type(left) is type(right) and type(left) in UNCHANGING and bool(left == right))


def _are_rendered_alike(left: Any, right: Any) -> bool:
    if type(left) in UNCHANGING and type(right) in UNCHANGING:
        return _are_surely_equal(left, right)
    lengths = [len(value) for value in (left, right) if type(value) is list]
    return len(set(lengths)) < 2 and render_brief(left, BRIEF_MAX) == render_brief(right, BRIEF_MAX)


def _render_change(before: Any, after: Any) -> str:
    if type(before) is list and type(after) is list and len(before) != len(after):
        return f"{len(before)} → {len(after)}{_describe_missing(before, after)}"
    texts = _render_texts(before, after)
    start = max(0, _common_prefix_length(*texts) - BEFORE) if max(map(len, texts)) > VALUE_MAX else 0
    return " → ".join(_cut_window(text, start) for text in texts)


def _render_texts(before: Any, after: Any) -> tuple[str, str]:
    """Both values as JSON; two texts without quotation marks, unless they differ in their spaces."""
    if (
        type(before) is str
        and type(after) is str
        and all(text and text == " ".join(text.split()) for text in (before, after))
    ):
        return before, after
    first, second = (NOTHING if value is _Nothing else render_brief(value, BRIEF_MAX) for value in (before, after))
    return first, second


def _cut_window(text: str, start: int) -> str:
    lead = "…" if start else ""
    return lead + text[start : start + VALUE_MAX] + ("…" if len(text) > start + VALUE_MAX else "")


def _common_prefix_length(left: str, right: str) -> int:
    """The length of the common start of both texts."""
    low, high = 0, min(len(left), len(right))
    # By halves, since slices are compared in C, and single characters would be in Python.
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if left[low:middle] == right[low:middle] else (low, middle - 1)
    return low


def _describe_missing(before: Sequence[Any], after: Sequence[Any]) -> str:
    """The entries, counted from 1, that the second list lacks, in words; empty if it has others."""
    if len(after) >= len(before) or len(before) > LOOKED_AT:
        return ""
    gone, at = [], 0
    for number, entry in enumerate(before, 1):
        if at < len(after) and (_are_surely_equal(entry, after[at]) or _are_rendered_alike(entry, after[at])):
            at += 1
        else:
            gone.append(number)
    if at < len(after):
        return ""
    is_row = gone[-1] - gone[0] + 1 == len(gone)
    if not is_row:
        return f" ({len(gone)} left out)"
    return f" (number {gone[0]} left out)" if len(gone) == 1 else f" (numbers {gone[0]} to {gone[-1]} left out)"
