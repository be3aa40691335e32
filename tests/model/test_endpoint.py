"""The endpoint over real HTTP, as the Groq SDK and LangChain's ChatGroq see it."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any, ClassVar, cast

import groq
import httpx
import pytest
from langchain_groq import ChatGroq
from pydantic import SecretStr
from werkzeug.test import Client

from chaoslab.base.clock import Clock
from chaoslab.cli import main
from chaoslab.core.service_spec import CONTEXT_LENGTH
from chaoslab.model.endpoint import ERRORS, INSUFFICIENT_QUOTA, create_app, serve_endpoint
from chaoslab.model.script import script_from_json
from tests.model.seven_tools import SYSTEM
from tests.model.seven_tools import TOOLS as OFFERED
from tests.waiting import DEADLINE_S

TOOLS: Any = OFFERED
ASK: Any = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": "What is the weather in Oslo and in Rome?"},
]


class Still:
    """A clock that stands."""

    def utc(self) -> datetime:
        return datetime(2026, 6, 1, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    up, seen = Event(), []

    def ready(port: int, stop: Callable[[], None]) -> None:
        seen.append((port, stop))
        up.set()

    thread = Thread(target=serve_endpoint, kwargs={"host": "127.0.0.1", "port": 0, "ready": ready})
    thread.start()
    assert up.wait(DEADLINE_S)
    port, stop = seen[0]
    yield f"http://127.0.0.1:{port}"
    stop()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


@pytest.fixture
def sdk(url: str) -> Iterator[groq.Groq]:
    with groq.Groq(api_key="any", base_url=url, max_retries=0, timeout=10) as client:
        yield client


def test_the_sdk_gets_parallel_tool_calls_and_usage(sdk: groq.Groq) -> None:
    reply: Any = sdk.chat.completions.create(model="any-name", messages=ASK, tools=TOOLS)
    choice = reply.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert [call.function.arguments for call in choice.message.tool_calls] == ['{"city": "Oslo"}', '{"city": "Rome"}']
    assert reply.model == "any-name"
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 100


def test_the_same_request_gets_the_same_ids(sdk: groq.Groq) -> None:
    first, second = (sdk.chat.completions.create(model="m", messages=ASK, tools=TOOLS) for _ in range(2))
    other = sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}])
    assert first.id == second.id != other.id
    assert first.choices[0].message.tool_calls == second.choices[0].message.tool_calls


class EachMinute:
    """A clock that is asked once a minute."""

    def __init__(self) -> None:
        self._moment = datetime(2026, 6, 1, 9, tzinfo=UTC)

    def utc(self) -> datetime:
        self._moment += timedelta(minutes=1)
        return self._moment


def test_what_was_asked_before_is_answered_alike_but_for_its_moment() -> None:
    client = Client(create_app(clock=cast(Clock, EachMinute())))
    asked = {"model": "m", "messages": ASK, "tools": TOOLS}
    first, second = (client.post("/openai/v1/chat/completions", json=asked).get_json() for _ in range(2))
    assert second.pop("created") - first.pop("created") == 60
    assert first == second


def test_a_stream_is_the_whole_answer_in_pieces(sdk: groq.Groq) -> None:
    whole = sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}])
    chunks = list(sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}], stream=True))
    assert len(chunks) > 4
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    last: Any = chunks[-1]
    assert last.choices[0].finish_reason == "stop"
    assert last.x_groq.usage.total_tokens == whole.usage.total_tokens  # type: ignore[union-attr]


def test_a_stream_carries_tool_calls_and_ends_in_usage_and_done(url: str) -> None:
    body = {"model": "m", "messages": ASK, "tools": TOOLS, "stream": True, "stream_options": {"include_usage": True}}
    lines = [line for line in httpx.post(f"{url}/openai/v1/chat/completions", json=body).text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    assert '"choices": [], "usage": {"prompt_tokens"' in lines[-2]
    deltas = [choice["delta"] for line in lines[:-1] for choice in json.loads(line.removeprefix("data: "))["choices"]]
    pieces = [(call["index"], call) for delta in deltas for call in delta.get("tool_calls", ())]
    assert deltas[0]["role"] == "assistant"
    for index, city in enumerate(("Oslo", "Rome")):
        first, *rest = [call for at, call in pieces if at == index]
        assert (first["type"], first["function"]) == ("function", {"name": "current_weather", "arguments": ""})
        assert first["id"]
        assert {key for call in rest for key in call} == {"index", "function"}
        assert json.loads("".join(call["function"]["arguments"] for call in rest)) == {"city": city}


def test_the_parts_of_a_streamed_answer_are_as_far_apart_as_it_is_told() -> None:
    class Counting(EachMinute):
        slept: ClassVar[list[float]] = []

        def sleep(self, delay_s: float) -> None:
            self.slept.append(delay_s)

    body = {"model": "m", "messages": ASK, "stream": True}
    reply = Client(create_app(clock=cast(Clock, Counting()), token_s=0.2)).post(
        "/openai/v1/chat/completions", json=body
    )
    events = reply.get_data().count(b"\n\n")
    assert events > 4
    assert Counting.slept == [0.2] * (events - 1)


def test_chatgroq_binds_tools_and_awaits(url: str) -> None:
    async def ask() -> Any:
        async with httpx.AsyncClient() as client:
            model = ChatGroq(
                model="m", api_key=SecretStr("k"), base_url=url, max_retries=0, timeout=10, http_async_client=client
            )
            bound = model.bind_tools(TOOLS)
            streamed = [chunk async for chunk in bound.astream([("user", "Hello")])]
            return await bound.ainvoke([("system", SYSTEM), ("user", "What is 17 times 24?")]), streamed

    reply, streamed = asyncio.run(ask())
    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("calculate", {"expression": "17 * 24"})]
    assert reply.usage_metadata["total_tokens"] > 0
    assert "".join(chunk.content for chunk in streamed).startswith("Hello")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"model": "m"}, "property 'messages' is missing"),
        ({"model": "m", "messages": []}, "minimum number of items"),
        ({"messages": ASK}, "property 'model' is missing"),
        ({"model": "m", "messages": [{"role": "wizard", "content": "x"}]}, "'role' has invalid value"),
        ({"model": "m", "messages": [{"role": "tool", "content": "x"}]}, "tool_call_id"),
        ({"model": "m", "messages": ["x"]}, "must be an object"),
        ({"model": "m", "messages": ASK, "tools": [{"type": "function"}]}, "'tools'"),
        ({"model": "m", "messages": [{**ASK[0], "tool_calls": [7]}]}, "an array of function calls"),
        (
            {"model": "m", "messages": [*ASK, {"role": "assistant", "tool_calls": [{"function": {"arguments": 7}}]}]},
            "cannot be read",
        ),
        ([1], "JSON object"),
    ],
)
def test_a_bad_request_is_a_400_that_says_what_is_wrong(url: str, body: Any, says: str) -> None:
    reply = httpx.post(f"{url}/openai/v1/chat/completions", json=body)
    assert reply.status_code == 400
    assert says in reply.json()["error"]["message"]


def test_the_sdk_raises_its_own_error(sdk: groq.Groq) -> None:
    with pytest.raises(groq.BadRequestError, match="invalid value"):
        sdk.chat.completions.create(model="m", messages=[{"role": "wizard", "content": "x"}])  # type: ignore[list-item, misc]


def test_broken_json_unknown_paths_and_wrong_methods_are_json_too(url: str) -> None:
    broken = httpx.post(f"{url}/openai/v1/chat/completions", content=b'{"model": ')
    lost, wrong = httpx.get(f"{url}/nowhere"), httpx.get(f"{url}/openai/v1/chat/completions")
    assert [reply.status_code for reply in (broken, lost, wrong)] == [400, 404, 405]
    assert all(reply.json()["error"]["type"] == "invalid_request_error" for reply in (broken, lost, wrong))


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        '{"model": "\\ud800", "messages": [{"role": "user", "content": "Hello"}], "stream": %s}',
        '{"model": "m", "messages": [{"role": "user", "content": "Say \\udfff"}], "user": "\\ud800", '
        '"stream": %s, "x": ' + "[" * 200_000,
    ],
    ids=["a text that UTF-8 cannot carry", "deeper than any parser goes"],
)  # fmt: skip
def test_what_no_json_can_be_is_refused_in_groqs_shape(body: str, streamed: bool) -> None:
    reply = Client(create_app()).post("/openai/v1/chat/completions", data=body % str(streamed).lower())
    assert (reply.status_code, reply.get_json()["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize("there", [{}, {"wsgi.input_terminated": True}], ids=["to be read", "there"])
def test_more_than_four_megabytes_are_refused(there: dict[str, bool]) -> None:
    large = b"x" * (4 * 1024 * 1024 + 1)
    reply = Client(create_app()).post("/openai/v1/chat/completions", data=large, environ_overrides=there)
    assert (reply.status_code, reply.get_json()) == (413, ERRORS[413].body)


@pytest.mark.parametrize("body", [b'{"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}', b"{", b""])
@pytest.mark.parametrize("base", ["/v1", "/openai/v1"])
def test_a_body_that_is_there_is_read_as_werkzeug_reads_it(body: bytes, base: str) -> None:
    client = Client(create_app(api_key="secret", clock=cast(Clock, Still())))
    path, headers = f"{base}/chat/completions", {"Authorization": "Bearer secret"}
    by_werkzeug = client.post(path, data=body, headers=headers)
    directly = client.post(path, data=body, headers=headers, environ_overrides={"wsgi.input_terminated": True})
    said = [(reply.status, list(reply.headers), reply.data) for reply in (by_werkzeug, directly)]
    assert said[0] == said[1]
    assert by_werkzeug.status_code == (200 if b"model" in body else 400)
    refused = client.post(path, data=body, environ_overrides={"wsgi.input_terminated": True})
    assert refused.status_code == 401


def test_a_key_is_asked_for_only_when_one_is_set(url: str) -> None:
    assert httpx.get(f"{url}/v1/models").status_code == 200
    client = Client(create_app(api_key="secret"))
    assert client.get("/v1/models").status_code == 401
    assert client.get("/v1/models", headers={"Authorization": "Bearer secret"}).status_code == 200
    assert client.get("/health").status_code == 200


def test_models_are_listed_and_any_is_accepted(sdk: groq.Groq) -> None:
    assert "chaoslab-offline" in [model.id for model in sdk.models.list().data]
    assert sdk.models.retrieve("some/other-model").id == "some/other-model"


def test_replies_carry_rate_limit_headers(url: str) -> None:
    reply = httpx.post(f"{url}/openai/v1/chat/completions", json={"model": "m", "messages": ASK})
    assert int(reply.headers["x-ratelimit-remaining-tokens"]) < int(reply.headers["x-ratelimit-limit-tokens"])


def test_the_words_for_the_injectors_are_groqs() -> None:
    found = {status: error.status for status, error in ERRORS.items()}
    assert found == {**{s: s for s in (400, 401, 404, 413, 429, 500, 503)}, CONTEXT_LENGTH: 400}
    assert ERRORS[429].headers == {"Retry-After": "1"}
    assert ERRORS[429].body["error"]["code"] == "rate_limit_exceeded"
    assert INSUFFICIENT_QUOTA.headers == {"x-should-retry": "false"}


def asked_in_all_formats(client: Client) -> list[Any]:
    tool = {"type": "object", "properties": {"order": {"type": "integer"}}}
    said = "Refund order 17"
    responses = client.post("/v1/responses", json={
        "model": "m", "input": said, "tools": [{"type": "function", "name": "refund", "parameters": tool}],
    })  # fmt: skip
    messages = client.post("/v1/messages", headers={"anthropic-version": "2023-06-01"}, json={
        "model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": said}],
        "tools": [{"name": "refund", "input_schema": tool}],
    })  # fmt: skip
    gemini = client.post("/v1beta/models/gemini-2.5-flash:generateContent", json={
        "contents": [{"role": "user", "parts": [{"text": said}]}],
        "tools": [{"functionDeclarations": [{"name": "refund", "parameters": tool}]}],
    })  # fmt: skip
    chat = client.post("/v1/chat/completions", json={
        "model": "m", "messages": [{"role": "user", "content": said}],
        "tools": [{"type": "function", "function": {"name": "refund", "parameters": tool}}],
    })  # fmt: skip
    calls = gemini.get_json()["candidates"][0]["content"]["parts"]
    return [
        *(item["name"] for item in responses.get_json()["output"] if item["type"] == "function_call"),
        *(block["name"] for block in messages.get_json()["content"] if block["type"] == "tool_use"),
        *(part["functionCall"]["name"] for part in calls if "functionCall" in part),
        *(call["function"]["name"] for call in chat.get_json()["choices"][0]["message"].get("tool_calls") or ()),
    ]


def test_it_speaks_all_formats_at_one_address() -> None:
    client = Client(create_app())
    assert asked_in_all_formats(client) == ["refund"] * 4
    models = client.get("/v1/models", headers={"anthropic-version": "2023-06-01"}).get_json()
    assert models["data"][0]["type"] == "model"


def test_a_script_is_followed_in_any_format_and_an_equal_request_gets_its_step_again() -> None:
    steps = [
        {"call": "refund", "arguments": {"order": 17}},
        [{"call": "refund"}],
        {"call": "refund"},
        {"call": "refund"},
    ]
    client = Client(create_app(model=script_from_json(steps)))
    assert [asked_in_all_formats(client) for _ in range(2)] == [["refund"] * 4] * 2
    ended = client.post("/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "more"}]})
    assert ended.status_code == 400
    assert "ran out after 4 steps" in ended.get_json()["error"]["message"]


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("{}", 'the script is {}: it should be a list of steps, each {"call"'),
        ('[{"call": 1}]', "step 1 of the script is {'call': 1}: it should be {\"call\""),
        ('["a", {"error": 99}]', "step 2 of the script is {'error': 99}: an error should be a status"),
        ("[", "script.json is not JSON"),
    ],
)
def test_a_wrong_script_is_one_line(script: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "script.json"
    path.write_text(script)
    assert main(["model", "--script", str(path)]) == 2
    told = capsys.readouterr().err
    assert (line in told, told.count("\n")) == (True, 1)
