"""Each rule speaks on an agent that shows it, and is silent on the same agent mended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import AttemptRef, CallFinished, FaultWitnessed, PromptFinished, PromptStarted, RunStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.advice import Advice

Agent = Callable[[str], str]


def order(*, amount: int) -> str:
    return f"ordered {amount}"


def price(*, item: str) -> dict[str, int]:
    return {"price": 4 * len(item)}


def again(times: int, wait_s: float, *, passing: Callable[[Exception], bool] = lambda _: True) -> Agent:
    """An agent that tries so often, with such waits, while the failure is one that may pass."""

    def agent(_prompt: str) -> str:
        for _ in range(times):
            try:
                return f"It costs {price(item='pen')['price']}."
            except Exception as error:  # noqa: BLE001
                if not passing(error):
                    break
                time.sleep(wait_s)
        return "I could not find the price: the shop failed."

    return agent


def passes(error: Exception) -> bool:
    return getattr(error, "status", None) != 404


def raising(_prompt: str) -> str:
    return f"It costs {price(item='pen')['price']}."


def mute(_prompt: str) -> str:
    try:
        return raising(_prompt)
    except Exception:  # noqa: BLE001
        return ""


def guessing(_prompt: str) -> str:
    try:
        return raising(_prompt)
    except Exception:  # noqa: BLE001
        return "It costs 99."


def believing(_prompt: str) -> str:
    return f"It costs {(price(item='pen') or {}).get('price', 0)}."


def checking(_prompt: str) -> str:
    try:
        return f"It costs {price(item='pen')['price']}."
    except Exception:  # noqa: BLE001
        return "I could not find the price: the shop's answer was empty."


def denying(_prompt: str) -> str:
    try:
        order(amount=3)
    except TimeoutError:
        return "I could not order 3, so the order was not placed."
    return "Ordered 3."


def reading_back(_prompt: str) -> str:
    try:
        order(amount=3)
    except TimeoutError:
        return "Ordered 3."
    return "Ordered 3."


def compensating(_prompt: str) -> str:
    try:
        price(item="pen")
    except Exception:  # noqa: BLE001
        order(amount=1)
    return "Done."


def calm(_prompt: str) -> str:
    try:
        price(item="pen")
    except Exception:  # noqa: BLE001
        return "I could not find the price: the shop failed."
    return "Done."


honest = again(1, 0)
DOWN: Any = {"persistence": "for_good"}
RULES: list[tuple[str, Agent, Agent, str, dict[str, Any], dict[str, Any]]] = [
    ("Back off exponentially", again(2, 0), again(2, 1), "server_error", {}, {}),
    ("Stop at a 4xx", again(2, 1), again(2, 1, passing=passes), "not_found", {}, {}),
    ("header Retry-After", again(2, 2), again(2, 6), "rate_limit", {"retry_after_s": 5.0}, {}),
    ("Catch the failure", raising, honest, "server_error", DOWN, {}),
    ("last answer before it is sent", mute, honest, "server_error", DOWN, {}),
    ("instead of filling the gap", guessing, honest, "server_error", DOWN, {}),
    ("an empty reply as a failed call", believing, checking, "empty", {}, {}),
    ("a budget of calls", again(5, 1), again(2, 1), "server_error", DOWN, {}),
    ("a user who is told no", denying, reading_back, "lost_reply", {}, {"target": "order"}),
    ("the user did not ask for", compensating, calm, "server_error", DOWN, {}),
    ("to what a user waits", again(1, 0), again(1, 0), "timeout", {}, {"waits": (45.0, 5.0)}),
]  # fmt: skip


def contents(agent: Agent, fault: str, params: dict[str, Any], *, target: str = "price", **options: Any) -> Contents:
    trial = lab.run(
        agent, "Do it.", tools=[order], reads=[price], faults=[lab.inject(fault, target, **params)], **options
    )
    return Contents.of(trial.history, where="logs/run")


def of_rule(found: Contents, remedy: str) -> list[Advice]:
    return [one for one in found.advice if remedy in one.do]


@pytest.mark.parametrize(
    ("remedy", "bad", "mended", "fault", "params", "more"), RULES, ids=[f"{rule[0]}, {rule[3]}" for rule in RULES]
)
def test_a_rule_speaks_on_a_bad_agent_alone(
    remedy: str, bad: Agent, mended: Agent, fault: str, params: dict[str, Any], more: dict[str, Any]
) -> None:
    waits = more.get("waits", (30.0, 30.0))
    target = more.get("target", "price")
    (one,) = of_rule(contents(bad, fault, params, target=target, timeout_s=waits[0]), remedy)
    assert f"1 of 1 judged trials that met {fault}" in one.seen
    assert (one.size.count, one.size.total, one.trials) == (1, 1, ("p1.r1",))
    assert of_rule(contents(mended, fault, params, target=target, timeout_s=waits[1]), remedy) == []


def test_an_injection_without_a_call_is_named(tmp_path: Path) -> None:
    for n, (target, advised) in enumerate((("order", 1), ("price", 0))):
        options: Any = {"tools": [order], "reads": [price], "faults": [lab.inject("tool_error", target)]}
        lab.run(honest, "Do it.", logs=tmp_path / str(n), **options)
        written = Contents.of(History.read(tmp_path / str(n) / "latest"), where="logs/run")
        found = of_rule(written, "Name a target that the agent calls")
        assert [(one.size.count, one.size.total) for one in found] == [(1, 1)] * advised


def log(fault: str, *, answer: str, fact: str) -> History:
    """The log of a trial that met the fault, in which this was answered and that is right."""
    at = AttemptRef(trial="p1.r1", target="model", request=1, attempt=1, request_id="a")
    events = [
        PromptStarted(prompt_index=1, prompt="x", facts=[[fact]], effects=None, stated=True),
        CallFinished(at=at, tool="POST /chat", ok=True, duration_s=1.0, status=200),
        FaultWitnessed(at=at, fault=fault, injection=fault, evidence="seen"),
        PromptFinished(prompt_index=1, prompt="x", status="ok", answer=answer, attempts=1, duration_s=1.0),
    ]
    started = RunStarted(seed=1, settings={}, plan={}, prompts=1, now="2026-06-01T09:00:00Z", model="m")
    first = Record(ts="2026-06-01T09:00:00Z", t=0.0, run="r", trial=None, writer="lab", seq=1, event=started)
    lines = [replace(first, t=n, seq=n + 1, trial="p1.r1", event=event) for n, event in enumerate(events, 1)]
    return History([first, *lines])


@pytest.mark.parametrize(
    ("fault", "remedy"), [("cut", "finish reason"), ("drop_context", "outside of the conversation")]
)
def test_a_rule_speaks_of_a_log_with_a_bad_answer_alone(fault: str, remedy: str) -> None:
    bad = Contents.of(log(fault, answer="The total is", fact="412"), where="logs/run")
    (one,) = of_rule(bad, remedy)
    assert (one.size.count, one.size.total, one.trials) == (1, 1, ("p1.r1",))
    assert of_rule(Contents.of(log(fault, answer="The total is 412.", fact="412"), where="logs/run"), remedy) == []


@pytest.mark.parametrize(("left", "drawn_in_vain"), [(None, True), (4, False)])
def test_a_fault_that_was_drawn_and_never_met_is_named(left: int | None, *, drawn_in_vain: bool) -> None:
    def stock() -> int | None:
        return left

    def agent(_prompt: str) -> str:
        return f"In stock: {stock()}"

    trial = lab.run(agent, "Do it.", reads=[stock], faults=[lab.inject("wrong_value", "stock")])
    found = of_rule(Contents.of(trial.history, where="logs/run"), "so that it can take effect")
    said = "wrong_value was drawn in 1 of 1 trials and met in none: there was nothing in it to change."
    assert [one.seen for one in found] == [said] * drawn_in_vain


def test_few_good_trials_are_told_to_be_few() -> None:
    patient = again(2, 1)
    options: Any = {"reads": [price], "faults": [lab.inject("server_error", "price", calls=[1])]}
    trials = list(lab.run_many(patient, "Do it.", trials=36, **options))

    def found(count: int) -> list[Advice]:
        whole = History(record for trial in trials[:count] for record in trial.history)
        return of_rule(Contents.of(whole, where="logs/run"), "Run more trials")

    (one,) = found(8)
    assert one.seen.startswith("None of 8 judged trials that met server_error ended badly, and up to 32% of all could")
    assert (one.size.count, len(one.trials)) == (0, 8)
    assert found(36) == []


def test_a_request_that_was_never_made_is_named() -> None:
    def found(number: int) -> list[Advice]:
        trial = lab.run(honest, "Do it.", reads=[price], faults=[lab.inject("server_error", "price", calls=[number])])
        return of_rule(Contents.of(trial.history, where="logs/run"), "Plan it for a request that the agent makes")

    assert [(one.size.count, one.trials) for one in found(9)] == [(1, ("p1.r1",))]
    assert "is for request 9 of price, and 1 of 1 trials made 1 at most" in found(9)[0].seen
    assert found(1) == []


def test_of_two_faults_the_one_where_it_was_done_twice_is_named_and_advice_on_the_run_comes_last(
    tmp_path: Path,
) -> None:
    def agent(_prompt: str) -> str:
        price(item="pen")
        for _ in range(2):
            try:
                order(amount=3)
                break
            except TimeoutError:
                pass
        return "Ordered 3."

    faults = [lab.inject("latency", "price", delay_s=1.0), lab.inject("lost_reply", "order", calls=[1])]
    faults.append(lab.inject("tool_error", "post"))
    lab.run(agent, "Do it.", tools=[order, post], reads=[price], faults=faults, logs=tmp_path)
    found = Contents.of(History.read(tmp_path / "latest"), where="logs/run").advice
    assert "Idempotency-Key" in found[0].do
    assert "that met lost_reply" in found[0].seen
    assert [one.of_run for one in found] == sorted(one.of_run for one in found)
    assert found[-1].of_run


def post(*, text: str) -> str:
    return text
