"""Nests the faults' stories around one call. `nest_flows` runs them; only a seam's driver, which `run_flow` calls, does
I/O."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from chaoslab.base.boundary import is_raised_by_value, reraise_unless_foreign
from chaoslab.base.differences import describe_differences
from chaoslab.base.jsonable import cut_text, render_brief
from chaoslab.core.events import REPLY_MAX, Event, FaultScheduled
from chaoslab.core.exchange import (
    Ahead,
    Call,
    Failure,
    Flow,
    Note,
    Observation,
    Reply,
    Step,
    Toxic,
    TrialContext,
    UserActs,
    Wait,
)
from chaoslab.core.fault import Fault, guarded, make_broken_fault_error

T = TypeVar("T")
REPLY_SHOWN = 120
"""The most characters that `ActiveFault.describe_changes` shows of a reply that a fault kept from its caller."""


@dataclass
class ActiveFault:
    """A fault that hit one call, and how its story changed the exchange.

    `given` is the call that came to the story, `call` the different one that it sent. `got` is the reply that came
    back, `reply` the different one that it returned. `sent` counts the calls that it sent on. `failed` is the kind of
    the failure that it raised itself. `told` is the time that a clock told which it had moved. `context` is the trial
    around the call. `stands`: it goes on for a time, so a lane with it stays for further calls. `waits`: its story lets
    time pass now. `met`: its caller has witnessed it.
    """

    injection: str
    fault_name: str
    fault: Fault
    context: TrialContext = field(default_factory=TrialContext)
    stands: bool = False
    injected: bool = False
    call: Call | None = None
    reply: Reply | None = None
    given: Call | None = None
    got: Reply | None = None
    sent: int = 0
    failed: str | None = None
    told: str = ""
    waits: bool = False
    met: bool = False

    def toxics(self) -> Sequence[Toxic]:
        """The toxics of the fault's lane. Raises BrokenFault: the fault's code raised."""
        with guarded(self.fault_name, "toxics"):
            return self.fault.toxics()

    def find_evidence(self, observation: Observation) -> str | None:
        """The evidence that the caller met the fault, in words, or None. Raises BrokenFault: the fault's code
        raised."""
        with guarded(self.fault_name, "witnessed"):
            return self.fault.witnessed(observation)

    def explain_idle(self, observation: Observation) -> str:
        """The reason, in words, that the fault had nothing to do with the call, or an empty text. Raises BrokenFault:
        the fault's code raised."""
        with guarded(self.fault_name, "explain_idle"):
            return self.fault.explain_idle(observation)

    def build_scheduled_event(self, call: Call) -> Event:
        """The event to note before the fault acts."""
        return FaultScheduled(
            fault=self.fault_name, injection=self.injection, at=call.attempt_ref, params=dict(vars(self.fault))
        )

    def describe_changes(self) -> str:
        """Each value that the story changed, before and after, in one line of at most `REPLY_MAX` characters."""
        changes = []
        if self.given is not None and self.call is not None:
            changes.append(describe_differences(self.given.value, self.call.value, most=REPLY_MAX))
        if self.sent > 1:
            changes.append(f"sent {self.sent} times")
        if self.reply is not None:
            without = "no answer" if self.sent else "not asked"
            changes.append(_describe_change(self.got, self.reply) if self.got else f"{without} → {self.reply.status}")
        elif self.failed is not None and self.got is not None:
            changes.append(f"{render_brief(self.got.value, REPLY_SHOWN)} → {self.failed}")
        return cut_text("; ".join(filter(None, changes)), REPLY_MAX)


def _describe_change(was: Reply, now: Reply) -> str:
    if was.status != now.status:
        return f"{was.status} → {now.status}"
    changes = describe_differences(was.value, now.value, most=REPLY_MAX)
    return changes or ("" if was.body == now.body else f"{len(was.body)} bytes → {len(now.body)} bytes")


