"""Trials that would never end: a model that is asked for ever, and services that never answer."""

import asyncio
import json
import queue
import threading
from typing import Any

import openai
import pytest

import chaoslab as lab

MODEL = "api.openai.com"


def charge(order: int) -> dict[str, bool]:
    return {"ok": order > 0}


def client(**options: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="x", max_retries=0, **options)


def agent(prompt: str) -> str | None:
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        said = client().chat.completions.create(model="gpt-4o", messages=messages).choices[0].message
        if not said.tool_calls:
            return said.content
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            try:
                told = json.dumps(charge(**json.loads(call.function.arguments)))  # type: ignore[union-attr]
            except Exception as error:  # noqa: BLE001 - as agents do
                told = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": told})


def insisting(request: Any) -> dict[str, Any]:
    """A model that asks for the tool until it does not fail."""
    last = request.json["messages"][-1]
    message: dict[str, Any] = {"role": "assistant", "content": "Charged."}
    if last["role"] != "tool" or "error" in last["content"]:
        call = {"id": "c", "type": "function", "function": {"name": "charge", "arguments": '{"order": 1}'}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


@pytest.mark.parametrize(("given", "most"), [({}, 100), ({"model_calls_max": 7}, 7)])
def test_a_model_that_is_asked_for_ever_is_hung_with_the_line_of_the_loop(
    given: dict[str, Any], most: int, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = lab.run(
        agent, "Charge order 1", tools=[charge], services={MODEL: insisting}, models=[MODEL], twin=False,
        faults=[lab.inject("tool_error", "charge", status=500)], **given,
    )  # fmt: skip
    why = f"{MODEL} is asked again and again ({most} requests to models in one trial); the agent waits in recv from "
    assert (str(trial.outcome), trial.why.startswith(why)) == ("hung", True), trial.why
    assert "called in tests.test_runaway.agent, line " in trial.why
    assert capsys.readouterr().err == (
        f"chaoslab: {MODEL} was asked {most // 2} times in one trial: it ends as hung after {most} (model_calls_max)\n"
    )


def test_as_many_requests_as_are_allowed_are_no_loop() -> None:
    trial = lab.run(
        agent, "Charge order 1", tools=[charge], services={MODEL: insisting}, models=[MODEL], model_calls_max=2
    )
    assert str(trial.outcome) == "correct", trial.why


def never(_: Any) -> None:
    threading.Event().wait()


async def never_async(scope: Any, _receive: Any, _send: Any) -> None:
    if scope["type"] == "http":
        await asyncio.Event().wait()


def in_a_thread(prompt: str) -> Any:
    told: queue.Queue[Any] = queue.Queue()

    def ask() -> None:
        messages: list[Any] = [{"role": "user", "content": prompt}]
        told.put(client(timeout=None).chat.completions.create(model="m", messages=messages))

    threading.Thread(target=ask, daemon=True).start()
    return told.get()


@pytest.mark.parametrize(
    ("model", "faults"), [(never, []), (never_async, []), (insisting, [lab.inject("timeout", MODEL)])]
)
def test_a_model_that_never_answers_is_named(model: Any, faults: Any) -> None:
    trial = lab.run(in_a_thread, "go", services={MODEL: model}, models=[MODEL], faults=faults, twin=False)
    assert str(trial.outcome) == "hung"
    assert f"; {MODEL} has not answered POST /v1/chat/completions (1.1); " in trial.why
    assert "Queue.get" not in trial.why


def test_an_error_in_a_group_is_named() -> None:
    async def grouped(_: str) -> None:
        async def fails(order: int) -> None:
            raise LookupError(f"no order {order}")

        async with asyncio.TaskGroup() as outer:
            outer.create_task(fails(17))
            outer.create_task(fails(18))

    trial = lab.run(grouped, "go", twin=False)
    assert trial.why == "no answer: agent error (LookupError: no order 17 (and 1 more in its group))"


def test_a_latency_whose_call_was_given_up_says_so() -> None:
    async def find() -> str:
        return "tea"

    async def impatient(_: str) -> str:
        try:
            return await asyncio.wait_for(find(), 5)
        except TimeoutError:
            return "nothing"

    trial = lab.run(impatient, "go", reads=[find], faults=[lab.inject("latency", "find", delay_s=20)], twin=False)
    assert "latency: given up after 5.000 s of the 20.000 s that were armed – witnessed" in trial.story()
