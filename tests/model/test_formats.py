"""The formats of models' APIs without an SDK: their shapes, their errors, and what an odd request gets."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.core.answers import split_in_half, split_words
from chaoslab.core.exchange import Reply
from chaoslab.core.service_spec import CONTEXT_LENGTH
from chaoslab.core.stream import EVENT_STREAM
from chaoslab.model.app import ModelApp
from chaoslab.model.formats import FORMATS, choose_api_format, find_format

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
GEMINI, STREAM = "/v1beta/models/gemini-2.5-flash:generateContent", "/v1beta/models/g:streamGenerateContent"
HELLO: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "/openai/v1/chat/completions": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    RESPONSES: {"model": "m", "input": "hi"},
    MESSAGES: {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]},
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


def asked(
    model: ModelApp, path: str, body: Any = None, *, method: str = "POST", query: str = "", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer."""
    sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    started: list[Any] = []
    environ = {
        "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": method, "wsgi.input": io.BytesIO(sent),
        "CONTENT_LENGTH": str(len(sent)), **{f"HTTP_{name.upper()}": text for name, text in headers.items()},
    }  # fmt: skip
    parts = list(model(environ, lambda *head: started.append(head)))
    status, fields = started[0]
    return int(status[:3]), dict(fields), b"".join(parts)


def value(model: ModelApp, path: str, body: Any = None, **more: Any) -> Any:
    status, _, said = asked(model, path, body, **more)
    assert status == 200, said
    return json.loads(said)


@pytest.mark.parametrize("path", HELLO)
def test_an_answer_is_read_back_whole_and_streamed(path: str) -> None:
    body, format_ = HELLO[path], find_format(path)
    assert format_ is not None
    steps = [["Both now.", lab.call("f", a=1), lab.call("g", b="é")]] * 2
    model = lab.scripted(steps)
    _, fields, whole = asked(model, path, body)
    streamed = (path, {**body, "stream": True}) if path != GEMINI else (STREAM, body)
    _, stream_fields, parts = asked(model, *streamed, query="alt=sse")
    assert stream_fields["Content-Type"] == EVENT_STREAM
    assert not fields["Content-Type"].startswith(EVENT_STREAM)
    read = [format_.read_whole_reply(json.loads(whole)), format_.read_streamed_reply(parts)]
    for heard in read:
        assert heard.rendered_content == 'Both now. calls f({"a": 1}), g({"b": "é"})'
        assert heard.finished
    if format_.name != "OpenAI chat completions":  # which states it only if it is asked to
        assert (read[0].tokens_in, read[0].tokens_out) == (read[1].tokens_in, read[1].tokens_out)
        assert read[0].tokens_in


