"""A trial as the spans of a trace: the agent, its operations, and each attempt at one.

The agent's span is the root. Each request of a model or a tool is an operation below it, each attempt at the request a
span below that. Effects, faults and the verdict are events of spans. All ids are digests of the run and the trial, so a
log gives the same ids whenever it is sent.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SpanEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from chaoslab import __version__
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.core.events import (
    CANCELLED,
    OPEN,
    AttemptEvent,
    Budget,
    CallDisturbed,
    CallFinished,
    CallStarted,
    Effect,
    Event,
    Fallback,
    FaultEvent,
    FaultHealed,
    FaultScheduled,
    LabWarning,
    PromptFinished,
    PromptStarted,
    Retry,
    RunStarted,
    TurnFinished,
    TurnStarted,
    Usage,
)
from chaoslab.execution.spec import is_single_process
from chaoslab.record.lines import Record
from chaoslab.seams.protocols import mcp
from chaoslab.surfaces.otel import _conventions

Json = dict[str, Any]
INTERNAL, CLIENT = SpanKind.INTERNAL, SpanKind.CLIENT
SCOPE = InstrumentationScope("chaoslab", __version__, _conventions.SCHEMA)
TEXT_MAX = 32_768
"""The most characters of a text in an attribute."""
UNANSWERED = frozenset(
    {"timed_out", "dns", "refused", "untrusted", "reset", "closed", "garbled", "too_large", CANCELLED, OPEN}
)
"""The words for an end without an answer of the tool's."""
_HTTP = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE) (/.*)", re.DOTALL)
_INT64 = 2**63


def _to_otlp_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that OTLP takes, without those that are None; all other values as JSON."""
    return {name: _to_otlp_value(value) for name, value in values.items() if value is not None}


def _to_otlp_value(value: Any) -> Any:
    if isinstance(value, bool | float) or (isinstance(value, int) and -_INT64 <= value < _INT64):
        return value
    if isinstance(value, list) and all(type(item) is str for item in value):
        return [*map(_clip_text, value)]
    return _clip_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _clip_text(text: str) -> str:
    text = text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _message_to_json(role: str, text: str, **extra_fields: Any) -> str:
    return json.dumps(
        [{"role": role, "parts": [{"type": "text", "content": text}], **extra_fields}], ensure_ascii=False
    )


def _make_id(*parts: object, size: int) -> int:
    """An id of `size` bytes."""
    data = "\0".join(map(str, parts)).encode("utf-8", "replace")
    return int.from_bytes(blake2b(data, digest_size=size).digest())


@dataclass
class _Span:
    """A span that is being made. `parent`: None of the root. `begin_t`, `end_t`: seconds since the run began."""

    key: str
    name: str
    parent: "_Span | None"
    begin_t: float
    kind: SpanKind = INTERNAL
    end_t: float | None = None
    has: Json = field(default_factory=dict)
    events: list[tuple[float, str, Json]] = field(default_factory=list)
    failed: str | None = None
    joins: str = ""
    """The `traceparent` that the request was sent with: the span is a part of its sender's trace."""


