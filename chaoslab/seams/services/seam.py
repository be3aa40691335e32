"""The seam of a user's services: HTTP on the server's side, where the requests of every client come by.

A request that was read whole is an exchange. All of the plan's stories run before and after the application's work,
those of the wire too. A fault is witnessed by what the client took from its end of the connection, so the seam is told
of that by the world (`Line`, `Seen`). A request that no fault hits is answered as without the seam, and is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain as chain_of
from math import inf, isinf
from typing import Any

from chaoslab.base.clock import Clock, system
from chaoslab.base.identity import Request
from chaoslab.base.jsonable import line, line_of, to_jsonable
from chaoslab.core import events
from chaoslab.core.attempt import Attempt
from chaoslab.core.chain import ActiveFault, at_once
from chaoslab.core.dialog import CHAT
from chaoslab.core.events import REPLY_MAX, Event
from chaoslab.core.exchange import Call, Failure, Observation, Reply
from chaoslab.core.fault import trait
from chaoslab.core.memory import Decisions, TrialMemory
from chaoslab.core.outage import Cut
from chaoslab.core.pipe import Pipe, Signal
from chaoslab.core.plan import Candidates, Plan
from chaoslab.core.service_spec import ErrorReply
from chaoslab.core.stream import Piped, Streamed
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams import client_retry
from chaoslab.seams.services import mcp
from chaoslab.seams.services.effects import EFFECT, SAFE, shared_id, stated
from chaoslab.seams.services.line import Line, Parts, Seen, Started
from chaoslab.seams.services.messages import LENGTHS, Fields, HttpRequest, Served, is_stream
from chaoslab.seams.services.model import Heard, ModelHost, ModelRequest, Spent, free
from chaoslab.seams.services.outages import Current, Outages
from chaoslab.seams.services.refusals import Refusals, refuses
from chaoslab.wire.body import BODY_MAX

ERRORS = {429: ErrorReply(429, {"error": "Too Many Requests"}, {"Retry-After": "1"})}


class ServiceSeam:
    """Decides and notes the requests to services. `timeout_s` ends the wait for an answer that never comes, if the
    client does not hang up before. `models`: the services that speak a model's API; `price` gives the cost in USD of an
    answer: (model, tokens in, tokens out) → cost or None. `mcp_reads`: tools of MCP servers that only read, beside
    those of which their servers say so. `in_order`: the end of an exchange is always told before what its client does
    next, so that equal requests made together are told from retries.

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
        in_order: bool = True,
    ) -> None:
        self.plan, self.timeout_s, self.clock = plan, timeout_s, clock
        self.models, self.price, self.in_order = models or {}, price, in_order
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
        self.refusals = Refusals(
            plan, self.outages, timeout_s=timeout_s, clock=clock, connected=lambda name: self.asked_of.add(name)
        )
        self._reach: dict[tuple[str, bool], Candidates] = {}

    def begin(self, book: TrialLog, memory: TrialMemory, *, spent_usd: float = 0.0) -> None:
        """Begins a trial, whose requests go into this log. `memory`: the one of all the trial's seams. `spent_usd`: the
        run's spending before it."""
        self.book, self.memory = book, memory
        self.spent = Spent(cost_usd=spent_usd, price=self.price)
        self.asked_of, self.open = set(), {}
        self.refusals.begin(book, memory)
        self._mcp_listed.clear()
        self.outages.clear()

    def end(self) -> None:
        """Ends the trial, and the attempts that are open still."""
        self.settle()
        for attempt in list(self.open.values()):
            attempt.cut()
        self.refusals.end()
        self.book = None

    def asked(self, name: str, request: HttpRequest, line: Line) -> ServiceAttempt | None:
        """The attempt that a request to a service is; None outside of a trial."""
        return None if self.book is None else ServiceAttempt(self, self.book, name, request, line)

    def never_hits(self, name: str) -> bool:
        """True if nothing in the plan can hit a request to the service, and nothing else is noted of one than that it
        was made and what came of it."""
        if name in self.models or self.plan.looks_back:
            return False
        return not self.reach(name, chat=True) and not self.refusals.reach(name)

    def lists_tools(self, name: str, body: bytes) -> None:
        """Takes a service's list of its tools in MCP."""
        self._mcp_listed.setdefault(name, set()).update(mcp.read_only(body))

    def only_read(self, name: str) -> Collection[str]:
        """The tools of a service in MCP whose calls are no effects."""
        return self._mcp_reads | self._mcp_listed.get(name, frozenset())

    def reach(self, name: str, *, chat: bool = False) -> Candidates:
        """The injections that may hit a request to a service. `chat`: the request is one to a model, whose context can
        be hit too."""
        found = self._reach.get((name, chat))
        if found is None:
            found = self._reach[name, chat] = Candidates(
                i for i in self.plan.candidates(name) if (chat or i.layer != "context") and not refuses(i)
            )
        return found

    def request(self, name: str, tool: str, intent: str, *, safe: bool, now_s: float) -> Request:
        """The numbered request with this intent. A new one takes the place of the one whose connection was refused."""
        assert self.book is not None
        pending = self.refusals.pending(name)
        told_s = now_s if self.in_order else None
        asked = self.book.requests.ask(
            name, f"{name} {tool}", None, spelt=intent, safe=safe, instead=pending, now_s=told_s
        )
        if asked is pending:
            self.refusals.taken(name)
        return asked


