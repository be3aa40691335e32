"""The model's API answers 200, and its body is an error."""

from dataclasses import dataclass, replace

from chaoslab.core.exchange import Call, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class ErrorInAnswer(Fault):
    """Answers 200 with the provider's own error reply for `status` as its body, as routers in front of a model do once
    their headers are sent. The model is not asked. A client that asked for a stream gets it whole."""

    status: int = 503
    layer = "meaning"
    of_model = True
    leaves = "value"
    example = '"error_in_answer", "api.openai.com", status=429, calls=[2]'
    source = "https://github.com/SWE-agent/mini-swe-agent/pull/902"

    def __post_init__(self) -> None:
        if not 400 <= self.status <= 599:
            raise ValueError(f"status of error_in_answer is {self.status}: it should be an error's, from 400 to 599")

    def flow(self, call: Call, context: TrialContext) -> Flow:
        # As routers do that have sent their headers before the provider failed.
        return replace(call.build_refusal_reply(self.status), status=200)
        yield call  # never reached: it makes this a generator

    def witnessed(self, observation: Observation) -> str | None:
        return (
            f"the provider's error {self.status} reached the caller with status 200"
            if observation.changed_reply_if_received
            else None
        )
