"""A hand-over to another agent loses a field."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import is_model_request
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class LostField(Fault):
    """Leaves one field out of the record that the call hands over: of an argument that is an object, or of JSON in a
    text. The other agent never learns of it, and nobody says so.

    `field`: its name, at whatever depth; empty: one of them, by `point` (0–1), which is drawn. A call without such a
    record passes unchanged.
    """

    field: str = ""
    point: float = -1.0
    layer = "tool"
    corrupts = "call"
    of_tools = True
    needs = "an argument that is an object, or JSON in a text"
    bounds = {"point": (-1, 1)}  # noqa: RUF012 - a trait, which nobody changes
    example = '"lost_field", "hand_over", field="limit"'
    source = "https://github.com/openai/openai-agents-python/issues/348"

    def draw(self, dice: Dice) -> Self:
        return self if self.point >= 0 else replace(self, point=dice("point").uniform())

    def flow(self, call: Call, context: TrialContext) -> Flow:
        if not isinstance(call.value, Mapping) or is_model_request(call):
            return (yield call)
        records: dict[str, Any] = {}
        for name, value in call.value.items():
            record = json_values.parse_container(value) if isinstance(value, str) else value
            if isinstance(record, dict | list):
                records[name] = record
        fields = [
            (name, place)
            for name, record in records.items()
            for place in json_values.find_places(record, lambda _: True)
            if place and isinstance(place[-1], str) and self.field in ("", place[-1])
        ]
        if not fields:
            return (yield call)
        name, (*around, key) = fields[min(int(self.point * len(fields)), len(fields) - 1)]
        holder = {k: entry for k, entry in json_values.get_at(records[name], tuple(around)).items() if k != key}
        record = json_values.replace_at(records[name], tuple(around), holder)
        is_text = isinstance(call.value[name], str)
        return (yield call.with_value({**call.value, name: json_values.dump_canonical(record) if is_text else record}))
