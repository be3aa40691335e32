"""The user stops the agent in the middle, and says something."""

from dataclasses import dataclass
from typing import Any, Literal

from chaoslab.core.exchange import Call, Failure, Flow, Observation, Reply, TrialContext, UserActs
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class UserStops(Fault):
    """Cancels the agent at this call: its task, or an `asyncio.CancelledError` at the call. Then the same agent is
    asked `say`, or the same words if that is empty.

    `moment`: "before" the call does anything, or "after" it has. With `say` the twin is asked those words alone, since
    they are what the user wants.
    """

    moment: Literal["before", "after"] = "before"
    say: str = ""
    layer = "tool"
    conditional = True
    of_user = True
    unanswered = True
    example = '"user_stops", "charge", calls=[1]'
    source = "https://github.com/pydantic/pydantic-ai/pull/7993"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply | None = None
        if self.moment == "after":
            reply = yield call
        done: Any = yield UserActs("stop", self.say)
        if done:
            raise Failure("stopped")
        return reply if reply is not None else (yield call)

    def witnessed(self, observation: Observation) -> str | None:
        return f"the user stopped the agent {self.moment} the call" if observation.error == "stopped" else None
