"""Nobody listens: the connection is refused, as by a service that is down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call, Failure, Flow, Seen, Toxic


@dataclass(frozen=True)
class Refused:
    """The call never leaves: the lane is a port on which a disabled proxy does not listen."""

    layer: ClassVar[str] = "wire"

    def draw(self, dice: Dice) -> Refused:  # noqa: ARG002 - nothing is left to chance
        return self

    def flow(self, call: Call) -> Flow:
        raise Failure("refused")
        yield call

    def toxics(self) -> Sequence[Toxic]:
        return (Toxic("refused", "", {}),)

    def witnessed(self, seen: Seen) -> str | None:
        return "connection refused" if seen.error == "refused" else None
