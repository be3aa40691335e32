"""The call arrives twice, as from a queue or a proxy that sends again what was done."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class Redelivery(Fault):
    """Delivers the call, and once more when it was answered. The caller gets the second answer, and nobody tells it
    that there was another. A service without idempotency keys does the work twice."""

    layer = "tool"
    of_effect = True
    redelivers = True
    example = '"redelivery", "refund", calls=[1]'
    source = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues.html"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        yield call
        reply: Reply = yield call
        return reply

    def witnessed(self, observation: Observation) -> str | None:
        return (
            None if observation.reply is None else "the service was asked twice, and the caller has the second answer"
        )
