"""The episodes of an agent in spans: what it was asked, the tools that it called, and what they answered. A tool's span
tells most. Where a trace has none, the model's messages do: the calls that it asked for, and the results that it was
given. The conventions differ in where the messages are; `_iterate_messages` reads them all."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaoslab.surfaces.otel import _conventions
from chaoslab.surfaces.otel.reading import Span, TraceError, flatten

NONE = object()
"""The reply of a call of which none was recorded."""
_NUMBERED = re.compile(
    r"(?:llm\.(?P<way>input|output)_messages|gen_ai\.(?P<old>prompt|completion))\.(?P<n>\d+)\.(?:message\.)?(?P<rest>.+)"
)
_CALL = re.compile(r"tool_calls\.(\d+)\.(?:tool_call\.)?(?:function\.)?(id|name|arguments)")
_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message|gen_ai\.choice")
_SCHEMA = re.compile(
    r"llm\.tools\.\d+\.tool\.json_schema|llm\.request\.functions\.(\d+)\.(name|description|parameters)"
)
LISTS = ("gen_ai.tool.definitions", "llm.tools", "gen_ai.request.tools")
"""Attributes that list the tools a model was offered."""
PROMPT_MAX = 20_000


@dataclass
class TracedCall:
    """A call of a tool. `reply`: NONE if none was recorded. `error`: its failure in words, or None."""

    tool: str
    arguments: Any
    reply: Any = NONE
    error: str | None = None
    seconds: float = 0.0
    at_s: float = 0.0
    id: str = ""


@dataclass
class _Message:
    """One message to or from a model. `of`: the id of the call that it is the result of; `tool`: that call's tool."""

    role: str = ""
    text: str = ""
    calls: list[TracedCall] = field(default_factory=list)
    of: str = ""
    tool: str = ""


@dataclass
class Episode:
    """One trace: the user's words, the calls in their order, and the agent's last answer. Texts are empty if the trace
    does not tell them."""

    trace: str
    prompt: str
    answer: str
    calls: list[TracedCall]


@dataclass
class Episodes:
    """The episodes of some traces. `schemas`: of the tools that a model was offered, with `description` and
    `parameters`. `lacking`: what could not be derived, a line each."""

    episodes: list[Episode] = field(default_factory=list)
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)


def find_episodes(spans: Sequence[Span]) -> Episodes:
    """The episodes in spans, in the order of their time. Raises TraceError: none of them calls a tool."""
    traces: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        traces[span.trace].append(span)
    episodes, silent_count = Episodes(), 0
    for trace, trace_spans in sorted(traces.items(), key=lambda pair: min(item.begin_s for item in pair[1])):
        span_ids = {span.id for span in trace_spans}
        trace_spans.sort(key=lambda span: (span.begin_s, span.parent in span_ids, span.end_s))
        messages = {span.id: [*_iterate_messages(span)] for span in trace_spans}
        for span in trace_spans:
            episodes.schemas |= dict(_iterate_schemas(span))
        calls = [call for span in trace_spans if (call := _call_of_span(span, trace_spans)) is not None]
        calls = calls or _calls_of_messages(trace_spans, messages)
        if not calls:
            silent_count += 1
            continue
        episode = Episode(trace, _find_prompt(trace_spans, messages), _find_answer(trace_spans, messages), calls)
        episodes.episodes.append(episode)
        for subject, text in (("the user's words", episode.prompt), ("the agent's answer", episode.answer)):
            if not text:
                episodes.lacking.append(f"trace {trace[:16]}: {subject}: no span tells them")
    if not episodes.episodes:
        convention_count = sum(
            bool(item) for span in spans for item in (span.kind, span.has.get(_conventions.OPERATION))
        )
        reason = "none of them calls a tool" if convention_count else (
            "they are of no convention for agents: gen_ai.*, OpenInference and Langfuse are read"
        )  # fmt: skip
        raise TraceError(f"{len(spans)} spans in {len(traces)} traces, and {reason}")
    if silent_count:
        episodes.lacking.append(f"{silent_count} of {len(traces)} traces call no tool, and are left out")
    return episodes


def _parse_json(value: Any) -> Any:
    """JSON in a text as its value; all else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"', "t", "f", "n", *"-0123456789"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _read_text(value: Any) -> str:
    """The words of a message's content, which may be a list of parts."""
    value = _parse_json(value) if isinstance(value, str) and value[:2] in ("[{", '{"') else value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_read_text, value)))
    if isinstance(value, dict):
        return _read_text(next((value[key] for key in ("text", "content", "parts", "message") if value.get(key)), ""))
    return value if isinstance(value, str) else ""


# Spans of tools.


