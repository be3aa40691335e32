"""Retry amplification: attempts for each request that was wanted, by target."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

import chaoslab as lab
from chaoslab.analysis.measures._amplification import AGENT, CLIENT, PROMPT, SDK, TOOL
from chaoslab.core.events import AttemptRef, CallStarted, Event, Fallback, FaultWitnessed, PromptAttempt, Retry
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.seams._client_retry import parse_retry_count
from tests.measure_parts import amplification

MODEL = "api.openai.com"
NOW = "2026-06-01T09:00:00Z"


def search(text: str) -> str:
    return text


def stock(text: str) -> str:
    return text


def tried(times: int, layers: int) -> str:
    for n in range(times):
        try:
            return tried(times, layers - 1) if layers else search("tea")
        except Exception:
            if n == times - 1:
                raise
    return ""


def stacked(prompt: str) -> str:
    stock("tea")
    try:
        return tried(3, 2)
    except Exception:  # noqa: BLE001 - the agent gives up
        return prompt


def test_three_layers_that_try_three_times_send_27_requests() -> None:
    down = lab.inject("server_error", "search", persistence="for_good")
    first, second = amplification(lab.run(stacked, "x", reads=[search, stock], faults=[down]).history)
    assert (first.target, first.requests, first.attempts, first.factor) == ("search", 1, 27, 27.0)
    assert (first.most, first.where, first.faulted_factor) == (27, "p1.r1 search 1", 27.0)
    assert (second.target, second.requests, second.attempts, second.factor) == ("stock", 1, 1, 1.0)
    assert second.faulted_factor is None


def test_a_fault_of_one_trial_is_told_from_the_calm_ones() -> None:
    once = lab.inject("server_error", "search", chance=0.5, max_times=1)
    trials = list(lab.run_many(stacked, "x", trials=20, reads=[search, stock], faults=[once]))
    first = amplification(History(record for trial in trials for record in trial.history))[0]
    assert first.requests == 20
    assert first.attempts == 20 + first.met_requests
    assert 0 < first.met_requests < 20
    assert first.faulted_factor == 2.0


def test_without_a_call_there_is_nothing() -> None:
    assert amplification(History([])) == []


def test_the_further_attempts_are_told_apart_by_the_layer_that_made_them() -> None:
    """A tool that tries twice, an attempt at the prompt that fails, and a client that tries again by itself."""

    def at(target: str, request: int, attempt: int) -> AttemptRef:
        return AttemptRef(target=target, request=request, attempt=attempt, request_id=f"{target}{request}")

    def began(t: float, target: str, request: int, attempt: int) -> tuple[float, Event]:
        return t, CallStarted(at=at(target, request, attempt), tool="t", arguments={})

    def prompt_failed(t: float) -> tuple[float, Event]:
        return t, PromptAttempt(
            prompt_index=1, prompt="x", response="", duration_s=1.0, prompt_attempt=1, start_time=NOW, end_time=NOW,
            status="error", error_type="model",
        )  # fmt: skip

    story: list[tuple[float, Event]] = [
        began(1, "search", 1, 1), (2, Retry(at=at("search", 1, 1), tool="t", wait_s=0.1, reason="")),
        began(3, "search", 1, 2), (4, Fallback(at=at("search", 1, 3), tool="t", address="a")), began(5, "search", 1, 3),
        began(6, "model", 1, 1), began(7, "model", 1, 2), prompt_failed(8), began(9, "model", 1, 3),
    ]  # fmt: skip
    records = [Record(NOW, float(t), "r", "p1.r1", "info", n, event) for n, (t, event) in enumerate(story)]
    found = {one.target: one for one in amplification(History(records))}
    assert found["search"].layers == {TOOL: 2}
    assert found["model"].layers == {CLIENT: 1, PROMPT: 1}
    assert all(sum(one.layers.values()) == one.attempts - one.requests for one in found.values())


def asked_twice(max_retries: int, tries: int) -> Callable[[str], str]:
    """An agent whose SDK tries again `max_retries` times, and that asks again itself."""

    def agent(prompt: str) -> str:
        with openai.OpenAI(api_key="k", max_retries=max_retries) as client:
            for _ in range(tries):
                with suppress(openai.APIError):
                    said = client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": prompt}])
                    return said.choices[0].message.content or ""
        return "no answer"

    return agent


def test_an_sdk_that_counts_its_retries_is_told_from_the_code_around_it() -> None:
    down = lab.inject("server_error", MODEL, persistence="for_good")
    trial = lab.run(asked_twice(2, 3), "What is 17 times 24?", services={MODEL: lab.offline_model()}, faults=[down])
    (found,) = amplification(trial.history)
    assert (found.requests, found.attempts, found.layers) == (1, 9, {SDK: 6, AGENT: 2})
    counted = [event.client_retry for _, event in trial.history.find_events(CallStarted)]
    assert counted == [None, 1, 2, 0, 1, 2, 0, 1, 2]


def test_only_the_lines_of_further_attempts_hold_the_clients_count(tmp_path: Path) -> None:
    once = lab.inject("server_error", MODEL, calls=[1])
    services = {MODEL: lab.offline_model()}
    lab.run(asked_twice(2, 1), "What is 2 + 2?", services=services, faults=[once], twin=False, logs=tmp_path)
    text = (tmp_path / "latest" / "info.log").read_text(encoding="utf-8")
    lines = [line for line in map(json.loads, text.splitlines()) if line["kind"] == "call_started"]
    assert [line.get("client_retry", "left out") for line in lines] == ["left out", 1]


@pytest.mark.parametrize(
    ("header", "count"), [("0", 0), ("12", 12), ("", None), ("-1", None), ("two", None), ("²", None), ("9" * 99, None)]
)
def test_a_count_is_taken_from_digits_alone(header: str, count: int | None) -> None:
    assert parse_retry_count(header) == count


def test_equal_calls_that_are_made_together_are_no_retries() -> None:
    async def slow(text: str) -> str:
        await asyncio.sleep(0.01)
        return text

    def shop(_environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
        return [b"ok"]

    async def agent(_prompt: str) -> str:
        async with httpx.AsyncClient() as client:
            found = await asyncio.gather(*(client.get("http://shop.test/x") for _ in range(5)))
        said = await asyncio.gather(*(slow("tea") for _ in range(5)))
        return f"{len(found)} and {len(said)}"

    for fault in (
        lab.inject("latency", "*", delay_s=0.5, chance=0.0),
        lab.inject("latency", "*", delay_s=0.5, chance=0.5),
    ):
        trial = lab.run(agent, "go", services={"shop.test": shop}, reads=[slow], faults=[fault])
        assert trial.answer == "5 and 5"
        found = {one.target: (one.requests, one.attempts) for one in amplification(trial.history)}
        assert found == {"shop.test": (5, 5), "slow": (5, 5)}
    late = [event.attempt for _, event in trial.history.find_events(FaultWitnessed)]
    assert late
    assert set(late) == {1}
