"""The agent's own process is killed at a call, and a fresh one goes on."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext, UserActs
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class AgentDies(Fault):
    """Kills the agent's process, as SIGKILL, an eviction or a power cut does: no `except` and no `finally` of it runs.
    Then `resume_with` is called in the same trial, with the same services and the same ledger.

    `moment`: "after", when the call has acted and its reply was never read, "before" it does anything, or "between" the
    turn of the call, which is answered, and the next one.
    """

    moment: Literal["after", "before", "between"] = "after"
    layer = "tool"
    conditional = True
    of_agent = True
    of_effect = True
    unanswered = True
    example = '"agent_dies", "charge", calls=[1]'
    source = "https://docs.temporal.io/workflow-execution#replays"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        if self.moment == "between":
            yield UserActs("die")
            return (yield call)
        if self.moment == "after":
            # Another fault may have cut the call short; the agent dies of this one all the same.
            with suppress(Failure):
                yield call
        raise Failure("died")

    def witnessed(self, observation: Observation) -> str | None:
        if self.moment == "between":
            return "the agent was killed after this turn"
        if observation.error != "died":
            return None
        return (
            "the agent was killed after the call"
            if observation.sent is not None
            else "the agent was killed before the call"
        )
