"""The system permits no access."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.machine import TARGETS


@dataclass(frozen=True)
class PermissionDenied(Fault):
    """Fails as the system does where a permission lacks (EACCES), at a file, a command or a function. Nothing is
    done."""

    layer = "tool"
    of_machine = TARGETS
    example = '"permission_denied", "files.delete", calls=[1]'
    source = "https://man7.org/linux/man-pages/man2/open.2.html"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        raise Failure("denied")
        yield call

    def witnessed(self, observation: Observation) -> str | None:
        return "access was denied" if observation.error == "denied" else None
