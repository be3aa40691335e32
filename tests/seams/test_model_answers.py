"""Faults of what a model says, met by the real SDKs: they take each answer as they take a provider's."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import chaoslab as lab
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKED = "How warm is it in Paris?"
Seen = tuple[str | None, list[tuple[str, Any]], str]
"""The text, the calls with their arguments, and the reason of the end, as the SDK gives them."""


def by_openai_chat(_: str) -> Seen:
    import openai

    tool: Any = {"type": "function", "function": {"name": "current_weather", "parameters": WEATHER}}
    done = openai.OpenAI(api_key="none").chat.completions.create(
        model="gpt-5", messages=[{"role": "user", "content": ASKED}], tools=[tool]
    )
    choice = done.choices[0]
    calls: list[Any] = choice.message.tool_calls or []
    made = [(call.function.name, call.function.arguments) for call in calls]
    assert len({call.id for call in calls}) == len(calls)
    return choice.message.content, made, choice.finish_reason


def by_openai_responses(_: str) -> Seen:
    import openai

    tool: Any = {"type": "function", "name": "current_weather", "parameters": WEATHER, "strict": False}
    done = openai.OpenAI(api_key="none").responses.create(model="gpt-5", input=ASKED, tools=[tool])
    calls = [item for item in done.output if item.type == "function_call"]
    assert len({call.call_id for call in calls}) == len(calls)
    why = done.incomplete_details.reason if done.incomplete_details else done.status
    return done.output_text or None, [(call.name, call.arguments) for call in calls], str(why)


def by_anthropic(_: str) -> Seen:
    import anthropic

    tool: Any = {"name": "current_weather", "input_schema": WEATHER}
    done = anthropic.Anthropic(api_key="none").messages.create(
        model="claude-next", max_tokens=99, messages=[{"role": "user", "content": ASKED}], tools=[tool]
    )
    text = "".join(block.text for block in done.content if block.type == "text")
    calls = [block for block in done.content if block.type == "tool_use"]
    assert len({call.id for call in calls}) == len(calls)
    return text or None, [(call.name, json.dumps(call.input)) for call in calls], str(done.stop_reason)


def by_openai_chat_stream(_: str) -> Seen:
    import openai

    tool: Any = {"type": "function", "function": {"name": "current_weather", "parameters": WEATHER}}
    with openai.OpenAI(api_key="none").chat.completions.stream(
        model="gpt-5", messages=[{"role": "user", "content": ASKED}], tools=[tool]
    ) as stream:
        for _event in stream:
            pass
        choice = stream.current_completion_snapshot.choices[0]
    made = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
    return choice.message.content or None, made, str(choice.finish_reason)


def by_openai_responses_stream(_: str) -> Seen:
    import openai

    tool: Any = {"type": "function", "name": "current_weather", "parameters": WEATHER, "strict": False}
    texts, calls, why = "", list[tuple[str, Any]](), ""
    for event in openai.OpenAI(api_key="none").responses.create(model="gpt-5", input=ASKED, tools=[tool], stream=True):
        if event.type == "response.output_text.delta":
            texts += event.delta
        elif event.type == "response.output_item.done" and event.item.type == "function_call":
            calls.append((event.item.name, event.item.arguments))
        elif event.type in ("response.completed", "response.incomplete"):
            response = event.response
            why = str(response.incomplete_details.reason if response.incomplete_details else response.status)
            assert response.output_text == texts
    return texts or None, calls, why


def by_anthropic_stream(_: str) -> Seen:
    import anthropic

    tool: Any = {"name": "current_weather", "input_schema": WEATHER}
    with anthropic.Anthropic(api_key="none").messages.stream(
        model="claude-next", max_tokens=99, messages=[{"role": "user", "content": ASKED}], tools=[tool]
    ) as stream:
        said = list[str]()
        for event in stream:
            if event.type == "input_json":
                said.append(event.partial_json)
        done = stream.get_final_message()
    text = "".join(block.text for block in done.content if block.type == "text")
    calls = [(block.name, json.dumps(block.input)) for block in done.content if block.type == "tool_use"]
    return text or None, calls, str(done.stop_reason)


SDKS: dict[str, tuple[Callable[[str], Seen], str, str, str, str]] = {
    "chat": (by_openai_chat, "api.openai.com", "stop", "length", "content_filter"),
    "responses": (by_openai_responses, "api.openai.com", "completed", "max_output_tokens", "content_filter"),
    "anthropic": (by_anthropic, "api.anthropic.com", "end_turn", "max_tokens", "refusal"),
    "chat stream": (by_openai_chat_stream, "api.openai.com", "stop", "length", "content_filter"),
    "responses stream": (
        by_openai_responses_stream, "api.openai.com", "completed", "max_output_tokens", "content_filter",
    ),
    "anthropic stream": (by_anthropic_stream, "api.anthropic.com", "end_turn", "max_tokens", "refusal"),
}  # fmt: skip
"""The agent, its host, and the words for an answer that ended as usual, was too long, and was filtered."""
CALL = ("current_weather", '{"city": "Paris"}')


def seen(name: str, fault: str, **params: Any) -> Seen:
    agent, host, *_ = SDKS[name]
    trial = lab.run(
        agent, ASKED, services={host: lab.offline_model()}, faults=[lab.inject(fault, host, **params)], twin=False
    )
    assert trial.error is None, trial.story()
    assert "witnessed" in trial.story()
    found: Seen = trial.answer
    return found


@pytest.mark.parametrize("name", SDKS)
def test_each_sdk_takes_each_answer_for_the_models_own(name: str) -> None:
    _, _, usual, long, filtered = SDKS[name]
    tools = {"chat": "tool_calls", "responses": "completed", "anthropic": "tool_use"}[name.partition(" ")[0]]
    assert seen(name, "empty_answer") == ("" if name == "chat" else None, [], usual)
    assert seen(name, "refusal", text="No.") == ("No.", [], usual)
    assert seen(name, "confabulation", instead_of_calls=True) == ("It is 4711.", [], usual)
    assert seen(name, "finish_length")[1:] == ([], long)
    assert seen(name, "content_filter")[1:] == ([], filtered)
    assert seen(name, "unknown_tool", called="warmth") == (None, [("warmth", CALL[1])], tools)
    assert seen(name, "missing_arguments") == (None, [("current_weather", "{}")], tools)
    assert seen(name, "duplicate_calls") == (None, [CALL, CALL], tools)
    assert seen(name, "duplicate_calls", times=4) == (None, [CALL] * 4, tools)


@pytest.mark.parametrize("name", SDKS)
def test_each_sdk_takes_a_call_that_was_cut_for_its_length(name: str) -> None:
    _, ((called, arguments),), why = seen(name, "finish_length", tool_calls="cut", part=0.5)
    assert (called, why) == (CALL[0], SDKS[name][3])
    assert arguments != CALL[1]


@pytest.mark.parametrize("name", ["chat stream", "responses stream", "anthropic stream"])
def test_a_stream_that_ends_in_the_middle_of_arguments_says_that_it_is_complete(name: str) -> None:
    text, ((called, _),), why = seen(name, "cut_arguments")
    tools = {"chat": "tool_calls", "responses": "completed", "anthropic": "tool_use"}[name.partition(" ")[0]]
    assert (text, called, why) == (None, CALL[0], tools)


@pytest.mark.parametrize("name", ["chat", "responses", "chat stream", "responses stream"])
def test_arguments_that_are_no_json_come_as_they_are(name: str) -> None:
    ((_, arguments),) = seen(name, "malformed_arguments", part=0.5)[1]
    assert arguments == CALL[1][: len(CALL[1]) // 2]


def test_arguments_that_are_objects_come_with_a_value_of_another_type() -> None:
    ((_, arguments),) = seen("anthropic", "malformed_arguments")[1]
    assert arguments == '{"city": ["Paris"]}'


def test_arguments_that_are_no_text_are_refused_before_anything_starts() -> None:
    gemini = "generativelanguage.googleapis.com"
    line = f"cut_arguments works on the text of arguments, and those of {gemini} are objects: inject malformed_argum"
    with pytest.raises(ValueError, match=line):
        lab.run(str, "x", services={gemini: lab.offline_model()}, faults=[lab.inject("cut_arguments", gemini)])


@pytest.mark.parametrize("fault", ["empty_answer", "unknown_tool"])
def test_what_is_no_model_is_refused_before_anything_starts(fault: str) -> None:
    def get_order(order: int) -> int:
        return order

    with pytest.raises(ValueError, match=f"{fault} works on the answers of a model, and get_order is no model"):
        lab.run(lambda _: get_order(1), "x", reads=[get_order], faults=[lab.inject(fault, "get_order")])


def goes_on(_: str) -> str:
    """Goes on from a response that the provider keeps: with an output for each call, or with another word."""
    import openai

    tool: Any = {"type": "function", "name": "current_weather", "parameters": WEATHER, "strict": False}
    client = openai.OpenAI(api_key="none")
    first = client.responses.create(model="gpt-5", input=ASKED, tools=[tool])
    calls = [item.call_id for item in first.output if item.type == "function_call"]
    outputs: Any = [{"type": "function_call_output", "call_id": call, "output": "21"} for call in calls]
    then = outputs or [{"role": "user", "content": "Thanks."}]
    client.responses.create(model="gpt-5", input=then, tools=[tool], previous_response_id=first.id)
    return str(len(calls))


@pytest.mark.parametrize(("fault", "calls"), [("duplicate_calls", "2"), ("refusal", "0"), ("wrong_arguments", "1")])
def test_the_providers_memory_holds_what_its_client_heard(fault: str, calls: str) -> None:
    """Else it would refuse the results of calls that a fault put in, and ask for those of calls that it took away."""
    host, model = "api.openai.com", lab.scripted([lab.call("current_weather", city="Paris"), "It is warm."])
    faults = [lab.inject(fault, host, calls=[1])]
    trial = lab.run(goes_on, ASKED, services={host: model}, faults=faults, twin=False)
    assert (trial.error, trial.answer) == (None, calls)
