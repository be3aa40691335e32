"""The service does the work, and its process dies before it has answered."""

from dataclasses import dataclass
from typing import Literal

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault, Outage, OutageCut


@dataclass(frozen=True)
class CrashAfterEffect(Fault):
    """Lets the effect happen and kills the process: all connections of the service break, and new ones are refused for
    `down_s`. The caller cannot tell this from a `service_down`, after which it may safely ask again: here a retry
    without an idempotency key does the work twice.

    `state`: as of `service_down`.
    """

    down_s: float = 2.0
    state: Literal["kept", "lost"] = "kept"
    layer = "tool"
    conditional = True
    of_process = True
    bounds = {"down_s": (0.001, 86400)}  # noqa: RUF012 - a trait, which nobody changes
    of_effect = True
    example = '"crash_after_effect", "bank.test", calls=[1]'
    source = "https://docs.stripe.com/error-low-level#idempotency"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        # The effect happened, whatever came back: its caller must not see it.
        yield call
        raise Failure("reset")

    def outage(self) -> Outage:
        return Outage(self.down_s, lost=self.state == "lost", after_effect=True)

    def witnessed(self, observation: Observation) -> str | None:
        evidence = OutageCut("reset").witnessed(observation)
        is_done = "the work was done" if observation.sent is not None else "another fault had kept it from the work"
        return evidence and f"{evidence}, {is_done}"
