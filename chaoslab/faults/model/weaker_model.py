"""Another, weaker model answers under the same name."""

from collections.abc import Mapping
from dataclasses import dataclass

from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class WeakerModel(Fault):
    """Asks for the model `model` in place of the one that the request names, and a whole answer names that one all the
    same. Empty: its name with "-mini". A script or a recording says what it says under any name, so it takes a real
    model, or an application that knows both.
    """

    model: str = ""
    layer = "meaning"
    of_model = True
    corrupts = "call"
    needs = "a request that names its model"
    example = '"weaker_model", "api.openai.com", model="gpt-5-nano"'
    source = "https://github.com/miuuyy/codex-chatgpt-web/issues/594"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        asked = call.value.get("model") if isinstance(call.value, Mapping) else None
        if not isinstance(asked, str):
            return (yield call)
        weaker = self.model or f"{asked}-mini"
        reply: Reply = yield call.with_value({**call.value, "model": weaker})
        value = reply.value if reply.stream is None else None
        if isinstance(value, dict) and value.get("model") == weaker:
            return reply.with_value({**value, "model": asked})
        return reply

    def witnessed(self, observation: Observation) -> str | None:
        asked, sent = observation.changed_call, observation.sent
        is_sent = asked is not None and sent is not None and sent.value == asked.value
        return "another model was asked" if is_sent and observation.error is None else None
