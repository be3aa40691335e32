"""The service answers with an error of its own instead of doing the work."""

from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.phrases import get_status_phrase
from chaoslab.core.exchange import Call, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault

STATUSES = (500, 503, 429, 401, 404)


@dataclass(frozen=True)
class ToolError(Fault):
    """Answers `status` with the target's own error reply (429 with Retry-After). 0 draws one of 500, 503, 429, 401 and
    404. `retry_after_s` sets the header Retry-After; 0 leaves the target's own. A tool of MCP, JSON-RPC or GraphQL says
    it in a message of its protocol, unless `retry_after_s` is given.
    """

    status: int = 0
    retry_after_s: float = 0.0
    layer = "tool"
    drawn: ClassVar = {"status": STATUSES}
    example = '"tool_error", "weather", status=503, chance=0.2'
    source = "https://github.com/openai/openai-agents-python/issues/879"

    def __post_init__(self) -> None:
        if self.status and not 400 <= self.status <= 599:
            raise ValueError(f"status of tool_error is {self.status}: it should be an error's, from 400 to 599, or 0")

    def flow(self, call: Call, context: TrialContext) -> Flow:
        # A message of a protocol has no header that could say when to ask again.
        if call.failed_with is not None and not self.retry_after_s:
            return call.failed_with(f"{self.status} {get_status_phrase(self.status, 'error')}")
        return call.build_refusal_reply(self.status, retry_after_s=self.retry_after_s)
        yield call  # never reached: it makes this a generator

    def witnessed(self, observation: Observation) -> str | None:
        return (
            f"the service's own error {self.status} reached the caller"
            if observation.changed_reply_if_received
            else None
        )
