"""The service does the work, but its answer never arrives."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext, Wait, forever
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class LostReply(Fault):
    """Lets the effect happen and withholds the answer until the caller's own deadline."""

    layer = "tool"
    unanswered = True
    of_effect = True
    example = '"lost_reply", "refund", calls=[1]'
    source = "https://github.com/stripe/ai/issues/402"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        yield Wait(forever)
        return reply

    def witnessed(self, observation: Observation) -> str | None:
        if observation.error != "timed_out" or observation.reply is not None:
            return None
        return f"the work was done, no answer within {observation.deadline_s:g} s"
