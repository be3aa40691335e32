"""Retries wait, and not shorter each time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.analysis.assertions import Assertion, Bounds, Miss, Seen
from chaoslab.base.durations import duration

SLACK_S = 0.001


@dataclass(frozen=True)
class BackedOff(Assertion):
    """Before each further attempt at a request of `tool` at least `least_s` seconds pass, and `factor` times as long as
    before the attempt before it. A trial without a further attempt is a miss. Attempts that the agent gave up are left
    out."""

    least_s: float = 0.1
    factor: float = 1.0
    tool: str = "*"
    bounds: ClassVar[Bounds] = {"least_s": (0, 1e9), "factor": (0, 1e6)}
    example = "{least_s: 0.5, factor: 1.5}"

    def check(self, seen: Seen) -> Miss | None:
        ends = {(e.target, e.request, n): record for record, e, n in seen.ended(self.tool)}
        waits: dict[tuple[str, int], float] = {}
        again = [(record, e, n) for record, e, n in seen.tries(self.tool) if n > 1]
        if not again:
            return Miss(
                f"no call{'' if self.tool == '*' else f' of {self.tool}'} was tried again, so nothing could wait"
            )
        for record, event, number in again:
            before = ends.get((event.target, event.request, number - 1))
            if before is None:
                continue
            wait_s, place = record.t - before.t, (event.target, event.request)
            least_s = max(self.least_s, self.factor * waits.get(place, 0.0))
            if wait_s < least_s - SLACK_S:
                where = f"{event.target} {event.request}.{event.attempt}"
                return Miss.at(
                    f"{where} came {duration(wait_s)} after the failure before it, "
                    f"at least {duration(least_s)} were asked for",
                    before,
                    record,
                )
            waits[place] = wait_s
        return None
