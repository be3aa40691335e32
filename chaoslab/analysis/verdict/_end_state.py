"""The end state of a trial beside the right one and the one before: altered and untouched places."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.base.jsonable import DEPTH_MAX, brief

PLACES_MAX = 20
"""The most places of a state that become findings."""
SHOWN = 60
"""The most characters of a value in a finding."""


class _Nothing:
    """The value of a place that the state does not have."""


def compare(before: Any, right: Any, after: Any, *, line: tuple[str, int]) -> list[Finding]:
    """The places where `after` is not `right`: LOST if the place is as it was `before`, else STATE.

    All three are JSON values. `line`: the line of the log that holds the state.
    """
    found = []
    for path, was, wanted, now in islice(_places(before, right, after, "", 0), PLACES_MAX):
        where = path or "it"
        if _alike(was, now):
            text = f"missing: the state's {where} is {_short(now)} as before instead of {_short(wanted)}"
            found.append(Finding(FindingKind.LOST, text, (line,)))
        else:
            found.append(
                Finding(FindingKind.STATE, f"the state's {where} is {_short(now)} instead of {_short(wanted)}", (line,))
            )
    return found


def _places(was: Any, wanted: Any, now: Any, path: str, depth: int) -> Iterator[tuple[str, Any, Any, Any]]:
    """The path and the three values of each place in which the last two differ."""
    if _alike(wanted, now):
        return
    if depth < DEPTH_MAX and isinstance(wanted, dict) and isinstance(now, dict):
        for key in [*wanted, *(key for key in now if key not in wanted)]:
            here = f"{path}.{key}" if path else str(key)
            old = was.get(key, _Nothing) if isinstance(was, dict) else _Nothing
            yield from _places(old, wanted.get(key, _Nothing), now.get(key, _Nothing), here, depth + 1)
    elif depth < DEPTH_MAX and isinstance(wanted, list) and isinstance(now, list):
        for n in range(max(len(wanted), len(now))):
            three = [_item(value, n) for value in (was, wanted, now)]
            yield from _places(three[0], three[1], three[2], f"{path}[{n}]", depth + 1)
    else:
        yield path, was, wanted, now


def _item(value: Any, n: int) -> Any:
    return value[n] if isinstance(value, list) and n < len(value) else _Nothing


def _alike(one: Any, other: Any) -> bool:
    """True if two JSON values are equal; true is not 1, and 1 is 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _short(value: Any) -> str:
    return "nothing" if value is _Nothing else brief(value, SHOWN)
