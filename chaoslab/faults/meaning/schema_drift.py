"""The answer has another schema than yesterday's."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply, pick_at_share
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.json_values import Place

KINDS = ("renamed", "nested", "retyped", "wrapped")
Drift = Callable[[], Any]


@dataclass(frozen=True)
class SchemaDrift(ChangedReply):
    """Changes the form of the answer and keeps its values.

    `kind`: "renamed" gives a field another name, "nested" puts its value into an object, "retyped" makes a text of a
    number or flag and a list of a text, "wrapped" puts the whole answer or a list of it into an object. A field changes
    in all records of a list. "" draws one that fits. `point` (0–1) picks the field; it is drawn if it is -1. Fields of
    a class can only be retyped. A result of an MCP tool breaks the tool's output schema, so that a client which checks
    it has an error though the work was done.
    """

    kind: Literal["", "renamed", "nested", "retyped", "wrapped"] = ""
    point: float = -1.0
    breaks_form = True
    common = True
    bounds: ClassVar = {"point": (-1, 1)}
    drawn: ClassVar = {"point": ()}
    example = '"schema_drift", "get_order", kind="renamed", chance=0.2'
    source = "https://github.com/basicmachines-co/basic-memory/issues/638"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        drifts = [drift for kind in ([self.kind] if self.kind else KINDS) for drift in self._list_drifts(kind, value)]
        return pick_at_share(drifts, self.point)() if drifts else value

    def _list_drifts(self, kind: str, value: Any) -> list[Drift]:
        if kind == "wrapped":
            lists = json_values.find_lists(value)
            # As a default, since a lambda would look the name up after the loop, at its last value.
            of_lists: list[Drift] = [lambda path=path: _wrap_list(value, path) for path in lists]  # type: ignore[misc]
            return of_lists or ([lambda: {"data": value}] if isinstance(value, dict | str | int | float) else [])
        inside = json_values.find_places(value, lambda _: True)
        fields = [
            p for p in inside if p and isinstance(json_values.get_at(value, p[:-1]), dict) and isinstance(p[-1], str)
        ]
        if kind == "retyped":
            columns = json_values.group_by_column(value, json_values.find_leaves(value))
            return [lambda column=column: _retype_fields(value, column) for column in columns]  # type: ignore[misc]
        columns = json_values.group_by_column(value, fields)
        change = _rename_fields if kind == "renamed" else _nest_fields
        return [lambda column=column: change(value, column) for column in columns]  # type: ignore[misc]


def _wrap_list(value: Any, path: Place) -> Any:
    listed = json_values.get_at(value, path)
    return json_values.replace_at(value, path, {"items": listed, "count": len(listed)})


def _retype_fields(value: Any, column: list[Place]) -> Any:
    for path in column:
        leaf = json_values.get_at(value, path)
        new_value = [leaf] if isinstance(leaf, str) else str(leaf).lower() if isinstance(leaf, bool) else str(leaf)
        value = json_values.replace_at(value, path, new_value)
    return value


def _nest_fields(value: Any, column: list[Place]) -> Any:
    for path in column:
        value = json_values.replace_at(value, path, {"value": json_values.get_at(value, path)})
    return value


def _rename_fields(value: Any, column: list[Place]) -> Any:
    for path in column:
        record = json_values.get_at(value, path[:-1])
        name = respell_name(path[-1])
        # Another field may have that name.
        while name in record:
            name += "_v2"
        renamed = {name if key == path[-1] else key: entry for key, entry in record.items()}
        value = json_values.replace_at(value, path[:-1], renamed)
    return value


def respell_name(name: str) -> str:
    """The name as another team would spell it: orderId for order_id and the reverse, else with a suffix."""
    if "_" in name.strip("_"):
        first, *rest = name.strip("_").split("_")
        return first + "".join(piece.capitalize() for piece in rest)
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda words: f"_{words[1].lower()}", name)
    return snake if snake != name else f"{name}_value"
