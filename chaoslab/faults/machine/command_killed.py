"""A command is killed when it has done its work."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.machine import COMMANDS


@dataclass(frozen=True)
class CommandKilled(Fault):
    """Lets a command do its work and ends it by SIGKILL, as a lack of memory does, so that its caller cannot know what
    was done. A function raises `CalledProcessError` with the code -9."""

    layer = "tool"
    unanswered = True
    of_machine = (COMMANDS,)
    example = '"command_killed", "commands", calls=[1]'
    source = "https://docs.kernel.org/admin-guide/mm/concepts.html"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        yield call
        raise Failure("exited -9")

    def witnessed(self, observation: Observation) -> str | None:
        return "it was killed after its work" if observation.error == "exited -9" else None
