"""Reads the spans of a file of traces: OTLP's JSON, and the exports of Phoenix and Langfuse."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from chaoslab.base.files import open_regular

WHOLE_MAX = 256 * 2**20
"""The most bytes of a file that is one JSON document, or of a line. A file of JSON lines may be of any size."""
SPANS_MAX = 200_000
"""The most spans that are kept."""
DEPTH_MAX = 12
FAILED = ("2", "STATUS_CODE_ERROR", "ERROR")
SUFFIXES = (".json", ".jsonl", ".ndjson")


class TraceError(ValueError):
    """A file of traces cannot be used. The text says which and why, in one line."""


@dataclass
class Span:
    """A span of any of the formats. `has`: its attributes, each by its dotted name. `error`: the failure in words, or
    None. `kind`: the format's own word for what the span is of, in small letters."""

    trace: str
    id: str
    parent: str
    name: str
    begin_s: float
    end_s: float
    error: str | None
    kind: str = ""
    has: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


def read_spans(path_given: Path, notes: list[str]) -> list[Span]:
    """The spans of a file, or of all files of a folder. `notes` takes a line for each part that could not be read.
    Raises TraceError: there are none. OSError: a file cannot be read."""
    paths = (
        sorted(candidate for candidate in path_given.rglob("*") if candidate.suffix in SUFFIXES)
        if path_given.is_dir()
        else [path_given]
    )
    if not paths:
        raise TraceError(f"{path_given}: there is no file of traces in it, as in *.json or *.jsonl")
    spans_by_id: dict[tuple[str, str], Span] = {}
    for path in paths:
        for document in _documents(path, notes):
            for span in _iterate_spans(document):
                spans_by_id[span.trace, span.id] = span  # one that was sent twice counts once
            if len(spans_by_id) > SPANS_MAX:
                notes.append(f"{path}: only the first {SPANS_MAX} spans are used")
                return [*spans_by_id.values()]
    if not spans_by_id:
        raise TraceError(
            f"{path_given}: no spans are in it: traces are OTLP's JSON (resourceSpans), spans of Phoenix, or "
            f"observations "
            "of Langfuse"
        )
    return [*spans_by_id.values()]


def _documents(path: Path, notes: list[str]) -> Iterator[Any]:
    """The JSON documents of a file: one, or one a line."""
    size = path.stat().st_size
    with open_regular(path) as file:
        first = file.readline(WHOLE_MAX + 1)
        if len(first) > WHOLE_MAX:
            raise TraceError(f"{path}: {_describe_too_large(len(first) if size < len(first) else size)}")
        try:
            yield json.loads(first)
        except (ValueError, RecursionError):
            if size > WHOLE_MAX:
                raise TraceError(f"{path}: {_describe_too_large(size)}") from None
            try:
                yield json.loads(first + file.read())
            except RecursionError:
                raise TraceError(f"{path}: its JSON is nested too deep") from None
            except ValueError as error:
                raise TraceError(f"{path}: {_describe_broken(error)}") from None
            return
        number = 1
        while line := file.readline(WHOLE_MAX + 1):
            number += 1
            if line.strip():
                try:
                    yield json.loads(line if len(line) <= WHOLE_MAX else b"")
                except (ValueError, RecursionError):
                    notes.append(f"{path}: line {number} is no JSON, or cut; it is left out")


def _describe_too_large(size: int) -> str:
    return (
        f"one JSON document of {size / 2**20:,.0f} MiB: at most {WHOLE_MAX >> 20} MiB are read at once. Export JSON "
        "lines, which may be of any length, or a shorter time"
    )


def _describe_broken(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        cut = error.pos >= len(error.doc.rstrip()) - 1 or "Unterminated" in error.msg
        return f"{'is cut in the middle' if cut else 'is no JSON'} (line {error.lineno}, column {error.colno})"
    return "is no text in UTF-8, so no JSON; OTLP's binary form is not read"


def _iterate_spans(document: Any) -> Iterator[Span]:
    """The spans of a document of any format."""
    if isinstance(document, list):
        for item in document:
            yield from _iterate_spans(item)
    elif isinstance(document, dict):
        if isinstance(batches := document.get("resourceSpans") or document.get("resource_spans"), list):
            for batch in _objects(batches):
                scopes = batch.get("scopeSpans") or batch.get("scope_spans") or batch.get("instrumentationLibrarySpans")
                for scope in _objects(scopes):
                    yield from (_parse_otlp_span(item) for item in _objects(scope.get("spans")))
        elif isinstance(inner := document.get("observations") or document.get("data"), list):
            yield from _iterate_spans(inner)
        elif isinstance(document.get("context"), dict) or "context.trace_id" in document:
            yield _parse_phoenix_span(document)
        elif "traceId" in document and "startTime" in document:
            yield _parse_langfuse_span(document)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


# A file may hold any type at any place; what is of another one than it should be is left out.


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in _list(value) if isinstance(item, dict)]


