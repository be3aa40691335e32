"""The end state of a trial beside the right one and the one before: altered and untouched places."""

from collections import Counter
from collections.abc import Iterator, Sequence
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
    """A place where the state is not the right one. `kind`: LOST if it is as before, STATE if it is something else,
    ORDER if a list has the right items in another order."""

    path: str
    wanted: Any
    now: Any
    kind: FindingKind

    def finding(self, line: tuple[str, int]) -> Finding:
        where, wanted, now = self.path or "it", _short(self.wanted), _short(self.now)
        text = f"the state's {where} is {now} instead of {wanted}"
        if self.kind is FindingKind.LOST:
            text = f"missing: the state's {where} is {now} as before instead of {wanted}"
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
        if isinstance(old, list) and not len(old) == len(wanted) == len(now):
            yield from _items(old, wanted, now, path)
            return
        for n in range(max(len(wanted), len(now))):
            three = [_item(value, n) for value in (was, wanted, now)]
            yield from _places(three[0], three[1], three[2], f"{path}[{n}]", depth + 1)
    else:
        yield _Place(path, wanted, now, FindingKind.LOST if _equal(was, now) else FindingKind.STATE)


def _items(was: Sequence[Any], wanted: Sequence[Any], now: Sequence[Any], path: str) -> Iterator[_Place]:
    """The places of a list that grew or shrank, such as the rows of a table: an item may stand elsewhere because
    another one is missing, so each is looked for in the whole list."""
    spelt_all = [[spelt(item) for item in items] for items in (was, wanted, now)]
    old, right, here = map(Counter, spelt_all)
    if right == here:
        yield _Place(path, wanted, now, FindingKind.ORDER)
    for items, names, fewer, more in ((now, spelt_all[2], right, here), (wanted, spelt_all[1], here, right)):
        seen = Counter[str]()
        for n, (item, name) in enumerate(zip(items, names, strict=True)):
            seen[name] += 1
            if fewer[name] < seen[name] <= more[name]:
                between = min(old[name], right[name]) <= here[name] <= max(old[name], right[name])
                wants, has = (_Nothing, item) if items is now else (item, _Nothing)
                kind = FindingKind.LOST if between else FindingKind.STATE
                yield _Place(f"{path}[{n}]", wants, has, kind)


def _item(value: Any, n: int) -> Any:
    return value[n] if isinstance(value, list) and n < len(value) else _Nothing


def _equal(one: Any, other: Any) -> bool:
    return one is other or (one is not _Nothing and other is not _Nothing and alike(one, other))


def _short(value: Any) -> str:
    return "nothing" if value is _Nothing else brief(value, SHOWN)
