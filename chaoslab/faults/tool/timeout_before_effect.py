"""The request is lost on its way: the service never hears of it, and the caller waits in vain."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Flow, Observation, TrialContext, Wait, forever
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class TimeoutBeforeEffect(Fault):
    """Withholds the request until the caller's own deadline. Nothing was done, so the caller may safely ask again: it
    cannot tell this from a `lost_reply`, after which it may not."""

    layer = "tool"
    unanswered = True
    example = '"timeout_before_effect", "refund", calls=[1]'
    source = "https://sre.google/sre-book/addressing-cascading-failures/"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        yield Wait(forever)
        return (yield call)

    def witnessed(self, observation: Observation) -> str | None:
        if observation.error != "timed_out" or observation.sent is not None:
            return None
        return f"nothing was asked, no answer within {observation.deadline_s:g} s"
