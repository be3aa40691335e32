"""The clock of a service is wrong, so what it says of the time is too."""

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.exchange import Ahead, Call, Failure, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault

YEARS_S = 10 * 365.0 * 86400


@dataclass(frozen=True)
class ClockSkew(Fault):
    """Moves the wall clock of the target by `skew_s` while it does the call: ahead, or back if it is below 0.

    The caller's own clock stays right, and so does time.monotonic() everywhere. A target that does not ask for the time
    is not affected. It needs virtual time.
    """

    skew_s: float = 3600.0
    layer = "tool"
    corrupts = "reply"
    leaves = "value"
    of_clock = True
    bounds: ClassVar = {"skew_s": (-YEARS_S, YEARS_S)}
    example = '"clock_skew", "issue_token", skew_s=-900'
    source = "https://github.com/jpadilla/pyjwt/issues/824"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        # A skew of nothing is none, so that nothing counts as injected.
        if not self.skew_s:
            return (yield call)
        yield Ahead(self.skew_s)
        try:
            reply: Reply = yield call
        except Failure:
            # Back after a failure too: what is asked later of this target has its right clock.
            yield Ahead(-self.skew_s)
            raise
        yield Ahead(-self.skew_s)
        return reply

    def witnessed(self, observation: Observation) -> str | None:
        if not observation.told:
            return None
        return f"its clock told {observation.told}, {abs(self.skew_s):g} s {'ahead' if self.skew_s > 0 else 'behind'}"
