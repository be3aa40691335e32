"""The same call comes again and again, and a guard against loops refuses it."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.identity import hash_value
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class RunawayGuard(Fault):
    """Refuses a call with 429 once the trial has made `repeats` requests with the same target, tool and arguments.

    A retry is no request of its own. A refused request counts too, so the guard holds until the trial ends.
    """

    repeats: int = 3
    layer = "budget"
    conditional = True
    lasts = True
    bounds: ClassVar = {"repeats": (1, 1_000_000)}
    met_as = "the same call was refused after {repeats} requests"
    example = '"runaway_guard", "*", repeats=2'
    source = "https://github.com/bytedance/deer-flow/issues/1055"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        key = hash_value([call.target, call.tool, call.value])
        call_count: Counter[str] = context.memory.setdefault("made", Counter())
        if call.attempt == 1:
            call_count[key] += 1
        if call_count[key] > self.repeats:
            return call.build_refusal_reply(429)
        return (yield call)
