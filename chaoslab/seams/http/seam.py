"""The seam of HTTP through httpx: tools, and the model's own SDK with its own retries. A transport turns each request
into an exchange, runs the plan's stories, sends the call over the lane that the proxy manager names, and logs the
caller's observation. The client's code is the one that runs in production."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

import httpx

from chaoslab.base.clock import Clock
from chaoslab.base.identity import Requests, TrialId, hash_value, parse_json
from chaoslab.base.jsonable import decode_to_one_line, to_one_line
from chaoslab.core import events
from chaoslab.core.attempt import Attempt
from chaoslab.core.chain import ActiveFault
from chaoslab.core.events import REPLY_MAX
from chaoslab.core.exchange import Call, Failure, Observation, Reply
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import HITS, SPARED, Candidates, Decision, Plan
from chaoslab.core.service_spec import TROUBLE
from chaoslab.core.stream import BodyParts, Streamed
from chaoslab.record.log import Log
from chaoslab.seams import _client_retry, _trace_context
from chaoslab.seams._replied import make_replied_event
from chaoslab.seams.http._streamed import CleanLaneParts, KeptParts, LaneParts, StreamedBody
from chaoslab.seams.http._words import extract_error, extract_model_text
from chaoslab.seams.http.process_faults import ConfirmedOutage, NotStopped, ProcessFaults
from chaoslab.seams.http.tags import (
    EXTENSION,
    MODEL_TOOL,
    ProbeTag,
    RequestTag,
    Target,
    TrialState,
    enter_trial,
    get_current_trial_state,
)
from chaoslab.seams.services.effects import SAFE
from chaoslab.seams.services.model import validate_token_count
from chaoslab.wire.control import FIRST, ManagerAnswer
from chaoslab.wire.lanes import LaneBroker
from chaoslab.wire.sending import SocketFactory, Transport, fetch_reply, make_native_error

_TROUBLE = TROUBLE.lower()
"""The header in lower case, as the names of received headers are."""


@cache
def _make_default_tls_context() -> ssl.SSLContext:
    """The certificates that are trusted by default; read once in a process, since that takes 50 ms."""
    return httpx.create_ssl_context()


class HttpSeam(httpx.AsyncBaseTransport):
    """The transport of all HTTP of the agent. `price` gives a model's cost in USD: (model, tokens in, tokens out) →
    cost or None."""

    def __init__(
        self,
        *,
        plan: Plan,
        targets: Mapping[str, Target],
        lanes: LaneBroker,
        log: Log,
        clock: Clock,
        price: Callable[[str, int, int], float | None],
        on_call: Callable[[str], None] = lambda _: None,
        tls: ssl.SSLContext | None = None,
        ways: SocketFactory | None = None,
        processes: ProcessFaults | None = None,
    ) -> None:
        self.plan, self.targets, self.lanes, self.log, self.clock = plan, targets, lanes, log, clock
        self.price, self.on_call = price, on_call
        self.cost_usd = 0.0
        self.tls = tls or _make_default_tls_context()
        self.ways = ways or SocketFactory()
        self.processes = processes
        self.clean, self.standing = self.ways.make_pooled_transport(self.tls), self.ways.make_pooled_transport(self.tls)
        self._epoch = 0
        # Closed at the end only: a call under way may still read from one.
        self._retired: list[Transport] = []
        self.plans = 1
        """The number of plans that were in force."""
        # By host and port as httpx spells them, since an SDK's request has no tag that would name its target.
        self._places = {httpx.URL(target.url).netloc: target for target in targets.values()}

    def change_plan(self, plan: Plan) -> None:
        """Puts another plan in force, between two trials. The manager has it already."""
        self.plan, self.plans = plan, self.plans + 1

    @contextmanager
    def open_trial(self, trial: TrialId) -> Iterator[TrialState]:
        """A context in which every call belongs to this trial."""
        memory = TrialMemory(self.plan, trial.key, clock=self.clock, note=partial(self.log.write, trial=trial.key))
        # Limits count all faults that go on, and outages are with the supervisor.
        if self.processes is not None:
            memory.guard.others = self.processes.count_active
        with enter_trial(TrialState(trial, Requests(trial), self.clock.monotonic(), memory)) as state:
            yield state

    async def end_outages(self) -> None:
        """Ends the trial's outages: the next one begins with all services. Raises LabDown: a service does not come
        back."""
        if self.processes is not None:
            try:
                await self.processes.end_outages()
            except NotStopped as error:
                self.lanes.raise_lab_down(str(error))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        tag = request.extensions.get(EXTENSION)
        # The lab's own questions go around every story: they are no part of the trial.
        if isinstance(tag, ProbeTag):
            return await self._send_probe(request, tag)
        target = self._find_target(request) if tag is None else self.targets[tag.request.target]
        if not isinstance(request.stream, httpx.ByteStream):  # else it is here already
            await request.aread()
        if tag is None:
            # the tag of an SDK's request. The same body again is another attempt of one request, be the retry the
            # SDK's or the prompt's.
            body = parse_json(request.content or b"null")
            # "surrogateescape" keeps bytes that are no UTF-8, so that two such bodies are still two requests.
            spelt = request.content.decode("utf-8", "surrogateescape")
            asked_request = get_current_trial_state().requests.find_or_create(
                target.name, MODEL_TOOL, body, spelt=spelt
            )
            tag = RequestTag(asked_request, asked_request.count_attempt(), body)
        attempt = _Attempt(self, request, target, tag, get_current_trial_state())
        reply = await attempt.run_through_faults()
        return _make_response(reply, request) if reply.stream is None else attempt.make_streamed_response(reply)

    async def _send_probe(self, request: httpx.Request, probe: ProbeTag) -> httpx.Response:
        try:
            reply = await fetch_reply(self.clean, request, within_s=probe.within_s)
        except Failure as failure:
            raise make_native_error(failure, request, who=request.url.host, after_s=probe.within_s) from failure.native
        if self.targets[probe.target].recorded:
            self.log.write(make_replied_event(probe.target, 0, 0, probe.asked, reply), trial=probe.trial)
        return _make_response(reply, request)

    def _find_target(self, request: httpx.Request) -> Target:
        try:
            return self._places[request.url.netloc]
        except KeyError:
            raise LookupError(f"no target of the lab is at {request.url.netloc.decode()}") from None

    def replace_lanes(self, lanes: LaneBroker, *, spent_usd: float = 0.0) -> None:
        """Begins anew with other lanes, no connections and `spent_usd` spent: the next trial has a network of its
        own."""
        self.lanes, self.cost_usd = lanes, spent_usd
        self.clean, self._epoch, self._retired = self.ways.make_pooled_transport(self.tls), 0, []
        self.standing = self.ways.make_pooled_transport(self.tls)

    def get_clean_transport(self, epoch: int) -> Transport:
        """The transport of the clean lanes. It is a new one once they were made anew, since old connections lead
        nowhere."""
        if epoch != self._epoch:
            self._retired.append(self.clean)
            self.clean, self._epoch = self.ways.make_pooled_transport(self.tls), epoch
        return self.clean

    async def aclose(self) -> None:
        for transport in (self.clean, self.standing, *self._retired):
            await transport.aclose()


def _make_response(reply: Reply, request: httpx.Request) -> httpx.Response:
    # As bytes, since httpx encodes a text as ASCII and a value may have other letters.
    headers = [(name.encode("ascii"), value.encode()) for name, value in reply.headers.items()]
    # The length of the transfer was taken away: a story may have changed the body.
    headers.append((b"content-length", str(len(reply.body)).encode()))
    return httpx.Response(reply.status, headers=headers, stream=httpx.ByteStream(reply.body), request=request)


def _write_event(log: Log, trial: TrialState, of_model: bool, event: events.Event) -> None:
    if of_model and isinstance(event, events.Budget) and event.mode == "hard":
        trial.stopped_by = event
    log.write(event, trial=trial.trial.key)


class _Attempt(Attempt):
    """One attempt of a request, from the client's call to its answer."""

    def __init__(
        self, seam: HttpSeam, request: httpx.Request, target: Target, tag: RequestTag, trial: TrialState
    ) -> None:
        self.seam, self.request, self.target, self.asked, self.trial = seam, request, target, tag, trial
        self.via = "none"
        self._of_model = tag.request.tool == MODEL_TOOL
        self.open: dict[BodyParts, Callable[[Streamed | None], None]] = {}
        call = Call(
            target.name,
            tag.request.tool,
            trial.trial.key,
            tag.request.number,
            tag.attempt,
            tag.request.id,
            tag.arguments,
            target.errors,
            turn=trial.requests.turn,
        )
        began_s = seam.clock.monotonic()
        elapsed_s = began_s - trial.began_s
        inner = seam.plan.find_candidates(call.target, wire=False)
        decisions = self._decide_injections(call, trial, inner, elapsed_s)
        stops = [
            seam.processes is not None and decision in HITS and i.of_process
            for i, decision in zip(inner, decisions, strict=True)
        ]
        # To the inner stories they are spared: the process dies, and the call only meets that.
        super().__init__(
            call,
            trial.memory,
            inner,
            [SPARED if stop else decision for decision, stop in zip(decisions, stops, strict=True)],
            clock=seam.clock,
            began_s=began_s,
            deadline_s=target.deadline_s,
            elapsed_s=elapsed_s,
            spent={**trial.spent, "cost_usd": seam.cost_usd, "seconds": elapsed_s},
            note=partial(_write_event, seam.log, trial, self._of_model),
        )
        self._stops = [seam.plan.draw_fault(i, call) for i, stop in zip(inner, stops, strict=True) if stop]
        """The faults that stop the service's process when the call is sent, of which the first does."""

    def _decide_injections(self, call: Call, trial: TrialState, inner: Candidates, elapsed_s: float) -> list[Decision]:
        """The decisions of the injections above the wire. Those of the wire are decided by the manager, which is sent
        the occasion as it was before; here their hits are only counted, if a trigger depends on them."""
        plan, memory = self.seam.plan, trial.memory
        wire = plan.find_candidates(call.target, wire=True)
        occasion = memory.build_occasion(
            call.target,
            call.tool,
            call.request,
            call.attempt,
            elapsed_s=elapsed_s,
            arguments=call.value,
            changes=not self._of_model and self.request.method not in SAFE,
        )
        guard = memory.guard
        # Only where limits ask for them: headers may be large, and none is looked at without.
        if guard.limits:
            occasion.headers = {header: self.request.headers.get(header, "") for header in guard.header_names}
            occasion.under_way = guard.active_fault_count
        self.occasion = occasion.to_json(wire.hit_dependencies, reads=wire.needs_arguments) if wire else FIRST
        # With its number, so that the manager decides by the plan that was in force here.
        if self.seam.plans > 1:
            self.occasion = {**self.occasion, "plan": self.seam.plans}
        return memory.decide_hits(plan.find_candidates(call.target) if plan.needs_hit_counts else inner, occasion)[
            : len(inner)
        ]

    async def run_through_faults(self) -> Reply:
        """Runs the stories and logs the caller's observation."""
        call, note = self.call, self.log_flow_event
        # The messages of one request come again in the next, so the log has their number alone.
        logged_arguments = {"messages": len((call.value or {}).get("messages", []))} if self._of_model else call.value
        client_retry = (
            _client_retry.parse_retry_count(self.request.headers.get(_client_retry.HEADER, ""))
            if call.attempt > 1
            else None
        )
        span = _trace_context.validate_span_header(self.request.headers.get(_trace_context.HEADER, ""))
        note(
            events.CallStarted(
                at=call.attempt_ref,
                tool=call.tool,
                arguments=logged_arguments,
                client_retry=client_retry,
                traceparent=span,
            )
        )
        self.seam.on_call(f"{call.target}.{call.tool}")
        # Before its answer, so that a budget of calls counts those that fail too.
        self.trial.spent["calls"] += 1
        reply: Reply | None = None
        failure: Failure | None = None
        try:
            reply = await self.send_through_faults()
            return reply
        except Failure as caught:
            failure = caught
            after_s = self.seam.clock.monotonic() - self.began_s
            # The agent's text of it goes on to the model: a clock that wakes late must not make it another text.
            after_s = round(min(after_s, self.target.deadline_s), 3)
            raise make_native_error(caught, self.request, who=self.target.name, after_s=after_s) from caught.native
        finally:
            stream = None if reply is None else reply.stream
            dropped = [parts for parts in self.open if parts is not stream]  # a story put something else in their place
            for parts in dropped:
                self.open.pop(parts)(None)
            # A streamed attempt ends with its body, in `make_streamed_response`.
            if stream is None:
                self._note_finish(reply, failure)
            failure = None  # its traceback holds this frame
            # After the record: closing a lane's connection may wait, and the log's order is that of the ends.
            for parts in dropped:
                await parts.aclose()

    def make_streamed_response(self, reply: Reply) -> httpx.Response:
        """The response whose body comes in parts. The attempt ends when its body does."""

        def end_body(streamed: Streamed, failure: Failure | None) -> None:
            self.trial.reading.pop(id(body), None)
            if reply.stream in self.open:
                self.open.pop(reply.stream)(streamed)
            self._note_finish(reply, failure, streamed, body)

        def make_client_error(failure: Failure) -> Exception:
            after_s = round(self.seam.clock.monotonic() - self.began_s, 3)
            return make_native_error(failure, self.request, who=self.target.name, after_s=after_s)

        body = StreamedBody(
            reply,
            clock=self.seam.clock,
            began_s=self.began_s,
            silence_s=self.target.deadline_s,
            over=end_body,
            native=make_client_error,
        )
        # Held by the trial, so that its end can end a stream that nobody reads on.
        self.trial.reading[id(body)] = body
        headers = [(name.encode("ascii"), value.encode()) for name, value in reply.headers.items()]
        return httpx.Response(reply.status, headers=headers, stream=body, request=self.request)

    # The driver's methods for stories.

    def log_flow_event(self, event: events.Event) -> None:
        _write_event(self.seam.log, self.trial, self._of_model, event)

    async def send(self, call: Call) -> Reply:
        """Sends the call. A reply in which a part of the lab says that it is broken ends the run."""
        try:
            reply = await self._send_through_outages(call)
        except Failure as failure:
            if self.target.recorded and self.via != "lane":  # the target itself failed
                self._record_reply(call, failure=failure.kind)
            raise
        # Kept by its parts, since a story may return other parts than those that were sent.
        if (parts := reply.stream) is not None:
            end_parts = self.open.pop(parts, lambda _: None)
            if self.target.recorded:
                parts = KeptParts(parts, partial(self._record_streamed_reply, call, reply))
                reply = replace(reply, stream=parts)
            self.open[parts] = end_parts
        elif self.target.recorded:
            self._record_reply(call, reply)
        if _TROUBLE in reply.headers:
            self.seam.lanes.raise_lab_down(reply.headers[_TROUBLE])
        return reply

    def _record_reply(self, call: Call, reply: Reply | None = None, *, failure: str = "") -> None:
        # A model has no ids of requests: its question is told by its content.
        question = hash_value(call.value) if self._of_model else call.request_id
        self.log_flow_event(make_replied_event(call.target, call.request, call.attempt, question, reply, failure))

    def _record_streamed_reply(self, call: Call, reply: Reply, body: bytes, failure: str) -> None:
        # Over a lane the break is the fault's own, as above.
        failure = "" if self.via == "lane" else failure
        self._record_reply(call, replace(reply, body=body, stream=None), failure=failure)

    @property
    def _is_streamed(self) -> bool:
        """True if the model's SDK has asked for its answer in parts."""
        value = self.call.value
        return self._of_model and isinstance(value, dict) and value.get("stream") is True

    async def _send_through_outages(self, call: Call) -> Reply:
        """Sends the call to a service whose process may be stopped, or is stopped for this call. The fault acts on the
        process: the failure is the one that the call met."""
        processes = self.seam.processes
        # The model is no process of the lab's, so nobody could stop it.
        if processes is None or self._of_model:
            return await self._send_call(call)
        # Once: a story may send the call again, and the process dies at the first.
        stops, self._stops = self._stops[:1], []
        # After the effect means after the answer, so that one is sent first; any other is dead before the call.
        last = next((stop for stop in stops if (outage := stop.fault.outage()) and outage.after_effect), None)
        first = next((stop for stop in stops if stop is not last), None)
        try:
            asked_s = self.seam.clock.monotonic()
            outage_begun = None if first is None else await processes.begin_outage(first, call)
            self.held_s += self.seam.clock.monotonic() - asked_s  # the supervisor's time, not the target's
            stopped = processes.find_active_outage(call.target)
            sent_s = self.seam.clock.monotonic()
            try:
                reply = await self._send_call(call)
            except Failure as failure:
                if outage_begun and failure.kind != "timed_out":
                    self.sent = None  # the process was dead before: nothing was done
                self._note_met_outage(
                    outage_begun, stopped or processes.find_active_outage(call.target), failure.kind, sent_s
                )
                raise
            self._note_met_outage(outage_begun, stopped, None, sent_s)
            if last is None or await processes.begin_outage(last, call) is None:
                return reply
        except NotStopped as lost:
            self.seam.lanes.raise_lab_down(str(lost))
        assert last is not None
        self.faults.log_outage_fault(last)
        # The process died with the answer in hand: its caller reads a reset.
        raise Failure("reset")

    def _note_met_outage(
        self, outage_begun: ConfirmedOutage | None, stopped: ConfirmedOutage | None, error: str | None, sent_s: float
    ) -> None:
        """Notes the outage that the call met: the one that began with it, or one that went on."""
        fault: ActiveFault | None = None
        if outage_begun is not None:
            fault = outage_begun.active
        elif stopped is not None:
            fault = stopped.make_fault_if_met(error, began_s=sent_s, ended_s=self.seam.clock.monotonic())
        if fault is not None:
            self.faults.log_outage_fault(fault)

    async def _send_call(self, call: Call) -> Reply:
        """Sends the call over the lane that the manager names."""
        self.sent = call
        # The request's own bytes, unless a story changed the value: encoding again could spell them otherwise.
        body = None if call.value is self.call.value else json.dumps(call.value).encode()
        if self.asked.direct:
            self.via = "direct"
            return await fetch_reply(self.seam.clean, self.request, within_s=self.remaining_s, body=body)
        asked_s = self.seam.clock.monotonic()
        guard, attempt_key = self._memory.guard, (call.target, call.request, call.attempt)
        on_hold = guard.count_attempt(*attempt_key)  # until it is known that no lane is made for it
        row, answer = await self.seam.lanes.request_lane(
            call, deadline_s=self.target.deadline_s, occasion=self.occasion
        )
        if on_hold and answer.state == "clear":
            guard.end_attempt(*attempt_key)
        self.faults.rolled += answer.rolled
        if answer.held:  # the lab mended itself meanwhile, which is not the target's time
            self.held_s += self.seam.clock.monotonic() - asked_s
        if answer.state == "clear":
            self.via = "proxy"
            clean = self.seam.get_clean_transport(answer.epoch)
            try:
                reply = await fetch_reply(
                    clean,
                    self.request,
                    within_s=self.remaining_s,
                    to=self.target.lane,
                    body=body,
                    streams=self._is_streamed,
                )
            except Failure as failure:
                await self._note_lab_disturbance(answer, failure)
                raise
            if reply.stream is None:
                return reply
            return replace(reply, stream=CleanLaneParts(reply.stream, partial(self._note_lab_disturbance, answer)))
        self.via = "lane"
        return await self._send_over_lane(row, (answer.host, answer.port), body, stands=answer.stands)

    async def _note_lab_disturbance(self, answer: ManagerAnswer, failure: Failure) -> None:
        """Notes a call on a clean lane that a disturbance of the lab cut. No fault fails a call there: it is either
        this or the target."""
        if await self.seam.lanes.has_lost_proxies(answer):
            call = self.call
            reason = f"it ended ({failure.kind}) when the clean proxies went away under it"
            self.log_flow_event(events.CallDisturbed(at=call.attempt_ref, tool=call.tool, why=reason))

    async def _send_over_lane(self, row: int, address: tuple[str, int], body: bytes | None, *, stands: bool) -> Reply:
        """Sends the call over its lane: on a connection of its own, or on a kept one if the lane stays."""
        began_s, left_s = self.seam.clock.monotonic(), self.remaining_s
        # Until it is known better: a caller that goes away meanwhile leaves this word.
        error: str | None = events.CANCELLED
        reply: Reply | None = None
        transport = (
            self.seam.standing if stands else self.seam.ways.make_fresh_transport(self.seam.tls, self.request, address)
        )
        try:
            reply = await fetch_reply(
                transport, self.request, within_s=left_s, to=address, body=body, streams=self._is_streamed
            )
            error = None
        except Failure as failure:
            error = failure.kind
            raise
        finally:

            def report_lane_end(streamed: Streamed | None) -> None:
                end_kind = error if streamed is None or streamed.ended == "end" else streamed.ended
                size = streamed.size if streamed else len(reply.body) if reply else 0
                observation = Observation(
                    self.seam.clock.monotonic() - began_s,
                    left_s,
                    end_kind,
                    reply.status if reply else None,
                    size,
                    streamed=streamed,
                )
                self.seam.lanes.end_call_with_observation(row, observation)

            if reply is None or reply.stream is None:
                report_lane_end(None)
                if not stands:
                    await transport.aclose()
        if reply.stream is None:
            return reply
        parts = LaneParts(reply.stream, None if stands else transport)
        self.open[parts] = report_lane_end
        return replace(reply, stream=parts)

    # The record of the finished attempt.

    def _note_finish(
        self,
        reply: Reply | None,
        failure: Failure | None,
        streamed: Streamed | None = None,
        body: StreamedBody | None = None,
    ) -> None:
        call, target = self.call, self.target
        self._memory.guard.end_attempt(call.target, call.request, call.attempt)
        duration_s = self.record_outcome(reply, failure, streamed)
        error = failure.kind if failure else None
        status, size = (reply.status, len(reply.body)) if reply else (None, 0)
        if streamed is not None:
            size = streamed.size
        is_refusal = reply is not None and target.is_failure(reply)
        if reply is not None and is_refusal:
            error = events.quote_reserved_error(extract_error(reply))
        stopped = reply is None if streamed is None else streamed.ended == events.CANCELLED
        if stopped and failure is None:
            error = events.CANCELLED
        unusable = self._of_model and not is_refusal and bool(self.left)  # a tool's client may take an empty reply
        if unusable:
            error = self.left
        ok = reply is not None and not is_refusal and failure is None and not stopped and not unusable
        self.log_flow_event(
            events.CallFinished(
                at=call.attempt_ref,
                tool=call.tool,
                ok=ok,
                duration_s=round(duration_s, 6),
                status=status,
                error=error,
                bytes=size,
                via=self.via,
                rolled=self.faults.rolled,
                replayed=reply is not None and "idempotency-replayed" in reply.headers,
                reply=self._preview_reply(reply)
                if body is None
                else to_one_line(body.read.heard.rendered_content, REPLY_MAX),
                first_byte_s=None if streamed is None else streamed.first_byte_s,
                last_byte_s=None if streamed is None else streamed.last_byte_s,
            )
        )
        # A request that broke off is asked again by the SDK, and is the same one then.
        if self._of_model and reply is not None:
            if ok:
                self.trial.requests.mark_answered(self.asked.request)
            if body is not None:  # of an answer that broke off, what was used is paid too
                self._record_token_usage(body.read.heard.model, body.read.usage)
            # Of a refusal nothing was paid.
            elif ok and isinstance(reply.value, dict):
                self._record_token_usage(str(reply.value.get("model", "")), reply.value.get("usage"))

    def _preview_reply(self, reply: Reply | None) -> str:
        """The start of the caller's reply in one line; of a model's answer, its text and its calls."""
        if reply is None:
            return ""
        text = extract_model_text(reply) if self._of_model else ""
        return to_one_line(text, REPLY_MAX) if text else decode_to_one_line(reply.body, REPLY_MAX)

    def _record_token_usage(self, model: str, usage: Any) -> None:
        # A service may send anything in its place.
        if not isinstance(usage, dict):
            return
        tokens_in, tokens_out = (
            validate_token_count(usage.get("prompt_tokens")),
            validate_token_count(usage.get("completion_tokens")),
        )
        cost = self.seam.price(model, tokens_in, tokens_out)
        self.trial.spent["tokens"] += tokens_in + tokens_out
        self.seam.cost_usd += cost or 0.0
        self.log_flow_event(
            events.Usage(
                model=model,
                request=self.call.request,
                prompt_tokens=tokens_in,
                completion_tokens=tokens_out,
                cost_usd=cost,
            )
        )
