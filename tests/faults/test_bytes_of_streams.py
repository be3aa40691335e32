"""The faults of a line act on a streamed answer as it comes, and its reader witnesses them."""

from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.core.events import FaultInjected, FaultWitnessed

HOST = "api.openai.com"
TOKEN_S = 0.05
SAID = "Order A17 has been refunded: 30 dollars are on their way. " * 3
MODEL = lab.scripted([SAID], token_s=TOKEN_S)


def reads(_prompt: str) -> str:
    """Reads a model's stream to its end, and says what came of it."""
    body = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "Refund it."}]}
    whole = b""
    try:
        with httpx.stream("POST", f"https://{HOST}/v1/chat/completions", json=body, timeout=60) as answer:
            for part in answer.iter_raw():
                whole += part
    except httpx.HTTPError as error:
        return f"{type(error).__name__} after {len(whole)} bytes"
    return f"{len(whole)} bytes"


def run(name: str, **given: Any) -> lab.Trial:
    return lab.run(reads, "go", services={HOST: MODEL}, faults=[lab.inject(name, HOST, **given)], effects=[], twin=True)


@pytest.mark.parametrize(("name", "given", "least_s"), [
    ("bandwidth", {"rate_kb_s": 1}, lambda size: size / 1000),
    ("bandwidth", {"rate_kb_s": 5}, lambda size: size / 5000),
    ("slicer", {"average_bytes": 64, "variation_bytes": 0, "pause_s": 0.05}, lambda size: size / 64 * 0.05),
])  # fmt: skip
def test_a_slow_line_takes_its_time_for_all_bytes_of_a_stream(name: str, given: Any, least_s: Any) -> None:
    trial = run(name, **given)
    assert trial.outcome is lab.Outcome.CORRECT
    assert trial.twin is not None
    assert trial.answer == trial.twin.answer
    slow_s = least_s(int(trial.answer.split()[0]))
    most_s = 3 * slow_s if name == "slicer" else slow_s  # it halves each part, head and framing too, until it fits
    assert slow_s <= trial.seconds <= most_s + trial.twin.seconds + 1.0
    assert len(list(trial.history.find_events(FaultWitnessed))) == 1


@pytest.mark.parametrize("limit", [300, 2000])
def test_a_limit_of_data_breaks_a_stream_off_after_its_bytes(limit: int) -> None:
    trial = run("limit_data", bytes=limit)
    assert "Error after" in trial.answer
    got = int(trial.answer.split()[2])
    assert limit - 300 < got < limit  # the head counts too
    assert len(list(trial.history.find_events(FaultWitnessed))) == 1


@pytest.mark.filterwarnings("ignore:.*changed nothing:chaoslab.NothingHit")
def test_a_limit_that_a_stream_never_reaches_changes_nothing() -> None:
    trial = run("limit_data", bytes=10**6)
    assert trial.outcome is lab.Outcome.CORRECT
    assert not list(trial.history.find_events(FaultInjected))


def test_a_fault_that_was_injected_and_that_nobody_saw_makes_a_trial_invalid() -> None:
    """The line is so fast that no watch could tell."""
    trial = run("bandwidth", rate_kb_s=10**6)
    assert list(trial.history.find_events(FaultInjected))
    found = (trial.outcome, trial.why)
    assert found == (lab.Outcome.INVALID, f"bandwidth was injected on {HOST} 1.1, and its caller saw nothing of it")
    assert judge_all_trials(trial.history) == {trial.key: trial.verdict}, "in a report as in Python"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(("name", "given"), [
    ("bandwidth", {"rate_kb_s": 1}), ("slicer", {"average_bytes": 8, "variation_bytes": 0})
])  # fmt: skip
def test_a_line_is_met_by_a_client_whose_answer_has_more_of_a_head_than_the_service_gave(
    method: str, name: str, given: Any
) -> None:
    def agent(_prompt: str) -> str:
        return httpx.request(method, "http://shop/orders", headers={"Connection": "close"}).text

    def shop(_: Any) -> Any:
        return 201, {"order": 17}

    fault = lab.inject(name, "shop", **given)
    trial = lab.run(agent, "go", services={"shop": shop}, faults=[fault], effects=None, twin=False)
    assert (
        len(list(trial.history.find_events(FaultInjected))) == len(list(trial.history.find_events(FaultWitnessed))) == 1
    )