def _call_of_span(span: Span, all_spans: Sequence[Span]) -> TracedCall | None:
    """The call that a span is; None if it is of no tool."""
    has = span.has
    if has.get(_conventions.OPERATION) != _conventions.EXECUTE and span.kind != "tool":
        return None
    span_name = span.name.removeprefix(f"{_conventions.EXECUTE} ").removesuffix(".tool")
    tool = str(has.get(_conventions.TOOL) or has.get("tool.name") or has.get("traceloop.entity.name") or span_name)
    arguments_read = _first_attribute(
        has, _conventions.ARGUMENTS, "tool.parameters", "input.value", "input", "traceloop.entity.input"
    )
    arguments = _parse_json({} if arguments_read is NONE else arguments_read)
    if isinstance(arguments, dict) and isinstance(inner := arguments.get("inputs"), dict | str):  # of OpenLLMetry
        arguments = _parse_json(inner)
    reply = _parse_json(_first_attribute(has, _conventions.RESULT, "output.value", "output", "traceloop.entity.output"))
    if (
        isinstance(reply, dict)
        and isinstance(constructor_fields := reply.get("kwargs"), dict)
        and "content" in constructor_fields
    ):  # of LangChain
        reply = _parse_json(constructor_fields["content"])
    attempts = [child for child in all_spans if child.parent == span.id and f"{_conventions.OWN}attempt" in child.has]
    failed = next((child.error for child in attempts if child.error), None)
    call = TracedCall(tool, arguments, reply, span.error, span.end_s - span.begin_s, span.begin_s, span.id)
    if failed and not span.error:
        call.error = failed  # and a further attempt ended well: the reply is its
    elif span.error:
        call.reply = NONE
    return call


def _first_attribute(has: dict[str, Any], *keys: str) -> Any:
    """The first of the attributes that there is, as one value or flattened; else NONE."""
    for key in keys:
        if key in has:
            return has[key]
        inner = {name[len(key) + 1 :]: value for name, value in has.items() if name.startswith(f"{key}.")}
        if inner and key not in ("input", "output"):
            return inner
    return NONE


# Messages of models.


def _calls_of_messages(spans: Sequence[Span], messages: dict[str, list[_Message]]) -> list[TracedCall]:
    """The calls that the models asked for, each once, with the results that they were given later."""
    calls: dict[str, TracedCall] = {}
    for span in spans:
        for message in messages[span.id]:
            for number, call in enumerate(message.calls):
                key = call.id or f"{call.tool} {json.dumps(call.arguments, sort_keys=True, default=str)} {number}"
                call.at_s = span.end_s
                calls.setdefault(key, call)
            if message.role == "tool" or message.of:
                open_ones = (
                    open_call
                    for open_call in calls.values()
                    if open_call.reply is NONE and message.tool in ("", open_call.tool)
                )
                call_answered = calls.get(message.of) or next(open_ones, None)
                if call_answered is not None and call_answered.reply is NONE:
                    call_answered.reply = _parse_json(message.text)
    return [*calls.values()]


def _iterate_messages(span: Span) -> Iterator[_Message]:
    """The messages to and from a model, by any of the conventions."""
    has = span.has
    for key in ("gen_ai.system_instructions", _conventions.INPUT, _conventions.OUTPUT):  # attributes of JSON
        yield from _parse_messages(has.get(key), "assistant" if key == _conventions.OUTPUT else "user")
    for name, its in span.events:
        if name == "gen_ai.client.inference.operation.details":
            for key in (_conventions.INPUT, _conventions.OUTPUT):
                yield from _parse_messages(its.get(key), "assistant" if key == _conventions.OUTPUT else "user")
        elif match := _EVENT.fullmatch(name):  # an event a message
            body = {**its, **(inner if isinstance(inner := _parse_json(its.get("message")), dict) else {})}
            yield _parse_message(body, match[1] or "assistant")
        elif name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
            key = name.replace("content.", "")
            yield from _parse_messages(its.get(key), "assistant" if "completion" in name else "user")
    numbered: dict[tuple[bool, int], dict[str, Any]] = defaultdict(dict)
    for key, value in has.items():  # an attribute a field
        if match := _NUMBERED.fullmatch(key):
            numbered["output" in key or "completion" in key, int(match["n"])][match["rest"]] = value
    for (is_output, _), fields in sorted(numbered.items()):
        yield _parse_message(fields, "assistant" if is_output else "user")
    if not numbered and span.kind != "tool":
        for key, role in (("input", "user"), ("output", "assistant")):  # Langfuse
            yield from _parse_messages(has.get(key), role)


