"""Trials as traces: what a collector gets of a finished run, and of one that goes on."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import propagate
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, mcp_attributes

import chaoslab as lab
from chaoslab.cli import main
from chaoslab.record.history import History
from chaoslab.surfaces.otel import _conventions as conventions
from chaoslab.surfaces.otel.collector import find_endpoint, parse_endpoint
from chaoslab.surfaces.otel.export import Collector, send_run
from tests.cli_parts import Typed
from tests.otel_parts import Receiver, has, receiving

ORDERS = {17: 49.0}


def refund(order: int, amount: float) -> str:
    return f"refunded {amount:.2f} for {order}"


def price(order: int) -> float:
    return ORDERS[order]


def clerk(prompt: str) -> str:
    order = int(prompt.split()[-1])
    amount = price(order)
    for _ in range(3):
        try:
            return refund(order, amount)
        except TimeoutError:
            continue
    return "no refund"


def ran(logs: Path, trials: int = 2) -> Path:
    ran = lab.run_many(
        clerk, "Refund order 17", tools=[refund], reads=[price],
        faults=[lab.inject("lost_reply", "refund", calls=[1])], trials=trials, seed=3, logs=logs,
    )  # fmt: skip
    assert len([*ran]) == trials
    return (logs / "latest").resolve()


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Receiver]]:
    folder = ran(tmp_path_factory.mktemp("otel"))
    with receiving() as receiver:
        assert main(["otlp", str(folder), "--to", receiver.url]) == 0
        yield folder, receiver


def of(receiver: Receiver, name: str) -> list[Any]:
    return [span for span in receiver.spans if span.name == name]


def test_a_trial_is_a_trace_of_agent_operations_and_attempts(sent: tuple[Path, Receiver]) -> None:
    _, receiver = sent
    root, other = of(receiver, "invoke_agent clerk")
    assert root.trace_id != other.trace_id
    assert has(root)["chaoslab.trial"] == "p1.r1"
    mine = [span for span in receiver.spans if span.trace_id == root.trace_id]
    operation = next(span for span in mine if span.name == "execute_tool refund")
    assert operation.parent_span_id == root.span_id
    assert json.loads(has(operation)["gen_ai.tool.call.arguments"]) == {"order": 17, "amount": 49.0}
    assert has(operation)["gen_ai.tool.call.result"] == '"refunded 49.00 for 17"'
    attempts = [span for span in mine if span.parent_span_id == operation.span_id]
    assert [has(each)["chaoslab.attempt"] for each in attempts] == [1, 2]
    assert [has(each).get("http.request.resend_count") for each in attempts] == [None, 1]
    assert [each.status.code for each in attempts] == [2, 0]
    assert operation.status.code == 0


def test_faults_effects_and_the_verdict_are_events_of_spans(sent: tuple[Path, Receiver]) -> None:
    _, receiver = sent
    first = of(receiver, "execute_tool refund, attempt 1")[0]
    assert [each.name for each in first.events] == [
        "chaoslab.effect", "chaoslab.fault.injected", "chaoslab.fault.witnessed"
    ]  # fmt: skip
    assert has(first.events[2])["chaoslab.fault"] == "lost_reply"
    assert "work was done" in str(first.events[2])
    verdict = has(of(receiver, "invoke_agent clerk")[0].events[-1])
    assert verdict["gen_ai.evaluation.name"] == "chaoslab.verdict"
    assert verdict["gen_ai.evaluation.score.label"] == "harm"
    assert verdict["gen_ai.evaluation.score.value"] == 0.0


def test_virtual_times_are_moved_to_the_present_and_say_so(sent: tuple[Path, Receiver]) -> None:
    folder, receiver = sent
    root = of(receiver, "invoke_agent clerk")[0]
    assert has(root)["chaoslab.time.virtual"] is True
    assert abs(root.end_time_unix_nano / 1e9 - folder.stat().st_mtime) < 600
    assert root.end_time_unix_nano - root.start_time_unix_nano >= 30e9
    assert root.start_time_unix_nano / 1e9 - has(root)["chaoslab.time.shifted_s"] == pytest.approx(1780304400)


def test_the_same_log_gives_the_same_ids(sent: tuple[Path, Receiver]) -> None:
    folder, receiver = sent
    with receiving() as again:
        assert main(["otlp", str(folder), "--to", f"{again.url}/v1/traces"]) == 0
    assert [each.span_id for each in again.spans] == [each.span_id for each in receiver.spans]
    assert len({each.span_id for each in receiver.spans}) == len(receiver.spans)


def test_metrics_count_trials_outcomes_faults_and_recovery(sent: tuple[Path, Receiver]) -> None:
    metrics = sent[1].metrics
    (point,) = metrics["chaoslab.trials"].sum.data_points
    assert has(point)["chaoslab.outcome"] == "harm"
    assert point.as_int == 2
    stages = {has(each)["chaoslab.stage"]: each.as_int for each in metrics["chaoslab.faults"].sum.data_points}
    assert stages == {"injected": 2, "witnessed": 2}
    assert metrics["chaoslab.incidents"].sum.is_monotonic


@pytest.mark.parametrize("gone", ["taken away", "down", "busy"])
def test_a_collector_that_is_down_is_told_of_once(tmp_path: Path, gone: str) -> None:
    folder, said = ran(tmp_path, trials=1), list[str]()
    with receiving() as receiver:
        receiver.status = {"taken away": 404, "busy": 503, "down": 200}[gone]
        url = "http://127.0.0.1:9" if gone == "down" else receiver.url
        collector = Collector(url, timeout_s=0.5, tell=said.append)
        send_run(History.read(folder), collector)
    assert len(said) == 1
    assert said[0].startswith(f"the collector at {url} failed: ")
    assert collector.lost
    assert (len(receiver.bodies) > 0) == (gone != "down")


def test_the_span_of_the_agents_own_request_is_joined(tmp_path: Path) -> None:
    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("agent")

    def app(_: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        return [b'{"stock": 3}']

    def agent(_: str) -> str:
        with tracer.start_as_current_span("look up"):
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            for _attempt in range(2):
                answer = httpx.get("http://shop.test/stock", headers=carrier)
                if answer.is_success:
                    return str(answer.json()["stock"])
        return "unknown"

    lab.run(
        agent,
        "How many?", services={"shop.test": app}, faults=[lab.inject("tool_error", "shop.test", calls=[1])],
        logs=tmp_path,
    )  # fmt: skip
    with receiving() as receiver:
        assert main(["otlp", str(tmp_path / "latest"), "--to", receiver.url]) == 0
    own = memory.get_finished_spans()[-1]
    joined = [span for span in receiver.spans if span.trace_id == own.context.trace_id.to_bytes(16, "big")]
    assert joined
    assert all(span.parent_span_id == own.context.span_id.to_bytes(8, "big") for span in joined)
    assert any(event.name == "chaoslab.fault.witnessed" for span in joined for event in span.events)
    operations = {span.span_id for span in receiver.spans if span.trace_id != joined[0].trace_id}
    assert all(link.span_id in operations for span in joined for link in span.links)
    assert own.start_time <= joined[0].start_time_unix_nano <= own.end_time


def desk(request: Any) -> Any:
    """An MCP server whose tool `close` says that it failed."""
    asked = request.json
    failed = asked["params"].get("name") == "close"
    result = {"content": [{"type": "text", "text": "closed already" if failed else "opened"}], "isError": failed}
    return {"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": []} if asked["method"] == "tools/list" else result}


def desk_clerk(_: str) -> str:
    def ask(method: str, **params: Any) -> None:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        httpx.post("http://desk/mcp", json=body, timeout=5)

    ask("tools/list")
    for tool in ("open", "close"):
        ask("tools/call", name=tool, arguments={"order": 17})
    ask("resources/read", uri="file:///a")
    return "done"


def test_calls_of_mcp_have_its_names(tmp_path: Path) -> None:
    assert len([*lab.run_many(desk_clerk, "Go", services={"desk": desk}, trials=1, logs=tmp_path)]) == 1
    with receiving() as receiver:
        assert main(["otlp", str((tmp_path / "latest").resolve()), "--to", receiver.url]) == 0
    (opened,), (closed,), (read,) = (
        of(receiver, name) for name in ("tools/call open", "tools/call close", "resources/read")
    )
    assert opened.kind == closed.kind == read.kind == 3
    said = has(opened)
    assert (said["mcp.method.name"], said["gen_ai.operation.name"], said["gen_ai.tool.name"]) == (
        "tools/call",
        "execute_tool",
        "open",
    )
    assert has(closed)["error.type"] == "tool_error"
    assert has(read)["mcp.method.name"] == "resources/read"
    assert "gen_ai.operation.name" not in has(read)
    assert "mcp.method.name" not in has(of(receiver, "invoke_agent desk_clerk")[0])


def test_names_are_those_of_the_stated_version() -> None:
    known = {
        value for of in (gen_ai_attributes, mcp_attributes) for value in vars(of).values() if isinstance(value, str)
    }
    ours = {
        value
        for value in vars(conventions).values()
        if isinstance(value, str) and value.startswith(("gen_ai.", "mcp."))
    }
    assert ours - known == {conventions.EVALUATED}  # an event, and no attribute


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("http://h:4318/", "http://h:4318"),
        ("https://h/x/v1/traces", "https://h/x"),
        ("http://[::1]:1/v1/metrics", "http://[::1]:1"),
    ],
)
def test_an_address_may_have_the_path_of_a_signal(text: str, base: str) -> None:
    assert parse_endpoint(text) == base


@pytest.mark.parametrize("text", ["localhost:4318", "ftp://h", "http://", "http://h:x", "http://[::1"])
def test_an_address_that_is_none_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="as in http://localhost:4318"):
        find_endpoint({"OTEL_EXPORTER_OTLP_ENDPOINT": text})


def test_the_environment_may_switch_it_off() -> None:
    assert find_endpoint({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_SDK_DISABLED": "TRUE"}) == ""


def test_the_environment_names_collector_headers_and_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ran(tmp_path)
    with receiving() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
        assert main(["otlp", str(folder)]) == 0
    assert b"shop" in receiver.bodies[0][1]
    assert receiver.headers[0]["api-key"] == "k"


def test_otlp_needs_an_address_and_is_no_option_of_a_run(
    tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert "--to http://localhost:4318" in typed.refused("otlp")
    assert "chaoslab otlp RUN sends a run" in typed.refused("test", tmp_path, "--otlp", "http://127.0.0.1:9")
