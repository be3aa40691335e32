"""The failure that the clients of a service meet while its process answers nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chaoslab.core.context import TrialContext
from chaoslab.core.exchange import Call, Failure, Flow, Observation
from chaoslab.core.fault import Fault

WORDS = {"refused": "connection refused", "reset": "connection reset"}


@dataclass(frozen=True)
class OutageCut(Fault):
    """The fault of a call that an outage meets on its way: `error` is refused or reset."""

    error: Literal["refused", "reset"]
    layer = "tool"
    conditional: ClassVar[bool] = True

    def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002
        raise Failure(self.error)
        yield call

    def witnessed(self, seen: Observation) -> str | None:
        if self.error == "reset" and seen.error == "closed":
            return "connection closed without an answer"
        return WORDS[self.error] if seen.error == self.error else None
