"""The service comes and goes."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class Flapping(Fault):
    """Lets requests pass for `up_s` and answers them with the target's own 503 for `down_s`, again and again from the
    beginning of the trial. A retry that waits long enough succeeds; one that does not may fail each time."""

    up_s: float = 5.0
    down_s: float = 5.0
    layer = "tool"
    conditional = True
    bounds = {"up_s": (0.001, 86400), "down_s": (0.001, 86400)}  # noqa: RUF012 - a trait, which nobody changes
    met_as = "a reply that the service is down reached the caller"
    example = '"flapping", "crm.test", up_s=10, down_s=2'
    source = "https://github.com/flynn/flynn/issues/2706"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        if context.elapsed_s % (self.up_s + self.down_s) < self.up_s:
            return (yield call)
        return call.build_refusal_reply(503)
