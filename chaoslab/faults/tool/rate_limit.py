"""The service answers that there were too many requests."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.context import TrialContext
from chaoslab.core.exchange import Call, Flow, Observation
from chaoslab.core.fault import Fault

MINUTE_S = 60.0


@dataclass(frozen=True)
class RateLimit(Fault):
    """Answers 429 with the target's own reply. `retry_after_s` sets the header Retry-After; 0 leaves the target's own.

    With `per_minute` it is a bucket: so many requests pass in any 60 s of the trial, and the rest are refused until
    there is room. Retry-After then says when. 0: every request that the triggers choose is refused.
    """

    retry_after_s: float = 0.0
    per_minute: int = 0
    layer = "tool"
    conditional = True
    example = '"rate_limit", "model", per_minute=20'
    source = "https://platform.openai.com/docs/guides/rate-limits"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        wait_s = self._wait_s(context)
        if wait_s is None:
            return (yield call)
        return call.refused_with(429, retry_after_s=self.retry_after_s or wait_s)

    def _wait_s(self, context: TrialContext) -> float | None:
        """Seconds until a request would pass, 0 if nobody knows; None if this one does."""
        if not self.per_minute:
            return 0.0
        passed: list[float] = context.memory.setdefault("passed", [])
        passed[:] = [moment for moment in passed if moment > context.elapsed_s - MINUTE_S]
        if len(passed) < self.per_minute:
            passed.append(context.elapsed_s)
            return None
        return round(passed[0] + MINUTE_S - context.elapsed_s, 3)

    def witnessed(self, seen: Observation) -> str | None:
        if seen.reply is None or not seen.reply.same_as(seen.changed_reply):
            return None
        return "a reply that there were too many requests reached the caller"
