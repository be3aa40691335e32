"""The work is done, and the answer reports a part of it as failed."""

import json
from dataclasses import dataclass

from chaoslab.core.exchange import OF_LENGTH, Call, Flow, Reply, TrialContext
from chaoslab.core.fault import Fault

FAILED = {"status": 500, "title": "not processed"}


@dataclass(frozen=True)
class PartialSuccess(Fault):
    """Lets the work be done and answers 207 with `successes` and `failures`. Of a list the first half are successes.
    A function or a tool of a protocol, which has no status, returns these two as its value.

    Any other result is one success beside one failure. An error of the service stays as it is.
    """

    layer = "tool"
    leaves = "value"
    example = '"partial_success", "import_orders", calls=[1]'
    source = "https://techdocs.akamai.com/test-ctr/reference/partial-success-responses"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        if reply.status >= 300 or reply.value is None:
            return reply
        entries_done, failures = [reply.value], [FAILED]
        if isinstance(reply.value, list) and reply.value:
            half = len(reply.value) // 2
            entries_done, failures = reply.value[:half], [{**FAILED, "item": item} for item in reply.value[half:]]
        value = {"successes": entries_done, "failures": failures}
        if reply.enveloped:  # a tool of MCP may promise a form, in which this cannot be said
            return new_value if (new_value := reply.with_fitted_value(value)).value == value else reply
        if reply.of_function:
            return reply.with_value(value)
        # They describe the body that is gone.
        headers = {name: text for name, text in reply.headers.items() if name.lower() not in OF_LENGTH}
        return Reply(207, headers, json.dumps(value).encode())
