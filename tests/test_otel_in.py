"""Scenarios from traces: each convention, the whole way there and back, masking, and inputs that are none."""

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, Status, StatusCode, Tracer

import chaoslab as lab
from chaoslab.surfaces.otel import reading
from chaoslab.surfaces.otel._stand_ins import Replies
from chaoslab.surfaces.otel.calls import NONE, Episodes, find_episodes
from chaoslab.surfaces.otel.reading import TraceError, read_spans
from chaoslab.surfaces.otel.writing import build_project
from chaoslab.surfaces.projects import Personal
from tests.cli_parts import Typed
from tests.otel_parts import receiving
from tests.test_otel_out import ran

ASKED, SAID = "Refund order 17", "Refunded 49."
ARGUMENTS, REPLY = {"order": 17}, {"paid": 49.0}
SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}, "note": {"type": "string"}}}


def by_sdk(make: Callable[[Tracer], None]) -> dict[str, Any]:
    """The export by OpenTelemetry's SDK of the spans that `make` makes, as OTLP's JSON."""
    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    make(provider.get_tracer("agent"))
    import base64

    document: dict[str, Any] = MessageToDict(encode_spans(memory.get_finished_spans()))
    for of in document["resourceSpans"]:
        for scope in of["scopeSpans"]:
            for span in scope["spans"]:  # OTLP's JSON spells ids in hexadecimal digits
                span |= {
                    k: base64.b64decode(v).hex() for k, v in span.items() if k in ("traceId", "spanId", "parentSpanId")
                }
    return document


def as_attributes(tracer: Tracer) -> None:
    """gen_ai since 1.37: messages are attributes of JSON, and tools have spans."""
    with tracer.start_as_current_span("invoke_agent clerk") as root:
        root.set_attribute("gen_ai.operation.name", "invoke_agent")
        root.set_attribute(
            "gen_ai.tool.definitions",
            json.dumps([{"type": "function", "name": "refund", "description": "Pays back.", "parameters": SCHEMA}]),
        )
        messages = [{"role": "user", "parts": [{"type": "text", "content": ASKED}]}]
        root.set_attribute("gen_ai.input.messages", json.dumps(messages))
        root.set_attribute(
            "gen_ai.output.messages", json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": SAID}]}])
        )
        for fails in (True, False):
            with tracer.start_as_current_span("execute_tool refund") as span:
                span.set_attributes(
                    {
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": "refund",
                        "gen_ai.tool.call.arguments": json.dumps(ARGUMENTS),
                    }
                )
                if fails:
                    span.set_status(Status(StatusCode.ERROR, "429 Too Many Requests"))
                else:
                    span.set_attribute("gen_ai.tool.call.result", json.dumps(REPLY))


def _chats(tracer: Tracer, fill: Callable[[Span, int], None]) -> None:
    with tracer.start_as_current_span("agent"):
        for number in range(2):
            with tracer.start_as_current_span("chat gpt") as span:
                fill(span, number)


def as_events(tracer: Tracer) -> None:
    """gen_ai up to 1.36: each message is an event of the model's span."""
    call = [{"id": "c1", "type": "function", "function": {"name": "refund", "arguments": json.dumps(ARGUMENTS)}}]

    def fill(span: Span, number: int) -> None:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.add_event("gen_ai.user.message", {"content": ASKED})
        if number:
            span.add_event("gen_ai.tool.message", {"id": "c1", "content": json.dumps(REPLY)})
            span.add_event("gen_ai.choice", {"index": 0, "message": json.dumps({"content": SAID})})
        else:
            span.add_event("gen_ai.choice", {"index": 0, "message": json.dumps({"tool_calls": call})})

    _chats(tracer, fill)


