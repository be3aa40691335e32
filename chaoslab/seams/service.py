"""The seam of a user's services: HTTP on the server's side, where the requests of every client come by.

A request that was read whole is an exchange. All of the plan's stories run before and after the application's work,
those of the wire too. A fault is witnessed by what the client took from its end of the connection, so the seam is told
of that by the world (`Line`, `Seen`). A request that no fault hits is answered as without the seam, and is noted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain as chain_of
from math import inf, isinf
from typing import Any, Literal, Protocol

from chaoslab.base.clock import Clock, system
from chaoslab.base.identity import Request
from chaoslab.base.jsonable import line, line_of, to_jsonable
from chaoslab.base.values import fixed
from chaoslab.core import events
from chaoslab.core.attempt import Attempt, AttemptFaults
from chaoslab.core.chain import ActiveFault, at_once, chain, play
from chaoslab.core.dialog import CHAT
from chaoslab.core.events import REPLY_MAX, Event
from chaoslab.core.exchange import Call, Failure, Observation, Reply
from chaoslab.core.fault import load, trait
from chaoslab.core.memory import Decisions, TrialMemory
from chaoslab.core.outage import Cut
from chaoslab.core.pipe import Pipe, Signal
from chaoslab.core.plan import HITS, Candidates, Decision, Injection, Plan
from chaoslab.core.service_spec import ErrorReply
from chaoslab.core.stream import Piped, Streamed
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams import client_retry, service_mcp
from chaoslab.seams.service_http import LENGTHS, Fields, HttpRequest, Served, is_stream
from chaoslab.seams.service_model import Heard, ModelHost, ModelRequest, Spent, free
from chaoslab.seams.service_outage import Current, Outages
from chaoslab.wire.body import BODY_MAX

EFFECT = "X-Lab-Effect"
"""The header of a reply in which a service says what it did: "none", a JSON object such as {"effect": "order_placed",
"item": "tea"}, or a list of these. Without it, an unsafe request with a status of 2xx is one effect."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""The methods without effects (RFC 9110, section 9.2.1)."""
REPEATABLE = frozenset({"PUT", "DELETE"})
"""The unsafe methods of which several equal requests have the effect of one (RFC 9110, section 9.2.2)."""
CONNECT = "connect"
"""The tool of an attempt that ended when its connection was made, since the request itself was never sent."""
ERRORS = {429: ErrorReply(429, {"error": "Too Many Requests"}, {"Retry-After": "1"})}

Step = Literal["lookup", "connection", "handshake"]
"""The steps of making a connection: its name is looked up, it is made, and TLS is agreed on."""
Answered = tuple[int, Fields, bytes]
"""Status, headers and the whole body."""
Started = list[tuple[str, list[tuple[str, str]]]]
"""The status line and the headers of an answer, once the application has stated them."""


@fixed(frozen=True)
class Seen:
    """The end of an exchange on the client's side. `error`: reset, closed, garbled, left (the client hung up before it
    had the whole reply), or None. `answer`: as much as the client took; None before a whole head. `waited`: the client
    waited for more. `streamed`: its view of a stream of events. `gave_up`: if it left, a timeout may be the reason."""

    error: str | None
    answer: Answered | None
    bytes: int
    waited: bool = False
    streamed: Streamed | None = None
    gave_up: bool = True


class Answer(Protocol):
    """An application's answer that has begun."""

    status: int
    fields: list[tuple[str, str]]

    def whole(self) -> Answered:
        """The whole answer."""

    def parts(self) -> Iterator[bytes]:
        """The body as it comes.

        Raises:
            Failure: the application failed in its middle.
        """


class _Parts:
    """The body of a streamed answer, for `Reply.stream`."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self.left = parts

    async def take(self) -> bytes | None:
        return next(self.left, None)

    async def aclose(self) -> None:
        """Does nothing: the answer ends with its iterator."""


class Line(Protocol):
    """The connection that a request came on, as the world offers it."""

    @property
    def trip_s(self) -> float:
        """The time from one end to the other."""

    def application(self, request: HttpRequest) -> Answer:
        """The application's answer to the request."""

    def wait(self, delay_s: float) -> bool:
        """Lets time pass; True if the client hung up meanwhile, or before."""

    def lapse(self) -> None:
        """Ends the exchange as if the client had hung up now."""


