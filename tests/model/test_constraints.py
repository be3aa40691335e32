"""The offline model obeys what a request demands of its answer, and refuses what it does not obey."""

import json
from typing import Any

import jsonschema
import pytest

import chaoslab as lab
from chaoslab.model import app
from chaoslab.model.formats import find_format
from tests.model.test_formats import CHAT, GEMINI, MESSAGES, RESPONSES, STREAM, asked, value

BEDROCK, GROQ = "/model/m/converse", "/openai/v1/chat/completions"
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
REFUND = {
    "type": "object",
    "properties": {"order": {"type": "integer", "minimum": 1}, "why": {"type": "string", "minLength": 3}},
    "required": ["order", "why"],
}
TOOLS = {"current_weather": WEATHER, "refund": REFUND}
ASK = "What is the weather in Oslo and in Rome?"
OBEYS = lab.offline_model()


def request(path: str, said: str = ASK, *, tools: bool = True, **more: Any) -> dict[str, Any]:
    """A request in the format of the path."""
    functions = [{"name": name, "description": name, "parameters": each} for name, each in TOOLS.items()]
    message: dict[str, Any] = {"role": "user", "content": said}
    if path in (CHAT, GROQ):
        body: dict[str, Any] = {"model": "m", "messages": [message]}
        offered: Any = {"tools": [{"type": "function", "function": each} for each in functions]}
    elif path == RESPONSES:
        body, offered = {"model": "m", "input": said}, {"tools": [{"type": "function", **each} for each in functions]}
    elif path == MESSAGES:
        body = {"model": "m", "max_tokens": 999, "messages": [message]}
        offered = {"tools": [{"name": name, "input_schema": each} for name, each in TOOLS.items()]}
    elif path == BEDROCK:
        body = {"messages": [{"role": "user", "content": [{"text": said}]}]}
        specs = [{"name": name, "inputSchema": {"json": each}} for name, each in TOOLS.items()]
        offered = {"toolConfig": {"tools": [{"toolSpec": each} for each in specs]}}
    else:
        body = {"contents": [{"role": "user", "parts": [{"text": said}]}]}
        offered = {"tools": [{"functionDeclarations": functions}]}
    found = {**body, **(offered if tools else {})}
    for key, each in more.items():
        found[key] = {**found[key], **each} if isinstance(found.get(key), dict) else each
    return found


def heard(path: str, body: Any) -> Any:
    """The answer as the lab reads it."""
    format_ = find_format(path)
    assert format_ is not None
    return format_.read_whole_reply(value(OBEYS, path, body))


NAMED: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"tool_choice": {"type": "function", "function": {"name": "refund"}}}),
    (GROQ, {"tool_choice": {"type": "function", "function": {"name": "refund"}}}),
    (RESPONSES, {"tool_choice": {"type": "function", "name": "refund"}}),
    (MESSAGES, {"tool_choice": {"type": "tool", "name": "refund"}}),
    (GEMINI, {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["refund"]}}}),
    (BEDROCK, {"toolConfig": {"toolChoice": {"tool": {"name": "refund"}}}}),
]


@pytest.mark.parametrize(("path", "choice"), NAMED)
def test_the_tool_that_is_chosen_is_called_with_arguments_of_its_schema(path: str, choice: dict[str, Any]) -> None:
    ((name, arguments),) = heard(path, request(path, **choice)).calls.values()
    assert name == "refund"
    jsonschema.validate(json.loads(arguments), REFUND)