def _parse_messages(value: Any, role: str) -> Iterator[_Message]:
    value = _parse_json(value)
    if isinstance(value, dict):
        value = value.get("messages") or value.get("choices") or [value]
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            yield _parse_message(entry.get("message") if isinstance(entry.get("message"), dict) else entry, role)


def _parse_message(fields: Any, role: str) -> _Message:
    """A message of an object, or of its flattened fields."""
    message = _Message(
        str(fields.get("role") or role), of=str(fields.get("tool_call_id") or ""), tool=str(fields.get("name") or "")
    )
    parts = _parse_json(fields.get("parts") or fields.get("content"))
    for content_part in parts if isinstance(parts, list) else ():
        kind = content_part.get("type") if isinstance(content_part, dict) else None
        if kind in ("tool_call", "tool_use"):
            arguments = content_part.get("arguments", content_part.get("input", {}))
            message.calls.append(
                TracedCall(str(content_part.get("name")), _parse_json(arguments), id=str(content_part.get("id") or ""))
            )
        elif kind in ("tool_call_response", "tool_result"):
            message.of = str(content_part.get("id") or content_part.get("tool_use_id") or "")
            content_text = next(
                (content_part[key] for key in ("response", "result", "content") if key in content_part), ""
            )
            message.text, message.role = (
                content_text if isinstance(content_text, str) else json.dumps(content_text),
                "tool",
            )
    message.text = message.text or _read_text(parts if parts is not None else fields.get("text"))
    if message.role == "tool":
        message.of = message.of or str(fields.get("id") or "")
        if isinstance(content_text := fields.get("content"), str) and not isinstance(parts, list):
            message.text = content_text  # JSON or not: the tool's own words
    call_fields: dict[str, dict[str, Any]] = defaultdict(dict)
    tool_calls = _parse_json(fields.get("tool_calls"))
    for key, value in (flatten({"tool_calls": tool_calls}) if isinstance(tool_calls, list) else fields).items():
        if match := _CALL.fullmatch(key):
            call_fields[match[1]][match[2]] = value
        elif match := re.fullmatch(r"tool_calls\.(\d+)\.(?:tool_call\.)?(?:function\.)?arguments\.(.+)", key):
            call_fields[match[1]].setdefault("given", {})[match[2]] = value
    for call in call_fields.values():
        if call.get("name"):
            arguments = _parse_json(call.get("arguments", call.get("given", {})))
            message.calls.append(TracedCall(str(call["name"]), arguments, id=str(call.get("id") or "")))
    return message


def _find_prompt(spans: Sequence[Span], messages: dict[str, list[_Message]]) -> str:
    """The user's last words in the first span that tells any; else the root's input."""
    for span in spans:
        texts = [
            message.text for message in messages[span.id] if message.role in ("user", "human") and message.text.strip()
        ]
        if texts:
            return texts[-1][:PROMPT_MAX]
    return _read_text(
        _first_attribute(spans[0].has, "input.value", "input", "traceloop.entity.input") if spans else ""
    )[:PROMPT_MAX]


def _find_answer(spans: Sequence[Span], messages: dict[str, list[_Message]]) -> str:
    """The last words of the model; else the root's output."""
    for span in sorted(spans, key=lambda span: span.end_s, reverse=True):
        for message in reversed(messages[span.id]):
            if message.role in ("assistant", "ai", "model") and message.text.strip():
                return message.text
    return _read_text(_first_attribute(spans[0].has, "output.value", "output", "traceloop.entity.output"))


# The tools that a model was offered.


def _iterate_schemas(span: Span) -> Iterator[tuple[str, dict[str, Any]]]:
    functions: dict[str, dict[str, Any]] = defaultdict(dict)
    listed: list[Any] = []
    for key, value in span.has.items():
        if match := _SCHEMA.fullmatch(key):
            if match[1]:
                functions[match[1]][match[2]] = _parse_json(value)
            else:
                listed.append(_parse_json(value))
        elif key in LISTS and isinstance(many := _parse_json(value), list):
            listed += map(_parse_json, many)
    yield from filter(None, map(_parse_schema, [*functions.values(), *listed]))
    if span.kind == "tool" and "tool.name" in span.has and "tool.description" in span.has:
        yield str(span.has["tool.name"]), {"description": str(span.has["tool.description"])}


def _parse_schema(tool: Any) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(tool, dict):
        return None
    inner = tool["function"] if isinstance(tool.get("function"), dict) else tool
    parameters = _parse_json(
        next((inner[key] for key in ("parameters", "input_schema", "inputSchema") if key in inner), {})
    )
    if not isinstance(inner.get("name"), str):
        return None
    description = {"description": str(inner.get("description") or "")}
    return inner["name"], {**description, "parameters": parameters if isinstance(parameters, dict) else {}}