def as_numbered(tracer: Tracer) -> None:
    """OpenLLMetry's: an attribute for each field of each message."""

    def fill(span: Span, number: int) -> None:
        span.set_attributes(
            {"llm.request.type": "chat", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": ASKED}
        )
        span.set_attributes(
            {"llm.request.functions.0.name": "refund", "llm.request.functions.0.parameters": json.dumps(SCHEMA)}
        )
        call = {"id": "c1", "name": "refund", "arguments": json.dumps(ARGUMENTS)}
        before = "gen_ai.prompt.1" if number else "gen_ai.completion.0"
        span.set_attribute(f"{before}.role", "assistant")
        span.set_attributes({f"{before}.tool_calls.0.{key}": value for key, value in call.items()})
        if number:
            span.set_attributes(
                {
                    "gen_ai.prompt.2.role": "tool",
                    "gen_ai.prompt.2.tool_call_id": "c1",
                    "gen_ai.prompt.2.content": json.dumps(REPLY),
                }
            )
            span.set_attributes({"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": SAID})

    _chats(tracer, fill)


def as_openinference(tracer: Tracer) -> None:
    """OpenInference: numbered messages of the model, and spans of tools."""
    with tracer.start_as_current_span("agent") as root:
        root.set_attributes({"openinference.span.kind": "AGENT", "input.value": ASKED, "output.value": SAID})
        with tracer.start_as_current_span("llm") as span:
            span.set_attributes({
                "openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": ASKED,
                "llm.tools.0.tool.json_schema": json.dumps({"type": "function", "function": {"name": "refund", "parameters": SCHEMA}}),
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "refund",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": json.dumps(ARGUMENTS),
            })  # fmt: skip
        with tracer.start_as_current_span("refund") as span:
            span.set_attributes(
                {
                    "openinference.span.kind": "TOOL",
                    "tool.name": "refund",
                    "input.value": json.dumps(ARGUMENTS),
                    "output.value": json.dumps(REPLY),
                }
            )


PHOENIX = {"data": [
    {"name": "agent", "context": {"trace_id": "t1", "span_id": "a"}, "parent_id": None, "span_kind": "AGENT",
     "start_time": "2026-06-01T09:00:00+00:00", "end_time": "2026-06-01T09:00:09+00:00", "status_code": "OK",
     "attributes": {"input.value": ASKED, "output.value": SAID}, "events": []},
    {"name": "refund", "context": {"trace_id": "t1", "span_id": "b"}, "parent_id": "a", "span_kind": "TOOL",
     "start_time": "2026-06-01T09:00:01+00:00", "end_time": "2026-06-01T09:00:02+00:00", "status_code": "OK",
     "attributes": {"tool": {"name": "refund"}, "input": {"value": json.dumps(ARGUMENTS)}, "output": {"value": json.dumps(REPLY)}}},
]}  # fmt: skip
LANGFUSE = {"id": "t1", "name": "agent", "observations": [
    {"id": "a", "traceId": "t1", "type": "AGENT", "name": "agent", "startTime": "2026-06-01T09:00:00Z", "endTime": "2026-06-01T09:00:09Z",
     "input": {"messages": [{"role": "user", "content": ASKED}]}, "output": {"role": "assistant", "content": SAID}, "level": "DEFAULT"},
    {"id": "b", "traceId": "t1", "type": "TOOL", "name": "refund", "parentObservationId": "a", "startTime": "2026-06-01T09:00:01Z",
     "endTime": "2026-06-01T09:00:02Z", "input": ARGUMENTS, "output": REPLY, "level": "DEFAULT"},
]}  # fmt: skip


def found(document: Any, folder: Path) -> Episodes:
    path = folder / "traces.json"
    path.write_text(json.dumps(document))
    return find_episodes(read_spans(path, []))


@pytest.mark.parametrize("make", [as_attributes, as_events, as_numbered, as_openinference, PHOENIX, LANGFUSE])
def test_each_convention_tells_words_calls_and_replies(make: Any, tmp_path: Path) -> None:
    it = found(by_sdk(make) if callable(make) else make, tmp_path)
    (episode,) = it.episodes
    assert (episode.prompt, episode.answer) == (ASKED, SAID)
    assert [(call.tool, call.arguments, call.reply) for call in episode.calls if call.reply is not NONE] == [
        ("refund", ARGUMENTS, REPLY)
    ]
    if callable(make) and make is not as_events:
        assert it.schemas["refund"]["parameters"] == SCHEMA


def test_a_failure_of_production_becomes_a_fault_and_the_scenario_passes(tmp_path: Path, typed: Typed) -> None:
    lines = [json.dumps(by_sdk(as_attributes)), "", json.dumps(LANGFUSE), '{"resourceSpans": [{"sco']
    (tmp_path / "traces.jsonl").write_text("\n".join(lines))
    said = typed.out("from-traces", tmp_path / "traces.jsonl", "--out", tmp_path / "chaos")
    assert "note: " in said
    assert "line 4 is no JSON, or cut" in said
    assert "3 of 3 tool calls are in 2 scenarios" in said
    texts = [each.read_text() for each in sorted((tmp_path / "chaos").glob("*.yaml"))]
    assert sum("fault: rate_limit\n  target: refund\n  calls: [1]" in each for each in texts) == 1
    module = (tmp_path / "chaos" / "stand_ins.py").read_text()
    assert "def refund(order: int, note: str = None):" in module
    assert '"Pays back."' in module
    assert typed("test", tmp_path / "chaos", "--no-logs", "-q").code == 0
    assert "is there already" in typed.refused("from-traces", tmp_path / "traces.jsonl", "--out", tmp_path / "chaos")


def test_a_run_that_was_exported_comes_back_as_scenarios_that_pass(tmp_path: Path, typed: Typed) -> None:
    folder = ran(tmp_path / "logs", trials=4)
    with receiving() as receiver:
        assert typed("otlp", folder, "--to", receiver.url).code == 0
    assert len(receiver.spans) == 4 * 6  # and the protocol's own classes could read them
    bodies = [body for path, body in receiver.bodies if path == "/v1/traces"]
    (tmp_path / "traces.jsonl").write_bytes(b"\n".join(bodies))
    out = typed.out("from-traces", tmp_path / "traces.jsonl", "--out", tmp_path / "chaos")
    assert "8 of 8 tool calls are in 1 scenarios" in out
    assert "timeout_before_effect" in (tmp_path / "chaos" / "trace_1.chaos.yaml").read_text()
    assert typed("test", tmp_path / "chaos", "--no-logs", "-q").code == 0


def test_secrets_and_personal_data_are_masked_alike_everywhere(tmp_path: Path) -> None:
    private = {
        "email": "ann@shop.test", "card": "4111 1111 1111 1111", "phone": "+49 170 1234567", "api_key": "sk-abcdefghijklmnop1234",
        "at": "2026-06-01T09:00:00Z", "order": 17, "id": "1234567890123456", "ip": "10.0.0.1",
    }  # fmt: skip
    document = json.loads(json.dumps(LANGFUSE))
    document["observations"][0]["input"]["messages"][0]["content"] = "Refund Ann@shop.test, card 4111111111111111"
    document["observations"][1]["input"] = private
    made = build_project(found(document, tmp_path), most=20, personal=Personal())
    text = "".join(made.files.values())
    for secret in ("ann@", "Ann@", "4111", "170 1234567", "sk-abc"):
        assert secret not in text
    recorded = json.loads(made.files["recorded.json"])["traces"]["trace_1"]
    assert recorded["prompt"] == "Refund <e-mail 1>, card <card 1>"
    kept = recorded["calls"][0]["arguments"]
    assert (kept["email"], kept["card"], kept["phone"]) == ("<e-mail 1>", "<card 1>", "<phone 1>")
    assert {key: kept[key] for key in ("at", "order", "id", "ip")} == {
        key: private[key] for key in ("at", "order", "id", "ip")
    }
    assert made.masked == {"secret": 1, "e-mail": 1, "card": 1, "phone": 1}
    plain = build_project(found(document, tmp_path), most=20, personal=Personal(on=False))
    assert "ann@shop.test" in plain.files["recorded.json"]
    assert not plain.masked


def test_a_reply_that_was_not_recorded_names_the_nearest() -> None:
    asked = (1, "open"), (1, "paid"), (200, "open")
    calls = [{"tool": "get", "function": "get", "arguments": {"n": n}, "reply": reply} for n, reply in asked]
    replies = Replies({"trace_1": {"calls": calls, "answer": ""}})
    replies.begin("trace_1", None, {})
    assert [replies.of("get", {"n": 1, "more": None}) for _ in range(3)] == ["open", "paid", "paid"]
    with pytest.raises(
        LookupError, match=r'no reply to get\(\{"n": 201\}\) was recorded; the nearest is get\(\{"n": 200\}\)'
    ):
        replies.of("get", {"n": 201})


def test_the_users_own_agent_takes_the_place_of_the_recorded_calls(tmp_path: Path) -> None:
    made = build_project(found(LANGFUSE, tmp_path), most=20, personal=Personal())
    for name, text in made.files.items():
        (tmp_path / name).write_text(text)
    module = runpy.run_path(str(tmp_path / "stand_ins.py"))
    agent = module["replies"].begin("trace_1", lambda prompt: f"{module['refund'](17)} for {prompt}", module)
    assert lab.run(agent, ASKED, tools=[module["refund"]]).answer == f"{REPLY} for {ASKED}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"resourceSpans": [{"scopeSpans": [', "is cut in the middle (line 1"),
        ("traces", "is no JSON (line 1"),
        ("{}", "no spans are in it: traces are OTLP's JSON"),
        ("[" * 100_000, "is cut in the middle|nested too deep"),
        (json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "a", "spanId": "b"}]}]}]}), "no convention for agents"),
        (json.dumps({"data": [PHOENIX["data"][0]]}), "none of them calls a tool"),
        (json.dumps({"resourceSpans": [7, {"scopeSpans": [{"spans": [None, 3]}]}]}), "no spans are in it"),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_told_in_one_line(text: str, why: str, tmp_path: Path, typed: Typed) -> None:
    (tmp_path / "t.json").write_text(text)
    said = typed.refused("from-traces", tmp_path / "t.json", "--out", tmp_path / "chaos")
    assert any(each in said for each in why.split("|"))
    assert "t.json" in said
    assert not (tmp_path / "chaos").exists()