@pytest.mark.parametrize(
    ("path", "choice"),
    [
        (CHAT, {"tool_choice": "required"}), (GROQ, {"tool_choice": "required"}),
        (RESPONSES, {"tool_choice": "required"}), (MESSAGES, {"tool_choice": {"type": "any"}}),
        (BEDROCK, {"toolConfig": {"toolChoice": {"any": {}}}}),
        (GEMINI, {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
        (CHAT, {"tool_choice": {"type": "allowed_tools", "allowed_tools": {
            "mode": "required", "tools": [{"type": "function", "function": {"name": "refund"}}]}}}),
    ],
)  # fmt: skip
def test_a_call_that_is_demanded_is_made(path: str, choice: dict[str, Any]) -> None:
    assert not heard(path, request(path, "Hello")).calls
    assert heard(path, request(path, "Hello", **choice)).calls


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (CHAT, {"parallel_tool_calls": False}), (RESPONSES, {"parallel_tool_calls": False}),
        (MESSAGES, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
    ],
)  # fmt: skip
def test_one_call_at_a_time(path: str, more: dict[str, Any]) -> None:
    assert len(heard(path, request(path)).calls) == 2
    assert len(heard(path, request(path, **more)).calls) == 1


SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"said": {"type": "string"}, "sure": {"type": "boolean"}},
     "required": ["said", "sure"], "additionalProperties": False},
    {"type": "object", "properties": {"kind": {"enum": ["b", "a"]}, "n": {"type": "integer", "exclusiveMinimum": 3}},
     "required": ["kind", "n"]},
    {"type": "object", "properties": {"n": {"type": "number", "minimum": 0.5, "maximum": 0.75}}, "required": ["n"]},
    {"type": "object", "properties": {"n": {"type": "integer", "maximum": -2, "multipleOf": 5}}, "required": ["n"]},
    {"type": "object", "properties": {"day": {"type": "string", "format": "date"},
                                      "zip": {"type": "string", "pattern": "^[0-9]{5}$"}}, "required": ["day", "zip"]},
    {"type": "object", "properties": {"all": {"type": "array", "items": {"$ref": "#/$defs/one"}, "minItems": 2}},
     "required": ["all"], "$defs": {"one": {"type": "object", "properties": {"a": {"const": 7}}, "required": ["a"]}}},
    {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["next"]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "string", "maxLength": 2}}, "required": ["a"]},
               {"properties": {"b": {"type": ["null", "string"], "minLength": 4}}, "required": ["b"]}]},
    {"type": "array", "items": {"type": "string"}}, {"type": "string", "minLength": 200}, {"type": "null"},
    {"type": "object", "required": ["any"]},
]  # fmt: skip
FORMS: list[tuple[str, Any]] = [
    (CHAT, lambda schema: {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}),
    (GROQ, lambda schema: {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}),
    (RESPONSES, lambda schema: {"text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}}),
    (MESSAGES, lambda schema: {"output_config": {"format": {"type": "json_schema", "schema": schema}}}),
    (GEMINI, lambda s: {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": s}}),
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_an_answer_has_the_form_of_its_schema(schema: Any) -> None:
    for path, form in FORMS:
        said = json.loads(heard(path, request(path, "Hello", **form(schema))).text)
        jsonschema.validate(said, schema)


def test_the_models_words_stand_in_the_first_free_text_of_the_form() -> None:
    said = json.loads(heard(CHAT, request(CHAT, "Hello", **FORMS[0][1](SCHEMAS[0]))).text)
    assert said == {"said": heard(CHAT, request(CHAT, "Hello")).text, "sure": False}


def test_any_json_is_asked_for_by_its_name() -> None:
    form: dict[str, Any] = {"response_format": {"type": "json_object"}}
    assert isinstance(json.loads(heard(CHAT, request(CHAT, "Say hello in JSON", **form)).text), dict)
    status, _, text = asked(OBEYS, CHAT, request(CHAT, "Hello", **form))
    assert (status, "must contain the word 'json'" in json.loads(text)["error"]["message"]) == (400, True)


LENGTHS: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, {"max_tokens": 3}, "length"), (CHAT, {"max_completion_tokens": 3}, "length"),
    (RESPONSES, {"max_output_tokens": 16}, "max_output_tokens"), (MESSAGES, {"max_tokens": 3}, "max_tokens"),
    (GEMINI, {"generationConfig": {"maxOutputTokens": 3}}, "MAX_TOKENS"),
    (BEDROCK, {"inferenceConfig": {"maxTokens": 3}}, "max_tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "more", "reason"), LENGTHS)
def test_an_answer_ends_at_its_length(path: str, more: dict[str, Any], reason: str) -> None:
    full, cut = heard(path, request(path, tools=False)), heard(path, request(path, tools=False, **more))
    assert full.text.startswith(cut.text)
    assert len(cut.text) == (64 if path == RESPONSES else 12) < len(full.text)
    assert cut.reason == reason
    tools = heard(path, request(path, **more))
    assert len(tools.calls) < 2
    assert tools.reason == reason


@pytest.mark.parametrize(
    ("path", "more", "reason"),
    [
        (CHAT, {"stop": " "}, "stop"), (CHAT, {"stop": ["zzz", " "]}, "stop"),
        (MESSAGES, {"stop_sequences": [" "]}, "stop_sequence"),
        (GEMINI, {"generationConfig": {"stopSequences": [" "]}}, "STOP"),
        (BEDROCK, {"inferenceConfig": {"stopSequences": [" "]}}, "stop_sequence"),
    ],
)  # fmt: skip
def test_an_answer_ends_before_its_stop(path: str, more: dict[str, Any], reason: str) -> None:
    found = heard(path, request(path, "Hello", **more))
    assert found.text
    assert " " not in found.text
    assert found.reason == reason


def test_the_sequence_that_ended_an_answer_is_named() -> None:
    assert value(OBEYS, MESSAGES, request(MESSAGES, "Hello", stop_sequences=["zzz", " "]))["stop_sequence"] == " "


@pytest.mark.parametrize("streamed", [False, True])
def test_as_many_answers_come_as_were_asked_for(streamed: bool) -> None:
    status, _, text = asked(OBEYS, CHAT, request(CHAT, "Hello", n=3, stream=streamed))
    format_ = find_format(CHAT)
    assert format_ is not None
    found = format_.read_streamed_reply(text) if streamed else format_.read_whole_reply(json.loads(text))
    assert (status, len(found.others)) == (200, 2)
    assert {each.text for each in found.others.values()} == {found.text}


def test_a_cut_answer_is_cut_in_a_stream_too() -> None:
    for path, body, query in (
        (CHAT, request(CHAT, tools=False, max_tokens=3, stream=True), ""),
        (RESPONSES, request(RESPONSES, tools=False, max_output_tokens=16, stream=True), ""),
        (MESSAGES, request(MESSAGES, "Hello", max_tokens=3, stream=True), ""),
        (STREAM, request(GEMINI, "Hello", generationConfig={"maxOutputTokens": 3}), "alt=sse"),
    ):
        format_ = find_format(path)
        assert format_ is not None
        found = format_.read_streamed_reply(asked(OBEYS, path, body, query=query)[2])
        assert found.reason in ("length", "max_tokens", "max_output_tokens", "MAX_TOKENS"), path


STRICT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}
UNOBEYED: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, {"functions": [{"name": "f"}]}, "Unsupported parameter: 'functions'"),
    (CHAT, {"logprobs": True}, "Unsupported parameter: 'logprobs'"),
    (CHAT, {"max_tokens": 0}, "Expected a value >= 1, but got 0"),
    (CHAT, {"max_tokens": "9"}, "Invalid type for 'max_tokens'"),
    (CHAT, {"n": 129}, "Expected a value <= 128"),
    (CHAT, {"stop": list("abcde")}, "Invalid 'stop': array too long"),
    (CHAT, {"tool_choice": "any"}, "Invalid value: 'any'"),
    (CHAT, {"tool_choice": {"type": "function", "function": {"name": "pay"}}}, "Tool choice 'pay' not found"),
    (CHAT, {"response_format": {"type": "xml"}}, "expected a JSON schema"),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"strict": True, "name": "x", "schema": STRICT}}},
     "'additionalProperties' is required to be supplied and to be false"),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {
        "strict": True, "name": "x", "schema": {**STRICT, "additionalProperties": False}}}}, "Missing 'a'"),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"strict": True, "name": "x", "schema": {
        "type": "object", "required": ["a"], "additionalProperties": False,
        "properties": {"a": {"items": {"anyOf": [{"type": "null"}, STRICT]}}}}}}},
     "In context=('properties', 'a', 'items', 'anyOf')"),
    (CHAT, FORMS[0][1]({"type": "object", "properties": {"a": {"type": "string", "pattern": "^q{7}z$"}},
                        "required": ["a"]}), "'pattern' is not permitted"),
    (CHAT, FORMS[0][1]({"anyOf": [{"type": "string", "pattern": "^q{7}z$"}]}), "'pattern' is not permitted"),
    (CHAT, FORMS[0][1]({"$ref": "#/$defs/none"}), "'$ref' is not permitted"),
    (CHAT, {"stop": 7}, "Invalid type for 'stop'"),
    (GROQ, {"n": 2}, "'n' : number must be at most 1"),
    (RESPONSES, {"max_output_tokens": 10}, "Expected a value >= 16, but got 10"),
    (RESPONSES, {"background": True}, "Unsupported parameter: 'background'"),
    (MESSAGES, {"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
    (MESSAGES, {"tool_choice": {"type": "tool", "name": "pay"}}, "Tool 'pay' not found"),
    (MESSAGES, {"tool_choice": {"type": "any"}, "thinking": {"type": "enabled", "budget_tokens": 1024}},
     "Thinking may not be enabled when tool_choice forces tool use."),
    (GEMINI, {"generationConfig": {"stopSequences": 7}}, "stopSequences: value must be an array of strings"),
    (GEMINI, {"generationConfig": {"candidateCount": 2}}, "Multiple candidates is not enabled"),
    (GEMINI, {"generationConfig": {"responseMimeType": "text/x.enum"}}, "mime type"),
    (GEMINI, {"generationConfig": {"maxOutputTokens": 0}}, "max_output_tokens must be positive"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "more", "words"), UNOBEYED)
def test_what_is_not_obeyed_is_refused(path: str, more: dict[str, Any], words: str) -> None:
    status, _, text = asked(OBEYS, path, request(path, "Hello", **more))
    assert (status, words in json.loads(text)["error"]["message"]) == (400, True), text


@pytest.mark.parametrize("key", ["tool_choice", "parallel_tool_calls"])
def test_a_choice_among_no_tools_is_refused(key: str) -> None:
    body = request(CHAT, "Hello", tools=False, **{key: "auto" if key == "tool_choice" else True})
    error = json.loads(asked(OBEYS, CHAT, body)[2])["error"]
    assert (error["param"], "only allowed when 'tools' are specified" in error["message"]) == (key, True)
    assert asked(OBEYS, GROQ, body)[0] == 200


def test_a_script_says_what_it_says() -> None:
    assert "one two three" in asked(lab.scripted(["one two three"]), CHAT, request(CHAT, max_tokens=1))[2].decode()


# Legacy completions and stored responses.


def test_completions_are_refused_as_a_chat_model_refuses_them() -> None:
    status, _, text = asked(OBEYS, "/v1/completions", {"model": "gpt-4o", "prompt": "x"})
    error = json.loads(text)["error"]
    assert (status, error["param"], "v1/chat/completions?" in error["message"]) == (404, "model", True)


def test_so_many_responses_are_kept_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "KEPT_MAX", 2)
    model = lab.offline_model()
    paths = [f"{RESPONSES}/{value(model, RESPONSES, request(RESPONSES, f'Hello {n}'))['id']}" for n in range(3)]
    assert [asked(model, path, method="GET")[0] for path in paths] == [404, 200, 200]


