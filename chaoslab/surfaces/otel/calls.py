"""The episodes of an agent in spans: what it was asked, the tools that it called, and what they answered. A tool's span
tells most. Where a trace has none, the model's messages do: the calls that it asked for, and the results that it was
given. The conventions differ in where the messages are; `_messages` reads them all."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaoslab.surfaces.otel import _conventions
from chaoslab.surfaces.otel.reading import Span, TraceError, flat

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


def found_in(spans: Sequence[Span]) -> Episodes:
    """The episodes in spans, in the order of their time. Raises TraceError: none of them calls a tool."""
    traces: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        traces[span.trace].append(span)
    found, silent = Episodes(), 0
    for trace, its in sorted(traces.items(), key=lambda pair: min(each.begin_s for each in pair[1])):
        there = {span.id for span in its}
        its.sort(key=lambda span: (span.begin_s, span.parent in there, span.end_s))
        messages = {span.id: [*_messages(span)] for span in its}
        for span in its:
            found.schemas |= dict(_offered(span))
        calls = [call for span in its if (call := _of_span(span, its)) is not None]
        calls = calls or _of_messages(its, messages)
        if not calls:
            silent += 1
            continue
        episode = Episode(trace, _prompt(its, messages), _answer(its, messages), calls)
        found.episodes.append(episode)
        for what, said in (("the user's words", episode.prompt), ("the agent's answer", episode.answer)):
            if not said:
                found.lacking.append(f"trace {trace[:16]}: {what}: no span tells them")
    if not found.episodes:
        known = sum(bool(each) for span in spans for each in (span.kind, span.has.get(_conventions.OPERATION)))
        why = "none of them calls a tool" if known else (
            "they are of no convention for agents: gen_ai.*, OpenInference and Langfuse are read"
        )  # fmt: skip
        raise TraceError(f"{len(spans)} spans in {len(traces)} traces, and {why}")
    if silent:
        found.lacking.append(f"{silent} of {len(traces)} traces call no tool, and are left out")
    return found


def _read(value: Any) -> Any:
    """JSON in a text as its value; all else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"', "t", "f", "n", *"-0123456789"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _text(value: Any) -> str:
    """The words of a message's content, which may be a list of parts."""
    value = _read(value) if isinstance(value, str) and value[:2] in ("[{", '{"') else value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text, value)))
    if isinstance(value, dict):
        return _text(next((value[key] for key in ("text", "content", "parts", "message") if value.get(key)), ""))
    return value if isinstance(value, str) else ""


# Spans of tools.


def _of_span(span: Span, others: Sequence[Span]) -> TracedCall | None:
    """The call that a span is; None if it is of no tool."""
    has = span.has
    if has.get(_conventions.OPERATION) != _conventions.EXECUTE and span.kind != "tool":
        return None
    own = span.name.removeprefix(f"{_conventions.EXECUTE} ").removesuffix(".tool")
    tool = str(has.get(_conventions.TOOL) or has.get("tool.name") or has.get("traceloop.entity.name") or own)
    given = _first(has, _conventions.ARGUMENTS, "tool.parameters", "input.value", "input", "traceloop.entity.input")
    arguments = _read({} if given is NONE else given)
    if isinstance(arguments, dict) and isinstance(inner := arguments.get("inputs"), dict | str):  # of OpenLLMetry
        arguments = _read(inner)
    reply = _read(_first(has, _conventions.RESULT, "output.value", "output", "traceloop.entity.output"))
    if isinstance(reply, dict) and isinstance(kept := reply.get("kwargs"), dict) and "content" in kept:  # of LangChain
        reply = _read(kept["content"])
    attempts = [each for each in others if each.parent == span.id and f"{_conventions.OWN}attempt" in each.has]
    failed = next((each.error for each in attempts if each.error), None)
    call = TracedCall(tool, arguments, reply, span.error, span.end_s - span.begin_s, span.begin_s, span.id)
    if failed and not span.error:
        call.error = failed  # and a further attempt ended well: the reply is its
    elif span.error:
        call.reply = NONE
    return call


def _first(has: dict[str, Any], *keys: str) -> Any:
    """The first of the attributes that there is, as one value or flattened; else NONE."""
    for key in keys:
        if key in has:
            return has[key]
        inner = {name[len(key) + 1 :]: value for name, value in has.items() if name.startswith(f"{key}.")}
        if inner and key not in ("input", "output"):
            return inner
    return NONE


# Messages of models.


def _of_messages(spans: Sequence[Span], messages: dict[str, list[_Message]]) -> list[TracedCall]:
    """The calls that the models asked for, each once, with the results that they were given later."""
    calls: dict[str, TracedCall] = {}
    for span in spans:
        for message in messages[span.id]:
            for number, call in enumerate(message.calls):
                key = call.id or f"{call.tool} {json.dumps(call.arguments, sort_keys=True, default=str)} {number}"
                call.at_s = span.end_s
                calls.setdefault(key, call)
            if message.role == "tool" or message.of:
                open_ones = (each for each in calls.values() if each.reply is NONE and message.tool in ("", each.tool))
                of = calls.get(message.of) or next(open_ones, None)
                if of is not None and of.reply is NONE:
                    of.reply = _read(message.text)
    return [*calls.values()]


