"""The service answers that there were too many requests."""

import time
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.base.clock import system
from chaoslab.faults.tool.rate_limit import RateLimit
from chaoslab.model.formats import openai_chat as openai
from tests.faults.fault_parts import CALL, WORDS, Meeting, Target, meet


def at(moments: list[float], fault: RateLimit) -> list[Meeting]:
    """A call at each of these seconds of a trial."""
    memory: dict[str, Any] = {}
    return [meet(fault, memory=memory, elapsed_s=moment) for moment in moments]


def waits(met: Meeting) -> str | None:
    assert met.reply is not None
    return met.reply.headers.get("Retry-After") if met.reply.status == 429 else None


def test_the_service_says_so_in_its_own_words_and_is_not_asked() -> None:
    met = meet(RateLimit(), target := Target(), call=replace(CALL, errors=WORDS))
    assert met.reply is not None
    assert (met.reply.status, met.reply.value, met.reply.headers["Retry-After"]) == (429, {"busy": True}, "3")
    assert target.sent == []
    assert met.evidence == "a reply that there were too many requests reached the caller"


def test_the_time_to_wait_may_be_stated() -> None:
    assert waits(meet(RateLimit(retry_after_s=7), call=replace(CALL, errors=WORDS))) == "7"


def times(met: Meeting) -> dict[str, str]:
    """The headers that state a time to wait."""
    assert met.reply is not None
    return {name.lower(): text for name, text in met.reply.headers.items() if name.lower().startswith("retry")}


def test_the_time_to_wait_may_come_in_another_form_or_not_at_all() -> None:
    call = replace(CALL, errors=WORDS)
    assert times(meet(RateLimit(1.5, told="milliseconds"), call=call)) == {"retry-after-ms": "1500"}
    assert times(meet(RateLimit(told="nothing"), call=call)) == {}
    date = times(meet(RateLimit(90, told="date"), call=call))["retry-after"]
    assert 85 < (parsedate_to_datetime(date) - system.utc()).total_seconds() <= 91


def test_a_quota_is_no_rate_and_states_no_time() -> None:
    met = meet(RateLimit(quota=True), call=replace(CALL, errors=openai.KNOWN))
    assert met.reply is not None
    assert (met.reply.status, met.reply.value["error"]["code"], times(met)) == (429, "insufficient_quota", {})
    assert met.evidence == "a reply that there were too many requests reached the caller"


@pytest.mark.parametrize(("params", "waited"), [({"told": "date"}, (6, 8)), ({"told": "milliseconds"}, (6, 6))])
def test_an_sdk_waits_as_long_as_it_is_told_in_each_form(params: dict[str, Any], waited: tuple[int, int]) -> None:
    def chat(_: str) -> str:
        from openai import OpenAI

        client = OpenAI(api_key="none", max_retries=1)
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}]).model

    fault = lab.inject("rate_limit", "api.openai.com", calls=[1], retry_after_s=6, **params)
    trial = lab.run(chat, "x", services={"api.openai.com": lab.offline_model()}, faults=[fault], twin=False)
    assert (trial.answer is not None, waited[0] <= trial.seconds <= waited[1] + 0.5) == (True, True), trial.seconds


def test_so_many_pass_in_any_minute_and_the_others_are_told_when_there_is_room() -> None:
    met = at([0, 10, 20, 59.5, 60.5, 61, 70.5], RateLimit(per_minute=2))
    assert [waits(each) for each in met] == [None, None, "40", "0.5", None, "9", None]
    assert [each.injected for each in met] == [False, False, True, True, False, True, False]


def by_tokens(asked: list[tuple[float, float]], fault: RateLimit) -> list[str | None]:
    """The stated wait of a call at each of these moments, after so many tokens of the trial were spent."""
    memory: dict[str, Any] = {}
    return [waits(meet(fault, memory=memory, elapsed_s=at_s, spent={"tokens": spent})) for at_s, spent in asked]


def test_the_tokens_of_a_minute_count_at_the_moments_of_their_requests() -> None:
    asked = [(0.0, 0.0), (10.0, 600.0), (20.0, 1100.0), (30.0, 1100.0), (60.5, 1100.0), (70.5, 1700.0)]
    assert by_tokens(asked, RateLimit(tokens_per_minute=1000)) == [None, None, "40", "30", None, None]


def test_both_limits_hold_and_the_longer_wait_is_stated() -> None:
    asked = [(0.0, 0.0), (10.0, 500.0), (20.0, 2000.0)]
    assert by_tokens(asked, RateLimit(per_minute=2, tokens_per_minute=1000)) == [None, None, "50"]
    assert by_tokens(asked, RateLimit(per_minute=2)) == [None, None, "40"]


def test_a_model_refuses_once_its_tokens_of_a_minute_are_used_and_takes_the_next_minutes() -> None:
    def agent(_: str) -> list[int]:
        body = {"model": "m", "messages": [{"role": "user", "content": "What is 17 * 3?"}]}
        found = []
        for wait_s in (1, 1, 70, 1):
            found.append(httpx.post("http://api.openai.com/v1/chat/completions", json=body, timeout=30).status_code)
            time.sleep(wait_s)
        return found

    fault = lab.inject("rate_limit", "api.openai.com", tokens_per_minute=1)
    trial = lab.run(agent, "go", services={"api.openai.com": lab.offline_model()}, faults=[fault], twin=False)
    assert trial.answer == [200, 429, 429, 200]


def test_a_refused_request_does_not_move_the_moment_of_the_tokens_that_one_before_it_uses() -> None:
    asked = [(0.0, 0.0), (10.0, 300.0), (20.0, 300.0), (30.0, 800.0)]
    assert by_tokens(asked, RateLimit(per_minute=2, tokens_per_minute=400)) == [None, None, "40", "40"]
