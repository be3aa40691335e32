"""A part of the answer is true, and the rest is missing or wrong."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply, find_informative_paths
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.json_values import Place
from chaoslab.core.untrue import make_untrue_value


@dataclass(frozen=True)
class PartialTruth(ChangedReply):
    """Keeps the `share` (0–1) of the records, or of a single record's fields, and changes or takes away the others.

    At least one is kept and one is lost. `how` is "missing", "wrong", or "" to draw one of both. A field of a class or
    a text cannot be missing; it is wrong. `severity` (0–1) is how far off a wrong value is, `point` (0–1) picks the
    ones that stay true; both are drawn if they are -1.
    """

    share: float = 0.5
    severity: float = -1.0
    point: float = -1.0
    how: Literal["", "missing", "wrong"] = ""
    bounds: ClassVar = {"share": (0, 1), "severity": (-1, 1), "point": (-1, 1)}
    drawn: ClassVar = {"severity": (), "point": (), "how": ("missing", "wrong")}
    example = '"partial_truth", "search", how="missing", calls=[1]'
    source = "https://github.com/elastic/elasticsearch/pull/40367/files"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        lists = json_values.find_lists(value, least=2)
        if lists:
            path = max(lists, key=lambda candidate: (len(json_values.get_at(value, candidate)), -len(candidate)))
            return self._spoil_list_entries(value, path)
        fields = find_informative_paths(value, call)
        # One value alone has no rest that could stay true.
        if len(fields) < 2:
            fields = json_values.find_leaves(value)
        for path in self._pick_lost_entries(fields) if len(fields) > 1 else fields:
            value = self._remove_field(value, path) if self.how == "missing" else self._falsify_value_at(value, path)
        return value

    def _pick_lost_entries(self, entries: list[Any]) -> list[Any]:
        """The entries that are lost, in their order: all but a run of them, which begins at the point."""
        rest = min(max(1, round(self.share * len(entries))), len(entries) - 1)
        first = int(self.point * len(entries))
        # Round the end, so that every entry has the same chance to stay.
        stay = {(first + n) % len(entries) for n in range(rest)}
        return [entry for n, entry in enumerate(entries) if n not in stay]

    def _spoil_list_entries(self, value: Any, path: Place) -> Any:
        true = json_values.get_at(value, path)
        lost = self._pick_lost_entries(list(range(len(true))))
        if self.how != "missing":
            inside = [(*path, n, *inner) for n in lost for inner in json_values.find_leaves(true[n])]
            for entry in inside:
                value = self._falsify_value_at(value, entry)
            # Records without any value cannot be wrong: they are missing instead.
            if inside:
                return value
        return json_values.replace_at(
            value, path, json_values.build_sequence_like(true, [e for n, e in enumerate(true) if n not in lost])
        )

    def _remove_field(self, value: Any, path: Place) -> Any:
        holder = json_values.get_at(value, path[:-1]) if path else None
        if not isinstance(holder, dict):
            return self._falsify_value_at(value, path)
        return json_values.replace_at(value, path[:-1], {k: entry for k, entry in holder.items() if k != path[-1]})

    def _falsify_value_at(self, value: Any, path: Place) -> Any:
        dice = Dice("partial_truth", self.point, *path)
        return json_values.replace_at(
            value, path, make_untrue_value(json_values.get_at(value, path), self.severity, dice)
        )
