"""No space is left for a file."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.machine import WRITE


@dataclass(frozen=True)
class DiskFull(Fault):
    """Fails as a full disk does (ENOSPC) where a file is opened for writing, or where a function is called. Nothing is
    written."""

    layer = "tool"
    of_machine = (WRITE,)
    example = '"disk_full", "files.write", calls=[1]'
    source = "https://man7.org/linux/man-pages/man2/write.2.html"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        raise Failure("disk_full")
        yield call

    def witnessed(self, observation: Observation) -> str | None:
        return "no space was left for it" if observation.error == "disk_full" else None