def refuses(injection: Injection) -> bool:
    """True if a fault of the injection refuses connections."""
    return any(trait(load(choice.fault), "refuses") for choice in injection.choices)


def refuses_at(injection: Injection) -> Step:
    """The step in which an injection that refuses connections does so."""
    found: Step = next(
        trait(fault, "refuses_at") for fault in (load(each.fault) for each in injection.choices)
        if trait(fault, "refuses")
    )  # fmt: skip
    return found


def check(injections: Iterable[Injection], services: Iterable[str]) -> None:
    """Checks that each injection can meet the services that it is aimed at.

    Raises:
        ValueError: one refuses connections by what a request says, and there is none yet.
    """
    names = list(services)
    for injection in injections:
        hit = next((name for name in names if injection.covers(name)), None)
        unknown = next((name for name in ("tool", "when") if name in injection.triggers), None)
        if hit is not None and unknown is not None and refuses(injection):
            raise ValueError(
                f"'{injection.name}' refuses connections to the service {hit}, which are made before a request tells "
                f"its {'tool' if unknown == 'tool' else 'arguments'}: leave out {unknown}="
            )


class ServiceSeam:
    """Decides and notes the requests to services. `timeout_s` ends the wait for an answer that never comes, if the
    client does not hang up before. `models`: the services that speak a model's API; `price` gives the cost in USD of an
    answer: (model, tokens in, tokens out) → cost or None. `mcp_reads`: tools of MCP servers that only read, beside
    those of which their servers say so.

    A refused connection is the first attempt of the next new request, and an answer before one that will be refused
    closes its connection, so that the client has to make another.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        timeout_s: float,
        clock: Clock = system,
        models: Mapping[str, ModelHost] | None = None,
        price: Callable[[str, int, int], float | None] = free,
        mcp_reads: Iterable[str] = (),
    ) -> None:
        self.plan, self.timeout_s, self.clock = plan, timeout_s, clock
        self.models, self.price = models or {}, price
        self._mcp_reads, self._mcp_listed = frozenset(mcp_reads), dict[str, set[str]]()
        self.spent = Spent(price=price)
        self.book: TrialLog | None = None
        self.memory = TrialMemory(plan, "")
        self.asked_of: set[str] = set()
        self.open: dict[int, ServiceAttempt] = {}
        """The attempts whose clients have not ended them."""
        self.settle: Callable[[], object] = lambda: None
        """Waits until replies that were sent are noted; in virtual time they are."""
        self.outages = Outages(clock)
        self._refused: dict[str, Request] = {}
        self._reach: dict[tuple[str, bool], tuple[Candidates, Candidates]] = {}
        self._steps: dict[tuple[str, Step], Candidates] = {}

    def begin(self, book: TrialLog, memory: TrialMemory, *, spent_usd: float = 0.0) -> None:
        """Begins a trial, whose requests go into this log. `memory`: the one of all the trial's seams. `spent_usd`: the
        run's spending before it."""
        self.book, self.memory = book, memory
        self.spent = Spent(cost_usd=spent_usd, price=self.price)
        self.asked_of, self.open, self._refused = set(), {}, {}
        self._mcp_listed.clear()
        self.outages.clear()

    def end(self) -> None:
        """Ends the trial, and the attempts that are open still."""
        self.settle()
        for attempt in list(self.open.values()):
            attempt.cut()
        self.book = None

    def asked(self, name: str, request: HttpRequest, line: Line) -> ServiceAttempt | None:
        """The attempt that a request to a service is; None outside of a trial."""
        return None if self.book is None else ServiceAttempt(self, self.book, name, request, line)

    def never_hits(self, name: str) -> bool:
        """True if nothing in the plan can hit a request to the service, and nothing else is noted of one than that it
        was made and what came of it."""
        return name not in self.models and not self.plan.looks_back and not any(self.reach(name, chat=True))

    def lists_tools(self, name: str, body: bytes) -> None:
        """Takes a service's list of its tools in MCP."""
        self._mcp_listed.setdefault(name, set()).update(service_mcp.read_only(body))

    def only_read(self, name: str) -> Collection[str]:
        """The tools of a service in MCP whose calls are no effects."""
        return self._mcp_reads | self._mcp_listed.get(name, frozenset())

    def refuses(self, name: str, trip_s: float, step: Step = "connection") -> Callable[[], None] | None:
        """The function to call when the client is told that its connection fails in this step; None if it does not."""
        book, reach = self.book, self._refusing(name, step)
        if book is None:
            return None
        if step == "connection" and (down := self.outages.down(name)) is not None:
            return self._refused_by(down, book, name, trip_s)
        if not reach:
            return None
        pending = self._refused.get(name)
        number, attempt = (pending.number, pending.attempts + 1) if pending else (book.requests.made(name) + 1, 1)
        if not any(decision in HITS for decision in self._decisions(reach, name, number, attempt, foreseen=True)):
            return None
        decisions = self._decisions(reach, name, number, attempt)
        if pending is None:
            pending = self._refused[name] = book.requests.ask(name, f"{name} {CONNECT}", [number])
        call, faults, began_s = self._connecting(book, name, pending, trip_s)
        return self._refusal_told(book, call, faults, began_s, _refusal(faults, reach, decisions, call))

    def _refused_by(self, down: Current, book: TrialLog, name: str, trip_s: float) -> Callable[[], None]:
        """The same for a connection to a service that is down. It tells no request, so it counts as an attempt of the
        one at which the outage began."""
        call, faults, began_s = self._connecting(book, name, down.request, trip_s)
        faults.struck(down.cut(Cut("refused")))
        return self._refusal_told(book, call, faults, began_s, "refused")

    def _connecting(
        self, book: TrialLog, name: str, request: Request, trip_s: float
    ) -> tuple[Call, AttemptFaults, float]:
        """The attempt that a failed connection is, its faults, and the moment at which it began."""
        self.asked_of.add(name)
        book.calls += 1
        began_s = self.clock.monotonic() - trip_s
        number, attempt = request.number, request.next_attempt()
        call = Call(name, CONNECT, book.key, number, attempt, request.id, turn=book.requests.turn)
        book.note(events.CallStarted(at=call.at, tool=CONNECT))
        return call, AttemptFaults(self.memory, call, book.note, elapsed_s=began_s - book.origin), began_s

    def _refusal_told(
        self, book: TrialLog, call: Call, faults: AttemptFaults, began_s: float, kind: str
    ) -> Callable[[], None]:
        """The function to call when the client is told that its connection failed."""

        def told() -> None:
            duration_s = self.clock.monotonic() - began_s
            faults.witnessed(Observation(duration_s=duration_s, deadline_s=self.timeout_s, error=kind))
            book.note(
                events.CallFinished(
                    at=call.at,
                    tool=CONNECT,
                    ok=False,
                    duration_s=round(duration_s, 6),
                    error=kind,
                    via="none",
                    rolled=faults.rolled,
                )
            )

        return told

    def _refusing(self, name: str, step: Step) -> Candidates:
        """The injections that may refuse a connection to the service in this step."""
        found = self._steps.get((name, step))
        if found is None:
            found = self._steps[name, step] = Candidates(i for i in self.reach(name)[1] if refuses_at(i) == step)
        return found

    def will_refuse(self, name: str) -> bool:
        """True if the next new request to the service will be refused, as far as that is known."""
        book, reach = self.book, self.reach(name)[1]
        if book is None or not reach:
            return False
        number = book.requests.made(name) + 1
        return any(each in HITS for each in self._decisions(reach, name, number, 1, foreseen=True))

    def reach(self, name: str, *, chat: bool = False) -> tuple[Candidates, Candidates]:
        """The injections that may hit a request to a service, and those that may refuse a connection to it. `chat`: the
        request is one to a model, whose context can be hit too."""
        found = self._reach.get((name, chat))
        if found is None:
            all_ = [i for i in self.plan.candidates(name) if chat or i.layer != "context"]
            found = Candidates(i for i in all_ if not refuses(i)), Candidates(filter(refuses, all_))
            self._reach[name, chat] = found
        return found

    def request(self, name: str, tool: str, intent: str, *, safe: bool) -> Request:
        """The numbered request with this intent. A new one takes the place of the one whose connection was refused."""
        assert self.book is not None
        pending = self._refused.get(name)
        asked = self.book.requests.ask(name, f"{name} {tool}", None, spelt=intent, safe=safe, instead=pending)
        if asked is pending:
            del self._refused[name]
        return asked

    def refused(self, name: str) -> Request | None:
        """The request whose connection was refused last, if no other has taken its place."""
        return self._refused.get(name)

    def let_pass(self, name: str, number: int, attempt: int) -> list[str]:
        """The injections whose dice let this attempt's connection pass."""
        reach = self.reach(name)[1]
        if not reach:
            return []
        decisions = self._decisions(reach, name, number, attempt, foreseen=True)
        return [
            each.name
            for each, decision in zip(reach, decisions, strict=True)
            if decision and not (decision in HITS and refuses_at(each) != "connection")  # it had no such step
        ]

    def _decisions(
        self, reach: Candidates, name: str, number: int, attempt: int, *, foreseen: bool = False
    ) -> list[Decision]:
        """The decisions on a connection. `foreseen`: they are not counted."""
        assert self.book is not None
        occasion = self.memory.occasion(name, CONNECT, number, attempt)
        occasion.elapsed_s = self.clock.monotonic() - self.book.origin
        if foreseen:
            return [injection.decide(occasion, occasion.of(injection.name)) for injection in reach]
        return self.memory.decide(reach, occasion)