@pytest.mark.parametrize("path", HELLO)
@pytest.mark.parametrize("cut", range(0, 100, 7))
def test_a_part_of_a_stream_is_read_as_far_as_it_came(path: str, cut: int) -> None:
    format_ = find_format(path)
    assert format_ is not None
    streamed = (path, {**HELLO[path], "stream": True}) if path != GEMINI else (STREAM, HELLO[path])
    parts = asked(lab.scripted(["one two three four"]), *streamed, query="alt=sse")[2]
    heard = format_.read_streamed_reply(parts[: len(parts) * cut // 100])
    assert "one two three four".startswith(heard.text)
    assert not heard.finished or heard.text == "one two three four"


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[]", b"null", b"7", b'{"choices": [7]}', b"[" * 99999])
def test_an_answer_that_is_none_says_nothing(body: bytes) -> None:
    for format_ in FORMATS:
        for heard in (
            format_.read_whole_reply(Reply(200, {}, body).value),
            format_.read_streamed_reply(b"data: " + body + b"\n\n"),
        ):
            assert (heard.rendered_content, heard.finished, heard.tokens_in) == ("", False, None)


def test_geminis_stream_without_sse_is_one_array() -> None:
    chunks = value(lab.scripted(["one two"]), STREAM, HELLO[GEMINI])
    assert [chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in chunks] == ["one", " two"]
    assert [chunk["candidates"][0].get("finishReason") for chunk in chunks] == [None, "STOP"]


def test_geminis_calls_are_answered_in_their_order() -> None:
    def call(**args: Any) -> dict[str, Any]:
        return {"functionCall": {"name": "calculate", "args": args}}

    declared = {"name": "calculate", "description": "Calculate", "parameters": {
        "type": "OBJECT", "properties": {"expression": {"type": "STRING"}}, "required": ["expression"]}}  # fmt: skip
    asking: dict[str, Any] = {
        "contents": [{"role": "user", "parts": [{"text": "What is 6 times 7?"}]}],
        "tools": [{"functionDeclarations": [declared]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
    }
    model = lab.offline_model()
    content = value(model, GEMINI, asking)["candidates"][0]["content"]
    assert content == {"parts": [call(expression="6 * 7")], "role": "model"}
    result = {"functionResponse": {"name": "calculate", "response": {"result": {"result": 42}}}}
    asking["contents"] += [content, {"role": "user", "parts": [result]}]
    assert "42" in value(model, GEMINI, asking)["candidates"][0]["content"]["parts"][0]["text"]
    failed = {"functionResponse": {"name": "calculate", "response": {"error": "no power"}}}
    asking["contents"][2] = {"role": "user", "parts": [failed]}
    again = value(model, GEMINI, asking)["candidates"][0]["content"]
    assert again["parts"] == [call(expression="6 * 7")]  # a failed call is repeated once


def test_anthropics_failed_result_is_a_failure() -> None:
    tool = {"name": "calculate", "description": "Calculate", "input_schema": {
        "type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}}  # fmt: skip
    asking: dict[str, Any] = {**HELLO[MESSAGES], "tools": [tool], "system": [{"type": "text", "text": "Be brief."}]}
    asking["messages"] = [{"role": "user", "content": [{"type": "text", "text": "What is 6 times 7?"}]}]
    model = lab.offline_model()
    first = value(model, MESSAGES, asking)
    assert (first["stop_reason"], first["content"][0]["input"]) == ("tool_use", {"expression": "6 * 7"})
    for said, failed, stop in (("42", False, "end_turn"), ("no power", True, "tool_use")):
        result = {"type": "tool_result", "tool_use_id": first["content"][0]["id"], "content": said, "is_error": failed}
        talk = [*asking["messages"], {"role": "assistant", "content": first["content"]}]
        more = {**asking, "messages": [*talk, {"role": "user", "content": [result]}]}
        assert value(model, MESSAGES, more)["stop_reason"] == stop


def test_tools_that_are_switched_off_are_not_called() -> None:
    tool = {"name": "refund", "description": "Refund", "parameters": {"type": "object", "properties": {}}}
    model = lab.offline_model()
    off: dict[str, dict[str, Any]] = {
        CHAT: {"tools": [{"type": "function", "function": tool}], "tool_choice": "none"},
        RESPONSES: {"tools": [{"type": "function", **tool}], "tool_choice": "none"},
        MESSAGES: {"tools": [{**tool, "input_schema": tool["parameters"]}], "tool_choice": {"type": "none"}},
        GEMINI: {
            "tools": [{"functionDeclarations": [tool]}],
            "toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
        },
    }
    for path, more in off.items():
        said = asked(model, path, {**HELLO[path], **more})[2]
        format_ = find_format(path)
        assert format_ is not None
        assert not format_.read_whole_reply(json.loads(said)).calls


# Errors.

ODD: list[tuple[str, Any, str]] = [
    (CHAT, {"messages": []}, "'model' : property 'model' is missing"),
    (CHAT, {"model": "m", "messages": 7}, "'messages' : value must be an array"),
    (RESPONSES, {"model": "m"}, "One of 'input' or"),
    (RESPONSES, {"input": "hi"}, "Missing required parameter: 'model'."),
    (RESPONSES, {"model": "m", "input": [{"role": "robot", "content": "x"}]}, "Invalid value: 'robot'"),
    (RESPONSES, {"model": "m", "input": "x", "previous_response_id": "resp_1"}, "Previous response with id 'resp_1'"),
    (MESSAGES, {"model": "m", "messages": [{"role": "user", "content": "hi"}]}, "max_tokens: Field required"),
    (
        MESSAGES,
        {"model": "m", "max_tokens": 9, "messages": [{"role": "system", "content": "x"}]},
        'Unexpected role "system"',
    ),
    (MESSAGES, {"model": "m", "max_tokens": 9, "messages": [{"role": "robot", "content": "x"}]}, "messages.0.role"),
    (MESSAGES, {"model": "m", "max_tokens": 9, "messages": ["x"]}, "messages: value must be an array of objects"),
    (MESSAGES, {"model": "m", "max_tokens": 9, "messages": []}, "at least one message is required"),
    (GEMINI, {}, "contents is not specified"),
    (GEMINI, {"contents": "hi"}, "contents: value must be an array of objects"),
    (GEMINI, {"contents": [{"parts": [{"functionCall": 7}]}], "toolConfig": {"functionCallingConfig": 7}}, "cannot be"),
    (
        CHAT,
        b'{"model": "m", "messages": [{"role": "user", "content": "Order \\ud800"}]}',
        "text that UTF-8 cannot encode",
    ),
    *((path, b"{", "could not parse") for path in HELLO),
    *((path, [1], "must be a JSON object") for path in HELLO),
]


@pytest.mark.parametrize(("path", "body", "said"), ODD)
def test_a_request_that_is_none_gets_the_providers_400(path: str, body: Any, said: str) -> None:
    status, fields, text = asked(lab.offline_model(), path, body)
    assert (status, fields["Content-Type"]) == (400, "application/json")
    error = json.loads(text)["error"]
    assert said in error["message"]
    assert {CHAT: "type", RESPONSES: "type", MESSAGES: "type", GEMINI: "status"}.get(path, "type") in error


def talk(path: str, *said: str) -> dict[str, Any]:
    """A request whose history says this: "u" the user, "m" the model, "c1" a call with an id, "r1" a result of it."""
    found: list[Any] = []
    for each in said:
        kind, number = each[0], each[1:]
        call, name = f"call_{number}", f"tool_{number}"
        role = "user" if kind in "ur" else "assistant"
        if path == CHAT:
            made: Any = {"id": call, "type": "function", "function": {"name": name, "arguments": "{}"}}
            ways: dict[str, Any] = {"c": {"tool_calls": [made]}, "r": {"role": "tool", "tool_call_id": call}}
            found.append({"role": role, "content": "x", **ways.get(kind, {})})
        elif path == RESPONSES:
            own = {
                "c": {"type": "function_call", "call_id": call, "name": name, "arguments": "{}"},
                "r": {"type": "function_call_output", "call_id": call, "output": "x"},
            }  # fmt: skip
            found.append(own.get(kind, {"role": role, "content": "x"}))
        elif path == MESSAGES:
            block = {
                "c": {"type": "tool_use", "id": call, "name": name, "input": {}},
                "r": {"type": "tool_result", "tool_use_id": call, "content": "x"},
            }.get(kind, {"type": "text", "text": "x"})  # fmt: skip
            found.append({"role": role, "content": [block]})
        else:
            part = {
                "c": {"functionCall": {"name": name, "args": {}}},
                "r": {"functionResponse": {"name": name, "response": {"result": "x"}}},
            }.get(kind, {"text": "x"})  # fmt: skip
            found.append({"role": "user" if kind in "ur" else "model", "parts": [part]})
    key = {RESPONSES: "input", GEMINI: "contents"}.get(path, "messages")
    return {**HELLO[path], key: found}


ORPHAN, FOREIGN, OPEN = ("u", "r1"), ("u", "c1", "r2"), ("u", "c1", "u")
REFUSED: list[tuple[str, tuple[str, ...], str]] = [
    (CHAT, ORPHAN, "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."),
    (CHAT, FOREIGN, "'tool_call_id' of 'call_2' not found in 'tool_calls' of previous message."),
    (CHAT, OPEN, "The following tool_call_ids did not have response messages: call_1"),
    (CHAT, ("u", "c1"), "The following tool_call_ids did not have response messages: call_1"),
    (RESPONSES, ORPHAN, "No tool call found for function call output with call_id call_1."),
    (RESPONSES, FOREIGN, "No tool call found for function call output with call_id call_2."),
    (RESPONSES, OPEN, "No tool output found for function call call_1."),
    (MESSAGES, ORPHAN, "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: call_1."),
    (MESSAGES, FOREIGN, "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: call_2."),
    (MESSAGES, OPEN, "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: call_1."),
    (MESSAGES, ("u", "c1", "u", "r1"), "messages.1: `tool_use` ids were found without `tool_result` blocks"),
    (GEMINI, ORPHAN, "function response turn comes immediately after a function call turn."),
    (GEMINI, OPEN, "the number of function response parts is equal to the number of function call parts"),
    (GEMINI, ("u", "m", "c1", "r1"), "function call turn comes immediately after a user turn"),
    (GEMINI, ("c1", "r1"), "function call turn comes immediately after a user turn"),
]


@pytest.mark.parametrize("model", ["scripted", "offline"])
@pytest.mark.parametrize(("path", "said", "words"), REFUSED)
def test_a_history_that_the_provider_refuses_is_refused_in_its_words(
    path: str, said: tuple[str, ...], words: str, model: str
) -> None:
    app = lab.offline_model() if model == "offline" else lab.scripted(["Yes."])
    status, _, text = asked(app, path, talk(path, *said))
    assert status == 400
    assert words in json.loads(text)["error"]["message"]
    for right in (("u", "c1", "r1"), ("u", "c1", "r1", "m", "u"), ("u", "c1", "r1", "c2", "r2", "u")):
        assert asked(app if model == "offline" else lab.scripted(["Yes."]), path, talk(path, *right))[0] == 200


def test_a_system_message_in_geminis_contents_is_refused() -> None:
    body = {"contents": [{"role": "system", "parts": [{"text": "x"}]}]}
    status, _, text = asked(lab.offline_model(), GEMINI, body)
    assert (status, json.loads(text)["error"]["message"]) == (400, "Please use a valid role: user, model.")


KEYS = [
    "role", "content", "type", "text", "parts", "functionCall", "functionResponse", "name", "args", "response", "id",
    "tool_calls", "function", "arguments", "tool_use_id", "input", "call_id", "output", "tool_result", "tools",
]  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("path", HELLO)
@given(odd=json_values, key=st.sampled_from(["messages", "input", "contents", "tools", "system", "instructions"]))
def test_no_request_breaks_a_model(path: str, odd: Any, key: str) -> None:
    for given_ in (odd, [odd], [{"role": "user", "content": odd}], [{"role": "model", "parts": odd}]):
        status, _, text = asked(lab.scripted(["fine"]), path, {**HELLO[path], key: given_})
        assert status in (200, 400)
        assert json.loads(text)


def test_errors_keep_the_shape_of_their_provider() -> None:
    model = lab.scripted([{"error": 529}, {"error": 429}, {"error": 503, "message": "down for now"}] * 9)
    assert json.loads(asked(model, MESSAGES, HELLO[MESSAGES])[2])["error"]["type"] == "overloaded_error"
    status, fields, text = asked(model, GEMINI, HELLO[GEMINI])
    assert (status, json.loads(text)["error"]["status"], fields["Retry-After"]) == (429, "RESOURCE_EXHAUSTED", "1")
    assert json.loads(asked(model, CHAT, HELLO[CHAT])[2])["error"] == {
        "message": "down for now", "type": "server_error", "param": None, "code": None,
    }  # fmt: skip


def test_every_status_has_an_error_of_every_format() -> None:
    for format_ in FORMATS:
        assert set(format_.error_replies) == {*range(400, 600), CONTEXT_LENGTH}
        for status, error in format_.error_replies.items():
            assert error.status == {CONTEXT_LENGTH: 400}.get(status, status) or status == 402  # no credit
            assert error.body.get("error", error.body)["message"]


def test_a_request_that_is_too_large_is_refused() -> None:
    assert asked(lab.offline_model(), MESSAGES, b" " * (4 << 20))[0] == 400  # it is read, and is no JSON
    status, _, text = asked(lab.offline_model(), MESSAGES, b" " * ((4 << 20) + 1))
    assert (status, json.loads(text)["error"]["type"]) == (413, "request_too_large")
    long = {**HELLO[GEMINI], "contents": [{"parts": [{"text": "x" * 5000}]}]}
    assert "5000 characters" in json.loads(asked(lab.offline_model(), GEMINI, long)[2])["error"]["message"]


def test_an_address_at_which_nothing_answers_is_said_in_the_providers_shape() -> None:
    model = lab.offline_model()
    status, _, text = asked(model, "/v1/files", {})
    assert (status, json.loads(text)["error"]["code"]) == (404, "unknown_url")
    status, _, text = asked(model, "/v1/batches", {}, anthropic_version="2023-06-01")
    assert (status, json.loads(text)["type"]) == (404, "error")
    status, _, text = asked(model, "/v1beta/files", {})
    assert (status, json.loads(text)["error"]["status"]) == (404, "NOT_FOUND")
    assert asked(model, CHAT, method="GET")[0] == 405
    assert asked(model, CHAT, {}, method="PUT")[0] == 405
    assert asked(model, CHAT, method="HEAD")[2] == b""


# All else that an API offers.


def test_the_list_of_models_has_the_providers_shape() -> None:
    model = lab.offline_model()
    names = [each["id"] for each in value(model, "/v1/models", method="GET")["data"]]
    assert {"gpt-4o", "claude-haiku-4-5", "gemini-2.5-pro"} <= set(names)
    page = value(model, "/v1/models", method="GET", anthropic_version="2023-06-01")
    assert (page["has_more"], page["data"][0]["type"], page["first_id"]) == (False, "model", names[0])
    assert value(model, "/v1beta/models", method="GET")["models"][0]["name"] == f"models/{names[0]}"
    assert value(model, "/v1/models/mine", method="GET")["id"] == "mine"
    assert value(model, "/v1beta/models/mine", method="GET")["name"] == "models/mine"


def test_tokens_are_counted_as_they_are_used() -> None:
    model = lab.scripted(["fine"])
    count = value(model, "/v1/messages/count_tokens", {"model": "m", "messages": HELLO[MESSAGES]["messages"]})
    used = value(model, MESSAGES, HELLO[MESSAGES])["usage"]
    assert count == {"input_tokens": used["input_tokens"]}
    assert value(model, "/v1beta/models/g:countTokens", HELLO[GEMINI]) == {"totalTokens": used["input_tokens"]}


def test_the_tools_of_a_request_cost_tokens_too() -> None:
    tool = {"type": "function", "function": {"name": "refund", "parameters": {"type": "object", "properties": {}}}}
    without, with_it = (
        value(lab.offline_model(), CHAT, {**HELLO[CHAT], **more})["usage"]["prompt_tokens"]
        for more in ({}, {"tools": [tool]})
    )
    assert with_it - without == -(-len(json.dumps([tool])) // 4)


def test_a_path_tells_the_format() -> None:
    bedrock = "/model/anthropic.claude%3A0/converse-stream"
    assert [find_format(path) for path in (CHAT, RESPONSES, MESSAGES, GEMINI, bedrock)] == [*FORMATS[1:]]
    assert find_format("/openai/v1/chat/completions") is FORMATS[0]
    assert find_format("/v1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent") is FORMATS[4]
    assert find_format("/openai/deployments/mine/chat/completions") is FORMATS[1]
    assert find_format("/orders") is None
    assert choose_api_format("/", {"x-goog-api-key": ""}) is FORMATS[4]


@given(text=st.text(max_size=60))
def test_a_text_in_pieces_is_the_text(text: str) -> None:
    assert "".join(split_words(text)) == text
    assert "".join(split_in_half(text)) == text


def test_a_thread_of_messages_is_kept_by_the_service() -> None:
    """Its next request has the new messages alone, and no tools."""
    model = lab.scripted([lab.call("f", a=1), "Done."])
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    first = value(model, MESSAGES, {**HELLO[MESSAGES], "tools": tools, "thread": {"type": "create"}})
    (use,) = first["content"]
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": "1"}]}
    asks = {**HELLO[MESSAGES], "messages": [result]}
    again = value(model, MESSAGES, {**asks, "thread": {"type": "continue", "previous_message_id": first["id"]}})
    assert again["content"] == [{"type": "text", "text": "Done."}]
    status, _, said = asked(model, MESSAGES, asks)
    assert (status, b"unexpected `tool_use_id`" in said) == (400, True)
    lost = {**asks, "thread": {"type": "continue", "previous_message_id": "msg_of_another"}}
    status, _, said = asked(model, MESSAGES, lost)
    assert (status, json.loads(said)["error"]["details"]) == (404, {"error_code": "thread_not_found"})
