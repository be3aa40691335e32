"""The tool raises an exception instead of doing the work."""

import json
from dataclasses import dataclass

from chaoslab.core.exchange import Call, Flow, Reply, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class Exception(Fault):  # noqa: A001 - the class is named after the fault
    """Makes the function raise, with `message` in its words. A service answers 500 with it. The work is not done."""

    message: str = "internal error"
    layer = "tool"
    common = True
    example = '"exception", "get_order", message="database is locked"'
    source = "https://github.com/VoltAgent/voltagent/issues/349"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        return Reply(500, {"Content-Type": "application/json"}, json.dumps({"error": self.message}).encode())
        yield call  # never reached: it makes this a generator