def nest_flows(
    reach: Sequence[Callable[[Call], ActiveFault | None]],
    call: Call,
    on_injected: Callable[[ActiveFault], None] = lambda _: None,
) -> Flow:
    """One flow of several stories: each `yield call` of an outer story goes to the next one, the innermost goes out.

    `reach` holds a function per injection, outermost first. It rolls the injection's dice when the story is reached, so
    a fault that an outer one masks is never rolled. A story is injected if it changed the exchange; `nest_flows` checks
    that itself.
    """
    # Injections that do not hit are passed over here, so that none of them costs a generator of its own.
    for depth in range(len(reach)):
        active = reach[depth](call)
        if active is not None:
            break
    else:
        return (yield call)
    inner_reach = reach[depth + 1 :]

    def mark_injected() -> None:
        if not active.injected:
            active.injected = True
            on_injected(active)

    active.given = call
    with guarded(active.fault_name, "flow"):
        story = active.fault.flow(call, active.context)
    inner: Reply | None = None
    failed: Failure | None = None
    passed_on: Failure | None = None
    answer: Any = None
    fails = False
    try:
        while True:
            active.waits = False
            try:
                step = story.throw(failed) if fails and failed else _advance_flow(story, answer)
                if not isinstance(step, Call | Wait | Ahead | UserActs | Note):
                    wrong = f"it yielded {type(step).__name__}: a story yields a Call or another Step"
                    raise TypeError(wrong)
            except StopIteration as end:
                reply: Reply = end.value
                if not isinstance(reply, Reply):
                    unlike = TypeError(f"it returned {type(reply).__name__}: a story returns a Reply")
                    raise make_broken_fault_error(active.fault_name, "flow", unlike) from None
                # By identity: a story that changes nothing returns the very reply that it got.
                if reply is not inner:
                    active.reply = reply
                    piped = None if inner is None else reply.find_added_pipes(inner)
                    for watched in piped or ():  # its pipes act when the body is read, or never
                        watched.on_change, watched.blame = (
                            mark_injected,
                            partial(make_broken_fault_error, active.fault_name, "flow"),
                        )
                    if piped is None:
                        mark_injected()
                return reply
            except Failure as failure:
                # What the inner call ended with is not the story's own doing; the end of its own wait is.
                if failure is not passed_on:
                    active.failed = failure.kind
                if failure is not failed:
                    mark_injected()
                raise
            except BaseException as error:
                reraise_unless_foreign(error)
                # The values are the program's: one may raise when it is looked at, and then passes as it is.
                if (
                    inner is not None
                    and not active.injected
                    and is_raised_by_value(error, type(active.fault).__module__)
                ):
                    return inner
                raise make_broken_fault_error(active.fault_name, "flow", error) from error
            fails = False
            try:
                if isinstance(step, Call):
                    if step is not call:
                        active.call = step
                    if step is not call or active.sent:
                        mark_injected()
                    active.sent += 1
                    active.got = inner = answer = yield from nest_flows(inner_reach, step, on_injected)
                else:
                    active.waits = isinstance(step, Wait)
                    if isinstance(step, Wait) and step.counts:
                        mark_injected()
                    answer = yield step
                    if isinstance(step, Ahead) and active.sent and answer:
                        active.told = str(answer)
                        mark_injected()
                    if isinstance(step, UserActs) and answer:
                        mark_injected()
            except Failure as failure:
                failed, fails = failure, True
                if isinstance(step, Call):
                    passed_on = failure
    finally:
        failed = passed_on = None  # each holds this frame by its traceback


def _advance_flow(story: Flow, answer: Any) -> Step:
    """The next step of a story that gets this answer to the last one."""
    return next(story) if answer is None else story.send(answer)


class Driver(Protocol):
    """A seam's I/O for a story. `send` and `wait` raise `Failure`, at the attempt's deadline at the latest."""

    async def send(self, call: Call) -> Reply: ...
    async def wait(self, delay_s: float) -> None: ...
    def advance_clock(self, by_s: float) -> str: ...
    def perform_user_act(self, step: UserActs) -> bool: ...
    def log_flow_event(self, event: Event) -> None: ...


async def run_flow(flow: Flow, driver: Driver) -> Reply:
    """Performs the flow's steps until it returns the caller's reply. Raises Failure: the exchange ended without a
    reply."""
    answer: Any = None
    failed: Failure | None = None
    try:
        while True:
            try:
                step = _advance_flow(flow, answer) if failed is None else flow.throw(failed)
            except StopIteration as end:
                reply: Reply = end.value
                return reply
            answer = failed = None
            try:
                if isinstance(step, Call):
                    answer = await driver.send(step)
                elif isinstance(step, Wait):
                    await driver.wait(step.delay_s)
                elif isinstance(step, Ahead):
                    answer = driver.advance_clock(step.by_s)
                elif isinstance(step, UserActs):
                    answer = driver.perform_user_act(step)
                else:
                    driver.log_flow_event(step.event)
            except Failure as failure:
                failed = failure
    finally:
        failed = None  # it holds this frame by its traceback


def run_synchronously(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends, as `run_flow` is with a driver that only blocks. Raises
    RuntimeError: it suspended."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast(T, end.value)  # no name for it: a failure in it holds this frame by its traceback
    raise RuntimeError("a call that is played at once cannot be suspended")
