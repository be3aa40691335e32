"""Too many requests are under way at once, so the service refuses one more."""

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.exchange import Call, Flow, TrialContext, Wait
from chaoslab.core.fault import Fault

AT_WORK_S = 0.001
"""The seconds for which an answer is held. Longer than it takes to connect, so that requests of one moment overlap
even if one of them has a connection already and the service answers at once."""


@dataclass(frozen=True)
class ConcurrencyLimit(Fault):
    """Refuses a request with 429 while `most` others are under way at the targets of the injection.

    A request is under way from its beginning until its answer; of a stream, until its head. A refused one does not
    count. Each answer comes a millisecond later, so that requests which are sent at one moment overlap. An agent that
    asks for one thing after the other never meets it.
    """

    most: int = 1
    layer = "budget"
    conditional = True
    bounds: ClassVar = {"most": (1, 1_000_000)}
    met_as = "the call was refused, with {most} others under way"
    example = '"concurrency_limit", "api.anthropic.com", most=2'
    source = "https://github.com/anthropics/anthropic-sdk-python/issues/496"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        under_way = context.memory.get("under_way", 0)
        if under_way >= self.most:
            return call.build_refusal_reply(429)
        context.memory["under_way"] = under_way + 1
        try:
            reply = yield call
            # Held for a moment, and uncounted: else an answer that is there at once would let none overlap.
            yield Wait(AT_WORK_S, counts=False)
            return reply
        # Whatever ends the call: a count that stayed would refuse all later ones.
        finally:
            context.memory["under_way"] -= 1