def _messages(span: Span) -> Iterator[_Message]:
    """The messages to and from a model, by any of the conventions."""
    has = span.has
    for key in ("gen_ai.system_instructions", _conventions.INPUT, _conventions.OUTPUT):  # attributes of JSON
        yield from _listed(has.get(key), "assistant" if key == _conventions.OUTPUT else "user")
    for name, its in span.events:
        if name == "gen_ai.client.inference.operation.details":
            for key in (_conventions.INPUT, _conventions.OUTPUT):
                yield from _listed(its.get(key), "assistant" if key == _conventions.OUTPUT else "user")
        elif match := _EVENT.fullmatch(name):  # an event a message
            body = {**its, **(inner if isinstance(inner := _read(its.get("message")), dict) else {})}
            yield _one(body, match[1] or "assistant")
        elif name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
            key = name.replace("content.", "")
            yield from _listed(its.get(key), "assistant" if "completion" in name else "user")
    numbered: dict[tuple[bool, int], dict[str, Any]] = defaultdict(dict)
    for key, value in has.items():  # an attribute a field
        if match := _NUMBERED.fullmatch(key):
            numbered["output" in key or "completion" in key, int(match["n"])][match["rest"]] = value
    for (said, _), of in sorted(numbered.items()):
        yield _one(of, "assistant" if said else "user")
    if not numbered and span.kind != "tool":
        for key, role in (("input", "user"), ("output", "assistant")):  # Langfuse
            yield from _listed(has.get(key), role)


def _listed(value: Any, role: str) -> Iterator[_Message]:
    value = _read(value)
    if isinstance(value, dict):
        value = value.get("messages") or value.get("choices") or [value]
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield _one(each.get("message") if isinstance(each.get("message"), dict) else each, role)


def _one(of: Any, role: str) -> _Message:
    """A message of an object, or of its flattened fields."""
    made = _Message(str(of.get("role") or role), of=str(of.get("tool_call_id") or ""), tool=str(of.get("name") or ""))
    parts = _read(of.get("parts") or of.get("content"))
    for part in parts if isinstance(parts, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("tool_call", "tool_use"):
            arguments = part.get("arguments", part.get("input", {}))
            made.calls.append(TracedCall(str(part.get("name")), _read(arguments), id=str(part.get("id") or "")))
        elif kind in ("tool_call_response", "tool_result"):
            made.of = str(part.get("id") or part.get("tool_use_id") or "")
            said = next((part[key] for key in ("response", "result", "content") if key in part), "")
            made.text, made.role = said if isinstance(said, str) else json.dumps(said), "tool"
    made.text = made.text or _text(parts if parts is not None else of.get("text"))
    if made.role == "tool":
        made.of = made.of or str(of.get("id") or "")
        if isinstance(said := of.get("content"), str) and not isinstance(parts, list):
            made.text = said  # JSON or not: the tool's own words
    asked: dict[str, dict[str, Any]] = defaultdict(dict)
    given = _read(of.get("tool_calls"))
    for key, value in (flat({"tool_calls": given}) if isinstance(given, list) else of).items():
        if match := _CALL.fullmatch(key):
            asked[match[1]][match[2]] = value
        elif match := re.fullmatch(r"tool_calls\.(\d+)\.(?:tool_call\.)?(?:function\.)?arguments\.(.+)", key):
            asked[match[1]].setdefault("given", {})[match[2]] = value
    for call in asked.values():
        if call.get("name"):
            arguments = _read(call.get("arguments", call.get("given", {})))
            made.calls.append(TracedCall(str(call["name"]), arguments, id=str(call.get("id") or "")))
    return made


def _prompt(spans: Sequence[Span], messages: dict[str, list[_Message]]) -> str:
    """The user's last words in the first span that tells any; else the root's input."""
    for span in spans:
        said = [each.text for each in messages[span.id] if each.role in ("user", "human") and each.text.strip()]
        if said:
            return said[-1][:PROMPT_MAX]
    return _text(_first(spans[0].has, "input.value", "input", "traceloop.entity.input") if spans else "")[:PROMPT_MAX]


def _answer(spans: Sequence[Span], messages: dict[str, list[_Message]]) -> str:
    """The last words of the model; else the root's output."""
    for span in sorted(spans, key=lambda span: span.end_s, reverse=True):
        for each in reversed(messages[span.id]):
            if each.role in ("assistant", "ai", "model") and each.text.strip():
                return each.text
    return _text(_first(spans[0].has, "output.value", "output", "traceloop.entity.output"))


# The tools that a model was offered.


def _offered(span: Span) -> Iterator[tuple[str, dict[str, Any]]]:
    functions: dict[str, dict[str, Any]] = defaultdict(dict)
    listed: list[Any] = []
    for key, value in span.has.items():
        if match := _SCHEMA.fullmatch(key):
            if match[1]:
                functions[match[1]][match[2]] = _read(value)
            else:
                listed.append(_read(value))
        elif key in LISTS and isinstance(many := _read(value), list):
            listed += map(_read, many)
    yield from filter(None, map(_schema, [*functions.values(), *listed]))
    if span.kind == "tool" and "tool.name" in span.has and "tool.description" in span.has:
        yield str(span.has["tool.name"]), {"description": str(span.has["tool.description"])}


def _schema(tool: Any) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(tool, dict):
        return None
    inner = tool["function"] if isinstance(tool.get("function"), dict) else tool
    parameters = _read(next((inner[key] for key in ("parameters", "input_schema", "inputSchema") if key in inner), {}))
    if not isinstance(inner.get("name"), str):
        return None
    found = {"description": str(inner.get("description") or "")}
    return inner["name"], {**found, "parameters": parameters if isinstance(parameters, dict) else {}}
