"""The seam of a user's services: HTTP on the server's side, where the requests of every client come by.

A request that was read whole is an exchange. All of the plan's stories run before and after the application's work,
those of the wire too. A fault is witnessed by what the client took from its end of the connection, so the seam is told
of that by the world (`Line`, `ClientEnd`). A request that no fault hits is answered as without the seam, and is noted.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import inf, isinf
from typing import Any, Literal

from chaoslab.base.clock import Clock, system
from chaoslab.base.identity import Request, hash_value
from chaoslab.base.json_text import encode_text
from chaoslab.base.jsonable import decode_to_one_line, to_one_line
from chaoslab.base.secrets import SEARCHED_MAX, find_secrets_in_body, find_secrets_in_headers
from chaoslab.core import events
from chaoslab.core.attempt import Attempt
from chaoslab.core.chain import ActiveFault, run_synchronously
from chaoslab.core.dialog import CHAT
from chaoslab.core.events import REPLY_MAX, Event
from chaoslab.core.exchange import Call, Failure, Observation, Reply, build_json_reply
from chaoslab.core.fault import OutageCut, get_trait
from chaoslab.core.memory import NOBODY, Decisions, TrialMemory
from chaoslab.core.pipe import Pipe, Signal
from chaoslab.core.plan import HITS, Candidates, Plan
from chaoslab.core.service_spec import ErrorReply
from chaoslab.core.stream import BodyParts, BodySplitter, EventSplitter, PipedBody, Streamed, parse_event_json
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams import _client_retry, _trace_context
from chaoslab.seams.functions.seam import CallTurnGate
from chaoslab.seams.protocols import json_rpc, mcp
from chaoslab.seams.protocols.message import Effects
from chaoslab.seams.services._enveloped import WantedCall, make_message_reply, unwrap_tool_value
from chaoslab.seams.services._outages import CurrentOutage, Outages
from chaoslab.seams.services.effects import EFFECT, SAFE, SharedEffectNames, make_unfinished_task_effect, parse_effects
from chaoslab.seams.services.line import ClientEnd, Iterated, Line, Started
from chaoslab.seams.services.messages import (
    LENGTHS,
    UPGRADED,
    Fields,
    HttpRequest,
    ServedReply,
    has_body_in_parts,
    is_event_stream,
    make_message_splitter,
)
from chaoslab.seams.services.model import ModelHost, ModelRequest, ModelSpending, ReadAnswer, get_no_price
from chaoslab.seams.services.refusals import Refusals, is_refusing_injection
from chaoslab.seams.services.wire_bytes import WireBytes, Write
from chaoslab.wire.http1 import BODY_MAX

MODELS_MAX = 100
"""The most requests to models in one trial, by default."""
# The most answers in a stream that are kept to read those to a batch.
STREAMED_MAX = 1000
Take = Callable[[bytes | None], object]
"""Takes a part of an answer; None is its end."""
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
        price: Callable[[str, int, int], float | None] = get_no_price,
        mcp_reads: Iterable[str] = (),
        in_order: bool = True,
    ) -> None:
        self.plan, self.timeout_s, self.clock = plan, timeout_s, clock
        self.models, self.price, self.in_order = models or {}, price, in_order
        # By service: two servers of MCP may have a tool of one name.
        self._mcp_reads, self._mcp_listed = frozenset(mcp_reads), dict[str, set[str]]()
        self._mcp_repeatable = set[tuple[str, str]]()
        self._schemas: dict[tuple[str, str], Any] = {}
        self.tasks = defaultdict[str, mcp.Tasks](mcp.Tasks)
        """The tasks that each service has accepted."""
        self.told_model: Callable[[HttpRequest], ModelHost | None] = lambda _: None
        """Tells if a POST to any other service is one to a model, by what it says."""
        self.spent = ModelSpending(price=price)
        self.book: TrialLog | None = None
        self.memory, self.repeats = TrialMemory(plan, ""), SharedEffectNames()
        self.models_max, self.models_asked = MODELS_MAX, 0
        # In real time a command that repeats a refused request made 1,371 of them in five seconds.
        self.attempts_max: float = inf
        """The most attempts at one request. In virtual time the deadline bounds them."""
        self.runaway: Callable[[str], object] = lambda _: None
        """Ends the trial, whose agent has asked models more than `models_max` times, or tried one request more than
        `attempts_max` times; the argument says so."""
        self.asked_of: set[str] = set()
        self.turns: CallTurnGate | None = None
        self.open: dict[int, ServiceAttempt] = {}
        """The attempts whose clients have not ended them."""
        self.settle: Callable[[], object] = lambda: None
        """Waits until replies that were sent are noted; in virtual time they are."""
        self.acting: Callable[[], list[str]] = list
        """The requests at a gateway that may have an effect yet."""
        self.lapsed: list[ServiceAttempt] = []
        """The attempts whose answer a fault keeps for ever, and whose clients waited for `timeout_s`."""
        self.outages = Outages(clock)
        self.refusals = Refusals(
            plan, self.outages, timeout_s=timeout_s, clock=clock, connected=lambda name: self.asked_of.add(name)
        )
        self.kill: Callable[[Call], object] = lambda _: None
        """Kills the agent's process at this call."""
        self.limit: Callable[[Candidates], Candidates] = lambda reach: reach
        """Those of the injections that may hit now: somebody may have stopped some or all."""
        self._warned = False
        self._reach: dict[tuple[str, str], Candidates] = {}

    def change_plan(self, plan: Plan) -> None:
        """Puts another plan in force, between two trials."""
        self.plan = plan
        # The choices hold injections of the plan that is no more.
        self._reach.clear()
        self.refusals.change_plan(plan)

    def begin_trial(self, book: TrialLog, memory: TrialMemory, *, spent_usd: float = 0.0) -> None:
        """Begins a trial, whose requests go into this log. `memory`: the one of all the trial's seams. `spent_usd`: the
        run's spending before it."""
        self.book, self.memory, self.repeats = book, memory, SharedEffectNames()
        self.spent = ModelSpending(cost_usd=spent_usd, price=self.price)
        self.asked_of, self.open, self.models_asked = set(), {}, 0
        self.lapsed.clear()
        memory.guard.others = self.outages.count_active
        self.refusals.begin_trial(book, memory)
        self._mcp_listed.clear()
        self._mcp_repeatable.clear()
        self._schemas.clear()
        self.tasks.clear()
        self.outages.begin_trial()

    def end_trial(self) -> None:
        """Ends the trial, and the attempts that are open still."""
        self.settle()
        # A copy: each attempt takes itself out.
        for attempt in list(self.open.values()):
            attempt.end_with_trial()
        for name, tasks in self.tasks.items():
            for call in tasks.list_unfinished_calls():
                if self.book is not None and call.tool not in self.get_read_only_tools(name):
                    self.book.note_event(make_unfinished_task_effect(name, call.tool, call.arguments))
        self.refusals.end_trial()
        self.book = None

    def describe_unanswered(self) -> list[str]:
        """Lines about the requests that have no answer yet."""
        # Of a request that was tried again only the last try is told.
        last = [attempt for attempt in self.lapsed if attempt.asked.attempts == attempt.call.attempt]
        return [f"{attempt.name} has not answered {attempt.request_label}" for attempt in (*last, *self.open.values())]

    def is_session_upkeep(self, name: str, call: WantedCall) -> bool:
        """True if a request only keeps up a session, or asks for a list of tools that no fault is aimed at. It is
        answered as without the seam, and neither numbered nor noted."""
        message = call.message
        if message is None or message.part == "work":
            return False
        # A session's messages are no work of the agent's: faults on them hung clients, and a DELETE of a session was
        # harm.
        return message.part == "session" or not self.find_injections(name, "listing")

    def count_model_request(self, name: str) -> None:
        """Counts a request to a model, tells at the half of what one trial may make, and ends it beyond."""
        self.models_asked += 1
        # Once a run, at the half: after the bound it would be too late to see the loop.
        if self.models_asked == self.models_max // 2 and not self._warned:
            self._warned = True
            message = (
                f"{name} was asked {self.models_asked} times in one trial: it ends as hung after {self.models_max}"
            )
            print(f"chaoslab: {message} (model_calls_max)", file=sys.stderr, flush=True)
        if self.models_asked > self.models_max:
            self.runaway(f"{name} is asked again and again ({self.models_max} requests to models in one trial)")

    def find_model_host(self, name: str, request: HttpRequest) -> ModelHost | None:
        """The model that a request is for; None if it is for another service."""
        return self.models.get(name) or (self.told_model(request) if request.method == "POST" else None)

    def record_tool_list(self, name: str, body: bytes) -> None:
        """Takes a service's list of its tools in MCP."""
        for tool in mcp.iterate_listed_tools(body):
            if mcp.is_read_only_tool(tool):
                self._mcp_listed.setdefault(name, set()).add(str(tool["name"]))
            if mcp.is_idempotent_tool(tool):
                self._mcp_repeatable.add((name, str(tool["name"])))
            # Also of tools that say nothing else: a changed value keeps to the form of this schema.
            self._schemas[name, str(tool["name"])] = tool.get("outputSchema")

    def get_read_only_tools(self, name: str) -> Collection[str]:
        """The tools of a service in MCP whose calls are no effects."""
        return self._mcp_reads | self._mcp_listed.get(name, frozenset())

    def is_idempotent_tool(self, name: str, tool: str) -> bool:
        """True if several equal calls of a service's tool in MCP have the effect of one, as its list has told."""
        return (name, tool) in self._mcp_repeatable

    def get_output_schema(self, name: str, tool: str) -> Any:
        """The output schema of a service's tool in MCP, as far as its list has told it."""
        return self._schemas.get((name, tool))

    def find_injections(self, name: str, kind: Literal["", "chat", "listing"] = "") -> Candidates:
        """The injections that may hit a request to a service. `kind`: it is one to a model, whose context can be
        hit too, or it asks for the list of tools, which only its own faults hit."""
        # Looked up by request, since going through the plan for each costs more than all else where nothing hits.
        candidates = self._reach.get((name, kind))
        if candidates is None:
            candidates = self._reach[name, kind] = Candidates(
                i
                for i in self.plan.find_candidates(name)
                if i.of_listing is (kind == "listing")
                and (kind == "chat" or i.layer != "context")
                and not is_refusing_injection(i)
            )
        return candidates

    def number_request(self, name: str, tool: str, intent: str, *, now_s: float) -> Request:
        """The numbered request with this intent. A new one takes the place of the one whose connection was refused."""
        assert self.book is not None
        pending = self.refusals.get_pending_request(name)
        # Without the order of ends nobody can tell equal requests made together from retries.
        ended_s = now_s if self.in_order else None
        numbered_request = self.book.requests.find_or_create(
            name, f"{name} {tool}", None, spelt=intent, instead=pending, now_s=ended_s
        )
        if numbered_request is pending:
            self.refusals.forget_pending(name)
        return numbered_request


