"""The service does the work; its answer never arrives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call, Flow, Reply, Seen, Toxic, Wait, forever


@dataclass(frozen=True)
class LostReply:
    """The effect happens, and the caller's own deadline ends the wait for the answer."""

    layer: ClassVar[str] = "tool"

    def draw(self, dice: Dice) -> LostReply:  # noqa: ARG002 - nothing is left to chance
        return self

    def flow(self, call: Call) -> Flow:
        reply: Reply = yield call
        yield Wait(forever)
        return reply

    def toxics(self) -> Sequence[Toxic]:
        return ()

    def witnessed(self, seen: Seen) -> str | None:
        if seen.error != "timed_out" or seen.reply is not None:
            return None
        return f"the work was done, no answer within {seen.deadline_s:g} s"
