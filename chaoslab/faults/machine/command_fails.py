"""A command ends with a code of failure."""

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.machine import COMMANDS


@dataclass(frozen=True)
class CommandFails(Fault):
    """Ends a command with the exit code `code` in place of its work. A function raises `CalledProcessError`."""

    code: int = 1
    layer = "tool"
    of_machine = (COMMANDS,)
    bounds: ClassVar = {"code": (1, 255)}
    example = '"command_fails", "commands", calls=[1], code=2'
    source = "https://docs.python.org/3/library/subprocess.html"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        raise Failure(f"exited {self.code}")
        yield call

    def witnessed(self, observation: Observation) -> str | None:
        return f"it ended with exit code {self.code}" if observation.error == f"exited {self.code}" else None
