"""The end state of a trial beside the right one and the one before: places that were altered, and those that were left
undone, in whole or in part."""

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.base.alike import alike, spelt
from chaoslab.base.jsonable import DEPTH_MAX, brief

PLACES_MAX = 20
"""The most places of a state that become findings."""
SHOWN = 60
"""The most characters of a value in a finding."""


class _Nothing:
    """The value of a place that the state does not have."""


class _Place(NamedTuple):
    """A place where the state is not the right one. `kind`: LOST if it is as before or on the way from there to the
    right one, STATE if it is something else, ORDER if a list has the right items in another order."""

    path: str
    was: Any
    wanted: Any
    now: Any
    kind: FindingKind

    def finding(self, line: tuple[str, int]) -> Finding:
        where, wanted, now = self.path or "it", _short(self.wanted), _short(self.now)
        text = f"the state's {where} is {now} instead of {wanted}"
        if self.kind is FindingKind.LOST:
            since = " as before" if _equal(self.was, self.now) else f", which was {_short(self.was)},"
            text = f"missing: the state's {where} is {now}{since} instead of {wanted}"
        elif self.kind is FindingKind.ORDER:
            text = f"the state's {where} has the right items in another order, {now} instead of {wanted}"
        return Finding(self.kind, text, (line,))


def compare(before: Any, right: Any, after: Any, *, line: tuple[str, int]) -> list[Finding]:
    """The places where `after` is not `right`, those first that are not as they were `before`.

    All three are JSON values. `line`: the line of the log that holds the state.
    """
    altered, others = list[Finding](), list[Finding]()
    for place in _places(before, right, after, "", 0):
        found = altered if place.kind is FindingKind.STATE else others
        if len(found) < PLACES_MAX:
            found.append(place.finding(line))
        if len(altered) == PLACES_MAX:
            break
    return [*altered, *others][:PLACES_MAX]


def _places(was: Any, wanted: Any, now: Any, path: str, depth: int) -> Iterator[_Place]:
    if _equal(wanted, now):
        return
    if depth < DEPTH_MAX and isinstance(wanted, dict) and isinstance(now, dict):
        for key in [*wanted, *(key for key in now if key not in wanted)]:
            here = f"{path}.{key}" if path else str(key)
            old = was.get(key, _Nothing) if isinstance(was, dict) else _Nothing
            yield from _places(old, wanted.get(key, _Nothing), now.get(key, _Nothing), here, depth + 1)
    elif depth < DEPTH_MAX and isinstance(wanted, list) and isinstance(now, list):
        old = [] if was is _Nothing else was
        # It grew or shrank, so an item may stand elsewhere: positions cannot be compared one by one.
        if isinstance(old, list) and not len(old) == len(wanted) == len(now):
            yield from _items(old, wanted, now, path, depth)
            return
        for n in range(max(len(wanted), len(now))):
            three = [_item(value, n) for value in (was, wanted, now)]
            yield from _places(three[0], three[1], three[2], f"{path}[{n}]", depth + 1)
    else:
        undone = _equal(was, now) or (not _names(path) and _between(was, wanted, now))
        yield _Place(path, was, wanted, now, FindingKind.LOST if undone else FindingKind.STATE)


def _items(was: Sequence[Any], wanted: Sequence[Any], now: Sequence[Any], path: str, depth: int) -> Iterator[_Place]:
    """The places of a list that grew or shrank, such as the rows of a table: an item may stand elsewhere because
    another one is missing, so each is looked for in the whole list. A row that stands where it stood is compared field
    by field."""
    spelt_all = [[spelt(item) for item in items] for items in (was, wanted, now)]
    old, right, here = map(Counter, spelt_all)
    if right == here:
        yield _Place(path, was, wanted, now, FindingKind.ORDER)
    rows = set[int]()
    for n, three in enumerate(zip(was, wanted, now, strict=False)):
        first, wish, name = (names[n] for names in spelt_all)
        changed = not (old[name] or right[name] or here[first] or here[wish])
        if changed and _of_one_kind(three):
            rows.add(n)
            yield from _places(*three, f"{path}[{n}]", depth + 1)
    for items, names, fewer, more in ((now, spelt_all[2], right, here), (wanted, spelt_all[1], here, right)):
        seen = Counter[str]()
        for n, (item, name) in enumerate(zip(items, names, strict=True)):
            seen[name] += 1
            if n not in rows and fewer[name] < seen[name] <= more[name]:
                lost = _amid(old[name], here[name], right[name])
                wants, has = (_Nothing, item) if items is now else (item, _Nothing)
                kind = FindingKind.LOST if lost else FindingKind.STATE
                yield _Place(f"{path}[{n}]", has if lost else _Nothing, wants, has, kind)


def _of_one_kind(three: Sequence[Any]) -> bool:
    return all(isinstance(each, dict) for each in three) or all(isinstance(each, list) for each in three)


def _names(path: str) -> bool:
    """True if a place holds a name: an id is another one, however near its number is."""
    key = path.rpartition(".")[2].partition("[")[0]
    return key.lower() in ("id", "ids") or key.endswith(("_id", "Id", "ID"))


def _between(was: Any, wanted: Any, now: Any) -> bool:
    """True if a value lies on the way from the one before to the right one: a part was done, and nothing else. Of a
    text of several lines, such as a file, some lines are done."""
    if all(isinstance(each, str) for each in (was, wanted, now)) and "\n" in wanted:
        old, right, here = (Counter(text.splitlines()) for text in (was, wanted, now))
        return here != right and all(_amid(old[line], here[line], right[line]) for line in old | right | here)
    numbers = [_number(each) for each in (was, wanted, now)]
    if numbers[0] is None or numbers[1] is None or numbers[2] is None:
        return False
    return _amid(numbers[0], numbers[2], numbers[1])


def _amid(one: Decimal | int, middle: Decimal | int, other: Decimal | int) -> bool:
    return min(one, other) <= middle <= max(one, other)


def _number(value: Any) -> Decimal | None:
    """A number, or a text that is one, as amounts of money often are; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _item(value: Any, n: int) -> Any:
    return value[n] if isinstance(value, list) and n < len(value) else _Nothing


def _equal(one: Any, other: Any) -> bool:
    return one is other or (one is not _Nothing and other is not _Nothing and alike(one, other))


def _short(value: Any) -> str:
    return "nothing" if value is _Nothing else brief(value, SHOWN)
