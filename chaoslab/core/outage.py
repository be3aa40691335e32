"""An outage: the time in which the process of a service answers nobody, and the failure that its clients meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from chaoslab.core.context import TrialContext
from chaoslab.core.exchange import Call, Failure, Flow, Observation
from chaoslab.core.fault import Fault

WORDS = {"refused": "connection refused", "reset": "connection reset"}


@dataclass(frozen=True)
class Cut(Fault):
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


@dataclass(frozen=True)
class Outage:
    """The outage that a fault begins in the moment in which it acts.

    `for_s`: its length in seconds. `lost`: the process begins without the state that it had. `held`: gives
    the fault of a call that comes when so many seconds are left, for a process that is paused; None for one that is
    down, whose connections are refused.
    """

    for_s: float
    lost: bool = False
    held: Callable[[float], Fault] | None = None
