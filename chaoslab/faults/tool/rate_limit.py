"""The service answers that there were too many requests."""

from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime
from math import ceil
from typing import Literal

from chaoslab.core.exchange import Call, Flow, Reply, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.faults.budget.budget import QUOTA

MINUTE_S = 60.0


@dataclass(frozen=True)
class RateLimit(Fault):
    """Answers 429 with the target's own reply. `retry_after_s` sets the header Retry-After; 0 leaves the target's own.

    With `per_minute` it is a bucket: so many requests pass in any 60 s of the trial, and the rest are refused until
    there is room. With `tokens_per_minute` the tokens of a model's answers count in the same way, each at the moment of
    its request. Retry-After then says when there is room. With neither, every request that the triggers choose is
    refused.

    `told` is the form of that time: "seconds" as most say it, a "date", "milliseconds" in `retry-after-ms` (OpenAI and
    Azure), or "nothing" at all. `quota`: what is used up is the money, which no waiting mends: `insufficient_quota` of
    OpenAI, each provider in its own words, and no time to wait.
    """

    retry_after_s: float = 0.0
    per_minute: int = 0
    tokens_per_minute: int = 0
    told: Literal["seconds", "date", "milliseconds", "nothing"] = "seconds"
    quota: bool = False
    layer = "tool"
    common = True
    conditional = True
    met_as = "a reply that there were too many requests reached the caller"
    example = '"rate_limit", "model", per_minute=20'
    source = "https://platform.openai.com/docs/guides/rate-limits"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        wait_s = self._compute_wait_s(context)
        if wait_s is None:
            return (yield call)
        if self.quota:
            return _strip_retry_after(call.build_refusal_reply(QUOTA if QUOTA in call.errors else 429))
        reply = call.build_refusal_reply(429, retry_after_s=self.retry_after_s or wait_s)
        return reply if self.told == "seconds" else self._reformat_retry_after(reply, context)

    def _reformat_retry_after(self, reply: Reply, context: TrialContext) -> Reply:
        """The reply with its time to wait in the form that was asked for."""
        wait_text = next((text for name, text in reply.headers.items() if name.lower() == "retry-after"), "")
        # The target's own header may be a date.
        wait_s = float(wait_text) if wait_text.replace(".", "", 1).isdecimal() else 1.0
        bare = _strip_retry_after(reply)
        if self.told == "nothing":
            return bare
        if self.told == "milliseconds":
            return replace(bare, headers={**bare.headers, "retry-after-ms": str(ceil(wait_s * 1000))})
        moment = context.utc() + timedelta(seconds=wait_s + 1)  # a date has whole seconds
        return replace(bare, headers={**bare.headers, "Retry-After": format_datetime(moment, usegmt=True)})

    def _compute_wait_s(self, context: TrialContext) -> float | None:
        """Seconds until a request would pass, 0 if nobody knows; None if this one does."""
        if not self.per_minute and not self.tokens_per_minute:
            return 0.0
        used: list[tuple[float, float]] = context.memory.setdefault("used", [])
        passed: list[tuple[float, float]] = context.memory.setdefault("passed", [])
        asked_s, tokens = context.memory.get("last", (0.0, 0.0))
        if (spent := context.spent.get("tokens", 0.0)) > tokens:
            used.append((asked_s, spent - tokens))
        full_s = [
            wait_s
            for counted, wait_max in ((passed, self.per_minute), (used, self.tokens_per_minute))
            if wait_max and (wait_s := _compute_limit_wait_s(counted, wait_max, context.elapsed_s)) is not None
        ]
        # Who was refused has no answer: the tokens that come next are still those of the request before.
        context.memory["last"] = (asked_s if full_s else context.elapsed_s, spent)
        if full_s:
            # Until both have room.
            return max(full_s)
        passed.append((context.elapsed_s, 1.0))
        return None


def _strip_retry_after(reply: Reply) -> Reply:
    headers_kept = {
        name: text for name, text in reply.headers.items() if name.lower() not in ("retry-after", "retry-after-ms")
    }
    return replace(reply, headers=headers_kept)


def _compute_limit_wait_s(counted: list[tuple[float, float]], full_max: float, now_s: float) -> float | None:
    """Seconds until less than `full_max` was counted in the minute before; None if that is so now. `counted`:
    moments with their numbers, of which those of earlier minutes are removed."""
    counted[:] = [(moment, number) for moment, number in counted if moment > now_s - MINUTE_S]
    rest = sum(number for _, number in counted)
    if rest < full_max:
        return None
    oldest = iter(counted)
    while rest >= full_max:
        moment, number = next(oldest)
        rest -= number
    return round(moment + MINUTE_S - now_s, 3)
