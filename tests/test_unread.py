"""A fault whose reply only a script was given shows nothing about the agent; one that its own code dealt with does."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import chaoslab as lab

HOST = "api.openai.com"
SAID = "only a script was told what came of"


def balance(account: int) -> float:
    return 120.5 + account


def elsewhere(account: int) -> float:
    return 1.0 + account


def chat(read: Callable[..., Any], prompt: str, own: Callable[[str], str] = str) -> str:
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        reply = httpx.post(f"https://{HOST}/v1/chat/completions", json={"model": "m", "messages": messages}).json()
        message = reply["choices"][0]["message"]
        if not message.get("tool_calls"):
            return own(message["content"])
        messages.append(message)
        for call in message["tool_calls"]:
            try:
                result = read(**json.loads(call["function"]["arguments"]))
            except Exception as error:  # noqa: BLE001 - the model is told of any
                result = str(error)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})


def run(agent: Any, fault: str, target: str = "balance", model: Any = None, **options: Any) -> lab.Trial:
    script = [lab.call("balance", account=1), "Your balance is 121.50."]
    services = {HOST: model or lab.scripted(script), "bank": lambda _: {"balance": 121.5}}
    options = {"faults": [lab.inject(fault, target, calls=[1] if target == "balance" else ())], **options}
    return lab.run(agent, "What?", reads=[balance, elsewhere], services=services, **options)


def told(trial: lab.Trial) -> list[str]:
    """The verdict's words that it shows nothing; none where it shows something."""
    if not trial.why.startswith(SAID):
        return []
    assert trial.outcome is lab.Outcome.UNKNOWN
    return [trial.why]


@pytest.mark.parametrize("fault", ["wrong_value", "tool_error", "timeout", "empty_response", "confident_wrong"])
def test_what_only_a_script_was_given_is_said_to_show_nothing(fault: str) -> None:
    (said,) = told(run(lambda prompt: chat(balance, prompt), fault))
    assert said.startswith(f"{SAID} {fault} on balance: {HOST} says the same whatever it is sent")


def test_a_service_that_a_tool_asks_and_a_context_that_the_script_does_not_read_are_such_too() -> None:
    def ask(account: int) -> Any:  # noqa: ARG001
        return httpx.get("http://bank/balance").json()

    assert told(run(lambda prompt: chat(ask, prompt), "wrong_value", "bank"))
    assert told(run(lambda prompt: chat(balance, prompt), "truncate_context", HOST))


def tried_again(account: int) -> Any:
    try:
        return balance(account)
    except lab.ToolError:
        return balance(account)


def another_way(account: int) -> Any:
    try:
        return balance(account)
    except lab.ToolError:
        return elsewhere(account)


@pytest.mark.parametrize(
    "agent",
    [
        lambda prompt: chat(tried_again, prompt),
        lambda prompt: str(tried_again(1)) if prompt else "",
    ],
)
def test_what_the_agents_own_code_deals_with_shows_something(agent: Any) -> None:
    trial = run(agent, "tool_error")
    assert (told(trial), trial.outcome) == ([], "correct")


@pytest.mark.parametrize(
    "agent",
    [
        lambda prompt: chat(another_way, prompt),
        lambda prompt: chat(balance, prompt, lambda text: f"I say: {text}"),
    ],
)
def test_a_script_that_was_sent_another_result_shows_nothing_whatever_is_made_of_its_answer(agent: Any) -> None:
    assert told(run(agent, "tool_error"))


def test_a_right_reply_that_is_only_late_leaves_a_script_nothing_to_read_and_another_fault_beside_it_does() -> None:
    late, wrong = (lab.inject(fault, "balance", calls=[1]) for fault in ("latency", "wrong_value"))
    trial = run(lambda prompt: chat(balance, prompt), "latency")
    assert (told(trial), trial.outcome) == ([], "correct")
    assert told(run(lambda prompt: chat(balance, prompt), "latency", faults=[late, wrong]))


def test_a_model_that_reads_shows_something_and_so_does_an_answer_that_a_fault_changed() -> None:
    model: Any = {HOST: lab.offline_model()}
    assert not told(run(lambda prompt: chat(balance, prompt), "wrong_value", model=model[HOST]))
    assert not told(run(lambda prompt: chat(balance, prompt), "refusal", HOST))
    assert not told(run(lambda prompt: chat(balance, prompt), "latency", HOST))


def refund(account: int) -> str:
    return f"refunded {account}"


def refund_or_say_so(account: int) -> Any:
    try:
        return {"ok": True, "said": refund(account)}
    except lab.ToolError:
        return {"ok": False}


def refund_or_pretend(account: int) -> Any:
    try:
        return {"ok": True, "said": refund(account)}
    except lab.ToolError:
        return {"ok": True, "said": f"refunded {account}"}


def refund_or_tell(words: str) -> Callable[[int], str]:
    def tool(account: int) -> str:
        try:
            return refund(account)
        except lab.ToolError:
            return words

    return tool


@pytest.mark.parametrize(
    ("tool", "on_failure", "outcome"),
    [
        (refund_or_pretend, "", "false_success"),  # the model was told nothing new, so its words are the agent's
        (refund_or_say_so, "", "unknown"),
        (refund, "", "unknown"),
        (refund_or_say_so, "I could not {tool}.", "undone"),
        (refund, "I could not {tool}.", "undone"),
        (refund_or_tell("An error occurred while running the tool."), "I could not {tool}.", "undone"),
        (refund_or_tell("No errors, and the account is as it was."), "I could not {tool}.", "unknown"),
        (refund_or_tell("refunded 1"), "I could not {tool}.", "false_success"),
    ],
)
def test_a_script_is_judged_where_it_was_asked_the_same_or_reacts(tool: Any, on_failure: str, outcome: str) -> None:
    model = lab.scripted([lab.call("refund", account=1), "It is refunded."], on_failure=on_failure)
    fault = lab.inject("tool_error", "refund")
    trial = lab.run(lambda p: chat(tool, p), "Refund.", tools=[refund], services={HOST: model}, faults=[fault])
    assert trial.outcome == outcome, trial.why
