"""One part of the answer contradicts another part of it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any, ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply, find_informative_paths, pick_at_share
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.json_values import Place
from chaoslab.core.untrue import classify_value, is_epoch, make_untrue_value, shift_moment

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

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        lies = [*self._find_length_lies(value), *self._find_sum_lies(value), *self._find_date_order_lies(value)]
        # These contradict whatever else the answer says; equal values and flags may be what they are by chance.
        lies = lies or list(self._find_repeated_value_lies(value)) or list(self._find_flag_lies(value))
        if lies:
            path, lie = pick_at_share(lies, self.point)
            return json_values.replace_at(value, path, lie)
        return self._add_contradiction(value, call)

    def _make_lie(self, value: Any, path: Place) -> Lie:
        return path, make_untrue_value(
            json_values.get_at(value, path), self.severity, Dice("contradiction", self.point, *path)
        )

    def _find_length_lies(self, value: Any) -> Iterator[Lie]:
        for record in json_values.find_records(value):
            fields = json_values.list_entries(json_values.get_at(value, record))
            lengths = {len(entry) for _, entry in fields if json_values.is_list(entry)}
            yield from (
                self._make_lie(value, (*record, key))
                for key, entry in fields
                if type(entry) is int and entry in lengths
            )

    def _find_sum_lies(self, value: Any) -> Iterator[Lie]:
        for record in json_values.find_records(value):
            fields = json_values.list_entries(json_values.get_at(value, record))
            sums = [
                total
                for _, entry in fields
                # A list of one entry is its own sum.
                if json_values.is_list(entry) and len(entry) > 1
                for total in _list_sums(entry)
            ]
            for key, entry in fields:
                # Nearly equal: a sum of floats differs from the service's own in its last digits.
                if type(entry) in (int, float) and any(math.isclose(entry, total) for total in sums):
                    yield self._make_lie(value, (*record, key))

    def _find_date_order_lies(self, value: Any) -> Iterator[Lie]:
        """The later one of two moments side by side, now before the other."""
        for record in json_values.find_records(value):
            inside = [path for path in json_values.find_leaves(json_values.get_at(value, record)) if len(path) <= 2]
            paths = [(*record, *path) for path in inside]
            moments = [path for path in paths if classify_value(json_values.get_at(value, path)) == "moment"]
            for first_path, last_path in pairwise(moments):
                first, last = json_values.get_at(value, first_path), json_values.get_at(value, last_path)
                days = _count_days_between(first, last)
                if days is not None and days >= 0:
                    # By a day at severity 0, by 30 days at 1.
                    by = math.floor(days) + max(1, round(30**self.severity))
                    yield last_path, shift_moment(last, -by)

    def _find_repeated_value_lies(self, value: Any) -> Iterator[Lie]:
        first_paths: dict[str, Place] = {}
        for path in json_values.find_leaves(value):
            leaf = json_values.get_at(value, path)
            if (
                not isinstance(leaf, bool)
                and json_values.dump_canonical(leaf) in first_paths
                and not _is_in_list(value, path)
            ):
                yield self._make_lie(value, path)
            first_paths.setdefault(json_values.dump_canonical(leaf), path)

    def _find_flag_lies(self, value: Any) -> Iterator[Lie]:
        flags = [path for path in json_values.find_leaves(value) if isinstance(json_values.get_at(value, path), bool)]
        # A flag alone contradicts nothing.
        if len(json_values.find_leaves(value)) > len(flags):
            yield from (self._make_lie(value, path) for path in flags)

    def _add_contradiction(self, value: Any, call: Call) -> Any:
        candidates = find_informative_paths(value, call)
        if not candidates:
            return value
        path, lie = self._make_lie(value, pick_at_share(candidates, self.point))
        true = json_values.get_at(value, path)
        holder = json_values.get_at(value, path[:-1]) if path else None
        if isinstance(holder, dict):
            key = f"{path[-1]}_confirmed"
            return value if key in holder else json_values.replace_at(value, path[:-1], {**holder, key: lie})
        if holder is not None and json_values.is_list(holder):
            twice = json_values.build_sequence_like(holder, [*holder, lie])
            return json_values.replace_at(value, path[:-1], twice)
        return json_values.replace_at(value, path, f"{true} {lie}") if isinstance(true, str) else value


def _list_sums(entries: Any) -> Iterator[float]:
    """The sums of a list of numbers, or of each column of a list of records."""
    if all(type(entry) in (int, float) for entry in entries):
        yield sum(entries)
    elif all(isinstance(entry, dict) for entry in entries):
        for key in entries[0]:
            if all(type(entry.get(key)) in (int, float) for entry in entries):
                yield sum(entry[key] for entry in entries)


def _count_days_between(first: Any, last: Any) -> float | None:
    """The days from one moment to another of the same form; None for different forms."""
    try:
        if is_epoch(first):
            # From 10**11 on it is in milliseconds: as seconds that would be beyond the year 5100.
            return float(last - first) / (86_400 if first < 10**11 else 86_400_000)
        if isinstance(first, str):
            first, last = date.fromisoformat(first[:10]), date.fromisoformat(last[:10])
        days: int = (last - first).days
        return days
    except (ValueError, TypeError):  # no day of the calendar; of two forms
        return None


def _is_in_list(value: Any, path: Place) -> bool:
    """True for one of many records, whose fields are equal by chance."""
    return any(json_values.is_list(json_values.get_at(value, path[:depth])) for depth in range(len(path)))
