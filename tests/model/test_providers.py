"""The formats of Bedrock and Mistral, by the providers' SDKs where they are installed."""

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

import chaoslab as lab
from chaoslab.core.events import CallFinished, Effect, FaultWitnessed, Usage
from chaoslab.core.stream import FRAMES, FrameSplitter, get_frame_payload
from chaoslab.model.app import LiveModel
from chaoslab.model.formats import FORMATS, find_format_at_host
from tests.gateway.parts import history, on_loopback, standing

STEPS: list[Any] = [["I look.", lab.call("refund", order=17)], "Order 17 is refunded."]
SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}


def ask(path: str, body: Any, model: LiveModel | None = None) -> Any:
    return Client(model or lab.scripted(STEPS)).post(path, json=body)


BEDROCK = {
    "messages": [{"role": "user", "content": [{"text": "Refund order 17"}]}],
    "system": [{"text": "Be brief."}],
    "toolConfig": {"tools": [{"toolSpec": {"name": "refund", "inputSchema": {"json": SCHEMA}}}]},
}
MISTRAL = {
    "model": "mistral-small",
    "messages": [{"role": "user", "content": "Refund order 17"}],
    "tools": [{"type": "function", "function": {"name": "refund", "parameters": SCHEMA}}],
}


def test_bedrock_answers_whole_and_in_frames_whose_checksums_hold() -> None:
    from zlib import crc32

    said = ask("/model/anthropic.claude%3A0/converse", BEDROCK).get_json()
    use = {"toolUse": {"input": {"order": 17}, "name": "refund", "toolUseId": "tooluse_call_1_1"}}
    assert (said["stopReason"], said["output"]["message"]["content"]) == ("tool_use", [{"text": "I look."}, use])
    reply = ask("/model/anthropic.claude%3A0/converse-stream", BEDROCK)
    assert reply.content_type == FRAMES
    cutter = FrameSplitter()
    frames = [frame for byte in reply.data for frame in cutter.feed(bytes([byte]))]
    assert (b"".join(frames), cutter.rest) == (reply.data, b"")
    assert all(crc32(frame[:-4]) == int.from_bytes(frame[-4:], "big") for frame in frames)
    assert json.loads(get_frame_payload(frames[-2])) == {"stopReason": "tool_use"}
    format_ = next(each for each in FORMATS if each.name == "Bedrock converse")
    assert [format_.dialog.answers.is_last_event(frame) for frame in frames[-3:]] == [False, True, False]
    assert format_.dialog.answers.extract_stream_content(frames) is None
    heard = format_.read_streamed_reply(reply.data)
    assert (heard.rendered_content, heard.reason) == ('I look. calls refund({"order": 17})', "tool_use")
    assert heard.tokens_in == said["usage"]["inputTokens"]


def test_bedrock_has_error_codes_of_its_own_and_refuses_results_without_calls() -> None:
    throttled = ask("/model/m/converse", BEDROCK, lab.scripted([{"error": 429}]))
    assert (throttled.status_code, throttled.headers["x-amzn-ErrorType"]) == (429, "ThrottlingException")
    orphan = {"toolUseId": "t", "content": [{"text": "x"}]}
    wrong = {"messages": [{"role": "user", "content": [{"toolResult": orphan}]}]}
    assert "exceeds the number of toolUse blocks" in ask("/model/m/converse", wrong).get_json()["message"]


def test_mistrals_stream_has_whole_calls_and_a_fault_leaves_them_whole() -> None:
    from chaoslab.core.answers import CHAT_ANSWERS

    model = lab.scripted(STEPS)
    model.begin_trial("api.mistral.ai", "p1", lambda _: None)
    reply = ask("/v1/chat/completions", {**MISTRAL, "stream": True}, model)
    events = [json.loads(line[6:]) for line in reply.text.split("\n\n") if line.startswith("data: {")]

    def calls(told: list[Any]) -> list[Any]:
        deltas = [each["choices"][0]["delta"] for each in told if each["choices"]]
        return [call["function"] for delta in deltas for call in delta.get("tool_calls") or ()]

    assert calls(events) == [{"name": "refund", "arguments": '{"order": 17}'}]
    said = CHAT_ANSWERS.extract_stream_content(events)
    assert said is not None
    assert calls([*CHAT_ANSWERS.rewrite_events(events, said)]) == calls(events)
    format_ = find_format_at_host("api.mistral.ai", "/v1/chat/completions")
    assert format_ is not None
    assert format_.read_streamed_reply(reply.data).rendered_content == 'I look. calls refund({"order": 17})'


def test_mistrals_any_demands_a_call() -> None:
    model = lab.offline_model()
    model.begin_trial("api.mistral.ai", "p1", lambda _: None)
    hello = {**MISTRAL, "messages": [{"role": "user", "content": "Hello"}]}
    found = [ask("/v1/chat/completions", {**hello, **more}, model).json for more in ({}, {"tool_choice": "any"})]
    assert ["tool_calls" in each["choices"][0]["message"] for each in found] == [False, True]


