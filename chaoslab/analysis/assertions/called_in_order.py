"""Tools are called one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen


@dataclass(frozen=True)
class CalledInOrder(Assertion):
    """The first calls of these `tools` (names or patterns) come in this order."""

    tools: Sequence[str]
    example = "{tools: [get_order, refund]}"

    def check(self, seen: Seen) -> Miss | None:
        after = None
        for tool in self.tools:
            made = seen.started(tool)
            if not made:
                return Miss(f"{tool} was not called")
            record = made[0][0]
            if after is not None and (record.t, record.seq) < (after[1].t, after[1].seq):
                return Miss.at(f"{tool} was called before {after[0]}", record, after[1])
            after = tool, record
        return None
