"""The certificate of a service has expired, so its client ends the handshake."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Failure, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class TlsFailure(Fault):
    """Ends the call in the handshake: "certificate verify failed: certificate has expired". No request is sent.

    A service of `services=` is met over https alone, and not by a client that checks no certificates. A function raises
    `ssl.SSLCertVerificationError`.
    """

    layer = "tool"
    conditional = True
    refuses = True
    refuses_at = "handshake"
    example = '"tls_failure", "crm.test", chance=0.1'
    source = "https://github.com/langchain-ai/langsmith-sdk/issues/1707"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        raise Failure("untrusted")
        yield call  # never reached: it makes this a generator

    def witnessed(self, observation: Observation) -> str | None:
        return "the certificate was not trusted" if observation.error == "untrusted" else None
