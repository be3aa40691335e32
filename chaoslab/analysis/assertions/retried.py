"""A failed request is tried again."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.assertion import Assertion, Miss, Seen


@dataclass(frozen=True)
class Retried(Assertion):
    """Each request to `tool` (a name or a pattern) whose first attempt fails is tried again. A trial without a failure
    is a miss."""

    tool: str = "*"
    example = "{tool: search}"

    def check(self, seen: Seen) -> Miss | None:
        ended = seen.finished(self.tool)
        failed = {(e.target, e.request): record for record, e in ended if not e.ok and e.attempt == 1}
        if not failed:
            return Miss(
                f"no call{'' if self.tool == '*' else f' of {self.tool}'} failed, so there was nothing to try again"
            )
        again = {(e.target, e.request) for _, e in seen.started(self.tool) if e.attempt > 1}
        for (target, request), record in failed.items():
            if (target, request) not in again:
                return Miss.at(f"{target} {request} failed and was not tried again", record)
        return None
