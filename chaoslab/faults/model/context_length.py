"""The provider refuses the request, since the conversation is longer than the model can read."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.service_spec import CONTEXT_LENGTH


@dataclass(frozen=True)
class ContextLength(Fault):
    """Answers 400 with the provider's own reply to a conversation that is too long. The model is not asked. With
    `after_calls` or `on_turn` the conversation has grown too long in its course."""

    layer = "meaning"
    of_model = True
    met_as = "the provider's refusal of a long conversation, {status}, reached the caller"
    example = '"context_length", "api.openai.com", after_calls=5'
    source = "https://github.com/crewAIInc/crewAI-examples/issues/121"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        return call.build_refusal_reply(CONTEXT_LENGTH if CONTEXT_LENGTH in call.errors else 400)
        yield call  # never reached: it makes this a generator
