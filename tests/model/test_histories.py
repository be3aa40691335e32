"""Each rule of each provider's table refuses a history in the provider's words, and what real SDKs send passes."""

import json
from copy import deepcopy
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.model.formats.histories import TABLES
from tests.model.test_formats import asked

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
GEMINI, GEMINI_3 = "/v1beta/models/gemini-2.5-flash:generateContent", "/v1beta/models/gemini-3.7-flash:generateContent"
VERTEX = "/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-flash:generateContent"
BEDROCK = "/model/m/converse"


def call(own: str = "call_1", name: str = "pay") -> dict[str, Any]:
    return {"id": own, "type": "function", "function": {"name": name, "arguments": "{}"}}


def tool(own: str = "call_1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": own, "content": "x"}


USER, SAID = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"}


def made(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def asks(own: str = "call_1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": own, "name": "pay", "arguments": "{}", **more}


def output(own: str = "call_1") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": own, "output": "x"}


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}


def use(own: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": own, "name": "pay", "input": {}}


def result(own: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": own, "content": "x"}


TEXT = {"type": "text", "text": "x"}


def turn(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": content[0] if content and isinstance(content[0], str) else list(content)}


def thinks(**signature: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "x", **signature}


def parts(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": each} if isinstance(each, str) else each for each in parts]}


FC = {"functionCall": {"name": "pay", "args": {}}}
FR = {"functionResponse": {"name": "pay", "response": {"result": "x"}}}
TOOL_USE, TOOL_RESULT = {"toolUse": {"toolUseId": "t", "name": "pay", "input": {}}}, {
    "toolResult": {"toolUseId": "t", "content": [{"text": "x"}]}}  # fmt: skip

BROKEN: dict[str, list[tuple[str, str, list[Any]]]] = {
    "OpenAI chat completions": [
        ("orphan", CHAT, [USER, tool()]),
        ("foreign id", CHAT, [USER, made(call()), tool("call_2")]),
        ("second result", CHAT, [USER, made(call(), call()), tool(), tool()]),
        ("no result", CHAT, [USER, made(call(), call("call_2")), tool("call_2"), USER]),
        ("no calls", CHAT, [USER, {**SAID, "tool_calls": []}]),
        ("long id", CHAT, [USER, made(call("c" * 65)), tool("c" * 65)]),
        ("no name", CHAT, [USER, made(call(name="")), tool()]),
        ("no content", CHAT, [USER, {"role": "assistant", "content": None}, USER]),
        ("no content", CHAT, [USER, made(call()), {**tool(), "content": None}]),
    ],
    "OpenAI responses": [
        ("orphan", RESPONSES, [USER, output()]),
        ("no result", RESPONSES, [USER, asks(), USER]),
        ("second item", RESPONSES, [USER, asks(id="fc_1"), output(), asks("call_2", id="fc_1"), output("call_2")]),
        ("long id", RESPONSES, [USER, asks("c" * 65), output("c" * 65)]),
        ("form of id", RESPONSES, [USER, asks(id="call_1"), output()]),
        ("lone thought", RESPONSES, [USER, THOUGHT, USER]),
        ("lone thought", RESPONSES, [USER, asks(), THOUGHT, output()]),
        ("user's part", RESPONSES, [USER, turn("assistant", {"type": "input_text", "text": "x"}), USER]),
        ("unknown item", RESPONSES, [{"type": "item_reference", "id": "msg_9"}]),
    ],
    "Anthropic messages": [
        ("orphan", MESSAGES, [turn("user", result())]),
        ("no result", MESSAGES, [USER, turn("assistant", use()), USER]),
        ("no result", MESSAGES, [USER, turn("assistant", use())]),
        ("no result", MESSAGES, [USER, turn("assistant", use()), turn("user", TEXT, result())]),
        ("second result", MESSAGES, [USER, turn("assistant", use()), turn("user", result(), result())]),
        ("second call", MESSAGES, [USER, turn("assistant", use(), use()), turn("user", result())]),
        ("form of id", MESSAGES, [USER, turn("assistant", use("a|b.c")), turn("user", result("a|b.c"))]),
        ("user's result", MESSAGES, [USER, turn("assistant", use()), turn("assistant", result()), USER]),
        ("empty text", MESSAGES, [USER, turn("assistant", {"type": "text", "text": ""}), USER]),
        ("no content", MESSAGES, [USER, turn("assistant", ""), USER]),
        ("last turn", MESSAGES, [USER, SAID]),
        ("no signature", MESSAGES, [USER, turn("assistant", thinks(), TEXT), USER]),
        ("wrong signature", MESSAGES, [USER, turn("assistant", thinks(signature="no base64!"), TEXT), USER]),
        ("wrong signature", MESSAGES, [USER, turn("assistant", thinks(signature=""), TEXT), USER]),
    ],
    "Gemini generateContent": [
        ("role", GEMINI, [parts("system", "hi")]),
        ("orphan", GEMINI, [parts("user", "hi"), parts("user", FR)]),
        ("early call", GEMINI, [parts("user", "hi"), parts("model", "x"), parts("model", FC), parts("user", FR)]),
        ("no result", GEMINI, [parts("user", "hi"), parts("model", FC, FC), parts("user", FR)]),
        ("no result", GEMINI, [parts("user", "hi"), parts("model", FC)]),
        ("no parts", GEMINI, [parts("user", "hi"), parts("model"), parts("user", "hi")]),
        ("no parts at Vertex", VERTEX, [parts("user", "hi"), parts("model"), parts("user", "hi")]),
        ("empty text at Vertex", VERTEX, [parts("user", "hi"), parts("model", ""), parts("user", "hi")]),
        ("last turn", GEMINI_3, [parts("user", "hi"), parts("model", "x")]),
        ("no signature", GEMINI_3, [parts("user", "hi"), parts("model", FC), parts("user", FR)]),
    ],
    "Bedrock converse": [
        ("first turn", BEDROCK, [turn("assistant", {"text": "x"})]),
        ("two turns", BEDROCK, [turn("user", {"text": "x"}), turn("user", {"text": "x"})]),
        ("orphan", BEDROCK, [turn("user", TOOL_RESULT)]),
        ("no result", BEDROCK, [turn("user", {"text": "x"}), turn("assistant", TOOL_USE)]),
    ],
}  # fmt: skip
FLAT = [(table, *each) for table, rules in BROKEN.items() for each in rules]


def request(path: str, history: list[Any]) -> dict[str, Any]:
    if path == CHAT:
        return {"model": "gpt-4o", "messages": history}
    if path == RESPONSES:
        return {"model": "gpt-5", "input": history}
    if path == MESSAGES:
        return {"model": "claude-sonnet-4-6", "max_tokens": 99, "messages": history}
    return {"messages" if path == BEDROCK else "contents": history}


def refused(path: str, history: list[Any], model: Any = None) -> tuple[int, Any]:
    status, _, text = asked(model or lab.scripted(["Yes."]), path, request(path, deepcopy(history)))
    return status, json.loads(text)


@pytest.mark.parametrize(("table", "rule", "path", "history"), FLAT)
def test_a_broken_history_is_refused_in_the_words_of_its_rule(table: str, rule: str, path: str, history: Any) -> None:
    words = TABLES[table][rule].words.split("{")[0]
    for model in (lab.scripted(["Yes."]), lab.offline_model()):
        status, said = refused(path, history, model)
        assert status == 400
        error = said.get("error", said)
        assert error["message"].startswith(words), error
        if "code" in error and path in (CHAT, RESPONSES):
            assert error["code"] == TABLES[table][rule].code
            assert ("param" in error, bool(error["param"])) == (True, True)


def test_each_rule_is_tried_and_has_a_report() -> None:
    for name, table in TABLES.items():
        assert {rule for rule, _, _ in BROKEN[name]} == set(table)
        assert all(rule.source.startswith("https://github.com/") for rule in table.values())


SIGNED = {**FC, "thoughtSignature": "c2lnbmVk"}
WHOLE: list[tuple[str, list[Any]]] = [
    (CHAT, [USER, made(call("c" * 64), call("call_2")), tool("call_2"), tool("c" * 64), SAID, USER]),
    (CHAT, [USER, made(call()), tool(), made(call()), tool()]),  # an id again, in another turn
    (CHAT, [USER, {"role": "assistant", "content": None, "refusal": "No."}, USER]),
    (CHAT, [USER, {**SAID, "tool_calls": None}]),
    (RESPONSES, [USER, THOUGHT, asks(id="fc_1"), output(), {**SAID, "type": "message", "id": "msg_1"}, USER]),
    (RESPONSES, [USER, THOUGHT, {**THOUGHT, "id": "rs_2"}, asks(), output()]),
    (MESSAGES, [USER, turn("assistant", thinks(signature="c2lnbmVk"), use()), turn("user", result(), TEXT)]),
    (MESSAGES, [USER, turn("assistant", TEXT, use(), use("toolu_2")), turn("user", result("toolu_2"), result())]),
    (GEMINI, [parts("user", "hi"), parts("model", "x"), parts("user", ""), parts("model", "x")]),
    (GEMINI_3, [parts("user", "hi"), parts("model", SIGNED, FC), parts("user", FR, FR)]),
    (GEMINI_3, [parts("user", "hi"), parts("model", FC), parts("user", FR), parts("model", "x"), parts("user", "y")]),
    (BEDROCK, [turn("user", {"text": "x"}), turn("assistant", TOOL_USE), turn("user", TOOL_RESULT)]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "history"), WHOLE)
def test_a_whole_history_passes(path: str, history: Any) -> None:
    assert refused(path, history)[0] == 200, refused(path, history)


@pytest.mark.parametrize(
    ("model", "status"),
    [
        ("claude-opus-4-5", 200), ("claude-opus-4-20250514", 200), ("claude-3-7-sonnet-latest", 200), ("mine", 200),
        ("claude-opus-4-6", 400), ("claude-sonnet-4-6-20260201", 400), ("claude-sonnet-5", 400),
    ],
)  # fmt: skip
def test_a_last_turn_of_the_models_own_depends_on_the_model(model: str, status: int) -> None:
    body = {"model": model, "max_tokens": 99, "messages": [USER, SAID]}
    assert asked(lab.scripted(["Yes."]), MESSAGES, body)[0] == status


def test_gemini_3_signs_its_calls_and_takes_them_back() -> None:
    model = lab.scripted([[lab.call("pay"), lab.call("pay")], "Paid."])
    body: dict[str, Any] = {"contents": [parts("user", "hi")]}
    said = json.loads(asked(model, GEMINI_3, body)[2])["candidates"][0]["content"]
    assert ["thoughtSignature" in part for part in said["parts"]] == [True, False]
    body["contents"] += [said, parts("user", FR, FR)]
    assert asked(model, GEMINI_3, body)[0] == 200


def test_the_mock_model_refuses_too() -> None:
    from werkzeug.test import Client

    from chaoslab.model.endpoint import create_app

    reply = Client(create_app()).post(CHAT, json=request(CHAT, [USER, tool()]))
    assert (reply.status_code, reply.get_json()["error"]["param"]) == (400, "messages.[1].role")


def test_a_conversation_without_a_message_is_refused_as_its_provider_does() -> None:
    status, said = refused(BEDROCK, [])
    assert (status, said["message"]) == (
        400, "The messages field is empty: a conversation must start with a user message."
    )  # fmt: skip
