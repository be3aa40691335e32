"""The answer is well-formed and empty."""

from dataclasses import dataclass
from typing import Any, Literal

from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply
from chaoslab.core.exchange import Call, TrialContext


@dataclass(frozen=True)
class Empty(ChangedReply):
    """Answers with an empty value of the same sort and the status of success: [], {}, an empty text, else None.

    `how` "whole" empties the whole answer. "lists" empties the lists in it, and the numbers that state their lengths
    are 0; an answer without a list is emptied whole.
    """

    how: Literal["whole", "lists"] = "whole"
    leaves = "nothing"
    common = True
    example = '"empty", "search", calls=[1]'
    source = "https://github.com/NorthlandPositronics/Cogtrix/issues/350"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        lists = json_values.find_lists(value) if self.how == "lists" else []
        for path in lists:
            # A list within another one is gone with it.
            if not any(path[: len(outer)] == outer for outer in lists if len(outer) < len(path)):
                value = json_values.update_stated_length(value, path, 0)
                value = json_values.replace_at(
                    value, path, json_values.build_sequence_like(json_values.get_at(value, path), [])
                )
        if lists:
            return value
        # What is empty already is given back as it is, so that no fault counts.
        if json_values.is_list(value):
            return json_values.build_sequence_like(value, []) if value else value
        if isinstance(value, dict):
            return {} if value else value
        if isinstance(value, str):
            return "" if value else value
        return None
