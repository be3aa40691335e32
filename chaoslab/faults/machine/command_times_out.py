"""A command does its work and does not end."""

from contextlib import suppress
from dataclasses import dataclass

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext, Wait, forever
from chaoslab.core.fault import Fault
from chaoslab.core.machine import COMMANDS


@dataclass(frozen=True)
class CommandTimesOut(Fault):
    """Lets a command do its work and never end: its caller waits for its own timeout, and meets `TimeoutExpired`; one
    without a timeout hangs. A function raises that after its deadline."""

    layer = "tool"
    unanswered = True
    of_machine = (COMMANDS,)
    example = '"command_times_out", "commands", calls=[1]'
    source = "https://github.com/openai/codex/issues/5229"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        yield call
        if call.target != COMMANDS:  # who waits for a command has a timeout of its own
            with suppress(Failure):
                yield Wait(forever)
        raise Failure("expired")

    def witnessed(self, observation: Observation) -> str | None:
        return "it did its work and did not end" if observation.error == "expired" else None
