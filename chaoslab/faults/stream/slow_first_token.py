"""The model thinks for long before it says its first word."""

from dataclasses import dataclass

from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext, Wait
from chaoslab.core.fault import Fault
from chaoslab.faults.network.latency import TIMER_SLACK_S


@dataclass(frozen=True)
class SlowFirstToken(Fault):
    """Holds the answer back for `delay_s`, its status and headers too. What follows the first event comes as it would
    have come. An answer that is whole is late as a whole."""

    delay_s: float = 5.0
    layer = "stream"
    delays = True
    dose = "delay_s"
    example = '"slow_first_token", "api.openai.com", chance=0.1, delay_s=20'
    source = "https://github.com/BlockRunAI/Franklin/issues/74"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        yield Wait(self.delay_s)
        return reply

    def witnessed(self, observation: Observation) -> str | None:
        if (
            observation.error == "timed_out"
            and observation.duration_s >= min(self.delay_s, observation.deadline_s) - TIMER_SLACK_S
        ):
            return f"nothing had come after {format_duration(observation.duration_s)}"
        first_s = observation.streamed.first_byte_s if observation.streamed else observation.duration_s
        if observation.error or first_s is None or first_s < self.delay_s - TIMER_SLACK_S:
            return None
        return (
            f"the first byte came after {format_duration(first_s)}, at least {format_duration(self.delay_s)} were armed"
        )