class ServiceAttempt(Attempt):
    """One request to a service, from its arrival until its client has the reply."""

    def __init__(self, seam: ServiceSeam, book: TrialLog, name: str, request: HttpRequest, line: Line) -> None:
        self.seam, self.book, self.name, self.request, self.line = seam, book, name, request, line
        began_s = seam.clock.monotonic() - line.trip_s
        self.tool = f"{request.method} {request.path}"
        self.value = request.meaning()
        host = seam.models.get(name)
        self.of_model, self.chat = host is not None, ModelRequest.of(host, request)
        self.over = False
        self.waited_s: float | None = None
        self.reply: Served | None = None
        self._fields: Fields = ()
        """The headers of a streamed answer."""
        safe = request.method in SAFE or self.of_model
        refused = seam.refusals.pending(name)
        self.asked = seam.request(name, self.tool, request.intent(self.value), safe=safe, now_s=began_s)
        elapsed_s = began_s - book.origin
        spent = {
            "calls": book.calls, "seconds": elapsed_s, "tokens": seam.spent.tokens, "cost_usd": seam.spent.cost_usd
        }  # fmt: skip
        book.calls += 1
        seam.asked_of.add(name)
        number, attempt = self.asked.number, self.asked.begin(began_s)
        held = seam.outages.held(name)
        reach, decisions = seam.reach(name, chat=self.chat is not None), Decisions()
        if held is not None:
            reach = reach.without_outages
        if reach:
            occasion = seam.memory.occasion(name, self.tool, number, attempt, elapsed_s=elapsed_s, arguments=self.value)
            decisions = seam.memory.decide(reach, occasion)
        self.hit = decisions.hit or held is not None
        """True if a fault hits it: `play` answers it then, else the application, through `answering`."""
        self.via = "none" if self.hit else "service"
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
            self.rolled += seam.refusals.let_pass(name, number, attempt)
        seam.open[id(self)] = self

    def answering(self, started: Started, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The parts of the application's own answer, which is noted when it begins."""
        self.sent = self.call
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
        if self.seam.refusals.will_refuse(self.name):
            started[0] = status, [*fields, ("Connection", "close")]

    def play(self) -> tuple[Started, Iterator[bytes]]:
        """The head of the reply to send, and the parts of its body, which may raise too.

        Raises:
            Failure: the connection ends in this way; timed_out is silence.
        """
        reply: Reply = at_once(self.told())
        last = [("Connection", "close")] if self.seam.refusals.will_refuse(self.name) else []
        if isinstance(reply.stream, Parts):
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
            if mcp.effects_of(value):
                first = next(own, b"")  # which tells if the tool failed
            self._note_effects(answer.status, answer.fields, request, value, first)
            self._fields = answer.fields
            parts = self._kept([(str(answer.status), answer.fields)], chain_of((first,), own) if first else own)
            return Reply(answer.status, dict(answer.fields), stream=Parts(iter(parts)))
        status, fields, body = answer.whole()
        if mcp.lists(self.value):
            self.seam.lists_tools(self.name, body)
        self._note_effects(status, fields, request, value, body)
        served = Served(status, fields, body)
        self._record(served)
        return served

    def _kept(self, started: Started, parts: Iterable[bytes]) -> Iterable[bytes]:
        """The parts. A list of tools is read before its client has it; a reply that the log is to keep is recorded as
        one when its parts have ended."""
        lists = mcp.lists(self.value)
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
                done = stated(said)
            except (ValueError, RecursionError) as error:
                self.book.note(
                    events.LabWarning(message=f"{self.name} says {EFFECT}: {said[:60]!r} to {self.tool}: {error}")
                )
                said = None
        if said is None and request.method not in SAFE and not self.of_model and 200 <= status < 300:
            of_mcp = mcp.effects_of(value, self.seam.only_read(self.name))
            done = ((self.tool, value),) if of_mcp is None else () if mcp.failed(body) else of_mcp
            self.book.served.update(tool for tool, _ in of_mcp or ())
        named = shared_id(self.tool, request)
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
        needless = not seen.gave_up or self.asked.answered  # the latter: a hedged request of which another has won
        if error == "timed_out" and needless and not self.changed():
            error = events.CANCELLED
        whole = seen.error is None and seen.answer is not None
        reply = Served(*seen.answer) if seen.answer is not None else None
        if self.request.method == "HEAD" and whole and reply is not None and self.reply is not None:
            length = {name.lower(): value for name, value in reply.headers.items()}.get("content-length")
            if length == str(len(self.reply.raw)):  # which stands for the body here
                reply = Served(reply.status, reply.fields, self.reply.raw)
        silence_s = seen.streamed.silence_s if seen.streamed is not None else duration_s
        deadline_s = silence_s if error == "timed_out" else self.seam.timeout_s
        self._finish(error, deadline_s, reply, seen.bytes, whole=whole, streamed=seen.streamed)

    def changed(self) -> bool:
        """True if a fault has changed the exchange."""
        return any(active.injected for active in self.faults.active)

    def waited(self) -> None:
        """Takes a timeout of the client's that does not end the connection: it may ask again."""
        self.waited_s = self.seam.clock.monotonic() - self.began_s

    def cut(self) -> None:
        """Ends the attempt with its trial. A client that kept its connection after its timeout met that; any other one
        met nothing yet."""
        if self.waited_s is not None:
            self._finish("timed_out", self.waited_s, None, 0, duration_s=self.waited_s)
        else:
            self._finish(events.CANCELLED, self.seam.timeout_s, None, 0)

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
        self.asked.end()
        del self.seam.open[id(self)]
        if duration_s is None:
            duration_s = self.seam.clock.monotonic() - self.began_s
        status = reply.status if reply is not None else None
        if error != events.CANCELLED:
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
        error = error or self.left or None
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
                said_by="script" if ok and self.chat is not None and self.chat.is_scripted else None,
            )
        )
        if self.chat is not None:
            self._heard(self.chat, heard, ok=ok)

    def _heard(self, chat: ModelRequest, heard: Heard | None, *, ok: bool) -> None:
        """Counts a model's answer; of one that broke off, what was used is paid too."""
        if heard is not None and (usage := self.seam.spent.usage(heard, self.call.request, chat.estimated)) is not None:
            self.book.note(usage)
        chat.ended(heard if ok and heard is not None and heard.finished else None)
