"""The name of a service is not found, as when a resolver is down or a record was deleted."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class DnsFailure(Fault):
    """Ends the call when its client looks up the name: "Name or service not known". Nothing is sent.

    A service of `services=` is looked up once for each connection, and a client that asks by an address, or keeps what
    it has found, does not look up. A function raises `socket.gaierror`. The lab's own agent meets it in its client: no
    lane is needed.
    """

    layer = "tool"
    conditional = True
    refuses = True
    refuses_at = "lookup"
    example = '"dns_failure", "crm.test", chance=0.1'
    source = "https://github.com/Azure-Samples/azure-search-openai-demo/issues/2392"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        raise Failure("dns")
        yield call  # never reached: it makes this a generator

    def witnessed(self, observation: Observation) -> str | None:
        return "the name was not found" if observation.error == "dns" else None
