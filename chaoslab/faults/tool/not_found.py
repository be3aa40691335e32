"""The service says that there is no such thing, though there is."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class NotFound(Fault):
    """Answers with the target's own reply for 404. The service is not asked."""

    layer = "tool"
    met_as = "a reply that there is no such thing reached the caller"
    example = '"not_found", "get_order", chance=0.1'
    source = "https://github.com/hashicorp/terraform-provider-azurerm/issues/32535"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        return call.build_refusal_reply(404)
        yield call  # never reached: it makes this a generator
