"""The service takes the caller's key no more."""

from dataclasses import dataclass
from typing import Literal

from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class AuthError(Fault):
    """Answers 401 or 403 with the target's own reply. The service is not asked. With `after_calls` or `window_s` a key
    expires in the middle of the work."""

    status: Literal[401, 403] = 401
    layer = "tool"
    met_as = "the service's own error {status} reached the caller"
    example = '"auth_error", "crm.test", after_calls=3'
    source = "https://platform.openai.com/docs/guides/error-codes/api-errors"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        return call.build_refusal_reply(self.status)
        yield call  # never reached: it makes this a generator
