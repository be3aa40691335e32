"""Faults of the context, met by real SDKs: each provider's format takes what is left of the conversation."""

import json
from typing import Any

import pytest

import chaoslab as lab
from tests.seams.model_parts import AGENTS, OPENAI, refund
from tests.seams.test_model_services import PROMPT, witnessed
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


def trial_with(agent: str, fault: str, **more: Any) -> lab.Trial:
    ask, host = AGENTS[agent]
    faults = [lab.inject(fault, host, **more)]
    return lab.run(ask, PROMPT, services={host: lab.offline_model()}, tools=[refund], faults=faults, twin=False)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("fault", ["duplicate_context", "overflow_context", "garble_input"])
def test_every_sdk_gets_an_answer_from_a_damaged_context(agent: str, fault: str) -> None:
    said = 1 if agent == "openai responses" else 2  # its later requests hold only what is new
    trial = trial_with(agent, fault, calls=[said])
    assert trial.error is None
    assert witnessed(trial) == ["the changed call was sent"]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_cut_request_is_not_understood_and_nothing_is_refunded(agent: str) -> None:
    trial = trial_with(agent, "garble_input", kind="cut")
    assert trial.error is None
    assert trial.effects == []
    assert witnessed(trial)


@pytest.mark.filterwarnings("ignore:.*changed nothing:chaoslab.NothingHit")
def test_a_conversation_that_has_no_older_turn_is_left_alone() -> None:
    for fault in ("reorder_context", "drop_context", "compact_context"):
        trial = trial_with("openai chat", fault)
        assert (trial.answer, witnessed(trial)) == ("Refund: order 17 is refunded.", [])


HISTORY = [
    {"role": "user", "content": "Frühstück?"},
    {"role": "assistant", "content": "At eight."},
    {"role": "user", "content": "Lunch?"},
    {"role": "assistant", "content": "At one."},
    {"role": "user", "content": "Dinner?"},
]


@pytest.mark.parametrize("fault", ["reorder_context", "drop_context", "compact_context", "garble_context"])
def test_a_long_conversation_is_damaged_and_still_answered(fault: str) -> None:
    def agent(_: str) -> str:
        import openai

        client = openai.OpenAI(base_url=f"http://{OPENAI}/v1", api_key="none")
        messages: Any = HISTORY
        return str(client.chat.completions.create(model="gpt-4o", messages=messages).choices[0].message.content)

    faults = [lab.inject(fault, OPENAI)]
    trial = lab.run(agent, PROMPT, services={OPENAI: lab.scripted(["At seven."])}, faults=faults, twin=False)
    assert (trial.answer, witnessed(trial)) == ("At seven.", ["the changed call was sent"])


def test_an_old_result_stands_in_one_request_and_the_next_one_holds_the_true_ones() -> None:
    sent: list[list[Any]] = []

    def model(request: Any) -> dict[str, Any]:
        sent.append(json.loads(request.body)["messages"])
        return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Thanks."}}
        ]}  # fmt: skip

    def asked(number: int) -> list[Any]:
        call = {"id": f"c{number}", "type": "function", "function": {"name": "price", "arguments": "{}"}}
        return [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"price {number}"},
        ]

    def agent(prompt: str) -> str:
        import openai

        client = openai.OpenAI(base_url=f"http://{OPENAI}/v1", api_key="none")
        messages: Any = [*asked(1), {"role": "assistant", "content": "One."}, *asked(2)]
        client.chat.completions.create(model="gpt-4o", messages=messages)
        client.chat.completions.create(model="gpt-4o", messages=[*messages, {"role": "user", "content": "More?"}])
        return prompt

    faults = [lab.inject("stale_context", OPENAI, calls=[1])]
    services, models = {OPENAI: model}, [OPENAI]
    trial = lab.run(agent, PROMPT, services=services, models=models, faults=faults, twin=False)
    assert trial.error is None
    newest = [[message["content"] for message in messages if message["role"] == "tool"] for messages in sent]
    assert newest == [["price 1", "price 1"], ["price 1", "price 2"]]
    assert witnessed(trial) == ["the changed call was sent"]


def test_a_conversation_that_refers_to_itself_is_still_answered() -> None:
    def agent(_: str) -> str:
        import openai

        client = openai.OpenAI(base_url=f"http://{OPENAI}/v1", api_key="none")
        messages: Any = HISTORY
        return str(client.chat.completions.create(model="gpt-4o", messages=messages).choices[0].message.content)

    faults = [lab.inject("circular_reference", OPENAI)]
    trial = lab.run(agent, PROMPT, services={OPENAI: lab.scripted(["At seven."])}, faults=faults, twin=False)
    assert (trial.answer, witnessed(trial)) == ("At seven.", ["the changed call was sent"])
