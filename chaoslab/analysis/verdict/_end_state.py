"""The end state of a trial beside the right one and the one before: places that were altered, and those that were left
undone, in whole or in part."""

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.base.alike import are_equal, spell_canonically
from chaoslab.base.jsonable import DEPTH_MAX, render_brief

PLACES_MAX = 20
"""The most places of a state that become findings."""
SHOWN = 60
"""The most characters of a value in a finding."""


class _Absent:
    """The value of a place that the state does not have."""


class _StateDifference(NamedTuple):
    """A place where the state is not the right one. `kind`: LOST if it is as before or on the way from there to the
    right one, STATE if it is something else, ORDER if a list has the right items in another order."""

    path: str
    was: Any
    wanted: Any
    now: Any
    kind: FindingKind

    def to_finding(self, line: tuple[str, int]) -> Finding:
        location, expected, actual = self.path or "it", _render_short(self.wanted), _render_short(self.now)
        text = f"the state's {location} is {actual} instead of {expected}"
        if self.kind is FindingKind.LOST:
            before = " as before" if _is_equal(self.was, self.now) else f", which was {_render_short(self.was)},"
            text = f"missing: the state's {location} is {actual}{before} instead of {expected}"
        elif self.kind is FindingKind.ORDER:
            text = f"the state's {location} has the right items in another order, {actual} instead of {expected}"
        return Finding(self.kind, text, (line,))


def compare_states(before: Any, right: Any, after: Any, *, line: tuple[str, int]) -> list[Finding]:
    """The places where `after` is not `right`, those first that are not as they were `before`.

    All three are JSON values. `line`: the line of the log that holds the state.
    """
    altered, unfinished = list[Finding](), list[Finding]()
    for difference in _iterate_differences(before, right, after, "", 0):
        bucket = altered if difference.kind is FindingKind.STATE else unfinished
        if len(bucket) < PLACES_MAX:
            bucket.append(difference.to_finding(line))
        if len(altered) == PLACES_MAX:
            break
    return [*altered, *unfinished][:PLACES_MAX]


def _iterate_differences(before: Any, expected: Any, actual: Any, path: str, depth: int) -> Iterator[_StateDifference]:
    if _is_equal(expected, actual):
        return
    if depth < DEPTH_MAX and isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            inner_path = f"{path}.{key}" if path else str(key)
            old = before.get(key, _Absent) if isinstance(before, dict) else _Absent
            yield from _iterate_differences(
                old, expected.get(key, _Absent), actual.get(key, _Absent), inner_path, depth + 1
            )
    elif depth < DEPTH_MAX and isinstance(expected, list) and isinstance(actual, list):
        old = [] if before is _Absent else before
        # It grew or shrank, so an item may stand elsewhere: positions cannot be compared one by one.
        if isinstance(old, list) and not len(old) == len(expected) == len(actual):
            yield from _compare_lists(old, expected, actual, path, depth)
            return
        for n in range(max(len(expected), len(actual))):
            three = [_item_at(value, n) for value in (before, expected, actual)]
            yield from _iterate_differences(three[0], three[1], three[2], f"{path}[{n}]", depth + 1)
    else:
        is_undone = _is_equal(before, actual) or (
            not _is_id_field(path) and _is_partial_change(before, expected, actual)
        )
        yield _StateDifference(path, before, expected, actual, FindingKind.LOST if is_undone else FindingKind.STATE)


def _compare_lists(
    before: Sequence[Any], expected: Sequence[Any], actual: Sequence[Any], path: str, depth: int
) -> Iterator[_StateDifference]:
    """The places of a list that grew or shrank, such as the rows of a table: an item may stand elsewhere because
    another one is missing, so each is looked for in the whole list. A row that stands where it stood is compared field
    by field."""
    spelt_all = [[spell_canonically(item) for item in items] for items in (before, expected, actual)]
    before_counts, expected_counts, actual_counts = map(Counter, spelt_all)
    if expected_counts == actual_counts:
        yield _StateDifference(path, before, expected, actual, FindingKind.ORDER)
    rows = set[int]()
    for n, values in enumerate(zip(before, expected, actual, strict=False)):
        before_name, expected_name, actual_name = (names[n] for names in spelt_all)
        is_changed = not (
            before_counts[actual_name]
            or expected_counts[actual_name]
            or actual_counts[before_name]
            or actual_counts[expected_name]
        )
        if is_changed and _are_all_dicts_or_lists(values):
            rows.add(n)
            yield from _iterate_differences(*values, f"{path}[{n}]", depth + 1)
    for items, names, fewer, surplus in (
        (actual, spelt_all[2], expected_counts, actual_counts),
        (expected, spelt_all[1], actual_counts, expected_counts),
    ):
        seen_counts = Counter[str]()
        for n, (item, actual_name) in enumerate(zip(items, names, strict=True)):
            seen_counts[actual_name] += 1
            if n not in rows and fewer[actual_name] < seen_counts[actual_name] <= surplus[actual_name]:
                is_undone = _lies_between(
                    before_counts[actual_name], actual_counts[actual_name], expected_counts[actual_name]
                )
                expected_item, actual_item = (_Absent, item) if items is actual else (item, _Absent)
                kind = FindingKind.LOST if is_undone else FindingKind.STATE
                yield _StateDifference(
                    f"{path}[{n}]", actual_item if is_undone else _Absent, expected_item, actual_item, kind
                )


def _are_all_dicts_or_lists(values: Sequence[Any]) -> bool:
    return all(isinstance(value, dict) for value in values) or all(isinstance(value, list) for value in values)


def _is_id_field(path: str) -> bool:
    """True if a place holds a name: an id is another one, however near its number is."""
    key = path.rpartition(".")[2].partition("[")[0]
    return key.lower() in ("id", "ids") or key.endswith(("_id", "Id", "ID"))


def _is_partial_change(before: Any, expected: Any, actual: Any) -> bool:
    """True if a value lies on the way from the one before to the right one: a part was done, and nothing else. Of a
    text of several lines, such as a file, some lines are done."""
    if all(isinstance(value, str) for value in (before, expected, actual)) and "\n" in expected:
        before_lines, expected_lines, actual_lines = (Counter(text.splitlines()) for text in (before, expected, actual))
        return actual_lines != expected_lines and all(
            _lies_between(before_lines[line], actual_lines[line], expected_lines[line])
            for line in before_lines | expected_lines | actual_lines
        )
    numbers = [_parse_number(value) for value in (before, expected, actual)]
    if numbers[0] is None or numbers[1] is None or numbers[2] is None:
        return False
    return _lies_between(numbers[0], numbers[2], numbers[1])


def _lies_between(first: Decimal | int, middle: Decimal | int, second: Decimal | int) -> bool:
    return min(first, second) <= middle <= max(first, second)


def _parse_number(value: Any) -> Decimal | None:
    """A number, or a text that is one, as amounts of money often are; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        # By its text, since Decimal(0.1) is not 0.1.
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _item_at(value: Any, n: int) -> Any:
    return value[n] if isinstance(value, list) and n < len(value) else _Absent


def _is_equal(left: Any, right: Any) -> bool:
    return left is right or (left is not _Absent and right is not _Absent and are_equal(left, right))


def _render_short(value: Any) -> str:
    return "nothing" if value is _Absent else render_brief(value, SHOWN)
