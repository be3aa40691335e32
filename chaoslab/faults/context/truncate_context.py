"""The oldest messages to the model vanish, as when a context window overflows in silence."""

from dataclasses import dataclass
from typing import Any

from chaoslab.core.dialog import TOOL, Dialog
from chaoslab.core.exchange import Call, Flow, Observation, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class TruncateContext(Fault):
    """Keeps the system's messages and the newest `keep` (0–1, at least one message) of all others.

    The call that a kept tool result answers is kept with it: no provider takes an orphaned result.
    """

    keep: float = 0.5
    layer = "context"
    corrupts = "call"
    bounds = {"keep": (0, 1)}  # noqa: RUF012 - a trait, which nobody changes
    example = '"truncate_context", "api.openai.com", keep=0.5'
    source = "https://github.com/docker/docker-agent/issues/1863"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        messages = call.dialog.list_messages(call.value)
        units_kept = self._keep_newest(messages, call.dialog)
        if len(units_kept) == len(messages):
            return (yield call)
        return (yield call.with_value(call.dialog.with_messages(call.value, units_kept)))

    def _keep_newest(self, messages: list[Any], dialog: Dialog) -> list[Any]:
        system = [m for m in messages if dialog.role(m) == "system"]
        rest = [m for m in messages if dialog.role(m) != "system"]
        start = len(rest) - max(1, int(len(rest) * self.keep))
        while start > 0 and dialog.role(rest[start]) == TOOL:
            start -= 1
        return system + rest[start:]

    def witnessed(self, observation: Observation) -> str | None:
        if (
            observation.changed_call is None
            or observation.sent is None
            or observation.sent.value != observation.changed_call.value
        ):
            return None
        return f"the model was sent {len(observation.sent.dialog.list_messages(observation.sent.value))} messages"
