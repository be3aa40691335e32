"""The connection is refused, as by a service that is down."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class Refused(Fault):
    """Keeps the call from leaving: its lane is the port of a disabled proxy, which does not listen."""

    layer = "wire"
    common = True
    refuses = True
    example = '"refused", "search", chance=0.2'
    source = "https://github.com/Shopify/toxiproxy#down"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        raise Failure("refused")
        yield call  # never reached: it makes this a generator

    def witnessed(self, observation: Observation) -> str | None:
        return "connection refused" if observation.error == "refused" else None
