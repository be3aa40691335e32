"""Two sessions use the same agent at once."""

from dataclasses import dataclass
from typing import Any

from chaoslab.core.exchange import Call, Flow, Observation, TrialContext, UserActs, Wait
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class SessionsAtOnce(Fault):
    """Begins the next turn of the conversation at this call, on the same agent object, as another session does. The
    call goes on `gap_s` seconds later. The twin is asked one turn after the other.

    An answer or an effect that has the other turn's data is a leak between the two.
    """

    gap_s: float = 1.0
    layer = "tool"
    conditional = True
    of_user = True
    of_turns = True
    example = '"sessions_at_once", "get_order", calls=[1]'
    source = "https://github.com/agno-agi/agno/issues/4663"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        done: Any = yield UserActs("next")
        if done:
            yield Wait(self.gap_s)
        return (yield call)

    def witnessed(self, observation: Observation) -> str | None:
        return "another session began beside it"
