"""One part of the answer contradicts another part of it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any, ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply, pick, told_places
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.json_values import Place
from chaoslab.core.untrue import is_epoch, kind, shifted, untrue

Lie = tuple[Place, Any]


@dataclass(frozen=True)
class Contradiction(ChangedReply):
    """Changes one value so that the answer contradicts itself: a count unlike its list, a total unlike its sum, an end
    before its start, two values that were equal, or a flag unlike the rest.

    Without any such relation a second, other value stands beside one. `severity` (0–1) is how far apart both are;
    `point` (0–1) picks one of the relations. Both are drawn if they are -1.
    """

    severity: float = -1.0
    point: float = -1.0
    bounds: ClassVar = {"severity": (-1, 1), "point": (-1, 1)}
    drawn: ClassVar = {"severity": (), "point": ()}
    example = '"contradiction", "get_order", chance=0.2'
    source = "https://github.com/hypothesis/client/issues/5109"

    def changed(self, value: Any, call: Call, context: TrialContext) -> Any:
        lies = [*self._of_lengths(value), *self._of_sums(value), *self._of_order(value)]
        lies = lies or list(self._of_equals(value)) or list(self._of_flags(value))
        if lies:
            place, lie = pick(lies, self.point)
            return json_values.put(value, place, lie)
        return self._said_twice(value, call)

    def _lie(self, value: Any, place: Place) -> Lie:
        return place, untrue(json_values.at(value, place), self.severity, Dice("contradiction", self.point, *place))

    def _of_lengths(self, value: Any) -> Iterator[Lie]:
        for record in json_values.records(value):
            held = json_values.entries(json_values.at(value, record))
            lengths = {len(each) for _, each in held if json_values.is_list(each)}
            yield from (self._lie(value, (*record, key)) for key, each in held if type(each) is int and each in lengths)

    def _of_sums(self, value: Any) -> Iterator[Lie]:
        for record in json_values.records(value):
            held = json_values.entries(json_values.at(value, record))
            sums = [total for _, each in held if json_values.is_list(each) and len(each) > 1 for total in _sums(each)]
            for key, each in held:
                if type(each) in (int, float) and any(math.isclose(each, total) for total in sums):
                    yield self._lie(value, (*record, key))

    def _of_order(self, value: Any) -> Iterator[Lie]:
        """The later one of two moments side by side, now before the other."""
        for record in json_values.records(value):
            inside = [place for place in json_values.leaves(json_values.at(value, record)) if len(place) <= 2]
            whole = [(*record, *place) for place in inside]
            moments = [place for place in whole if kind(json_values.at(value, place)) == "moment"]
            for one, other in pairwise(moments):
                first, last = json_values.at(value, one), json_values.at(value, other)
                days = _days(first, last)
                if days is not None and days >= 0:
                    by = math.floor(days) + max(1, round(30**self.severity))
                    yield other, shifted(last, -by)

    def _of_equals(self, value: Any) -> Iterator[Lie]:
        seen: dict[str, Place] = {}
        for place in json_values.leaves(value):
            held = json_values.at(value, place)
            if not isinstance(held, bool) and json_values.spelt(held) in seen and not _in_list(value, place):
                yield self._lie(value, place)
            seen.setdefault(json_values.spelt(held), place)

    def _of_flags(self, value: Any) -> Iterator[Lie]:
        flags = [place for place in json_values.leaves(value) if isinstance(json_values.at(value, place), bool)]
        if len(json_values.leaves(value)) > len(flags):
            yield from (self._lie(value, place) for place in flags)

    def _said_twice(self, value: Any, call: Call) -> Any:
        among = told_places(value, call)
        if not among:
            return value
        place, other = self._lie(value, pick(among, self.point))
        true = json_values.at(value, place)
        around = json_values.at(value, place[:-1]) if place else None
        if isinstance(around, dict):
            key = f"{place[-1]}_confirmed"
            return value if key in around else json_values.put(value, place[:-1], {**around, key: other})
        if around is not None and json_values.is_list(around):
            twice = json_values.of_type(around, [*around, other])
            return json_values.put(value, place[:-1], twice)
        return json_values.put(value, place, f"{true} {other}") if isinstance(true, str) else value


def _sums(entries: Any) -> Iterator[float]:
    """The sums of a list of numbers, or of each column of a list of records."""
    if all(type(each) in (int, float) for each in entries):
        yield sum(entries)
    elif all(isinstance(each, dict) for each in entries):
        for key in entries[0]:
            if all(type(each.get(key)) in (int, float) for each in entries):
                yield sum(each[key] for each in entries)


def _days(first: Any, last: Any) -> float | None:
    """The days from one moment to another of the same form; None for different forms."""
    if type(first) is not type(last):
        return None
    if is_epoch(first):
        return float(last - first) / (86_400 if first < 10**11 else 86_400_000)
    try:
        if isinstance(first, str):
            first, last = date.fromisoformat(first[:10]), date.fromisoformat(last[:10])
        days: int = (last - first).days
        return days
    except (ValueError, TypeError):  # no day of the calendar; one with a time zone and one without
        return None


def _in_list(value: Any, place: Place) -> bool:
    """True for one of many records, whose fields are equal by chance."""
    return any(json_values.is_list(json_values.at(value, place[:depth])) for depth in range(len(place)))
