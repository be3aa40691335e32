"""Answers that state no usage are no answers without tokens: a limit says so, or judges the lab's estimate if asked."""

from collections.abc import Callable
from typing import Any

import openai
import pytest

import chaoslab as lab
from chaoslab.analysis.assertions import Assertion, FinishedTrial
from chaoslab.core.events import Budget, Usage, UsageUnstated

HOST = "api.openai.com"
PROMPT = "Tell me of the orders of today, and of those of yesterday."


def agent(**more: Any) -> Callable[[str], str]:
    def ask(prompt: str) -> str:
        client, text = openai.OpenAI(api_key="x", max_retries=0), ""
        for _ in range(2):
            said: Any = client.chat.completions.create(
                model="gpt-4o", messages=[{"role": "user", "content": prompt}], stream=True, **more
            )
            text += "".join(part.choices[0].delta.content or "" for part in said if part.choices)
        return text

    return ask


def run(asked: Callable[[str], str], *faults: Any) -> lab.Trial:
    services = {HOST: lab.scripted(["There are seventeen. ", "And then there were twelve."])}
    return lab.run(asked, PROMPT, services=services, faults=faults, twin=False)


def missed(trial: lab.Trial, assertion: Assertion) -> str:
    miss = assertion.check(FinishedTrial(trial.history, trial.key, trial.verdict))
    return "" if miss is None else f"{miss.text} ({miss.where})"


LIMITS: list[Callable[..., Assertion]] = [
    lambda most, **more: lab.expect.max_tokens(int(most * 100), **more),
    lambda most, **more: lab.expect.tokens_per_turn(int(most * 100), **more),
    lambda most, **more: lab.expect.max_cost(most / 1000, **more),
]


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_on_what_was_not_measured_is_missed_and_names_the_option(limit: Callable[..., Assertion]) -> None:
    trial = run(agent())
    said = missed(trial, limit(1000))
    assert "the model's answer 1 states no usage" in said
    assert "stream_options={'include_usage': True}" in said
    assert missed(trial, limit(1000, estimated=True)) == ""
    assert missed(trial, limit(0.1, estimated=True)) != ""
    measured = run(agent(stream_options={"include_usage": True}))
    assert missed(measured, limit(1000)) == ""
    assert missed(measured, limit(0.1)) != ""


def test_the_estimate_is_what_the_labs_model_would_have_stated() -> None:
    unstated, stated = run(agent()), run(agent(stream_options={"include_usage": True}))
    used = [
        (event.prompt_tokens, event.completion_tokens, event.cost_usd) for _, event in stated.history.find_events(Usage)
    ]
    estimated = [
        (event.prompt_tokens, event.completion_tokens, event.cost_usd)
        for _, event in unstated.history.find_events(UsageUnstated)
    ]
    assert (estimated, len(used)) == (used, 2)
    assert list(unstated.history.find_events(Usage)) == []


def test_an_answer_that_broke_off_is_said_to_have() -> None:
    trial = run(agent(stream_options={"include_usage": True}), lab.inject("cut", HOST, after_events=3, calls=[1]))
    assert "the model's answer 1 broke off before it stated its usage" in missed(trial, lab.expect.max_tokens(1000))


def test_a_budget_counts_what_is_not_stated() -> None:
    trial = run(agent(), lab.inject("budget", HOST, tokens=20))
    assert isinstance(trial.error, openai.RateLimitError)
    assert [event.limit for _, event in trial.history.find_events(Budget)] == ["tokens"]
