"""The end state is this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.base.jsonable import brief
from chaoslab.core.events import EndState


@dataclass(frozen=True)
class StateEquals(Assertion):
    """The value at `path` of the end state (keys and indices with dots, as in orders.17.status; "" for all of it) is
    `value`."""

    path: str
    value: Any
    example = "{path: orders.17.status, value: refunded}"

    def check(self, seen: Seen) -> Miss | None:
        ended = next(iter(seen.history.of(EndState, trial=seen.trial)), None)
        if ended is None:
            return Miss("no state was read: give state=")
        record, found = ended
        if found.error:
            return Miss.at(found.error, record)
        now = found.after
        for part in self.path.split(".") if self.path else ():
            if isinstance(now, dict) and part in now:
                now = now[part]
            elif isinstance(now, list) and part.isdecimal() and int(part) < len(now):
                now = now[int(part)]
            else:
                return Miss.at(f"the end state has no {self.path}", record)
        if now == self.value and isinstance(now, bool) == isinstance(self.value, bool):
            return None
        return Miss.at(
            f"{self.path or 'the end state'} is {brief(now, 120)} instead of {brief(self.value, 120)}", record
        )
