"""The answer has a record in it that does not exist."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply, find_informative_paths, pick_at_share
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.json_values import Place
from chaoslab.core.untrue import make_untrue_value


@dataclass(frozen=True)
class FabricatedData(ChangedReply):
    """Adds an invented entry to a list of the answer, or puts an invented record in the place of the true one.

    The invention looks like the true entries. `how` is "added", "replaced", or "" for added where there is a list;
    a whole number that states the list's length grows with it. `severity` (0–1) is how far the invention is from the
    truth: near by 1 %, a day or a character at 0, far at 1. `point` (0–1) picks the list and the place in it. Both are
    drawn if they are -1.
    """

    severity: float = -1.0
    point: float = -1.0
    how: Literal["", "added", "replaced"] = ""
    bounds: ClassVar = {"severity": (-1, 1), "point": (-1, 1)}
    drawn: ClassVar = {"severity": (), "point": ()}
    example = '"fabricated_data", "search", chance=0.2'
    source = "https://github.com/NorthlandPositronics/Cogtrix/issues/350"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        lists = json_values.find_lists(value) if self.how != "replaced" else []
        dice = Dice("fabricated_data", self.point)
        if lists:
            return self._add_fake_record(value, pick_at_share(lists, self.point), dice)
        if self.how == "added":
            return value
        for path in find_informative_paths(value, call):
            value = self._falsify_value_at(value, path, dice)
        return value

    def _add_fake_record(self, value: Any, path: Place, dice: Dice) -> Any:
        true = json_values.get_at(value, path)
        record = true[0]
        for inner in json_values.find_leaves(record):
            if not isinstance(json_values.get_at(record, inner), bool):
                record = self._falsify_value_at(record, inner, dice)
        position = min(int(self.point * (len(true) + 1)), len(true))
        longer = json_values.build_sequence_like(true, [*true[:position], record, *true[position:]])
        return json_values.replace_at(json_values.update_stated_length(value, path, len(longer)), path, longer)

    def _falsify_value_at(self, value: Any, path: Place, dice: Dice) -> Any:
        return json_values.replace_at(
            value, path, make_untrue_value(json_values.get_at(value, path), self.severity, dice(*path))
        )