class TrialSpans:
    """Makes the spans of one trial from its records, in the order of time."""

    def __init__(self, run: RunStarted, name: str, trial: str, records: Sequence[Record]) -> None:
        self._run, self._name, self._trial = run, name, trial
        self._operations: dict[tuple[str, int], _Span] = {}
        self._attempts: dict[tuple[str, int, int], _Span] = {}
        self._params: dict[tuple[str, str, str, int, int], Json] = {}
        self._chats: dict[int, _Span] = {}
        """By the model's request, the operation that ended last: `Usage` names no target."""
        first, last = records[0], records[-1]
        self.root = _Span("", _conventions.INVOKE, None, first.t, end_t=max(last.t, first.t))
        # an ISO 8601 moment in nanoseconds since 1970
        at = datetime.fromisoformat(first.ts)
        self._origin_ns = int(at.timestamp()) * 10**9 + at.microsecond * 1000 - round(first.t * 1e9)
        for record in records:
            self._update_spans_by_event(record.t, record.event)

    def _update_spans_by_event(self, t: float, event: Event) -> None:
        match event:
            case CallStarted():
                self._begin_attempt(t, event)
            case CallFinished():
                self._end_attempt(t, event)
            case FaultScheduled():
                self._params[(event.fault, event.injection, *_attempt_key(event))] = event.params
            case FaultHealed() if event.witnessed:
                pass  # the lane is gone; that it was met has been told
            case FaultEvent():
                self._add_fault_event(t, event)
            case Retry() | Fallback():
                operation = self._operations.get((event.target, event.request), self.root)
                operation.events.append((t, f"{_conventions.OWN}{event.kind}", _make_event_attributes(event)))
            case CallDisturbed():
                attempt = self._attempts.get(_attempt_key(event), self.root)
                attempt.events.append((t, f"{_conventions.OWN}disturbed", {f"{_conventions.OWN}why": event.why}))
            case Effect():
                effect_fields = {"target": event.target, "effect": event.effect, "content": event.content}
                self._find_open_span(event.target).events.append(
                    (t, f"{_conventions.OWN}effect", prefix_attribute_names(effect_fields))
                )
            case Usage() if chat := self._chats.get(event.request):
                usage_fields = {
                    _conventions.MODEL: event.model, _conventions.TOKENS_IN: event.prompt_tokens,
                    _conventions.TOKENS_OUT: event.completion_tokens, f"{_conventions.OWN}cost_usd": event.cost_usd,
                }  # fmt: skip
                chat.has |= usage_fields
            case TurnStarted() | TurnFinished() | Budget() | LabWarning():
                self.root.events.append((t, f"{_conventions.OWN}{event.kind}", _make_event_attributes(event)))
            case PromptStarted():
                self._set_root_attributes(event)
            case PromptFinished():
                self.root.has[_conventions.OUTPUT] = _message_to_json("assistant", event.answer)
                self.root.failed = None if event.error_type == "none" else event.error_type

    def _set_root_attributes(self, event: PromptStarted) -> None:
        run = self._run
        agent = run.model if not run.asked else "chaoslab"
        self.root.name = f"{_conventions.INVOKE} {agent}".strip()
        self.root.has |= {
            _conventions.OPERATION: _conventions.INVOKE,
            _conventions.AGENT: agent,
            _conventions.CONVERSATION: f"{self._name}/{self._trial}",
            _conventions.INPUT: _message_to_json("user", event.prompt),
            **prefix_attribute_names({"run": self._name, "trial": self._trial, "prompt_index": event.prompt_index}),
            **prefix_attribute_names({"seed": run.seed, "world": run.world}),
        }

    def _begin_attempt(self, t: float, event: CallStarted) -> None:
        target, request, attempt = attempt_key = _attempt_key(event)
        operation = self._operations.get(attempt_key[:2])
        if operation is None:
            operation = self._operations[attempt_key[:2]] = self._make_operation_span(t, event)
        has: Json = {
            f"{_conventions.OWN}attempt": attempt,
            f"{_conventions.OWN}target": target,
            _conventions.RESENT: attempt - 1 if attempt > 1 else None,
            f"{_conventions.OWN}client_retry": event.client_retry,
        }
        key = f"{target}/{request}/{attempt}"
        span = _Span(key, f"{operation.name}, attempt {attempt}", operation, t, operation.kind, has=has)
        span.joins = event.traceparent or ""
        self._attempts[attempt_key] = span

    def _make_operation_span(self, t: float, event: CallStarted) -> _Span:
        key = f"{event.target}/{event.request}"
        chat, http = event.tool == _conventions.CHAT, _HTTP.fullmatch(event.tool)
        has: Json = {
            _conventions.OPERATION: _conventions.CHAT if chat else _conventions.EXECUTE,
            f"{_conventions.OWN}target": event.target,
        }
        if not chat:
            has |= {
                _conventions.TOOL: event.tool,
                _conventions.CALL_ID: event.request_id or None,
                _conventions.ARGUMENTS: event.arguments,
            }
        if http:
            has |= {_conventions.METHOD: http[1], _conventions.PATH: http[2]}
        name = f"{_conventions.CHAT} {event.target}" if chat else f"{_conventions.EXECUTE} {event.tool}"
        if event.protocol == mcp.NAME:
            method = event.tool if event.tool in (mcp.LIST, *mcp.CONTENTS) else mcp.CALL
            has[_conventions.MCP_METHOD] = method
            name = f"{method} {event.tool}" if method == mcp.CALL else method
            if method != mcp.CALL:  # it executes no tool
                has |= {_conventions.OPERATION: None, _conventions.TOOL: None, _conventions.ARGUMENTS: None}
        return _Span(key, name, self.root, t, has=has)

    def _end_attempt(self, t: float, event: CallFinished) -> None:
        attempt_key = _attempt_key(event)
        span = self._attempts.get(attempt_key)
        if span is None:
            return
        operation = span.parent or self.root
        failed = None if event.ok else str(event.status or event.error or "_OTHER")
        asked_mcp = _conventions.MCP_METHOD in operation.has
        if failed and asked_mcp and event.status in (None, 200) and event.error not in UNANSWERED:
            failed = _conventions.TOOL_ERROR
        chat = operation.has.get(_conventions.OPERATION) == _conventions.CHAT
        for ended_span in (span, operation):
            ended_span.end_t, ended_span.failed = t, failed
            ended_span.kind = INTERNAL if event.via in ("function", "none") and not asked_mcp else CLIENT
            ended_span.has |= {_conventions.STATUS: event.status, _conventions.ERROR: failed}
            ended_span.has |= {_conventions.SERVER: event.target if event.via not in ("function", "none") else None}
        span.has |= prefix_attribute_names({"via": event.via, "error": event.error, "replayed": event.replayed or None})
        if chat:
            self._chats[event.request] = operation
            operation.has[_conventions.FINISHED] = [event.finish_reason] if event.finish_reason else None
            operation.has[_conventions.OUTPUT] = _message_to_json("assistant", event.reply) if event.ok else None
        else:
            if operation.has[_conventions.OPERATION]:
                operation.has[_conventions.TOOL_TYPE] = "function" if event.via == "function" else "extension"
                operation.has[_conventions.RESULT] = event.reply or None

    def _add_fault_event(self, t: float, event: FaultEvent) -> None:
        stage = "unwitnessed" if isinstance(event, FaultHealed) else event.kind.removeprefix("fault_")
        event_fields = _make_event_attributes(event, without=("at", "witnessed", "fault", "injection"))
        params = self._params.get((event.fault, event.injection, *_attempt_key(event))) or {}
        has = {
            f"{_conventions.OWN}fault": event.fault, f"{_conventions.OWN}injection": event.injection, **event_fields,
            **{f"{_conventions.OWN}fault.param.{name}": value for name, value in params.items()},
        }  # fmt: skip
        self._attempts.get(_attempt_key(event), self.root).events.append((t, f"{_conventions.OWN}fault.{stage}", has))

    def _find_open_span(self, target: str) -> _Span:
        """The attempt at this target that is under way, or else the agent's span."""
        its = (
            span
            for (span_target, *_), span in reversed(self._attempts.items())
            if span_target == target and span.end_t is None
        )
        return next(its, self.root)

    def build_spans(self, verdict: Verdict, resource: Resource, *, now_ns: int) -> list[ReadableSpan]:
        """The spans, the root first. `now_ns`: the present, in nanoseconds since 1970. A virtual trial is moved so that
        it ends then, but for spans that join a trace of the agent's own, whose clock was the same virtual one."""
        root, moves = self.root, is_single_process(self._run.world)
        end_t = root.end_t or root.begin_t
        shift_ns = now_ns - self._to_unix_ns(end_t, 0) if moves else 0
        times = {f"{_conventions.OWN}time.virtual": moves, f"{_conventions.OWN}time.shifted_s": shift_ns / 1e9}
        root.has |= times | prefix_attribute_names({"outcome": str(verdict.outcome)})
        is_correct = verdict.correct
        root.events.append((end_t, _conventions.EVALUATED, {
            _conventions.EVALUATION: "chaoslab.verdict",
            _conventions.LABEL: str(verdict.outcome),
            _conventions.SCORE: None if is_correct is None else float(is_correct),
            _conventions.WHY: verdict.why,
            **prefix_attribute_names({"basis": str(verdict.basis), "harm": [*verdict.harm] or None}),
        }))  # fmt: skip
        trace_id = _make_id(self._name, self._trial, size=16)

        def make_span_context(trace: int, span: int) -> SpanContext:
            return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        def build_span(span: _Span) -> ReadableSpan:
            parent = make_span_context(trace_id, self._make_span_id(span.parent)) if span.parent else None
            context, links, moved_ns = make_span_context(trace_id, self._make_span_id(span)), [], shift_ns
            if span.joins:
                assert parent is not None
                _, trace, sender, _ = span.joins.split("-")
                span.has |= times | {f"{_conventions.OWN}time.shifted_s": 0.0}
                context, links, moved_ns = make_span_context(int(trace, 16), context.span_id), [Link(parent)], 0
                parent = make_span_context(int(trace, 16), int(sender, 16))
            ended_t = end_t if span.end_t is None else span.end_t
            return ReadableSpan(
                _clip_text(span.name),
                context,
                parent,
                resource,
                _to_otlp_attributes(span.has),
                [
                    SpanEvent(name, _to_otlp_attributes(has), self._to_unix_ns(t, moved_ns), limit=None)
                    for t, name, has in span.events
                ],
                links,
                span.kind,
                status=Status(StatusCode.ERROR, _clip_text(span.failed)) if span.failed else Status(),
                start_time=self._to_unix_ns(span.begin_t, moved_ns),
                end_time=self._to_unix_ns(max(ended_t, span.begin_t), moved_ns),
                instrumentation_scope=SCOPE,
            )

        return [build_span(span) for span in (root, *self._operations.values(), *self._attempts.values())]

    def _make_span_id(self, span: _Span) -> int:
        return _make_id(self._name, self._trial, span.key, size=8)

    def _to_unix_ns(self, t: float, shift_ns: int) -> int:
        return self._origin_ns + round(t * 1e9) + shift_ns


def _attempt_key(event: AttemptEvent) -> tuple[str, int, int]:
    return event.target, event.request, event.attempt


def prefix_attribute_names(values: Mapping[str, Any]) -> Json:
    return {f"{_conventions.OWN}{name}": value for name, value in values.items()}


def _make_event_attributes(event: Event, *, without: Sequence[str] = ("at",)) -> Json:
    """The fields of an event that say something, as attributes of the lab's own."""
    return prefix_attribute_names(
        {name: value for name, value in vars(event).items() if name not in without and value != ""}
    )
