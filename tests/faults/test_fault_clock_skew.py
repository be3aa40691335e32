"""The clock of a target is wrong while it does a call, and right for everybody else."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.events import FaultInjected, FaultWitnessed
from chaoslab.faults.budget.clock_skew import ClockSkew
from chaoslab.surfaces import gateway
from tests.faults.fault_parts import Target, meet

BEGAN = datetime(2026, 6, 1, 9, tzinfo=UTC).timestamp()


def issue() -> dict[str, Any]:
    """A tool that asks for the time in two ways."""
    return {"expires": time.time() + 60, "day": datetime.now(UTC).date().isoformat()}


async def slowly() -> float:
    await asyncio.sleep(1)
    return time.time()


def timeless() -> int:
    return 7


def failing() -> float:
    raise KeyError(time.time())


def outer() -> list[float]:
    return [time.time(), inner(), timeless(), time.time()]


def inner() -> float:
    return time.time()


def witnessed(trial: lab.Trial) -> list[str]:
    return [event.evidence for _, event in trial.history.find_events(FaultWitnessed)]


def test_a_tool_issues_a_token_that_has_expired_and_its_callers_clock_is_right() -> None:
    def agent(_: str) -> tuple[float, str, float]:
        began, before = time.monotonic(), time.time()
        token = issue()
        return token["expires"] - before, token["day"], time.monotonic() - began

    trial = lab.run(agent, "go", reads=[issue], faults=[lab.inject("clock_skew", "issue", skew_s=-86400)])
    assert trial.answer == (-86340.0, "2026-05-31", 0.0)
    assert witnessed(trial) == ["its clock told 2026-05-31T09:00:00.000000Z, 86400 s behind"]


def test_beside_a_task_whose_clock_is_wrong_all_others_are_right() -> None:
    async def agent(_: str) -> list[float]:
        async def other() -> float:
            await asyncio.sleep(0.5)
            return time.time()

        skewed, right = await asyncio.gather(slowly(), other())
        return [round(each - BEGAN, 3) for each in (skewed, right, time.time())]

    trial = lab.run(agent, "go", reads=[slowly], faults=[lab.inject("clock_skew", "slowly", skew_s=60)])
    assert trial.answer == [61.0, 0.5, 1.0]


def test_who_gives_up_a_call_goes_on_by_its_own_clock() -> None:
    async def agent(_: str) -> float:
        try:
            async with asyncio.timeout(0.5):
                await slowly()
        except TimeoutError:
            pass
        return time.time() - BEGAN

    trial = lab.run(agent, "go", reads=[slowly], faults=[lab.inject("clock_skew", "slowly", skew_s=60)])
    assert trial.answer == 0.5


@pytest.mark.filterwarnings("ignore:.*changed nothing:chaoslab.NothingHit")
def test_a_tool_that_does_not_ask_for_the_time_meets_nothing_and_its_trial_is_valid() -> None:
    trial = lab.run(lambda _: timeless(), "go", reads=[timeless], faults=[lab.inject("clock_skew", "timeless")])
    assert (trial.outcome, list(trial.history.find_events(FaultInjected)), witnessed(trial)) == ("correct", [], [])


def test_a_tool_that_asks_and_fails_has_met_it_and_the_clock_is_right_again() -> None:
    def agent(_: str) -> float:
        try:
            failing()
        except KeyError as error:
            return float(error.args[0]) - time.time()
        return 0.0

    trial = lab.run(agent, "go", reads=[failing], faults=[lab.inject("clock_skew", "failing", skew_s=5)])
    assert (trial.answer, len(witnessed(trial))) == (5.0, 1)


def test_two_skews_on_one_call_add_up_and_both_are_met() -> None:
    faults = [lab.inject("clock_skew", "issue", skew_s=60), lab.inject("clock_skew", "issue", skew_s=5, name="more")]
    trial = lab.run(lambda _: issue()["expires"] - time.time(), "go", reads=[issue], faults=faults)
    assert trial.answer == 125.0
    assert witnessed(trial) == [f"its clock told 2026-06-01T09:01:05.000000Z, {by} s ahead" for by in (60, 5)]


@pytest.mark.filterwarnings("ignore:.*changed nothing:chaoslab.NothingHit")
def test_a_function_in_a_function_has_a_skew_of_its_own_on_top() -> None:
    faults = [lab.inject("clock_skew", name, skew_s=by) for name, by in (("outer", 60), ("inner", 5), ("timeless", 9))]
    trial = lab.run(lambda _: outer()[:2], "go", reads=[outer, inner, timeless], faults=faults)
    assert trial.answer == [BEGAN + 60, BEGAN + 65]
    assert witnessed(trial) == [
        "its clock told 2026-06-01T09:01:05.000000Z, 5 s ahead",
        "its clock told 2026-06-01T09:01:00.000000Z, 60 s ahead",
    ]


def _wsgi(_: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(time.time()).encode()]


async def _asgi(scope: Any, _: Any, send: Callable[..., Any]) -> None:
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(time.time()).encode()})


@pytest.mark.parametrize("app", [lambda _: str(time.time()), _wsgi, _asgi])
def test_the_clock_of_a_service_is_wrong_for_the_call_that_is_hit_alone(app: Any) -> None:
    def agent(_: str) -> list[float]:
        with httpx.Client() as client:
            return [round(float(client.get("http://shop/time").text) - time.time()) for _ in range(3)]

    trial = lab.run(agent, "go", services={"shop": app}, faults=[lab.inject("clock_skew", "shop", calls=[2])])
    assert trial.answer == [0, 3600, 0]
    assert len(witnessed(trial)) == 1


def test_it_says_nothing_of_a_clock_that_nobody_asked() -> None:
    met = meet(ClockSkew(-30.0), target := Target())
    assert (met.injected, met.evidence, target.ahead_s) == (False, None, 0.0)
    asked = Target(clock="2026-06-01T08:59:30Z")
    assert meet(ClockSkew(-30.0), asked).injected
    told = replace(met.seen, told="2026-06-01T08:59:30Z")
    assert ClockSkew(-30.0).witnessed(told) == "its clock told 2026-06-01T08:59:30Z, 30 s behind"


def test_a_skew_of_nothing_is_none_and_one_of_an_age_is_refused_in_whole_numbers() -> None:
    assert not meet(ClockSkew(0.0), Target(clock="2026-06-01T09:00:00Z")).injected
    with pytest.raises(ValueError, match="it should be a number from -315360000 to 315360000"):
        lab.inject("clock_skew", "issue", skew_s=1e12)


def test_real_time_has_one_clock_for_all() -> None:
    fault = lab.inject("clock_skew", "issue")
    line = "'clock_skew on issue' moves a wall clock, and in real time there is one for all: use world='virtual'"
    with pytest.raises(ValueError, match=line):
        lab.run(lambda _: issue(), "go", reads=[issue], world="local", faults=[fault])
    with pytest.raises(ValueError, match="moves a wall clock"):
        gateway.parse_plan(["clock_skew:crm"], None, 1, None)