def _refusal(faults: AttemptFaults, reach: Candidates, decisions: Sequence[Decision], call: Call) -> str:
    """The kind of failure with which the stories end a connection."""
    try:
        at_once(play(chain(faults.stories(reach, decisions), call, faults.injected), _Nowhere()))
    except Failure as failure:
        return failure.kind
    return "refused"


class _Nowhere:
    """The driver of stories that refuse: nothing is sent."""

    async def send(self, call: Call) -> Reply:  # noqa: ARG002
        raise Failure("refused")

    async def wait(self, delay_s: float) -> None:  # noqa: ARG002
        raise Failure("refused")

    def ahead(self, by_s: float) -> str:  # noqa: ARG002
        return ""

    def note(self, event: Event) -> None:
        """Does nothing: a story that refuses has nothing to tell."""


class ServiceAttempt(Attempt):
    """One request to a service, from its arrival until its client has the reply."""

    def __init__(self, seam: ServiceSeam, book: TrialLog, name: str, request: HttpRequest, line: Line) -> None:
        self.seam, self.book, self.name, self.request, self.line = seam, book, name, request, line
        began_s = seam.clock.monotonic() - line.trip_s
        self.tool = f"{request.method} {request.path}"
        self.value = request.meaning()
        host = seam.models.get(name)
        self.of_model, self.chat = host is not None, ModelRequest.of(host, request)
        self.via = "none"
        self.over = False
        self.waited_s: float | None = None
        self.reply: Served | None = None
        self._fields: Fields = ()
        """The headers of a streamed answer."""
        safe = request.method in SAFE or self.of_model
        refused = seam.refused(name)
        self.asked = seam.request(name, self.tool, request.intent(self.value), safe=safe)
        elapsed_s = began_s - book.origin
        spent = {
            "calls": book.calls, "seconds": elapsed_s, "tokens": seam.spent.tokens, "cost_usd": seam.spent.cost_usd
        }  # fmt: skip
        book.calls += 1
        seam.asked_of.add(name)
        number, attempt = self.asked.number, self.asked.next_attempt()
        held = seam.outages.held(name)
        reach, decisions = seam.reach(name, chat=self.chat is not None)[0], Decisions()
        if held is not None:
            reach = reach.without_outages
        if reach:
            occasion = seam.memory.occasion(name, self.tool, number, attempt, elapsed_s=elapsed_s, arguments=self.value)
            decisions = seam.memory.decide(reach, occasion)
        self.hit = decisions.hit or held is not None
        """True if a fault hits it: `play` answers it then, else the application, through `answering`."""
        errors: Mapping[int, ErrorReply] = ERRORS
        if self.hit and host is not None:
            errors = host.errors_of(request.path, {key.decode("latin-1").lower() for key, _ in request.headers})
        call = Call(
            name, self.tool, book.key, number, attempt, self.asked.id, self.value, errors,
            CHAT if self.chat is None else self.chat.format.dialog, turn=book.requests.turn,
        )  # fmt: skip
        shown = to_jsonable(self.value) if self.chat is None else self.chat.shown(self.value)
        again = client_retry.stated(request.header(client_retry.HEADER.encode())) if attempt > 1 else None
        book.note(events.CallStarted(at=call.at, tool=self.tool, arguments=shown, client_retry=again))
        super().__init__(
            call,
            seam.memory,
            reach if self.hit else (),
            decisions if self.hit else (),
            clock=seam.clock,
            began_s=began_s,
            deadline_s=seam.timeout_s,
            elapsed_s=elapsed_s,
            spent=spent,
            note=book.note,
        )
        if held is not None:
            self.faults.active.append(held)
            self.faults.asked(held.injection)
            self._stories.insert(0, lambda _: held)
        self._broken_by: Current | None = None
        self._stopped = False
        self.rolled: list[str] = self.faults.rolled if self.hit else list(decisions.asked)
        if attempt == 1 or self.asked is refused:
            self.rolled += seam.let_pass(name, number, attempt)
        seam.open[id(self)] = self

    def answering(self, started: Started, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The parts of the application's own answer, which is noted when it begins."""
        self.sent, self.via = self.call, "service"
        first = True
        for part in self._kept(started, parts):
            self._hold()
            if first:
                first = False
                self._began(started, part)
            yield part
        if first:
            self._began(started, b"")

    def _began(self, started: Started, part: bytes) -> None:
        if not started:
            return
        status, fields = started[0]
        self._note_effects(int(status[:3]), fields, self.request, self.value, part)
        if self.seam.will_refuse(self.name):
            started[0] = status, [*fields, ("Connection", "close")]

    def play(self) -> tuple[Started, Iterator[bytes]]:
        """The head of the reply to send, and the parts of its body, which may raise too.

        Raises:
            Failure: the connection ends in this way; timed_out is silence.
        """
        reply: Reply = at_once(self.told())
        last = [("Connection", "close")] if self.seam.will_refuse(self.name) else []
        if isinstance(reply.stream, _Parts):
            unchanged = self._fields if reply.headers == dict(self._fields) else reply.headers.items()
            fields = [(name, value) for name, value in unchanged if name.lower() not in LENGTHS]
            return [(str(reply.status), [*fields, *last])], self._through(reply.stream.left, reply.pipes)
        self.reply = Served.of(reply)
        return [(str(reply.status), [*self.reply.fields, *last])], iter((self.reply.raw,))

    def _through(self, parts: Iterator[bytes], pipes: Sequence[Pipe]) -> Iterator[bytes]:
        """The parts through the pipes, event by event, each when it is due. Nothing is read while a pipe holds more
        than its room."""
        if not pipes:
            for each in parts:
                self._hold()
                yield each
            return
        now = self.seam.clock.monotonic
        line = Piped(pipes, now())
        while (item := line.poll(now())) is not Signal.END:
            if isinstance(item, Signal):
                raise Failure("reset")
            if item is not None:
                yield item
            elif line.room:
                part = next(parts, None)
                self._hold()
                line.feed(part, now())
            else:
                wake_s = line.wake()
                self._pause(inf if wake_s is None else wake_s - now())

    def injected(self, active: ActiveFault) -> None:
        if self.over:  # nobody can meet it any more
            return
        super().injected(active)
        if trait(active.fault, "of_process"):
            outages = self.seam.outages
            begun = outages.begin(self.name, active, self.asked)
            self._stopped = outages.held(self.name) is not None
            for other in self.seam.open.values() if begun is not None and not self._stopped else ():
                if other.name == self.name and other is not self:
                    other._broken_by = begun

    # The driver's methods for stories.

    async def send(self, call: Call) -> Reply:
        self.sent, self.via = call, "service"
        request, value = self.request, self.value
        if call.value is not self.value:
            request, value = self.request.with_meaning(call.value), call.value
            if self.chat is not None:
                self.chat.sent = request
        answer = self.line.application(request)
        self._hold()
        if is_stream(answer.fields):
            own, first = answer.parts(), b""
            if service_mcp.effects_of(value):
                first = next(own, b"")  # which tells if the tool failed
            self._note_effects(answer.status, answer.fields, request, value, first)
            self._fields = answer.fields
            parts = self._kept([(str(answer.status), answer.fields)], chain_of((first,), own) if first else own)
            return Reply(answer.status, dict(answer.fields), stream=_Parts(iter(parts)))
        status, fields, body = answer.whole()
        if service_mcp.lists(self.value):
            self.seam.lists_tools(self.name, body)
        self._note_effects(status, fields, request, value, body)
        served = Served(status, fields, body)
        self._record(served)
        return served

    def _kept(self, started: Started, parts: Iterable[bytes]) -> Iterable[bytes]:
        """The parts. A list of tools is read before its client has it; a reply that the log is to keep is recorded as
        one when its parts have ended."""
        lists = service_mcp.lists(self.value)
        return self._read(started, parts, lists=lists) if lists or self._recorded else parts

    @property
    def _recorded(self) -> bool:
        return self.chat is not None and self.chat.is_recorded

    def _read(self, started: Started, parts: Iterable[bytes], *, lists: bool) -> Iterator[bytes]:
        body = bytearray()
        for part in parts:
            if len(body) < BODY_MAX:
                body += part
            if lists:
                self.seam.lists_tools(self.name, bytes(body))
            yield part
        if started and self._recorded:
            status, fields = started[0]
            self._record(Served(int(status[:3]), fields, bytes(body)))

    def _record(self, reply: Reply) -> None:
        """Notes a model's own reply, if it could not be made again."""
        if self.chat is not None:
            for event in self.chat.recorded(self.call, reply):
                self.note(event)

    async def wait(self, delay_s: float) -> None:
        """Lets time pass until the client hangs up; a step of a story. A process that is stopped sees nobody hang up,
        and does the work when it goes on."""
        if self._stopped:
            self.seam.clock.sleep(delay_s)
        else:
            self._pause(delay_s)

    def _hold(self) -> None:
        """Keeps the answer until the service goes on, if it was paused meanwhile."""
        held = self.seam.outages.held(self.name)
        if held is None:
            return
        if not self.over and held.injection not in (active.injection for active in self.faults.active):
            self.faults.struck(held)
        until_s = self.seam.outages.until_s(self.name)
        self.seam.clock.sleep(max(0.0, until_s - self.seam.clock.monotonic()))

    def _pause(self, delay_s: float) -> None:
        """Lets time pass until the client hangs up. One that waits for ever is told to have waited for `timeout_s`.

        Raises:
            Failure: it does not wait any more.
        """
        left_s = delay_s
        if isinf(delay_s):
            left_s = max(0.0, self.began_s + self.seam.timeout_s - self.seam.clock.monotonic())
        if self.line.wait(left_s) or self.over:
            raise Failure("timed_out")
        if isinf(delay_s):
            self.line.lapse()
            raise Failure("timed_out")

    def note(self, event: Event) -> None:
        self.book.note(event)

    # The record.

    def _note_effects(
        self, status: int, fields: Fields, request: HttpRequest, value: Mapping[str, Any], body: bytes
    ) -> None:
        """Notes what the application did, by its own words or by the request's method and the reply's status. `body`:
        that of the reply, as far as it is known: a tool of MCP that failed says so in it."""
        said = next((text for name, text in fields if name.lower() == EFFECT.lower()), None)
        done: Sequence[tuple[str, Mapping[str, Any]]] = ()
        if said is not None:
            try:
                done = _told(said)
            except (ValueError, RecursionError) as error:
                self.book.note(
                    events.LabWarning(message=f"{self.name} says {EFFECT}: {said[:60]!r} to {self.tool}: {error}")
                )
                said = None
        if said is None and request.method not in SAFE and not self.of_model and 200 <= status < 300:
            of_mcp = service_mcp.effects_of(value, self.seam.only_read(self.name))
            done = ((self.tool, value),) if of_mcp is None else () if service_mcp.failed(body) else of_mcp
            self.book.served.update(tool for tool, _ in of_mcp or ())
        named = self._effect_id(request)
        for nth, (effect, content) in enumerate(done):
            self.book.note(
                events.Effect(
                    target=self.name,
                    tool=self.tool,
                    request_id=f"{named} {nth}" if nth and named else named,
                    effect=effect,
                    content=to_jsonable(content),
                    reply={},
                    fingerprint="",
                )
            )

    def _effect_id(self, request: HttpRequest) -> str:
        """The name that equal effects share: that of their Idempotency-Key, or of the whole request if its method may
        be repeated; else empty."""
        if key := request.header(b"idempotency-key"):
            return f"{self.tool} {key}"
        if request.method in REPEATABLE:
            return f"{request.method} {request.target} {blake2b(request.body, digest_size=8).hexdigest()}"
        return ""

    def ended(self, seen: Seen) -> None:
        """Takes the end of the exchange on the client's side. `answering` or `play` may still be at work."""
        if self.over:
            return
        duration_s = self.seam.clock.monotonic() - self.began_s
        error = seen.error
        if error in ("reset", "closed") and self._broken_by is not None:
            self.faults.struck(self._broken_by.cut(Cut("reset")))
        if error == "left":  # it gave up waiting, or it stopped reading
            error = "timed_out" if seen.answer is None or seen.waited else None
        if error == "timed_out" and seen.streamed is not None and seen.streamed.done:
            error = None
        if error == "timed_out" and not seen.gave_up and not any(active.injected for active in self.faults.active):
            error = "cancelled"
        whole = seen.error is None and seen.answer is not None
        reply = Served(*seen.answer) if seen.answer is not None else None
        if self.request.method == "HEAD" and whole and reply is not None and self.reply is not None:
            length = {name.lower(): value for name, value in reply.headers.items()}.get("content-length")
            if length == str(len(self.reply.raw)):  # which stands for the body here
                reply = Served(reply.status, reply.fields, self.reply.raw)
        silence_s = seen.streamed.silence_s if seen.streamed is not None else duration_s
        deadline_s = silence_s if error == "timed_out" else self.seam.timeout_s
        self._finish(error, deadline_s, reply, seen.bytes, whole=whole, streamed=seen.streamed)

    def waited(self) -> None:
        """Takes a timeout of the client's that does not end the connection: it may ask again."""
        self.waited_s = self.seam.clock.monotonic() - self.began_s

    def cut(self) -> None:
        """Ends the attempt with its trial. A client that kept its connection after its timeout met that; any other one
        met nothing yet."""
        if self.waited_s is not None:
            self._finish("timed_out", self.waited_s, None, 0, duration_s=self.waited_s)
        else:
            self._finish("cancelled", self.seam.timeout_s, None, 0)

    def _finish(
        self,
        error: str | None,
        deadline_s: float,
        reply: Served | None,
        size: int,
        *,
        whole: bool = False,
        duration_s: float | None = None,
        streamed: Streamed | None = None,
    ) -> None:
        self.over = True
        del self.seam.open[id(self)]
        if duration_s is None:
            duration_s = self.seam.clock.monotonic() - self.began_s
        status = reply.status if reply is not None else None
        if error != "cancelled":
            self.judged(
                Observation(
                    duration_s=round(duration_s, 6),
                    deadline_s=round(deadline_s, 6),
                    error=error,
                    status=status,
                    bytes=size,
                    sent=self.sent,
                    reply=reply if whole else None,
                    streamed=streamed,
                )
            )
        heard = self.chat.read(reply) if self.chat is not None and reply is not None else None
        unread = heard is not None and streamed is None and reply is not None and reply.value is None
        if unread and error is None and status is not None and status < 400:
            error = f"status {status}, and no JSON"
        ok = error is None and status is not None and status < 400
        if ok:
            self.book.requests.answered(self.asked)
        self.book.note(
            events.CallFinished(
                at=self.call.at,
                tool=self.tool,
                ok=ok,
                duration_s=round(duration_s, 6),
                status=status,
                error=error or (None if ok else reply.error_words if reply is not None else ""),
                bytes=size,
                via=self.via,
                rolled=list(self.rolled),
                reply=(heard and line(heard.said, REPLY_MAX)) or (line_of(reply.body, REPLY_MAX) if reply else ""),
                first_byte_s=streamed.first_byte_s if streamed is not None else None,
                last_byte_s=streamed.last_byte_s if streamed is not None else None,
                finish_reason=line(heard.reason, REPLY_MAX) if heard is not None and ok else None,
            )
        )
        if heard is not None:
            self._heard(heard, ok=ok)

    def _heard(self, heard: Heard, *, ok: bool) -> None:
        """Counts a model's answer; of one that broke off, what was used is paid too."""
        assert self.chat is not None
        if (usage := self.seam.spent.usage(heard, self.call.request)) is not None:
            self.book.note(usage)
        if ok and heard.finished:
            self.chat.delivered()


def _told(said: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The effects that a service states.

    Raises:
        ValueError: it cannot be read.
    """
    if said.strip().lower() == "none":
        return []
    value = json.loads(said)
    found = list[tuple[str, Mapping[str, Any]]]()
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict) or not isinstance(one.get("effect"), str):
            raise ValueError('it should be none, or JSON as in {"effect": "order_placed", "item": "tea"}')
        found.append((one["effect"], {key: value for key, value in one.items() if key != "effect"}))
    return found
