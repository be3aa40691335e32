"""Connections to a service that are refused: by a fault, before a request is sent, or since the service is down. A
refused connection is the first attempt of the next new request to the service."""

from collections.abc import Callable, Iterable, Sequence

from chaoslab.base.clock import Clock
from chaoslab.base.identity import Request
from chaoslab.base.user_line import find_user_line
from chaoslab.core import events
from chaoslab.core.attempt import AttemptFaults
from chaoslab.core.chain import nest_flows, run_flow, run_synchronously
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Failure, Observation, Reply, UserActs
from chaoslab.core.fault import OutageCut, get_trait, load_fault
from chaoslab.core.memory import Decisions, TrialMemory
from chaoslab.core.plan import HITS, Candidates, Decision, Injection, Plan
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.services._outages import CurrentOutage, Outages
from chaoslab.seams.services.line import Step

# The tool of an attempt that ended when its connection was made, since the request itself was never sent.
CONNECT = "connect"


def is_refusing_injection(injection: Injection) -> bool:
    """True if a fault of the injection refuses connections."""
    return any(get_trait(load_fault(choice.fault), "refuses") for choice in injection.choices)


def get_refusal_step(injection: Injection) -> Step:
    """The step in which an injection that refuses connections does so."""
    step: Step = next(
        get_trait(fault, "refuses_at")
        for fault in (load_fault(choice.fault) for choice in injection.choices)
        if get_trait(fault, "refuses")
    )
    return step


def check_refusal_conditions(injections: Iterable[Injection], services: Iterable[str]) -> None:
    """Checks that each injection can meet the services that it is aimed at. Raises ValueError: one refuses connections
    by what a request says, and there is none yet."""
    names = list(services)
    for injection in injections:
        hit = next((name for name in names if injection.covers(name)), None)
        unknown = next((name for name in ("tool", "when") if name in injection.triggers), None)
        if hit is not None and unknown is not None and is_refusing_injection(injection):
            raise ValueError(
                f"'{injection.name}' refuses connections to the service {hit}, which are made before a request tells "
                f"its {'tool' if unknown == 'tool' else 'arguments'}: leave out {unknown}="
            )