def test_each_of_several_choices_is_read_whole_and_streamed() -> None:
    format_ = find_format_at_host("api.openai.com", "/v1/chat/completions")
    assert format_ is not None
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
    told = [
        {"index": 0, "message": {"content": "Yes."}, "finish_reason": "stop"},
        {"index": 1, "message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"},
        {"index": 2, "message": {"content": "No."}, "finish_reason": "length"},
    ]
    whole = format_.read_whole_reply({"choices": told})
    pieces = [
        {"index": 2, "delta": {"content": "N"}}, {"index": 0, "delta": {"content": "Yes."}},
        {"index": 1, "delta": {"tool_calls": [call]}}, {"index": 2, "delta": {"content": "o."}},
        {"index": 0, "delta": {}, "finish_reason": "stop"}, {"index": 2, "delta": {}, "finish_reason": "length"},
    ]  # fmt: skip
    events = [{"choices": [each]} for each in pieces]
    streamed = format_.read_streamed_reply(b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in events))
    assert whole.rendered_content == streamed.rendered_content == "Yes. | calls refund({}) | No."
    assert (whole.reason, streamed.reason, whole.text, streamed.text) == ("stop", "stop", "Yes.", "Yes.")
    assert format_.estimate_tokens("", b"{}", whole)[1] == format_.estimate_tokens("", b"{}", streamed)[1] > 3
    said = format_.dialog.answers.extract_stream_content(events)
    assert said is not None
    assert (said.text, said.calls) == ("Yes.", ())


def test_embeddings_of_like_texts_are_near() -> None:
    texts = ["the refund of order 17", "a refund for order 17", "weather in Oslo"]
    told = ask("/v1/embeddings", {"model": "text-embedding-3-small", "input": texts}).get_json()
    vectors = [each["embedding"] for each in told["data"]]
    near, far = (sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors[1:])
    assert (len(vectors[0]), near > 0.5 > far) == (1536, True)
    assert ask("/v1/embeddings", {"model": "m"}).status_code == 400
    packed = ask("/v1/embeddings", {"model": "m", "input": "a b", "dimensions": 2, "encoding_format": "base64"})
    assert struct.unpack("<2f", base64.b64decode(packed.get_json()["data"][0]["embedding"])) == (1.0, 0.0)


@pytest.fixture
def upstream() -> Iterator[str]:
    """The address of a scripted model on loopback, which is Mistral's for who asks for chat completions."""
    model = lab.scripted(STEPS * 3)
    model.begin_trial("api.mistral.ai", "p1", lambda _: None)
    with on_loopback(model) as url:
        yield url


def test_the_sdk_of_bedrock_meets_faults_at_the_gateway(upstream: str, tmp_path: Path) -> None:
    boto3, exceptions = pytest.importorskip("boto3"), pytest.importorskip("botocore.exceptions")
    fault = {"fault": "rate_limit", "target": "llm", "calls": [1], "attempts": [1]}
    with standing(tmp_path, [f"llm={upstream}"], fault) as running:
        client = boto3.client(
            "bedrock-runtime", region_name="us-east-1", endpoint_url=running.make_route_url("llm"),
            aws_access_key_id="AKIA" + "A" * 16, aws_secret_access_key="of-a-user",
            config=boto3.session.Config(retries={"max_attempts": 0}),
        )  # fmt: skip
        asked = {"modelId": "anthropic.claude:0", **BEDROCK}
        with pytest.raises(exceptions.ClientError) as throttled:
            client.converse(**asked)
        assert throttled.value.response["Error"]["Code"] == "ThrottlingException"
        assert client.converse(**asked)["stopReason"] == "tool_use"
        streamed = list(client.converse_stream(**asked)["stream"])
        assert {"messageStop": {"stopReason": "end_turn"}} in streamed
        client.close()
    told = history(tmp_path)
    assert [event.fault for _, event in told.find_events(FaultWitnessed)] == ["rate_limit"]
    assert [event.ok for _, event in told.find_events(CallFinished)] == [False, True, True]
    assert len([*told.find_events(Usage)]) == 2
    assert [*told.find_events(Effect)] == []
    assert "AKIAAAAA" not in (tmp_path / "latest" / "info.log").read_text()


def test_the_sdk_of_mistral_meets_a_fault_in_a_stream(upstream: str, tmp_path: Path) -> None:
    sdk = pytest.importorskip("mistralai.client")
    fault = {"fault": "duplicate_calls", "target": "llm"}
    with standing(tmp_path, [f"llm={upstream}"], fault) as running:
        client = sdk.Mistral(api_key="any", server_url=running.make_route_url("llm"))
        streamed = client.chat.stream(**{key: MISTRAL[key] for key in ("model", "messages", "tools")})
        calls = [call for event in streamed for call in event.data.choices[0].delta.tool_calls or ()]
    assert "refund" in {call.function.name for call in calls}
    assert [event.fault for _, event in history(tmp_path).find_events(FaultWitnessed)] == ["duplicate_calls"]