def _parse_otlp_span(span: dict[str, Any]) -> Span:
    has = _attributes(span.get("attributes"))
    status: dict[str, Any] = status_given if isinstance(status_given := span.get("status"), dict) else {}
    events = [
        (str(event.get("name", "")), _attributes(event.get("attributes"))) for event in _objects(span.get("events"))
    ]
    failed = str(status.get("code")) in FAILED
    raised = next(
        (its.get("exception.message") or its.get("exception.type") for name, its in events if name == "exception"), ""
    )
    error = str(has.get("error.type") or status.get("message") or raised or "error") if failed else None
    begin, end = (
        _seconds(span.get(f"{side}TimeUnixNano", span.get(f"{side}_time_unix_nano"))) / 1e9 for side in ("start", "end")
    )
    parsed = Span(str(span.get("traceId") or span.get("trace_id")), str(span.get("spanId") or span.get("span_id")),
                str(span.get("parentSpanId") or span.get("parent_span_id") or ""), str(span.get("name", "")),
                begin, end, error, has=has, events=events)  # fmt: skip
    parsed.kind = _kind(has)
    if failed and status.get("message"):
        parsed.has.setdefault("error.message", status["message"])
    return parsed


def _kind(has: dict[str, Any]) -> str:
    return str(has.get("openinference.span.kind") or has.get("traceloop.span.kind") or "").lower()


def _parse_phoenix_span(span: dict[str, Any]) -> Span:
    plain = flatten(span)
    has = {name.removeprefix("attributes."): item for name, item in plain.items() if name.startswith("attributes.")}
    events = [
        (str(item.get("name", "")), flatten(_object(item.get("attributes")))) for item in _objects(span.get("events"))
    ]
    failed = str(plain.get("status_code")).upper() in FAILED
    return Span(
        str(plain.get("context.trace_id")), str(plain.get("context.span_id")), str(plain.get("parent_id") or ""),
        str(plain.get("name", "")), _moment(plain.get("start_time")), _moment(plain.get("end_time")),
        str(plain.get("status_message") or "error") if failed else None,
        str(plain.get("span_kind") or _kind(has)).lower(), has, events,
    )  # fmt: skip


def _parse_langfuse_span(observation: dict[str, Any]) -> Span:
    failed = str(observation.get("level")).upper() == "ERROR"
    has = {
        "input": observation.get("input"),
        "output": observation.get("output"),
        "gen_ai.request.model": observation.get("model"),
    }
    return Span(
        str(observation["traceId"]),
        str(observation.get("id")),
        str(observation.get("parentObservationId") or ""),
        str(observation.get("name") or ""),
        _moment(observation.get("startTime")),
        _moment(observation.get("endTime")),
        str(observation.get("statusMessage") or "error") if failed else None,
        str(observation.get("type") or "").lower(),
        {name: item for name, item in has.items() if item is not None},
    )


def _attributes(attribute_list: Any) -> dict[str, Any]:
    """Attributes as OTLP's JSON has them, or as a plain object, by their dotted names."""
    if isinstance(attribute_list, dict):
        return flatten(attribute_list)
    values = {}
    for entry in _objects(attribute_list):
        values[str(entry.get("key"))] = _any_value(entry.get("value"))
    return values


def _any_value(value: Any, depth: int = 0) -> Any:
    if not isinstance(value, dict) or not value or depth > DEPTH_MAX:
        return value
    (kind, inner), *_ = value.items()
    kind = kind.replace("_v", "V")
    if kind == "intValue":
        return int(inner) if str(inner).lstrip("-").isdigit() else inner
    if kind == "arrayValue":
        return [_any_value(item, depth + 1) for item in _list(_object(inner).get("values"))]
    if kind == "kvlistValue":
        pairs = _objects(_object(inner).get("values"))
        return {str(item.get("key")): _any_value(item.get("value"), depth + 1) for item in pairs}
    return inner


def flatten(value: dict[str, Any], before: str = "", depth: int = 0) -> dict[str, Any]:
    """The values of nested objects and of lists of objects by their dotted names, as in `llm.input_messages.0.role`."""
    flattened: dict[str, Any] = {}
    for name, item in value.items():
        dotted_name = f"{before}{name}"
        if isinstance(item, list) and item and all(map(_is_object, item)) and depth < DEPTH_MAX:
            for number, element in enumerate(item):
                flattened |= flatten(element, f"{dotted_name}.{number}.", depth + 1)
        elif isinstance(item, dict) and item and depth < DEPTH_MAX:
            flattened |= flatten(item, f"{dotted_name}.", depth + 1)
        else:
            flattened[dotted_name] = item
    return flattened


def _seconds(value: Any) -> float:
    try:
        return float(value or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _moment(value: Any) -> float:
    """An ISO 8601 moment, or milliseconds, in seconds since 1970; 0 if it is neither."""
    try:
        if isinstance(value, int | float):
            return value / 1e3
        return datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