class Refusals:
    """The refused connections of a trial. `timeout_s`: the longest that a client waits; `connected` is called with the
    name of each service that a client tried to connect to."""

    def __init__(
        self, plan: Plan, outages: Outages, *, timeout_s: float, clock: Clock, connected: Callable[[str], object]
    ) -> None:
        self.plan, self.outages, self.timeout_s, self.clock = plan, outages, timeout_s, clock
        self._connected = connected
        self.book: TrialLog | None = None
        self.memory = TrialMemory(plan, "")
        self._pending: dict[str, Request] = {}
        self._reach: dict[str, Candidates] = {}
        self._steps: dict[tuple[str, Step], Candidates] = {}

    def begin_trial(self, book: TrialLog, memory: TrialMemory) -> None:
        """Begins a trial."""
        self.book, self.memory, self._pending = book, memory, {}

    def change_plan(self, plan: Plan) -> None:
        """Puts another plan in force, between two trials."""
        self.plan = plan
        # They hold injections of the plan that is no more.
        self._reach.clear()
        self._steps.clear()

    def end_trial(self) -> None:
        """Ends the trial: no connection is refused any more."""
        self.book = None

    def get_pending_request(self, name: str) -> Request | None:
        """The request whose connection was refused last, if no other has taken its place."""
        return self._pending.get(name)

    def forget_pending(self, name: str) -> None:
        """A new request has taken the place of the one whose connection was refused."""
        del self._pending[name]

    def get_refusing_injections(self, name: str) -> Candidates:
        """The injections that may refuse a connection to the service."""
        candidates = self._reach.get(name)
        if candidates is None:
            candidates = self._reach[name] = Candidates(filter(is_refusing_injection, self.plan.find_candidates(name)))
        return candidates

    def decide_connection_refusal(
        self, name: str, trip_s: float, step: Step = "connection"
    ) -> Callable[[], None] | None:
        """The function to call when the client is told that its connection fails in this step; None if it does not."""
        book, reach = self.book, self._get_injections_at_step(name, step)
        if book is None:
            return None
        # In the step of connecting alone: the name of a dead service is still found here.
        if step == "connection" and (down := self.outages.find_refusing_outage(name)) is not None:
            return self._refuse_by_outage(down, book, name, trip_s)
        if not reach:
            return None
        pending = self._pending.get(name)
        number, attempt = (
            (pending.number, pending.attempts + 1) if pending else (book.requests.count_requests(name) + 1, 1)
        )
        # Looked at first without counting: only a connection that will be refused is an attempt by itself.
        if not any(
            decision in HITS for decision in self._decide_injections(reach, name, number, attempt, foreseen=True)
        ):
            return None
        decisions = self._decide_injections(reach, name, number, attempt)
        self.memory.guard.end_attempt(name, number, attempt)  # it is refused at once
        if not decisions.hit:
            return None
        if pending is None:
            # With a number for its content, since nobody knows what the client is going to ask.
            pending = self._pending[name] = book.requests.find_or_create(name, f"{name} {CONNECT}", [number])
        call, faults, began_s = self._start_connect_attempt(book, name, pending, trip_s)
        return self._make_refusal_callback(
            book, call, faults, began_s, _find_failure_kind(faults, reach, decisions, call)
        )

    def _refuse_by_outage(self, down: CurrentOutage, book: TrialLog, name: str, trip_s: float) -> Callable[[], None]:
        """The same for a connection to a service that is down. It tells no request, so it counts as an attempt of the
        one at which the outage began."""
        call, faults, began_s = self._start_connect_attempt(book, name, down.request, trip_s)
        faults.log_outage_fault(down.make_cut_fault(OutageCut("refused")))
        return self._make_refusal_callback(book, call, faults, began_s, "refused")

    def _start_connect_attempt(
        self, book: TrialLog, name: str, request: Request, trip_s: float
    ) -> tuple[Call, AttemptFaults, float]:
        """The attempt that a failed connection is, its faults, and the moment at which it began."""
        self._connected(name)
        book.calls += 1
        began_s = self.clock.monotonic() - trip_s
        number, attempt = request.number, request.count_attempt()
        call = Call(name, CONNECT, book.key, number, attempt, request.id, turn=book.requests.turn)
        book.note_event(events.CallStarted(at=call.attempt_ref, tool=CONNECT))
        if book.lines is not None:
            book.lines.append(find_user_line())
        return call, AttemptFaults(self.memory, call, book.note_event, elapsed_s=began_s - book.origin), began_s

    def _make_refusal_callback(
        self, book: TrialLog, call: Call, faults: AttemptFaults, began_s: float, kind: str
    ) -> Callable[[], None]:
        """The function to call when the client is told that its connection failed."""

        def log_refused_attempt() -> None:
            duration_s = self.clock.monotonic() - began_s
            faults.log_met_faults(Observation(duration_s=duration_s, deadline_s=self.timeout_s, error=kind))
            book.note_event(
                events.CallFinished(
                    at=call.attempt_ref,
                    tool=CONNECT,
                    ok=False,
                    duration_s=round(duration_s, 6),
                    error=kind,
                    via="none",
                    rolled=faults.rolled,
                )
            )

        return log_refused_attempt

    def _get_injections_at_step(self, name: str, step: Step) -> Candidates:
        """The injections that may refuse a connection to the service in this step."""
        candidates = self._steps.get((name, step))
        if candidates is None:
            candidates = self._steps[name, step] = Candidates(
                i for i in self.get_refusing_injections(name) if get_refusal_step(i) == step
            )
        return candidates

    def will_refuse_next_request(self, name: str) -> bool:
        """True if the next new request to the service will be refused, as far as that is known."""
        book, reach = self.book, self.get_refusing_injections(name)
        if book is None or not reach:
            # The next request, as a kept connection leaves no other moment to refuse one.
            return False
        number = book.requests.count_requests(name) + 1
        return any(decision in HITS for decision in self._decide_injections(reach, name, number, 1, foreseen=True))

    def list_sparing_injections(self, name: str, number: int, attempt: int) -> list[str]:
        """The injections whose dice let this attempt's connection pass."""
        reach = self.get_refusing_injections(name)
        if not reach:
            return []
        decisions = self._decide_injections(reach, name, number, attempt, foreseen=True)
        return [
            injection.name
            for injection, decision in zip(reach, decisions, strict=True)
            # it had no such step
            if decision and not (decision in HITS and get_refusal_step(injection) != "connection")
        ]

    def _decide_injections(
        self, reach: Candidates, name: str, number: int, attempt: int, *, foreseen: bool = False
    ) -> Decisions:
        """The decisions on a connection. `foreseen`: they are not counted, and no limit holds them back."""
        assert self.book is not None
        occasion = self.memory.build_occasion(name, CONNECT, number, attempt)
        occasion.elapsed_s = self.clock.monotonic() - self.book.origin
        if foreseen:
            return Decisions(
                reach, [injection.decide(occasion, occasion.get_hits(injection.name)) for injection in reach]
            )
        return self.memory.decide_hits(reach, occasion)


def _find_failure_kind(faults: AttemptFaults, reach: Candidates, decisions: Sequence[Decision], call: Call) -> str:
    """The kind of failure with which the stories end a connection."""
    try:
        run_synchronously(
            run_flow(
                nest_flows(faults.build_fault_getters(reach, decisions), call, faults.log_injected_fault),
                _InertRefusingDriver(),
            )
        )
    except Failure as failure:
        return failure.kind
    return "refused"


class _InertRefusingDriver:
    """The driver of stories that refuse: nothing is sent."""

    async def send(self, call: Call) -> Reply:  # noqa: ARG002
        raise Failure("refused")

    async def wait(self, delay_s: float) -> None:  # noqa: ARG002
        raise Failure("refused")

    def advance_clock(self, by_s: float) -> str:  # noqa: ARG002
        return ""

    def perform_user_act(self, step: UserActs) -> bool:  # noqa: ARG002
        return False

    def log_flow_event(self, event: Event) -> None:
        """Does nothing: a story that refuses has nothing to tell."""
