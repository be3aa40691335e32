"""The oldest messages vanish from what the model is sent, as when a context window overflows in silence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call, Flow, Seen, Toxic


@dataclass(frozen=True)
class TruncateContext:
    """Keeps the system's messages and the newest `keep` (0–1, at least one message) of all others.

    The call that a kept tool result answers is kept with it: no provider takes an orphaned result.
    """

    keep: float = 0.5
    layer: ClassVar[str] = "context"
    corrupts: ClassVar[str] = "call"

    def draw(self, dice: Dice) -> TruncateContext:  # noqa: ARG002 - nothing is left to chance
        return self

    def flow(self, call: Call) -> Flow:
        messages: list[dict[str, Any]] = (call.value or {}).get("messages", [])
        kept = self._kept(messages)
        if len(kept) == len(messages):
            return (yield call)
        return (yield call.with_value({**call.value, "messages": kept}))

    def _kept(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        system = [m for m in messages if m.get("role") == "system"]
        others = [m for m in messages if m.get("role") != "system"]
        start = len(others) - max(1, int(len(others) * self.keep))
        while start > 0 and others[start].get("role") == "tool":
            start -= 1
        return system + others[start:]

    def toxics(self) -> Sequence[Toxic]:
        return ()

    def witnessed(self, seen: Seen) -> str | None:
        if seen.told_call is None or seen.sent is None or seen.sent.value != seen.told_call.value:
            return None
        return f"the model was sent {len(seen.sent.value['messages'])} messages"
