"""The answer is far larger than a context window wants it."""

from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply
from chaoslab.core.exchange import Call, TrialContext

FILLER = "No further details are available for this entry. "


@dataclass(frozen=True)
class Oversized(ChangedReply):
    """Blows the answer up to at least `bytes` of JSON: it repeats the records of the longest list, else the longest
    text, else it adds a field "details" with a long text.

    True values stay. An answer that is larger already, or that has no room for more, passes unchanged.
    """

    bytes: int = 200_000
    bounds: ClassVar = {"bytes": (1000, 10_000_000)}
    evident = True
    example = '"oversized", "search", bytes=500_000, calls=[1]'
    source = "https://github.com/modelcontextprotocol/modelcontextprotocol/issues/2210"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        missing = self.bytes - json_values.measure_json_size(value)
        if missing <= 0:
            return value
        lists = json_values.find_lists(value)
        if lists:
            # Of two as long the outer one, which holds the records.
            path = max(lists, key=lambda entry: (len(json_values.get_at(value, entry)), -len(entry)))
            listed = list(json_values.get_at(value, path))
            # instead of two brackets a comma and a space
            times = 1 + -(-missing // json_values.measure_json_size(listed))
            longer = json_values.build_sequence_like(json_values.get_at(value, path), listed * times)
            return json_values.replace_at(json_values.update_stated_length(value, path, len(longer)), path, longer)
        texts = json_values.find_places(
            value, lambda entries: type(entries) is str and any(c.isspace() for c in entries)
        )
        if texts or type(value) is str:
            path = max(texts, key=lambda entry: len(json_values.get_at(value, entry))) if texts else ()
            text = json_values.get_at(value, path) or FILLER
            times = 1 + -(-missing // (json_values.measure_json_size(text) - 1))  # instead of two quotes a space
            return json_values.replace_at(value, path, " ".join([text] * times))
        if isinstance(value, dict):
            key = "details"
            # A field that is there already is true, and stays.
            while key in value:
                key += "_more"
            return {**value, key: FILLER * (missing // len(FILLER) + 1)}
        return value
