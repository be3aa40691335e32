"""One attempt of a call, the same at every seam: asks the plan, tells the stories, judges the caller's observation."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from chaoslab.base.clock import Clock, Skew, format_iso, skew
from chaoslab.core.chain import ActiveFault, nest_flows, run_flow
from chaoslab.core.events import Event, FaultHealed, FaultInjected, FaultWitnessed
from chaoslab.core.exchange import Call, Failure, Observation, PastAttempt, Reply, UserActs
from chaoslab.core.fault import describe_unusable_reply, get_trait
from chaoslab.core.limits import SLICE_S
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import HITS, LASTS, Decision, Injection, select_wire_faults
from chaoslab.core.stream import Streamed


class AttemptFaults:
    """The faults of one attempt. What each injection decided was asked of the trial's memory before. `rolled`: the
    names of the injections that were asked; `active`: the faults that hit. `elapsed_s` and `spent`: the trial's so far.
    `note` takes the events."""

    __slots__ = ("_call", "_elapsed_s", "_memory", "_note", "_spent", "active", "rolled")

    def __init__(
        self,
        memory: TrialMemory,
        call: Call,
        note: Callable[[Event], object],
        *,
        elapsed_s: float = 0.0,
        spent: Mapping[str, float] | None = None,
    ) -> None:
        self._memory, self._call, self._note = memory, call, note
        self._elapsed_s, self._spent = elapsed_s, spent or {}
        self.rolled: list[str] = []
        self.active: list[ActiveFault] = []

    def build_fault_getters(
        self, injections: Sequence[Injection], decisions: Sequence[Decision]
    ) -> list[Callable[[Call], ActiveFault | None]]:
        """A function per injection that the attempt concerns, in the same order, for `chain`. Faults of the wire are
        those that one lane would carry."""
        concerned = [(i, decision) for i, decision in zip(injections, decisions, strict=True) if decision]
        drawing: dict[str, Callable[[], ActiveFault]] = {
            i.name: partial(self._draw_fault, i, self._find_first_attempt(i, decision))
            for i, decision in concerned
            if decision in HITS
        }
        several = [i.name for i, _ in concerned if i.name in drawing and i.layer == "wire"]
        masked: set[str] = set()
        # They share one connection, so before any is reached it has to be known if one of them refuses it.
        if len(several) > 1:
            carried = {active.injection: active for active in select_wire_faults([drawing[name]() for name in several])}
            drawing |= {name: partial(carried.__getitem__, name) for name in carried}
            masked = {name for name in several if name not in carried}
        return [partial(self._activate_fault, i, drawing.get(i.name)) for i, _ in concerned if i.name not in masked]

    def _find_first_attempt(self, injection: Injection, decision: Decision) -> tuple[str, int, int] | None:
        """The attempt that the fault has lasted from, if it does."""
        return self._memory.met[injection.name].first if decision == LASTS else None

    def _activate_fault(
        self, injection: Injection, draw: Callable[[], ActiveFault] | None, _: Call
    ) -> ActiveFault | None:
        """The fault of an injection whose story is reached, if it hits."""
        self.add_asked_injection(injection.name)
        if draw is None:
            return None
        active = draw()
        self.active.append(active)
        # A conditional fault is noted when it acts.
        if not injection.conditional:
            self._note(active.build_scheduled_event(self._call))
        return active

    def _draw_fault(self, injection: Injection, first: tuple[str, int, int] | None) -> ActiveFault:
        active = self._memory.plan.draw_fault(injection, self._call, first)
        active.context = self._memory.build_trial_context(injection.name, self._elapsed_s, self._spent)
        return active

    def log_injected_fault(self, active: ActiveFault) -> None:
        """Notes that the story has changed the exchange; `chain` calls it."""
        if get_trait(active.fault, "conditional"):
            self._note(active.build_scheduled_event(self._call))
        self._note(FaultInjected(fault=active.fault_name, injection=active.injection, at=self._call.at))

    def add_asked_injection(self, injection: str) -> None:
        """Notes that the attempt is one of those that the injection could hit."""
        if injection not in self.rolled:
            self.rolled.append(injection)

    def log_outage_fault(self, active: ActiveFault) -> None:
        """Notes a fault that no injection decided on for this attempt: an outage brought it."""
        active.injected = True
        self.active.append(active)
        self.add_asked_injection(active.injection)
        self._note(active.build_scheduled_event(self._call))
        self._note(FaultInjected(fault=active.fault_name, injection=active.injection, at=self._call.at))

    def log_met_faults(self, observation: Observation) -> str:
        """Notes which of the faults the caller met, once the attempt is over. Returns the words for its reply if one of
        them has left nothing in it to use; else an empty text."""
        reason = ""
        for active in self.active:
            own_observation = observation
            if active.call or active.reply or active.told:
                changes = {"changed_call": active.call, "changed_reply": active.reply, "told": active.told}
                own_observation = Observation(
                    **vars(observation) | changes
                )  # as `replace`, which takes six times as long
            evidence = active.injected and active.find_evidence(own_observation)
            if evidence:
                active.met = True
                self._note(
                    FaultWitnessed(
                        fault=active.fault_name,
                        injection=active.injection,
                        at=self._call.at,
                        evidence=evidence,
                        changed=active.describe_changes(),
                    )
                )
                reason = reason or describe_unusable_reply(active.fault)
        return reason

    def log_masked_faults(self) -> None:
        """Notes the faults that nobody could meet, since another one, which was met, held the call until its caller
        gave it up."""
        # Only one that waited can have kept the others from being met.
        by = next((active.fault_name for active in self.active if active.waits and active.met), "")
        for active in self.active if by else ():
            if active.injected and not active.met:
                name, injection, at = active.fault_name, active.injection, self._call.at
                self._note(FaultHealed(fault=name, injection=injection, at=at, witnessed=False, masked_by=by))


class Attempt(ABC):
    """One attempt of a call, from its caller's request to the answer: a driver of stories.

    A seam's own attempt sends the call, takes the events, and ends the record. `elapsed_s` and `spent`: the trial's
    before the attempt. Waits and replies must fit in `deadline_s`, without the seconds `held_s` in which the lab mended
    itself. `sent` is the call that left last, or None. `waits`: a story lets time pass, or the attempt ended meanwhile.
    `left`: a reply of success in words, if a fault has left nothing in it for its caller to use; else empty.
    """

    left = ""

    def __init__(
        self,
        call: Call,
        memory: TrialMemory,
        candidates: Sequence[Injection],
        decisions: Sequence[Decision],
        *,
        clock: Clock,
        began_s: float,
        deadline_s: float,
        elapsed_s: float,
        spent: Mapping[str, float],
        note: Callable[[Event], object] | None = None,
    ) -> None:
        """`note`: does what the method of this name does. Given, it spares a circle of references."""
        self.call, self.clock, self.began_s, self.deadline_s = call, clock, began_s, deadline_s
        self.held_s = 0.0
        self.waits = False
        self.sent: Call | None = None
        self._skew: Skew | None = None
        self._memory, self._elapsed_s = memory, elapsed_s
        self.faults = AttemptFaults(memory, call, note or self.note, elapsed_s=elapsed_s, spent=spent)
        self._stories = self.faults.build_fault_getters(candidates, decisions)

    @abstractmethod
    async def send(self, call: Call) -> Reply:
        """Sends the call; a step of a story. Raises Failure: no reply came before the deadline."""

    @abstractmethod
    def note(self, event: Event) -> None:
        """Logs an event; a step of a story."""

    async def pause(self, delay_s: float) -> None:
        """Lets time pass, of which there is enough."""
        await self.clock.asleep(delay_s)

    async def pause_unless_faults_end(self, delay_s: float, let_pass: Callable[[float], Awaitable[object]]) -> bool:
        """Lets time pass, unless the plan's limits end its faults meanwhile. Returns True then."""
        guard, until_s = self._memory.guard, self.clock.monotonic() + delay_s
        # In slices, since somebody may end all faults at any time meanwhile.
        while guard.can_end_faults and delay_s > SLICE_S:
            if guard.find_fault_end_reason():
                return True
            await let_pass(SLICE_S)
            delay_s = max(0.0, until_s - self.clock.monotonic())
        await let_pass(delay_s)
        return bool(guard.can_end_faults and guard.find_fault_end_reason())

    async def wait(self, delay_s: float) -> None:
        """Lets time pass, up to the deadline; a step of a story. Raises Failure: the deadline came first."""
        left_s = self.remaining_s
        self.waits = True
        ended = await self.pause_unless_faults_end(max(0.0, min(delay_s, left_s)), self.pause)
        self.waits = False
        # The plan's limits have ended all faults, and no deadline has come.
        if ended:
            return
        if delay_s >= left_s:
            raise Failure("timed_out")

    @property
    def duration_s(self) -> float:
        """Seconds since the attempt began."""
        return self.clock.monotonic() - self.began_s

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline."""
        return self.deadline_s - (self.duration_s - self.held_s)

    async def send_through_faults(self) -> Reply:
        """The caller's reply once all stories are told. Raises Failure: there is none."""
        if not self._stories:
            return await self.send(self.call)
        self._skew = skew.get()
        try:
            return await run_flow(nest_flows(self._stories, self.call, self.handle_injected_fault), self)
        finally:
            if skew.get() is not self._skew:  # its caller may have given it up, and goes on by its own clock
                skew.set(self._skew)

    def advance_clock(self, by_s: float) -> str:
        """Moves the target's wall clock; a step of a story. Returns the time that it has told while it was moved."""
        was = skew.get() or Skew()
        told_ns = None if was is self._skew else was.told_ns  # what it told the caller's own target is none of it
        skew.set(Skew(was.ahead_s + by_s, told_ns))
        return "" if told_ns is None else format_iso(datetime.fromtimestamp(told_ns / 1e9, UTC))

    def perform_user_act(self, step: UserActs) -> bool:
        """Has whoever asks the agent do something; a step of a story."""
        return self._memory.user(step, self.call)

    def handle_injected_fault(self, active: ActiveFault) -> None:
        """Notes that a story has changed the exchange."""
        self.faults.log_injected_fault(active)

    def record_outcome(self, reply: Reply | None, failure: Failure | None, streamed: Streamed | None = None) -> float:
        """Notes which faults the caller met, now that the attempt is over, and returns its duration. `streamed`: the
        reader's view of a streamed reply. A caller that gave up while a fault let it wait had a deadline of its own."""
        took_s, error = self.duration_s, failure.kind if failure else None
        given_up = reply is None and failure is None and self.waits and took_s > 0
        if given_up:
            self.deadline_s, error = took_s, "timed_out"
        # Faults that look back need every exchange, hit or not.
        if self.faults.active or self._memory.plan.needs_earlier_exchanges:
            size = streamed.size if streamed else len(reply.body) if reply else 0
            status = reply.status if reply else None
            self.record_observation(
                Observation(took_s, self.deadline_s, error, status, size, self.sent, reply, streamed=streamed)
            )
            if given_up:
                self.faults.log_masked_faults()
        return took_s

    def record_observation(self, observation: Observation) -> None:
        """Notes which faults the caller met by its observation, and keeps the exchange for faults that look back."""
        reason = self.faults.log_met_faults(observation)
        if reason and observation.error is None and observation.status is not None and observation.status < 400:
            self.left = f"status {observation.status}, and {reason}"
        if self._memory.plan.needs_earlier_exchanges:
            ended_s = self._elapsed_s + observation.duration_s
            true = not any(active.call is not None or active.reply is not None for active in self.faults.active)
            self._memory.keep_exchange(
                PastAttempt(self.call, observation.reply, observation.error, self._elapsed_s, ended_s, true)
            )
