"""A failed request is tried again."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen


@dataclass(frozen=True)
class Retried(Assertion):
    """Each request to `tool` (a name or a pattern) whose first attempt fails is tried again. A trial without a failure
    is a miss. A call that the agent gave up did not fail."""

    tool: str = "*"
    example = "{tool: search}"

    def check(self, seen: Seen) -> Miss | None:
        ended = seen.ended(self.tool)
        failed = {(e.target, e.request): (record, e.attempt) for record, e, n in ended if not e.ok and n == 1}
        if not failed:
            return Miss(
                f"no call{'' if self.tool == '*' else f' of {self.tool}'} failed, so there was nothing to try again"
            )
        last = {(e.target, e.request): e.attempt for _, e in seen.started(self.tool)}
        for (target, request), (record, attempt) in failed.items():
            if last.get((target, request), 0) <= attempt:
                return Miss.at(f"{target} {request} failed and was not tried again", record)
        return None
