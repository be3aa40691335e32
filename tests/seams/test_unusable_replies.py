"""A reply of success in which nothing is left to use: the call has failed, and the same call again is a retry."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.analysis.measures.incidents import Ending, find_incidents
from chaoslab.core.events import CallFinished, FaultWitnessed
from tests.measure_parts import amplification, calls, errors, uninjected
from tests.seams.model_parts import ANTHROPIC, OPENAI, by_anthropic_stream, by_openai_stream
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

UNUSABLE = [("malformed_json", "no JSON"), ("html_instead_of_json", "no JSON"), ("empty_response", "no body")]
CHANGED = ["wrong_value", "empty", "partial_success"]


def shop(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A shop with one price."""
    environ["wsgi.input"].read()
    reply = json.dumps({"item": "tea", "total": 30}).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(reply)))])
    return [reply]


def price(item: str) -> dict[str, Any]:
    """The price of an item."""
    return {"item": item, "total": 30}


def insist(ask: Callable[[], Any]) -> str:
    """The price after at most three calls; one that cannot be read is asked for again."""
    for _ in range(3):
        try:
            return f"tea for {ask()['total']}"
        except (ValueError, TypeError, KeyError):
            continue
    return "no price"


def of_service(_: str) -> str:
    return insist(lambda: httpx.get("http://shop/tea").json())


def of_function(_: str) -> str:
    return insist(lambda: price("tea"))


WORLDS: dict[str, tuple[Callable[[str], str], str, dict[str, Any]]] = {
    "service": (of_service, "shop", {"services": {"shop": shop}}),
    "function": (of_function, "price", {"reads": [price]}),
}


def asked(where: str, fault: str) -> lab.Trial:
    agent, target, world = WORLDS[where]
    return lab.run(agent, "x", faults=[lab.inject(fault, target, calls=[1])], facts=["30"], twin=False, **world)


def attempts(trial: lab.Trial) -> list[tuple[int, int, str | None]]:
    return [(event.request, event.attempt, event.error) for _, event in trial.history.find_events(CallFinished)]


@pytest.mark.parametrize("where", WORLDS)
@pytest.mark.parametrize(("fault", "left"), UNUSABLE)
def test_a_reply_of_success_that_cannot_be_used_is_a_failure_and_the_next_call_its_retry(
    fault: str, left: str, where: str
) -> None:
    trial = asked(where, fault)
    assert attempts(trial) == [(1, 1, f"status 200, and {left}"), (1, 2, None)]
    assert [event.ok for _, event in trial.history.find_events(CallFinished)] == [False, True]
    (sent,) = amplification(trial.history)
    assert (sent.requests, sent.attempts, sent.met_requests, sent.met_attempts) == (1, 2, 1, 2)
    assert (calls(trial.history).failed, calls(trial.history).retries) == (1, 1)
    assert [(each.fault, each.ending) for each in find_incidents(trial.history)] == [(fault, Ending.RETRY)]
    target = WORLDS[where][1]
    assert errors(trial.history) == {f"{target} 200 with {left}": {fault: 1}}
    assert uninjected(trial.history) == []


@pytest.mark.parametrize("where", WORLDS)
@pytest.mark.parametrize("fault", CHANGED)
@pytest.mark.filterwarnings("ignore:.*changed nothing:chaoslab.NothingHit")
def test_a_reply_with_another_value_is_none(fault: str, where: str) -> None:
    trial = asked(where, fault)
    assert {(number, attempt, error) for number, attempt, error in attempts(trial) if number == 1} == {(1, 1, None)}


def test_the_work_behind_an_unusable_reply_counts_and_done_twice_it_is_harm() -> None:
    fault = lab.inject("malformed_json", "price", calls=[1])
    trial = lab.run(
        of_function, "x", tools=[price], faults=[fault], facts=["30"], effects=[{"effect": "price", "item": "tea"}]
    )
    assert trial.effects == [{"effect": "price", "item": "tea"}] * 2
    assert [each.ending for each in find_incidents(trial.history)] == [Ending.HARM]
    assert trial.outcome is lab.Outcome.HARM


def test_an_empty_response_of_a_function_that_returns_nothing_changes_nothing() -> None:
    def note(text: str) -> None:
        """Take a note."""

    def agent(_: str) -> str:
        note("tea")
        return "noted"

    with pytest.warns(lab.NothingHit):
        trial = lab.run(agent, "x", tools=[note], faults=[lab.inject("empty_response", "note")], effects=None)
    assert (trial.answer, attempts(trial)) == ("noted", [(1, 1, None)])
    assert not list(trial.history.find_events(FaultWitnessed))


@pytest.mark.parametrize(("ask", "host"), [(by_openai_stream, OPENAI), (by_anthropic_stream, ANTHROPIC)])
@pytest.mark.parametrize("after_events", [1, 2, 3])
def test_a_stream_with_a_damaged_event_is_a_failure_that_every_sdk_meets(
    ask: Callable[[str], str], host: str, after_events: int
) -> None:
    met: list[str] = []

    def agent(prompt: str) -> str:
        try:
            return ask(prompt)
        except ValueError as error:
            met.append(type(error).__name__)
            return ask(prompt)

    fault = lab.inject("corrupt_chunk", host, calls=[1], after_events=after_events)
    model = lab.scripted(["Tea is 30."])
    trial = lab.run(agent, "x", services={host: model}, faults=[fault], facts=["30"], twin=False)
    assert (trial.answer, met) == ("Tea is 30.", ["JSONDecodeError"])
    assert attempts(trial) == [(1, 1, "status 200, and no JSON"), (1, 2, None)]
    assert len(list(trial.history.find_events(FaultWitnessed))) == 1
