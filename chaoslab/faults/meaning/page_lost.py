"""The last page of a list is missing."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply
from chaoslab.core.exchange import Call, TrialContext


@dataclass(frozen=True)
class PageLost(ChangedReply):
    """Keeps the first `share` (0–1) of the longest list, at least one entry, and loses the rest, at least one.

    `count` says what happens to whole numbers that state the list's length: "kept" tells of the loss, "changed" hides
    it, "" draws one of both. In a text without JSON, lines are lost.
    """

    share: float = 0.5
    count: Literal["", "kept", "changed"] = ""
    leaves = ""
    needs = "a list of at least two entries"
    bounds: ClassVar = {"share": (0, 1)}
    drawn: ClassVar = {"count": ("kept", "changed")}
    example = '"page_lost", "list_orders", share=0.3, count="changed", calls=[1]'
    source = "https://github.com/cuga-project/cuga-agent/issues/750"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        lists = json_values.find_lists(value, least=2)
        if not lists:
            lines = value.splitlines(keepends=True) if isinstance(value, str) else []
            return "".join(lines[: self._count_kept_entries(len(lines))]) if len(lines) > 1 else value
        path = max(lists, key=lambda entry: (len(json_values.get_at(value, entry)), -len(entry)))
        listed = json_values.get_at(value, path)
        entries_kept = self._count_kept_entries(len(listed))
        if self.count == "changed":
            value = json_values.update_stated_length(value, path, entries_kept)
        return json_values.replace_at(value, path, json_values.build_sequence_like(listed, listed[:entries_kept]))

    def _count_kept_entries(self, length: int) -> int:
        return min(max(1, round(self.share * length)), length - 1)
