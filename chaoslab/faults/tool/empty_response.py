"""The service does the work, and its answer is empty."""

from dataclasses import dataclass

from chaoslab.core.exchange import OF_LENGTH, Call, Flow, Reply, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class EmptyResponse(Fault):
    """Lets the work be done and answers with the service's own status and headers, and no body. A function that returns
    None has no other answer, so nothing is changed then."""

    layer = "tool"
    leaves = "nothing"
    met_as = "an empty answer with status {status} reached the caller"
    example = '"empty_response", "refund", calls=[1]'
    source = "https://github.com/uptick/pymyob/issues/55"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        # None has no status and no headers to be kept: it is empty already.
        if reply.of_function and reply.value is None:
            return reply
        # They describe the body that is gone.
        headers_kept = {name: text for name, text in reply.headers.items() if name.lower() not in OF_LENGTH}
        return Reply(reply.status, headers_kept)
