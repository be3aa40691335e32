"""Shared by the faults' tests: an ideal target in virtual seconds, and a caller that meets one fault."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chaoslab.core.chain import ActiveFault, Driver, nest_flows, run_flow, run_synchronously
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Failure, Flow, Observation, Reply, TrialContext, UserActs
from chaoslab.core.fault import Fault
from chaoslab.core.service_spec import ErrorReply

CALL = Call("weather", "current_weather", "p1.r1", 1, 1, "id", {"city": "Oslo"})


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, headers or {"content-type": "application/json"}, json.dumps(value).encode())


@dataclass(kw_only=True)
class Attempt:
    """The clock and the record of an attempt: time passes only in waits, up to the deadline. `clock`: what the target's
    wall clock tells; empty if it does not ask."""

    deadline_s: float = 2.0
    clock: str = ""
    ahead_s: float = 0.0
    now_s: float = 0.0
    sent: list[Call] = field(default_factory=list)
    notes: list[Event] = field(default_factory=list)
    user_acts: bool = True
    deeds: list[UserActs] = field(default_factory=list)

    async def wait(self, delay_s: float) -> None:
        left_s = self.deadline_s - self.now_s
        self.now_s += min(delay_s, left_s)
        if delay_s >= left_s:
            raise Failure("timed_out")

    def advance_clock(self, by_s: float) -> str:
        self.ahead_s += by_s
        return self.clock if self.sent else ""

    def perform_user_act(self, step: UserActs) -> bool:
        self.deeds.append(step)
        return self.user_acts

    def log_flow_event(self, event: Event) -> None:
        self.notes.append(event)


@dataclass
class Target(Attempt):
    """Answers at once, or fails as it is told to."""

    reply: Reply = field(default_factory=lambda: answer({"temp": 20}))
    fails: str = ""

    async def send(self, call: Call) -> Reply:
        self.sent.append(call)
        if self.fails:
            raise Failure(self.fails)
        return self.reply


def played(flow: Flow, driver: Driver) -> Reply:
    """The reply that `play` gets with a driver that never really waits."""
    return run_synchronously(run_flow(flow, driver))


@dataclass
class Meeting:
    """The outcome of a call: its reply or error, the story as it was told, and the caller's observation."""

    reply: Reply | None
    error: str | None
    active: ActiveFault
    seen: Observation

    @property
    def injected(self) -> bool:
        return self.active.injected

    @property
    def evidence(self) -> str | None:
        return self.active.fault.witnessed(self.seen)


def meet(fault: Fault, target: Target | None = None, *, call: Call = CALL, **context: Any) -> Meeting:
    """One call to the target with this fault in its way. `context`: fields of the trial around it."""
    target = target or Target()
    active = ActiveFault("injection", type(fault).__name__, fault, TrialContext(**context))
    reply: Reply | None = None
    error: str | None = None
    try:
        reply = played(nest_flows([lambda _: active], call), target)
    except Failure as failure:
        error = failure.kind
    seen = Observation(
        target.now_s, target.deadline_s, error, reply.status if reply else None, len(reply.body) if reply else 0,
        target.sent[-1] if target.sent else None, reply, active.call, active.reply,
    )  # fmt: skip
    return Meeting(reply, error, active, seen)


def saw(*, error: str | None = None, after_s: float = 0.1, deadline_s: float = 2.0) -> Observation:
    """An observation as a lane of the wire gives it: no stories, only time, status and error."""
    return Observation(after_s, deadline_s, error, None if error else 200)


WORDS = {429: ErrorReply(429, {"busy": True}, {"Retry-After": "3"}), 402: ErrorReply(402, {"broke": True})}