class ServiceAttempt(Attempt):
    """One request to a service, from its arrival until its client has the reply. `reads`: the bytes of the reply that
    its end is told."""

    reads = BODY_MAX

    def __init__(
        self, seam: ServiceSeam, book: TrialLog, name: str, request: HttpRequest, line: Line, wanted_call: WantedCall
    ) -> None:
        self.seam, self.book, self.name, self.request, self.line = seam, book, name, request, line
        # It began when the client sent it, one trip before it arrived.
        began_s = seam.clock.monotonic() - line.trip_s
        self.wanted, self.tool, self.value, self.message = (
            wanted_call,
            wanted_call.tool,
            wanted_call.value,
            wanted_call.message,
        )
        host = wanted_call.host
        self.of_model, self.chat = host is not None, ModelRequest.build_if_chat(host, request)
        self.over = self.acted = False
        self.waited_s: float | None = None
        self._watch: Take | None = None
        """Takes the parts of a stream of messages, one of which tells what the tool did."""
        self.reply: ServedReply | None = None
        self._fields: Fields = ()
        """The headers of a streamed answer."""
        refused = seam.refusals.get_pending_request(name)
        self.asked = seam.number_request(name, self.tool, wanted_call.intent, now_s=began_s)
        elapsed_s = began_s - book.origin
        spent = {
            "calls": book.calls, "seconds": elapsed_s, "tokens": seam.spent.tokens, "cost_usd": seam.spent.cost_usd
        }  # fmt: skip
        # Counted before the answer, so that a budget holds back the next one.
        book.calls += 1
        seam.asked_of.add(name)
        number, attempt = self.asked.number, self.asked.begin_attempt(began_s)
        if attempt > seam.attempts_max:
            seam.runaway(f"{name} is asked the same again and again ({attempt - 1} times {self.tool})")
        if self.chat is not None:
            seam.count_model_request(name)
        pause_fault = seam.outages.find_pause_fault(name)
        listing = self.message is not None and self.message.part == "listing"
        reach, decisions = seam.find_injections(name, "listing" if listing else "chat" if self.chat else ""), NOBODY
        # A process that is paused can begin no other outage.
        if pause_fault is not None:
            reach = reach.without_outages
        reach = seam.limit(reach)
        if reach:
            occasion = seam.memory.build_occasion(
                name,
                self.tool,
                number,
                attempt,
                elapsed_s=elapsed_s,
                arguments=self.value,
                changes=self._may_have_effect(),
            )
            occasion.headers = {
                header: request.get_header(header.encode()) for header in seam.memory.guard.header_names
            }
            decisions = seam.memory.decide_hits(reach, occasion)
        self.hit = decisions.hit or pause_fault is not None
        """True if a fault hits it: `produce_reply_sync` answers it then, else the application, through
        `yield_parts_and_record`."""
        self.via = "none" if self.hit else "service"
        self._reads_all = self.hit and self._may_faults_change_value(reach, decisions)
        errors: Mapping[int, ErrorReply] = ERRORS
        if self.hit and host is not None:
            errors = host.errors_of(request.path, {key.decode("latin-1").lower() for key, _ in request.headers})
        call = Call(
            name,
            self.tool,
            book.key,
            number,
            attempt,
            self.asked.id,
            self.value,
            errors,
            CHAT if self.chat is None else self.chat.format.dialog,
            # The lab's own replies are worded by the protocol, or a client of MCP would get an answer to no message of
            # its own.
            answered_with=build_json_reply if self.message is None else self._make_success_reply,
            turn=book.requests.turn,
            failed_with=None if self.message is None else self._make_error_reply,
        )
        logged_arguments = wanted_call.arguments if self.chat is None else self.chat.to_log_form(self.value)
        client_retry = (
            _client_retry.parse_retry_count(request.get_header(_client_retry.HEADER.encode())) if attempt > 1 else None
        )
        span = _trace_context.validate_span_header(request.get_header(_trace_context.HEADER.encode()))
        protocol = self.message.protocol if self.message is not None else None
        book.note_event(
            events.CallStarted(
                at=call.attempt_ref,
                tool=self.tool,
                arguments=logged_arguments,
                client_retry=client_retry,
                traceparent=span,
                protocol=protocol,
            )
        )
        if book.lines is not None:
            book.lines.append(line.user_source_line)
        # Without a hit the base gets no injections, so that it makes no stories.
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
            note=book.note_event,
        )
        if pause_fault is not None:
            self.faults.active.append(pause_fault)
            self.faults.add_rolled_injection(pause_fault.injection)
            # Outermost: nothing of the call happens before the process goes on.
            self._stories.insert(0, lambda _: pause_fault)
        self._broken_by: CurrentOutage | None = None
        self._stopped = False
        # A copy of what was asked, as nobody plays the stories that would note it.
        self.rolled: list[str] = self.faults.rolled if self.hit else list(decisions.asked)
        # Its connection was made, so the dice of refusals let it pass.
        if attempt == 1 or self.asked is refused:
            self.rolled += seam.refusals.list_sparing_injections(name, number, attempt)
        seam.open[id(self)] = self

    def yield_parts_and_record(self, started: Started, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The parts of the application's own answer, which is noted when it begins."""
        take = self.make_part_receiver(started)
        for piece in parts:
            take(piece)
            yield piece
        take(None)

    def make_part_receiver(self, started: Started) -> Take:
        """A function that takes each part of the application's own answer before the client does, and None at its
        end."""
        self.sent, keep, first = self.call, self._make_part_recorder(started), True

        def receive_part(piece: bytes | None) -> None:
            nonlocal first
            keep(piece)
            if piece is not None:
                # A pause may begin while the application works.
                self.wait_for_pause_end()
            if first:
                first = False
                # Only now: an application may state its status with its first part.
                self._note_answer_begin(started, piece or b"")
            if self._watch is not None:
                self._watch(piece)

        return receive_part

    def _note_answer_begin(self, started: Started, piece: bytes) -> None:
        if not started:
            return
        status, fields = started[0]
        plainly = not (self.chat or self.message or self.seam.plan.needs_earlier_exchanges) and status < "4"
        # A packed body cannot be read by its beginning.
        if plainly and not any(name.lower() == "content-encoding" for name, _ in fields):
            self.reads = SEARCHED_MAX  # nobody wants to know more of it
        # Which event answers is known only as the stream comes: a server may tell of its progress first.
        if self.message is not None and is_event_stream(fields):
            self._watch = self._make_effect_watcher(int(status[:3]), fields, self.request, self.value)
        else:
            self._record_effects(int(status[:3]), fields, self.request, self.value, piece)
        if self.seam.refusals.will_refuse_next_request(self.name):
            # The next request is to find its connection refused, so the client must not keep this one.
            started[0] = status, [*fields, ("Connection", "close")]

    def produce_reply_sync(self) -> tuple[Started, Iterator[bytes]]:
        """As `produce_reply`, of a line that never suspends."""
        started, parts = run_synchronously(self.produce_reply())
        # The parts as an iterator for WSGI, which knows no await.
        return started, iter(lambda: run_synchronously(parts.read_part()), None)

    async def produce_reply(self) -> tuple[Started, BodyParts]:
        """The head of the reply to send, and its body, whose `take` may raise too. Raises Failure: the connection ends
        in this way; timed_out is silence."""
        try:
            reply: Reply = await self.send_through_faults()
        except Failure as failure:
            if failure.kind == "died" and not self.over:
                # Noted before the death: what comes after it is another process.
                self._finish("died", self.seam.timeout_s, None, 0)
                self.seam.kill(self.call)
            if failure.kind == "stopped" and not self.over:
                self._finish("stopped", self.duration_s, None, 0)
            raise
        last = [("Connection", "close")] if self.seam.refusals.will_refuse_next_request(self.name) else []
        if reply.stream is not None:
            # The application's own headers with their repetitions, unless a story has changed them.
            unchanged = self._fields if reply.headers == dict(self._fields) else reply.headers.items()
            # Pipes may change the length; without them it stays what the application has promised.
            fields = [(name, value) for name, value in unchanged if not reply.pipes or name.lower() not in LENGTHS]
            events = make_message_splitter(reply.status, fields)
            return [(str(reply.status), [*fields, *last])], _PipedParts(self, reply.stream, reply.pipes, events)
        self.reply = ServedReply.from_reply(reply)
        # Kept whole, since `ended` compares what the client got with it.
        return [(str(reply.status), [*self.reply.fields, *last])], Iterated(iter((self.reply.raw,)))

    def make_fault_wire(self, write: Write) -> WireBytes | None:
        """The way of the bytes of the answer that was played; None if no fault acts on them."""
        faults = {active.injection: active for active in self.faults.active if get_trait(active.fault, "of_bytes")}
        if not faults:
            return None
        return WireBytes(self, faults.values(), write, seed=self.seam.plan.seed, guard=self.seam.memory.guard)

    def handle_injected_fault(self, active: ActiveFault) -> None:
        if self.over:  # nobody can meet it any more
            return
        super().handle_injected_fault(active)
        if get_trait(active.fault, "of_process"):
            outages = self.seam.outages
            outage = outages.begin_outage(self.name, active, self.asked)
            self._stopped = outages.find_pause_fault(self.name) is not None
            # The others were cut by this outage when their connections were dropped, and are told so at their end.
            for attempt in self.seam.open.values() if outage is not None and not self._stopped else ():
                if attempt.name == self.name and attempt is not self:
                    attempt._broken_by = outage

    # The driver's methods for stories.

    async def send(self, call: Call) -> Reply:
        self.sent, self.via = call, "service"
        request, value = self.request, self.value
        if call.value is not self.value:
            value = call.value
            # By the message's own arguments, so that the envelope with its id stays.
            request = self.request.with_arguments(
                value if self.message is None else self.message.build_body_with_arguments(value)
            )
            if self.chat is not None:
                self.chat.sent = request
        answer = await self.line.request_service_answer(request)
        self.wait_for_pause_end()
        streams = (is_event_stream if self._reads_all else has_body_in_parts)(answer.fields)
        answer_parts, first = answer.iterate_parts(), b""
        if answer.status != UPGRADED and not streams:
            body, failure = await _read_whole(answer_parts)
            if failure is None:
                return self._record_whole_answer(answer.status, answer.fields, body, request, value)
            # It fails in its rest: the client gets what came, and then the break, as without a hit.
            answer_parts = _BrokenOffParts(body, failure)
        elif self._reads_all and self.message is not None:
            first, is_whole = await _read_until_server_request(answer_parts)
            if is_whole:
                return self._record_whole_answer(answer.status, answer.fields, first, request, value)
        self._fields = answer.fields
        keep = self._make_part_recorder([(str(answer.status), answer.fields)])
        # A stream's effects are noted by the event that answers; its first one may tell of progress.
        if self.message is not None and is_event_stream(answer.fields):
            keep = _chain_part_receivers(keep, self._make_effect_watcher(answer.status, answer.fields, request, value))
        else:
            self._record_effects(answer.status, answer.fields, request, value, first)
        parts = _RecordedParts(first, answer_parts, keep)
        return Reply(answer.status, dict(answer.fields), stream=parts)

    def _record_whole_answer(
        self, status: int, fields: Fields, body: bytes, request: HttpRequest, value: Mapping[str, Any]
    ) -> ServedReply:
        """The application's whole answer."""
        # Before the effects: the list says which tools only read.
        if self._is_tool_listing:
            self.seam.record_tool_list(self.name, body)
        self._record_effects(status, fields, request, value, body)
        served = self._unwrap_reply(ServedReply(status, fields, body))
        self._record_model_reply(served)
        return served

    # The protocol's part.

    @property
    def _is_tool_listing(self) -> bool:
        return self.message is not None and self.message.part == "listing"

    @property
    def _is_about_task(self) -> bool:
        return self.message is not None and self.message.part == "session" and self.message.tool.startswith("tasks/")

    def _unwrap_reply(self, served: ServedReply) -> ServedReply:
        """The reply with the tool's own value in the place of the whole message."""
        if self.message is None:
            return served
        return unwrap_tool_value(served, self.message, self.seam.get_output_schema(self.name, self.tool))

    def _make_success_reply(self, value: Any) -> Reply:
        """A successful reply of the lab's own."""
        assert self.message is not None
        schema = self.seam.get_output_schema(self.name, self.tool)
        return make_message_reply(self.message, self.message.build_result_reply(value, schema), schema)

    def _make_error_reply(self, message: str) -> Reply:
        """The reply in which the tool says that it failed."""
        assert self.message is not None
        return make_message_reply(self.message, self.message.build_error_reply(message))

    def _may_faults_change_value(self, reach: Candidates, decisions: Decisions) -> bool:
        """True if a fault that hits may change the value of a streamed answer, which is then read whole."""
        hits = {i.layer for i, decision in zip(reach, decisions, strict=False) if decision in HITS}
        # A fault of the stream acts on parts; read whole there would be none.
        return bool(hits & {"meaning", "tool"}) and "stream" not in hits

    def _make_part_recorder(self, started: Started) -> Take:
        """A function that takes the parts, and None at their end. A list of tools is read before its client has it; a
        reply that the log is to keep is recorded as one when its parts have ended."""
        recorded, body = self.chat is not None and self.chat.is_to_be_recorded, bytearray()

        def keep_part(piece: bytes | None) -> None:
            if piece is not None:
                # Bounded, since a stream may be endless.
                body.extend(piece if len(body) < BODY_MAX else b"")
                # With each part, since the client may call a tool as soon as it has the list.
                if self._is_tool_listing:
                    self.seam.record_tool_list(self.name, bytes(body))
                elif self._is_about_task:
                    for payload in json_rpc.iterate_json_values(bytes(body)):
                        self.seam.tasks[self.name].record_reply(payload)
            elif started and recorded:
                status, fields = started[0]
                self._record_model_reply(ServedReply(int(status[:3]), fields, bytes(body)))

        return keep_part if self._is_tool_listing or self._is_about_task or recorded else _ignore_part

    def _record_model_reply(self, reply: Reply) -> None:
        """Notes a model's own reply, if it could not be made again."""
        if self.chat is not None:
            for event in self.chat.make_recorded_events(self.call, reply):
                self.log_flow_event(event)

    async def wait(self, delay_s: float) -> None:
        """Lets time pass until the client hangs up; a step of a story. A process that is stopped sees nobody hang up,
        and does the work when it goes on."""
        if self._stopped:
            self.seam.clock.sleep(delay_s)
        # Without a lever or a lease nothing ends a wait early.
        elif not self._memory.guard.can_end_faults:
            await self.wait_for_hang_up(delay_s)
        else:
            left_s = self.began_s + self.seam.timeout_s - self.seam.clock.monotonic()
            # In slices, so that a lever ends it. An endless one is asked about until the client's bound.
            ended = await self.pause_unless_faults_end(
                max(0.0, left_s) if isinf(delay_s) else delay_s, self.wait_for_hang_up
            )
            if isinf(delay_s) and not ended:
                await self.wait_for_hang_up(delay_s)

    def wait_for_pause_end(self) -> None:
        """Keeps the answer until the service goes on, if it was paused meanwhile."""
        pause_fault = self.seam.outages.find_pause_fault(self.name)
        if pause_fault is None:
            return
        if not self.over and pause_fault.injection not in (active.injection for active in self.faults.active):
            self.faults.log_outage_fault(pause_fault)
        until_s = self.seam.outages.get_last_outage_end_s(self.name)
        self.seam.clock.sleep(max(0.0, until_s - self.seam.clock.monotonic()))

    async def wait_for_hang_up(self, delay_s: float) -> None:
        """Lets time pass until the client hangs up. One that waits for ever is told to have waited for `timeout_s`.
        Raises Failure: it does not wait any more."""
        left_s = delay_s
        if isinf(delay_s):
            left_s = max(0.0, self.began_s + self.seam.timeout_s - self.seam.clock.monotonic())
        if await self.line.wait_unless_client_left(left_s) or self.over:
            raise Failure("timed_out")
        if isinf(delay_s):
            self.line.end_exchange_as_hang_up()
            self.seam.lapsed.append(self)
            raise Failure("timed_out")

    def log_flow_event(self, event: Event) -> None:
        self.book.note_event(event)

    # The record.

    def _record_effects(
        self, status: int, fields: Fields, request: HttpRequest, value: Mapping[str, Any], body: bytes
    ) -> None:
        """Notes what the application did, by its own words or by the request's method and the reply's status. `body`:
        that of the reply, as far as it is known: a tool of MCP that failed says so in it."""
        self.acted = True
        # Before anything is noted: a credential in a reply may come again in an effect.
        self.book.hide_secrets(find_secrets_in_headers(fields))
        stated_text = next((text for name, text in fields if name.lower() == EFFECT.lower()), None)
        effects: Sequence[tuple[str, Mapping[str, Any]]] = ()
        # What the service says of itself decides; the method and status are a guess.
        if stated_text is not None:
            try:
                effects = parse_effects(stated_text)
            except (ValueError, RecursionError) as error:
                self.book.note_event(
                    events.LabWarning(
                        message=f"{self.name} says {EFFECT}: {stated_text[:60]!r} to {self.tool}: {error}"
                    )
                )
                # A statement that cannot be read is told, and the guess stands in its place.
                stated_text = None
        # A 2xx alone: a refused request did nothing, and a model's work is no effect.
        if stated_text is None and request.method not in SAFE and not self.of_model and 200 <= status < 300:
            effects = ((self.tool, value),) if self.message is None else self._list_done_effects(value, body)
        named = self.seam.repeats.build_shared_effect_name(self.name, self.tool, request, value) if effects else ""
        # By its list a repetition of equal arguments is one effect, so they share a name.
        if effects and not named and self.message is not None and self.seam.is_idempotent_tool(self.name, self.tool):
            named = f"{self.tool} {hash_value(value)}"
        logged_reply = (
            {"status": status, "body": decode_to_one_line(body, REPLY_MAX), "headers": {}}
            if effects and self.hit
            else {}
        )
        for nth, (effect, content) in enumerate(effects):
            self.book.note_event(
                events.Effect(
                    target=self.name,
                    tool=self.tool,
                    # Numbered where one request has several effects, since equal names are one effect.
                    request_id=f"{named} {nth}" if nth and named else named,
                    effect=effect,
                    content=self.wanted.arguments if content is self.value else self.wanted.to_log_form(content),
                    reply=logged_reply,
                    fingerprint="",
                    request=self.call.request,
                    attempt=self.call.attempt,
                )
            )

    def _may_have_effect(self) -> bool:
        """True if a good reply to the request will be an effect, unless the service says otherwise."""
        if self.of_model or self.request.method in SAFE:
            return False
        reads = self.seam.get_read_only_tools(self.name)
        # A tool that may change something, whatever else the batch asks.
        return self.message is None or any(name not in reads for name, _ in self.message.list_effects(self.value, None))

    def _make_effect_watcher(self, status: int, fields: Fields, request: HttpRequest, value: Mapping[str, Any]) -> Take:
        """A function that takes the parts of a stream of messages, and notes the effects by the one that answers. A
        stream that ends without one has told nothing, so the work may have been done. (A server begins its stream with
        an empty event, 2025-11-25, or tells of its progress first.)"""
        assert self.message is not None
        message, events, payloads = self.message, EventSplitter(), list[Any]()

        def watch_for_answer(piece: bytes | None) -> None:
            if self.acted:
                return
            # What has not come to its end is one event more.
            for event in events.feed(piece) if piece is not None else [events.rest]:
                payload = parse_event_json(event)
                if message.extract_tool_answer(payload) is not None:
                    self._record_effects(status, fields, request, value, event)
                    return
                if isinstance(payload, dict) and "method" not in payload and len(payloads) < STREAMED_MAX:
                    payloads.append(payload)
            if piece is None:  # a batch is answered in several events
                self._record_effects(status, fields, request, value, encode_text(json.dumps(payloads)))

        self._watch = watch_for_answer
        return watch_for_answer

    def _list_done_effects(self, value: Mapping[str, Any], body: bytes) -> Effects:
        """The effects of a message with these arguments. `body`: the reply's, as far as it is known."""
        assert self.message is not None
        reads = self.seam.get_read_only_tools(self.name)
        expected = [effect for effect in self.message.list_effects(value, None) if effect[0] not in reads]
        # Effects of tools that are functions here too must not count twice.
        self.book.served.update(tool for tool, _ in expected)
        for payload in json_rpc.iterate_json_values(body):
            if self.message.extract_tool_answer(payload) is not None:
                if not self.seam.tasks[self.name].record_reply(payload, self.message):
                    return []
                return [effect for effect in self.message.list_effects(value, payload) if effect in expected]
        return expected

    def handle_client_end(self, end: ClientEnd) -> None:
        """Takes the end of the exchange on the client's side. `yield_parts_and_record` or `produce_reply_sync` may be
        at work still."""
        if self.over:
            return
        duration_s = self.seam.clock.monotonic() - self.began_s
        error = end.error
        if error in ("reset", "closed") and self._broken_by is not None:
            # The outage cut its connection; its own fault is what it met.
            self.faults.log_outage_fault(self._broken_by.make_cut_fault(OutageCut("reset")))
        if error == "left":  # it gave up waiting, or it stopped reading
            error = "timed_out" if end.answer is None or end.waited else None
        # A stream whose end has come was not waited for.
        if error == "timed_out" and end.streamed is not None and end.streamed.done:
            error = None
        # Whoever hangs up without need, and without a fault that acted, has not timed out: it cancelled.
        needless = not end.gave_up or self.asked.answered  # the latter: a hedged request of which another has won
        if error == "timed_out" and needless and not self.is_changed_by_fault():
            error = events.CANCELLED
        is_whole = end.error is None and end.answer is not None
        reply = self._unwrap_reply(ServedReply(*end.answer)) if end.answer is not None else None
        if self.request.method == "HEAD" and is_whole and reply is not None and self.reply is not None:
            length = {name.lower(): value for name, value in reply.headers.items()}.get("content-length")
            if length == str(len(self.reply.raw)):  # which stands for the body here
                reply = ServedReply(reply.status, reply.fields, self.reply.raw)
        if error == "timed_out" and self.waited_s is not None:  # it kept the connection, and never came back to it
            duration_s = self.waited_s
        # A stream is timed by its silences, as its client's timeout is.
        silence_s = end.streamed.silence_s if end.streamed is not None else duration_s
        # Of a client that gave up, its own patience is the deadline.
        deadline_s = silence_s if error == "timed_out" else self.seam.timeout_s
        self._finish(error, deadline_s, reply, end.bytes, whole=is_whole, duration_s=duration_s, streamed=end.streamed)

    @property
    def request_label(self) -> str:
        """The request with its number, as in "GET /orders (1.2)"."""
        return f"{self.tool} ({self.call.request}.{self.call.attempt})"

    @property
    def may_still_act(self) -> bool:
        """True while the service has not answered, so that what it does is not noted, if it may do anything."""
        return not self.acted and not self.of_model and self.request.method not in SAFE

    def is_changed_by_fault(self) -> bool:
        """True if a fault has changed the exchange."""
        return any(active.injected for active in self.faults.active)

    def note_client_timeout(self) -> None:
        """Takes a timeout of the client's that does not end the connection: it may ask again."""
        self.waited_s = self.seam.clock.monotonic() - self.began_s

    def end_with_trial(self) -> None:
        """Ends the attempt with its trial. A client that kept its connection after its timeout met that; any other one
        met nothing yet."""
        if self.waited_s is not None:
            self._finish("timed_out", self.waited_s, None, 0, duration_s=self.waited_s)
        else:
            self._finish(events.OPEN, self.seam.timeout_s, None, 0)

    def _finish(
        self,
        error: str | None,
        deadline_s: float,
        reply: ServedReply | None,
        size: int,
        *,
        whole: bool = False,
        duration_s: float | None = None,
        streamed: Streamed | None = None,
    ) -> None:
        # First: a stream that ended without an answer may have had an effect, which is noted before its end.
        self.over = True
        if self._watch is not None:
            self._watch(None)
        self._memory.guard.end_attempt(self.name, self.call.request, self.call.attempt)
        self.asked.end_attempt()
        del self.seam.open[id(self)]
        if duration_s is None:
            duration_s = self.seam.clock.monotonic() - self.began_s
        status = reply.status if reply is not None else None
        if reply is not None:
            self._hide_secrets(reply.fields, reply.body)
        # Nothing of an attempt that was cancelled or is open can be a witness: it met no end.
        if error not in (events.CANCELLED, events.OPEN):
            self.record_observation(
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
        heard = self.chat.read_answer(reply) if self.chat is not None and reply is not None else None
        unread = heard is not None and streamed is None and reply is not None and reply.value is None
        if unread and error is None and status is not None and status < 400:
            error = f"status {status}, and no JSON"
        error = error or self.left or None
        # A protocol may say in an answer of success that the tool failed.
        ok = error is None and status is not None and status < 400 and getattr(reply, "ok", True)
        # A task that was accepted is not done: an equal request later is another try.
        if ok and getattr(reply, "done", True):
            self.book.requests.mark_answered(self.asked)
        # A script reads nothing, so its answers are told from those that were worked out.
        said_by = self.chat.script_name if ok and self.chat is not None else None
        reached = self.value if self.sent is None else self.sent.value  # a fault may have changed what the agent sent
        self.book.note_event(
            events.CallFinished(
                at=self.call.attempt_ref,
                tool=self.tool,
                ok=ok,
                duration_s=round(duration_s, 6),
                status=status,
                error=error or (None if ok else reply.error_words if reply is not None else ""),
                bytes=size,
                via=self.via,
                rolled=list(self.rolled),
                reply=(heard and to_one_line(heard.rendered_content, REPLY_MAX))
                or (decode_to_one_line(reply.body, REPLY_MAX) if reply else ""),
                first_byte_s=streamed.first_byte_s if streamed is not None else None,
                last_byte_s=streamed.last_byte_s if streamed is not None else None,
                finish_reason=to_one_line(heard.reason, REPLY_MAX) if heard is not None and ok else None,
                said_by=said_by,
                asked=hash_value(self.chat.list_messages(reached)) if said_by and self.chat is not None else None,
            )
        )
        if self.chat is not None:
            self._count_model_answer(self.chat, heard, ok=ok)

    def _hide_secrets(self, fields: Iterable[tuple[str, str]], body: bytes) -> None:
        """Takes the credentials in a reply that the log cuts."""
        if len(body) > REPLY_MAX:
            kind = next((value for name, value in fields if name.lower() == "content-type"), "")
            self.book.hide_secrets(find_secrets_in_body(kind, body))

    def _count_model_answer(self, chat: ModelRequest, heard: ReadAnswer | None, *, ok: bool) -> None:
        """Counts a model's answer; of one that broke off, what was used is paid too."""
        if (
            heard is not None
            and (usage := self.seam.spent.record_usage(heard, self.call.request, chat.estimate_tokens)) is not None
        ):
            self.book.note_event(usage)
        chat.report_client_answer(heard if ok and heard is not None and heard.finished else None)


def _ignore_part(_: bytes | None) -> None:
    """Takes a part that nobody needs."""


def _chain_part_receivers(first: Take, then: Take) -> Take:
    """A function that has two others take each part."""

    def receive_part(piece: bytes | None) -> None:
        first(piece)
        then(piece)

    return receive_part


class _RecordedParts(BodyParts):
    """A body of which each part is told to `keep` when it is taken. `first`: the part that was taken already."""

    def __init__(self, first: bytes, parts: BodyParts, keep: Take) -> None:
        self._first, self._parts, self._keep = first, parts, keep

    async def read_part(self) -> bytes | None:
        first, self._first = self._first, b""
        piece = first or await self._parts.read_part()
        self._keep(piece)
        return piece


class _BrokenOffParts(BodyParts):
    """A body of which this much came, and then its failure."""

    def __init__(self, body: bytes, failure: Failure) -> None:
        self._body: bytes | None = body
        self._failure = failure

    async def read_part(self) -> bytes | None:
        body, self._body = self._body, None
        if body is None:
            raise self._failure
        # Also an empty one, with which the head goes out.
        return body


class _PipedParts(BodyParts):
    """A body through the pipes of stories, event by event, each when it is due. Nothing is read while a pipe holds more
    than its room."""

    def __init__(self, attempt: ServiceAttempt, parts: BodyParts, pipes: Sequence[Pipe], events: BodySplitter) -> None:
        self._attempt, self._parts, self._now = attempt, parts, attempt.seam.clock.monotonic
        self._line = PipedBody(pipes, self._now(), events) if pipes else None
        self._failure = Failure("reset")

    async def read_part(self) -> bytes | None:
        if self._line is None:
            piece = await self._parts.read_part()
            self._attempt.wait_for_pause_end()
            return piece
        while (item := self._line.poll(self._now())) is not Signal.END:
            # A pipe's own reset, or the service's failure behind all that came before it.
            if isinstance(item, Signal):
                raise self._failure
            if item is not None:
                return item
            if self._line.has_room:
                try:
                    piece = await self._parts.read_part()
                except Failure as failure:
                    self._failure = failure
                    self._line.feed(None, self._now(), broke=True)
                    continue
                self._attempt.wait_for_pause_end()
                self._line.feed(piece, self._now())
            else:
                wake_s = self._line.find_next_due()
                await self._attempt.wait_for_hang_up(inf if wake_s is None else wake_s - self._now())
        return None


async def _read_whole(parts: BodyParts) -> tuple[bytes, Failure | None]:
    """All of a body that came, and its failure if it broke off."""
    pieces = []
    try:
        while (piece := await parts.read_part()) is not None:
            pieces.append(piece)
    except Failure as failure:
        return b"".join(pieces), failure
    return b"".join(pieces), None


async def _read_until_server_request(parts: BodyParts) -> tuple[bytes, bool]:
    """The body of a stream up to its end, and True; or up to a request of the server's, which waits for the client's
    answer, and False."""
    body = bytearray()
    events = EventSplitter()
    while (piece := await parts.read_part()) is not None:
        body += piece
        for event in events.feed(piece):
            payload = parse_event_json(event)
            if (isinstance(payload, dict) and "method" in payload and "id" in payload) or len(body) > BODY_MAX:
                return bytes(body), False
    return bytes(body), True
