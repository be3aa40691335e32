"""A script whose calls did not arrive as they were said gives them again to a client that asks again, as it fails."""

import json
from typing import Any

import pytest

import chaoslab as lab

OPENAI, ANTHROPIC = "api.openai.com", "api.anthropic.com"
SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
SCRIPT = [lab.call("refund", order=17), "Refunded."]
DONE: list[int] = []


def refund(order: int) -> str:
    DONE.append(order)
    return "ok"


def by_openai(prompt: str) -> str:
    """Sends what it cannot use back with the reason, as instructor does."""
    import openai

    client = openai.OpenAI(api_key="x", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": prompt}]
    tools: Any = [{"type": "function", "function": {"name": "refund", "parameters": SCHEMA}}]
    done = False
    for _ in range(6):
        try:
            said: Any = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
            text, calls = said.content, said.tool_calls or []
        except Exception as error:  # noqa: BLE001 - of an answer that is no JSON the SDK raises what it likes
            messages.append({"role": "user", "content": f"That failed: {error}"})
            continue
        if done and not calls:
            return text or ""
        messages.append({"role": "assistant", "content": text, "tool_calls": [call.model_dump() for call in calls]})
        if not calls:
            del messages[-1]["tool_calls"]
            messages.append({"role": "user", "content": "Validation error: no tool call found"})
        for call in calls:
            try:
                arguments = json.loads(call.function.arguments)
                result = {"refund": refund}[call.function.name](**arguments)
                done = True
            except (ValueError, LookupError, TypeError) as error:
                result = f"Validation error: {error}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return "I gave up."


def by_anthropic(prompt: str) -> str:
    import anthropic

    client = anthropic.Anthropic(api_key="x", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": prompt}]
    tools: Any = [{"name": "refund", "description": "", "input_schema": SCHEMA}]
    for _ in range(6):
        said = client.messages.create(model="m", max_tokens=100, messages=messages, tools=tools).content
        calls = [block for block in said if block.type == "tool_use"]
        if not calls:
            return said[0].text if said and said[0].type == "text" else ""
        messages.append({"role": "assistant", "content": [block.model_dump() for block in said]})
        results = []
        for call in calls:
            arguments: Any = call.input
            fits = call.name == "refund" and isinstance(arguments.get("order"), int)
            told = refund(**arguments) if fits else "Validation error: order"
            results.append({"type": "tool_result", "tool_use_id": call.id, "content": told, "is_error": not fits})
        messages.append({"role": "user", "content": results})
    return "I gave up."


def run(agent: Any, host: str, fault: str, script: Any = None, **more: Any) -> lab.Trial:
    DONE.clear()
    return lab.run(
        agent, "Refund order 17", tools=[refund], services={host: lab.scripted(script or SCRIPT)},
        faults=[lab.inject(fault, host, **{"calls": [1], **more})], effects=[{"effect": "refund", "order": 17}],
    )  # fmt: skip


@pytest.mark.parametrize(
    "fault",
    ["malformed_arguments", "missing_arguments", "unknown_tool", "empty_answer", "refusal", "html_instead_of_json",
     "lost_reply", "empty_response"],
)  # fmt: skip
def test_calls_that_did_not_arrive_are_said_again_to_who_asks_again_with_the_error(fault: str) -> None:
    trial = run(by_openai, OPENAI, fault)
    assert (trial.answer, DONE, trial.warnings) == ("Refunded.", [17], ())
    assert trial.outcome is lab.Outcome.UNKNOWN  # it was sent more than without the fault, and reads none of it
    assert trial.why.startswith(f"only a script was told what came of {fault} on {OPENAI}"), trial.story()


@pytest.mark.parametrize("fault", ["malformed_arguments", "missing_arguments", "unknown_tool"])
def test_a_call_that_is_said_again_has_an_id_of_its_own(fault: str) -> None:
    assert (run(by_anthropic, ANTHROPIC, fault).answer, DONE) == ("Refunded.", [17])


@pytest.mark.parametrize("fault", ["wrong_arguments", "duplicate_calls"])
def test_a_call_that_was_made_is_not_said_again(fault: str) -> None:
    run(by_openai, OPENAI, fault)
    assert len(DONE) == (1 if fault == "wrong_arguments" else 2)


def test_of_several_calls_only_the_lost_ones_are_said_again() -> None:
    script = [[lab.call("refund", order=17), lab.call("refund", order=18)], "Refunded."]
    trial = run(by_openai, OPENAI, "malformed_arguments", script)
    assert (trial.answer, sorted(DONE)) == ("Refunded.", [17, 18])


def test_an_agent_that_asks_again_for_ever_is_hung_and_the_script_stays_where_it_is() -> None:
    def agent(prompt: str) -> str:
        import openai

        client = openai.OpenAI(api_key="x", max_retries=0)
        messages: list[Any] = [{"role": "user", "content": prompt}]
        tools: Any = [{"type": "function", "function": {"name": "refund", "parameters": SCHEMA}}]
        while True:
            client.chat.completions.create(model="m", messages=messages, tools=tools)
            messages.append({"role": "user", "content": "again"})

    trial = run(agent, OPENAI, "refusal", calls=())
    assert trial.outcome is lab.Outcome.HUNG
    assert "asked again and again (100 requests to models in one trial)" in trial.why
    assert not any("ran out" in warning for warning in trial.warnings)
