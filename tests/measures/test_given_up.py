"""A call that its own agent gave up, or that the end of its trial cut, neither failed nor succeeded, unless a fault had
held it back."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import aiohttp
import httpx
import pytest

import chaoslab as lab
from chaoslab.analysis.assertions import FinishedTrial
from chaoslab.analysis.assertions.calls import BackedOff, MaxRetries, Retried, Slo
from chaoslab.analysis.measures.incidents import Ending, find_incidents
from chaoslab.analysis.measures.mttr import summarize_recovery
from chaoslab.analysis.measures.noticed import find_retry_attempts
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.core.events import CallFinished, CallStarted, FaultWitnessed
from chaoslab.record.history import History
from chaoslab.reports.contents import Contents
from chaoslab.reports.formats.html.timelines import build_timelines
from chaoslab.reports.frames import Frames
from chaoslab.reports.show import render_event
from tests.measure_parts import amplification, attempts, calls, errors, uninjected
from tests.measures.test_counts import call
from tests.reports.fake_run import summary
from tests.sure import sure

AFTER_S = 0.06
"""The second of two hedged requests is sent so long after the first, which makes it an attempt at the same request."""


async def find(words: str) -> str:
    await asyncio.sleep(0.1)
    return f"tea for {words}"


def shop(_: Any) -> dict[str, str]:
    time.sleep(0.1)
    return {"sells": "tea"}


async def hedged(ask: Callable[[], Awaitable[str]]) -> str:
    """The first answer of two requests; the other one is cancelled."""

    async def later() -> str:
        await asyncio.sleep(AFTER_S)
        return await ask()

    asked = [asyncio.ensure_future(ask()), asyncio.ensure_future(later())]
    done, left = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    for each in left:
        each.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    return done.pop().result()


async def by_function(_: str) -> str:
    return await hedged(lambda: find("x"))


async def by_httpx(_: str) -> str:
    async with httpx.AsyncClient(timeout=30) as client:

        async def ask() -> str:
            return (await client.get("http://shop/tea")).text

        return await hedged(ask)


async def by_aiohttp(_: str) -> str:
    async with aiohttp.ClientSession() as client:

        async def ask() -> str:
            async with client.get("http://shop/tea") as reply:
                return await reply.text()

        return await hedged(ask)


HEDGES: list[tuple[Callable[[str], Coroutine[Any, Any, str]], str, dict[str, Any]]] = [
    (by_function, "find", {"reads": [find]}),
    (by_httpx, "shop", {"services": {"shop": shop}}),
    (by_aiohttp, "shop", {"services": {"shop": shop}}),
]


def run(agent: Any, *faults: Any, **more: Any) -> lab.Trial:
    return lab.run(agent, "x", faults=list(faults), facts=["tea"], **more)


@pytest.mark.parametrize(("agent", "target", "options"), HEDGES)
def test_the_slower_of_two_hedged_requests_is_no_failure(agent: Any, target: str, options: dict[str, Any]) -> None:
    trial = run(agent, **options)
    ends = {event.attempt: (event.ok, event.is_cancelled) for _, event in trial.history.find_events(CallFinished)}
    assert (trial.outcome, ends) == (lab.Outcome.CORRECT, {1: (True, False), 2: (False, True)})
    found = calls(trial.history)
    assert (found.made, found.failed, found.given_up, found.retries) == (2, 0, 1, 0)
    assert errors(trial.history) == {}
    assert (uninjected(trial.history), find_incidents(trial.history)) == ([], [])
    assert {name: len(of.calm) for name, of in attempts(trial.history).by_target.items()} == {target: 1}
    assert [(each.requests, each.attempts, each.layers) for each in amplification(trial.history)] == [(1, 1, {})]


@pytest.mark.parametrize("fault", [("latency", {"delay_s": 5.0}), ("lost_reply", {})])
@pytest.mark.parametrize(("agent", "target", "options"), HEDGES)
def test_a_fault_that_held_one_of_them_back_was_met(
    agent: Any, target: str, options: dict[str, Any], fault: tuple[str, dict[str, Any]]
) -> None:
    name, params = fault
    trial = run(agent, lab.inject(name, target, calls=[1], attempts=[1], **params), **options)
    assert trial.outcome is lab.Outcome.CORRECT
    assert [(event.fault, event.attempt) for _, event in trial.history.find_events(FaultWitnessed)] == [(name, 1)]
    found = calls(trial.history)
    assert (found.failed, found.given_up, found.retries) == (1, 0, 1)
    (causes,) = errors(trial.history).values()
    assert causes == {name: 1}
    assert uninjected(trial.history) == []
    assert [str(one.ending) for one in find_incidents(trial.history)] == ["retry"]


@pytest.mark.parametrize("faulty", [False, True])
def test_a_deadline_of_the_agents_own_is_a_failure_only_if_a_fault_used_it_up(*, faulty: bool) -> None:
    async def agent(_: str) -> str:
        try:
            return (await asyncio.wait_for(asyncio.gather(find("x"), find("y")), 1 if faulty else 0.05))[0]
        except TimeoutError:
            return "tea, I guess"

    slow = [lab.inject("latency", "find", delay_s=5.0, calls=[1])] if faulty else []
    trial = run(agent, *slow, reads=[find], twin=False)
    found = calls(trial.history)
    assert (found.failed, found.given_up) == ((1, 0) if faulty else (0, 2))
    assert uninjected(trial.history) == []


def wait(_: str) -> str:
    time.sleep(60)
    return "tea"


def ask_late(_: str) -> str:
    time.sleep(10)
    return wait("x")


async def wait_async(_: str) -> str:
    await asyncio.sleep(60)
    return "tea"


async def ask_late_async(_: str) -> str:
    await asyncio.sleep(10)
    return await wait_async("x")


def ask_shop_late(_: str) -> str:
    time.sleep(9.9995)
    return httpx.get("http://shop/tea", timeout=50).text


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        (wait, {"reads": [wait]}),
        (ask_late, {"reads": [wait]}),
        (ask_late_async, {"reads": [wait_async]}),
        (ask_shop_late, {"services": {"shop": shop}}),
    ],
)
def test_a_call_that_the_end_of_its_trial_cut_is_no_failure(agent: Any, options: dict[str, Any]) -> None:
    trial = run(agent if agent is not wait else lambda _: wait("x"), **options, twin=False, deadline_s=10)
    assert trial.outcome is lab.Outcome.HUNG
    found = calls(trial.history)
    assert (found.made, found.failed, found.given_up) == (1, 0, 1)
    assert uninjected(trial.history) == []
    assert errors(trial.history) == {}


def test_a_function_that_ends_its_process_has_failed() -> None:
    def find(_: str) -> str:
        raise SystemExit(3)

    trial = run(lambda _: find("x"), reads=[find], twin=False)
    assert [(one.target, one.error) for one in uninjected(trial.history)] == [("find", "SystemExit: 3")]


def test_a_call_that_is_made_again_before_its_end_was_noticed_then() -> None:
    """The agent waits for the late answer too, so its call ends long after the right one."""

    async def patient(_: str) -> str:
        late = asyncio.ensure_future(find("x"))
        await asyncio.sleep(AFTER_S)
        answer = await find("x")
        await late
        return answer

    trial = run(patient, lab.inject("latency", "find", delay_s=5.0, calls=[1], attempts=[1]), reads=[find])
    (incident,) = find_incidents(trial.history)
    assert (incident.ending, incident.noticed_after_s) == (Ending.RETRY, AFTER_S)
    found = summarize_recovery([incident])
    assert found.detected_s is not None
    assert found.mean_s == pytest.approx(found.detected_s + sure(found.since_notice_s)) == pytest.approx(AFTER_S + 0.1)


def test_a_service_that_says_cancelled_itself_has_failed() -> None:
    def shop(_: Any) -> tuple[int, dict[str, str]]:
        return 409, {"error": "cancelled"}

    trial = run(lambda _: httpx.get("http://shop/").text, services={"shop": shop}, twin=False)
    assert trial.history.given_up_attempts == set()
    assert [(one.target, one.error) for one in uninjected(trial.history)] == [("shop", "cancelled")]


def thrice(*, first: str, second: bool = False) -> lab.Trial:
    """A trial whose agent cancels its first call, or whose first call fails, and asks again for the same until it gets
    an answer. `second`: the second call fails."""
    made: list[str] = []

    async def find(words: str) -> str:
        made.append(words)
        await asyncio.sleep(0.1)
        if (len(made) == 1 and first == "fails") or (len(made) == 2 and second):
            raise ConnectionError("no line")
        return "tea"

    async def agent(_: str) -> str:
        made.clear()
        for _n in range(3):
            try:
                return await asyncio.wait_for(find("x"), 0.05 if first == "cancelled" and not made else 9)
            except (TimeoutError, ConnectionError):
                await asyncio.sleep(1)
        return "nothing"

    return lab.run(agent, "x", reads=[find], facts=["tea"], twin=False)


def seen_in(trial: lab.Trial) -> FinishedTrial:
    return FinishedTrial(trial.history, trial.key, trial.verdict)


def numbers(trial: lab.Trial) -> list[int]:
    return [event.attempt for _, event in trial.history.find_events(CallStarted)]


def test_what_comes_after_a_call_that_was_given_up_is_no_retry() -> None:
    trial = thrice(first="cancelled")
    assert numbers(trial) == [1, 2]
    seen = seen_in(trial)
    assert calls(trial.history).retries == 0
    assert find_retry_attempts(trial.history) == []
    assert [(each.requests, each.attempts) for each in amplification(trial.history)] == [(1, 1)]
    assert str(Retried().check(seen).text) == "no call failed, so there was nothing to try again"  # type: ignore[union-attr]
    assert MaxRetries(retries=0).check(seen) is Slo(share=1).check(seen) is None
    assert BackedOff(least_s=0.5).check(seen).text == "no call was tried again, so nothing could wait"  # type: ignore[union-attr]


def test_a_failure_after_it_is_the_requests_first() -> None:
    trial = thrice(first="cancelled", second=True)
    assert numbers(trial) == [1, 2, 3]
    seen = seen_in(trial)
    assert (calls(trial.history).retries, calls(trial.history).failed) == (1, 1)
    assert Retried().check(seen) is MaxRetries(retries=1).check(seen) is BackedOff(least_s=0.5).check(seen) is None
    missed = sure(MaxRetries(retries=0).check(seen))
    assert missed.text == "find 1 was tried again 1 times, at most 0 were allowed"
    assert Slo(share=0.6).check(seen).text == "50% of 2 calls were good, at least 60% were asked for"  # type: ignore[union-attr]


@pytest.mark.parametrize("cancelled", [True, False])
def test_only_attempts_that_somebody_waited_for_are_too_many(*, cancelled: bool) -> None:
    async def find(words: str) -> str:  # noqa: ARG001
        await asyncio.sleep(0.1)
        raise ConnectionError("no line")

    async def agent(_: str) -> str:
        for _n in range(7):
            with contextlib.suppress(TimeoutError, ConnectionError):
                await asyncio.wait_for(find("x"), 0.05 if cancelled else 9)
        return "nothing"

    trial = lab.run(agent, "x", reads=[find], facts=["tea"], twin=False)
    said = [one.seen for one in Contents.from_source(trial.history, where="here").advice]
    assert numbers(trial) == [*range(1, 8)]
    assert ("One request was attempted 6 times or more in 1 of 1 trials, 7 at most." in said) is not cancelled


def test_reports_count_it_apart_and_only_if_there_is_one() -> None:
    trial, calm = run(by_function, reads=[find]), run(lambda _: "tea", reads=[find])
    report, contents = RunReport.from_history(trial.history), Contents.from_source(trial.history, where="here")
    assert "0 failed; 1 given up by the agent; 0 were" in " ".join(summary(report).split())
    assert "given up" not in summary(calm.history)
    (part,) = [part for part in contents.report_sections if part.title == "Retries and calls"]
    assert "; 1 given up by the agent; " in part.key_figure_sentences[0]
    (part,) = [
        part
        for part in Contents.from_source(calm.history, where="here").report_sections
        if part.title == "Retries and calls"
    ]
    assert part.key_figure_sentences
    assert "given up" not in str(part.key_figure_sentences)
    assert [(row.calls, row.failed, row.retries) for row in contents.rows] == [(2, 0, 0)]
    marks = [event[4] for event in build_timelines(contents)["trials"][0]["events"]]
    assert 1 not in marks  # the tone of what is bad
    (end,) = [event for _, event in trial.history.find_events(CallFinished) if event.is_cancelled]
    assert render_event(end) == "result   find 1.2 cancelled in 0.040 s via function"


def test_a_table_of_calls_says_it() -> None:
    found = Frames(run(by_function, reads=[find]).history).calls
    assert found["given_up"].tolist() == [False, True]
    assert found["ok"].isna().tolist() == [False, True]


def test_a_call_of_no_trial_counts_too() -> None:
    from chaoslab.record.lines import Record

    story = History([Record("", 1.0, "run", None, "info", 1, call(ok=False, error="cancelled"))])
    assert (calls(story).given_up, calls(story).failed) == (1, 0)