def test_a_huge_document_is_refused_and_huge_lines_are_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WHOLE_MAX", 4096)
    path = tmp_path / "t.json"
    path.write_text(json.dumps(PHOENIX["data"] * 20, indent=1))
    with pytest.raises(TraceError, match="at most 0 MiB are read at once"):
        read_spans(path, [])
    path.write_text("\n".join(json.dumps(each) for each in PHOENIX["data"] * 20))
    assert len(read_spans(path, [])) == 2


def test_a_folder_without_traces_is_told(tmp_path: Path, typed: Typed) -> None:
    for place in (tmp_path, tmp_path / "none.json"):
        assert str(place) in typed.refused("from-traces", place)


ODD: list[Any] = [None, 7, True, "x", [], {}, [1], {"a": 1}, [[]], float("inf"), "\ud800", 10**400]


def spots(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from spots(value[key], (*above, key))


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_value_of_any_type_at_any_place_is_left_out_or_one_line(odd: Any, tmp_path: Path, typed: Typed) -> None:
    right = by_sdk(as_attributes)
    for number, spot in enumerate(spots(right)):
        document: Any = json.loads(json.dumps(right))
        inner = document
        for key in spot[:-1]:
            inner = inner[key]
        if spot:
            inner[spot[-1]] = odd
        file, out = tmp_path / "traces.json", tmp_path / str(number)
        file.write_text(json.dumps(document if spot else odd))
        done = typed("from-traces", file, "--out", out)
        assert done.code in (0, 2)
        assert out.exists() is (done.code == 0)
