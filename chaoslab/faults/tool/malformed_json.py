"""The answer's JSON is damaged."""

import json
from dataclasses import dataclass, replace
from typing import Self

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class MalformedJson(Fault):
    """Lets the work be done and cuts the answer after a share `part` of its text (drawn if it is 0), so that it is no
    JSON. Status and headers stay. An answer that is no JSON passes unchanged."""

    part: float = 0.0
    layer = "tool"
    leaves = "garbage"
    bounds = {"part": (0.0, 0.99)}  # noqa: RUF012 - a trait, which nobody changes
    example = '"malformed_json", "search", chance=0.1'
    source = "https://github.com/trpc/trpc/issues/4634"

    def draw(self, dice: Dice) -> Self:
        return replace(self, part=self.part or round(dice("part").draw_between(0.2, 0.9), 3))

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        # A stream has faults of its own.
        if reply.stream is not None or reply.value is None:
            return reply
        text = reply.json_text
        cut = text[: int(len(text) * self.part)]
        try:
            json.loads(cut)
            cut += "}"  # a number that was cut is a number, too
        except ValueError:
            cut = cut or "{"
        return reply.with_text(cut)

    def witnessed(self, observation: Observation) -> str | None:
        reply = observation.changed_reply_if_received
        return f"an answer that is no JSON, of {len(reply.body)} bytes, reached the caller" if reply else None
