"""An approval is stale when it is used."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault

WORDS = "the approval has expired: ask for a new one"


@dataclass(frozen=True)
class StaleApproval(Fault):
    """Refuses a call with 409, since what it rests on was approved too long ago. `approval` is the tool that approves,
    one of the targets: once it is called again, the others are let through. Empty: the user approves, so they are let
    through in a later turn.
    """

    approval: str = ""
    layer = "tool"
    conditional = True
    of_effect = True
    example = '"stale_approval", ["refund", "ask_manager"], approval="ask_manager"'
    source = "https://github.com/openai/openai-agents-python/issues/4896"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        memory = context.memory
        if self.approval and any(fnmatchcase(name, self.approval) for name in (call.tool, call.target)):
            memory["approvals"] = memory.get("approvals", 0) + 1
            return (yield call)
        now = memory.get("approvals", 0) if self.approval else context.turn
        if memory.setdefault("stale", now) < now:
            return (yield call)
        if call.failed_with is not None:
            return call.failed_with(WORDS)
        reply: Reply = call.build_refusal_reply(409)
        return reply.with_value({"error": WORDS})

    def witnessed(self, observation: Observation) -> str | None:
        return "the caller was told that its approval has expired" if observation.changed_reply_if_received else None
