"""The same event comes twice, as from a queue, a webhook or an impatient user."""

from dataclasses import dataclass
from typing import Any, Literal

from chaoslab.core.exchange import Call, Flow, Observation, TrialContext, UserActs, Wait
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class EventTwice(Fault):
    """Asks the agent the same again. Nobody wants anything twice, so the twin is asked once, unless `wishes` is 2.

    `moment`: "after" it has answered, or "at_once", beside the first time, at this call, which goes on `gap_s` seconds
    later. The agent is the same object, once a turn.
    """

    moment: Literal["after", "at_once"] = "after"
    gap_s: float = 1.0
    layer = "tool"
    conditional = True
    of_user = True
    of_effect = True
    example = '"event_twice", "charge", calls=[1]'
    source = "https://shopify.dev/apps/build/webhooks/ignore-duplicates"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        done: Any = yield UserActs("at_once" if self.moment == "at_once" else "again")
        if done and self.moment == "at_once":
            yield Wait(self.gap_s)
        return (yield call)

    def witnessed(self, observation: Observation) -> str | None:
        return "the same event came beside it" if self.moment == "at_once" else "the same event was delivered again"