def test_a_response_is_kept_and_can_be_got_and_deleted() -> None:
    model = lab.offline_model()
    first = value(model, RESPONSES, request(RESPONSES))
    path = f"{RESPONSES}/{first['id']}"
    assert value(model, path, method="GET") == first
    assert value(model, f"{path}/input_items", method="GET")["data"][0]["content"] == ASK
    calls = [item for item in first["output"] if item["type"] == "function_call"]
    outputs = [{"type": "function_call_output", "call_id": call["call_id"], "output": "{}"} for call in calls]
    second = value(model, RESPONSES, {**request(RESPONSES), "previous_response_id": first["id"], "input": outputs})
    assert second["previous_response_id"] == first["id"]
    by_reference = [{"type": "item_reference", "id": call["id"]} for call in calls]
    again = {**request(RESPONSES), "input": [{"role": "user", "content": ASK}, *by_reference, *outputs]}
    assert b"function_call" not in asked(model, RESPONSES, again)[2]  # both calls of the turn have their results
    assert asked(model, path, method="PUT")[0] == 405
    assert value(model, path, method="DELETE") == {"id": first["id"], "object": "response", "deleted": True}
    assert asked(model, path, method="GET")[0] == 404
    gone = {**request(RESPONSES), "previous_response_id": first["id"]}
    assert b"not found" in asked(model, RESPONSES, gone)[2]


def test_a_response_that_is_not_stored_is_not_found() -> None:
    model = lab.offline_model()
    first = value(model, RESPONSES, {**request(RESPONSES, "Hello"), "store": False})
    assert asked(model, f"{RESPONSES}/{first['id']}", method="GET")[0] == 404
    assert asked(model, RESPONSES, {**request(RESPONSES, "Hello"), "previous_response_id": first["id"]})[0] == 400
