"""The service fails for a reason of its own."""

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault

STATUSES = (500, 502, 503)


@dataclass(frozen=True)
class ServerError(Fault):
    """Answers `status` with the target's own error reply. 0 draws one of 500, 502 and 503; 529 is that of Anthropic
    when it is overloaded. The service is not asked."""

    status: int = 0
    layer = "tool"
    drawn: ClassVar = {"status": STATUSES}
    met_as = "the service's own error {status} reached the caller"
    example = '"server_error", "model", chance=0.2, status=529'
    source = "https://docs.anthropic.com/en/api/errors"

    def __post_init__(self) -> None:
        if self.status and not 500 <= self.status <= 599:
            raise ValueError(f"status of server_error is {self.status}: it should be from 500 to 599, or 0")

    def flow(self, call: Call, context: TrialContext) -> Flow:
        return call.build_refusal_reply(self.status)
        yield call  # never reached: it makes this a generator
