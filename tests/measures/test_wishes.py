"""An incident closes with the right result of an equal request that was under way together with it, if none of them
changed anything."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.analysis.measures import run_report
from chaoslab.analysis.measures.incidents import Ending, Incident, find_incidents
from chaoslab.analysis.measures.mttr import summarize_recovery
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.core.events import AttemptRef, CallFinished, CallStarted, Effect, Event, FaultWitnessed
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.trial_stream import TrialStream
from tests.measure_parts import amplification, calls

Moment = tuple[float, Event]
FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("latency", {"delay_s": 5.0}),
    ("lost_reply", {}),
    ("timeout", {}),
    ("empty_response", {}),
]


async def find(words: str) -> str:
    await asyncio.sleep(0.1)
    return f"tea for {words}"


async def other(words: str) -> str:
    await asyncio.sleep(0.1)
    return f"tea for {words}"


def shop(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    environ["wsgi.input"].read()
    body = json.dumps({"sells": "tea"}).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


async def first_of(asked: list[Awaitable[Any]]) -> str:
    """The first right answer; what is still under way then is cancelled."""
    left = {asyncio.ensure_future(each) for each in asked}
    while left:
        done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        right = [each.result() for each in done if not each.exception() and each.result()]
        if right:
            for each in left:
                each.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            return str(right[0])
    return "nothing"


async def hedged(_: str) -> str:
    return await first_of([find("x"), find("x")])


async def both(_: str) -> str:
    found = await asyncio.gather(find("x"), find("x"), return_exceptions=True)
    return next((each for each in found if isinstance(each, str) and each), "nothing")


def run(agent: Any, *faults: Any, reads: Any = (find, other), **more: Any) -> lab.Trial:
    return lab.run(agent, "x", faults=list(faults), reads=list(reads), facts=["tea"], twin=False, **more)


def ended(trial: lab.Trial) -> list[tuple[int, Ending]]:
    return [(each.request, each.ending) for each in find_incidents(trial.history)]


@pytest.mark.parametrize(("name", "params"), FAULTS)
@pytest.mark.parametrize("number", [1, 2])
def test_the_answer_of_its_twin_closes_the_incident_of_a_hedged_read(
    name: str, params: dict[str, Any], number: int
) -> None:
    trial = run(hedged, lab.inject(name, "find", calls=[number], **params))
    assert trial.outcome is lab.Outcome.CORRECT
    (incident,) = find_incidents(trial.history)
    assert (incident.request, incident.ending, incident.duration_s) == (number, Ending.RETRY, 0.1)
    found = summarize_recovery([incident])
    assert found.mean_s is not None
    assert (found.detected_s, found.since_notice_s) == (0.1, 0.0)
    assert [(each.requests, each.attempts, each.faulted_factor) for each in amplification(trial.history)] == [
        (2, 2, 1.0)
    ]
    assert calls(trial.history).retries == 0


def test_the_time_of_its_notice_and_of_its_repair_add_up_where_the_failure_came_first() -> None:
    (incident,) = find_incidents(run(both, lab.inject("tool_error", "find", calls=[2])).history)
    assert (incident.ending, incident.duration_s, incident.noticed_after_s) == (Ending.RETRY, 0.1, 0.0)
    assert incident.since_notice_s == 0.1


def test_a_late_answer_of_its_own_is_its_end_though_its_twin_was_faster() -> None:
    (incident,) = find_incidents(run(both, lab.inject("latency", "find", calls=[1], delay_s=5.0)).history)
    assert (incident.ending, incident.duration_s) == (Ending.LATE, 5.1)


def test_calls_for_other_things_repair_nothing() -> None:
    async def agent(_: str) -> str:
        return await first_of([find("x"), find("y"), other("x")])

    assert ended(run(agent, lab.inject("lost_reply", "find", calls=[1]))) == [(1, Ending.NEVER)]


def test_the_answer_to_an_earlier_call_for_the_same_repairs_nothing() -> None:
    async def agent(_: str) -> str:
        answer = await find("x")
        await asyncio.gather(find("x"), return_exceptions=True)
        return answer

    assert ended(run(agent, lab.inject("tool_error", "find", calls=[2]))) == [(2, Ending.NEVER)]


def test_an_equal_call_that_changes_something_is_another_wish() -> None:
    async def pay(cents: int) -> str:
        await asyncio.sleep(0.1)
        return f"tea for {cents}"

    async def agent(_: str) -> str:
        await asyncio.gather(pay(3), pay(3), return_exceptions=True)
        return "tea"

    for name in ("lost_reply", "timeout_before_effect", "empty_response"):
        trial = lab.run(agent, "x", tools=[pay], faults=[lab.inject(name, "pay", calls=[1])], facts=["tea"], twin=False)
        assert [event.content for _, event in trial.history.find_events(Effect)], name
        assert ended(trial) == [(1, Ending.NEVER)], name


@pytest.mark.parametrize(("method", "ending"), [("GET", Ending.RETRY), ("POST", Ending.NEVER)])
def test_a_service_is_asked_by_its_methods_what_a_request_changes(method: str, ending: Ending) -> None:
    async def agent(_: str) -> str:
        async with httpx.AsyncClient(timeout=3) as client:

            async def ask(how: str) -> str:
                return (await client.request(how, "http://shop/tea", json={"a": 1})).text

            return await first_of([ask(method), ask(method), ask("POST" if method == "GET" else "GET")])

    trial = run(agent, lab.inject("lost_reply", "shop", calls=[1]), reads=(), services={"shop": shop}, effects=None)
    assert ended(trial) == [(1, ending)]


def test_of_two_questions_to_a_model_nobody_knows_that_they_were_the_same() -> None:
    async def agent(_: str) -> str:
        async with httpx.AsyncClient(timeout=3) as client:

            async def ask(said: str) -> str:
                body = {"model": "m", "messages": [{"role": "user", "content": said}]}
                return (await client.post("http://api.openai.com/v1/chat/completions", json=body)).text

            await asyncio.gather(ask("Where is tea?"), ask("Who sells it?"), return_exceptions=True)
        return "tea"

    model = lab.scripted(["Here is tea.", "Here is tea."])
    fault = lab.inject("lost_reply", "api.openai.com", calls=[1])
    trial = run(agent, fault, reads=(), services={"api.openai.com": model})
    assert [e.arguments for _, e in trial.history.find_events(CallStarted)] == [{"messages": 1}] * 2
    assert ended(trial) == [(1, Ending.NEVER)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_batches_give_the_figures_of_the_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    trials = lab.run_many(
        hedged, "x", trials=20, jobs=jobs, reads=[find], facts=["tea"], logs=tmp_path,
        faults=[lab.inject("lost_reply", "find", chance=0.4)],
    )  # fmt: skip
    own = [each for trial in trials for each in find_incidents(trial.history)]
    folder = tmp_path / "latest"
    monkeypatch.setattr(run_report, "TrialStream", lambda folder: TrialStream(folder, least=1))
    batches, whole = RunReport.from_folder(folder), RunReport.from_history(History.read(folder))
    assert batches == whole
    assert whole.recovery.value is not None
    endings = [each.ending for each in whole.recovery.value.incidents]
    assert endings == [each.ending for each in own]
    assert {Ending.RETRY, Ending.NEVER} == set(endings)  # in some trials both of the two met a fault


# By the events alone.


def ref(request: int, attempt: int = 1, target: str = "search") -> AttemptRef:
    return AttemptRef(target=target, request=request, attempt=attempt, request_id=f"{target} {request}")


def began(t: float, request: int, attempt: int = 1, *, wanted: Any = "tea", target: str = "search") -> Moment:
    return t, CallStarted(at=ref(request, attempt, target), tool="find", arguments=wanted)


def over(t: float, request: int, attempt: int = 1, *, ok: bool, target: str = "search", via: str = "proxy") -> Moment:
    return t, CallFinished(at=ref(request, attempt, target), tool="find", ok=ok, duration_s=0.0, via=via)


def met(t: float, request: int, attempt: int = 1, fault: str = "timeout") -> Moment:
    return t, FaultWitnessed(fault=fault, injection="wire", at=ref(request, attempt))


def done(t: float, *, tool: str = "find", target: str = "search", effect: str = "") -> Moment:
    return t, Effect(
        target=target, tool=tool, request_id="", effect=effect or tool, content={}, reply={}, fingerprint=""
    )


def story(*moments: Moment) -> History:
    number = count()
    return History(Record("", t, "run", "p1.r1", "info", next(number), event) for t, event in moments)


def only(*moments: Moment) -> tuple[Ending, float]:
    incident: Incident = find_incidents(story(*moments))[0]
    return incident.ending, incident.duration_s


FAILED = (began(0, 1), over(4, 1, ok=False), met(4, 1))
CENSORED = (Ending.CENSORED, 9.0)
LAST = over(9, 9, ok=True, target="end")


@pytest.mark.parametrize(
    ("begun_t", "ended_t"), [(0, 3), (1, 3), (4, 5), (4, 8)], ids=["at once", "within", "at its end", "long after"]
)
def test_an_equal_request_that_began_before_its_end_closes_it(begun_t: float, ended_t: float) -> None:
    moments = sorted([*FAILED[:1], began(begun_t, 2), over(ended_t, 2, ok=True), *FAILED[1:]], key=lambda each: each[0])
    assert only(*moments, LAST) == (Ending.RETRY, ended_t)


@pytest.mark.parametrize(
    "more",
    [
        [began(5, 2), over(6, 2, ok=True)],
        [began(4, 2), over(4, 2, ok=True)],
        [began(1, 2, wanted="milk"), over(6, 2, ok=True)],
        [began(1, 2), over(6, 2, ok=False)],
        [began(1, 2, target="stock"), over(6, 2, ok=True, target="stock")],
        [over(6, 2, ok=True)],
        [began(1, 2), done(3), over(6, 2, ok=True)],
        [began(1, 2), done(3, target="server", tool="POST /mcp", effect="find"), over(6, 2, ok=True)],
        [began(1, 2), over(6, 2, ok=True), met(6, 2, fault="wrong_value")],
    ],
    ids=[
        "after it", "at once after it", "for another thing", "that failed", "at another target", "of no beginning",
        "with an effect", "with an effect that its server had", "that was wrong",
    ],
)  # fmt: skip
def test_no_other_request_does(more: list[Moment]) -> None:
    moments = [*FAILED[:1], *[each for each in more if each[0] < 4], *FAILED[1:], *[e for e in more if e[0] >= 4]]
    assert only(*moments, LAST) == CENSORED


@pytest.mark.parametrize(
    ("t", "where"),
    [(2, {"tool": "pay"}), (2, {"target": "stock", "effect": "sold"}), (7, {})],
    ids=["of another tool", "at another target", "after the result"],
)
def test_an_effect_that_is_not_theirs_matters_nothing(t: float, where: dict[str, str]) -> None:
    moments = [*FAILED[:1], began(1, 2), *FAILED[1:], over(6, 2, ok=True), done(t, **where), LAST]
    assert only(*moments) == (Ending.RETRY, 6.0)


def test_a_result_from_before_the_fault_is_none_and_the_next_one_is() -> None:
    moments = [
        began(0, 1), began(0, 2), over(1, 2, ok=True), over(1, 1, ok=False), began(2, 1, 2), began(2, 3),
        over(4, 1, 2, ok=False), met(4, 1, 2), over(5, 3, ok=True), LAST,
    ]  # fmt: skip
    (incident,) = find_incidents(story(*moments))
    assert (incident.opened_t, incident.duration_s, incident.noticed_after_s) == (2.0, 3.0, 2.0)


def test_the_retry_of_one_ends_both_that_had_failed_together() -> None:
    moments = [
        began(0, 1), began(0, 2), over(1, 1, ok=False), met(1, 1), over(2, 2, ok=False), met(2, 2), began(5, 1, 2),
        over(6, 1, 2, ok=True, via="direct"), LAST,
    ]  # fmt: skip
    found = find_incidents(story(*moments))
    assert [(each.ending, each.duration_s, each.noticed_after_s) for each in found] == [
        (Ending.FALLBACK, 6.0, 1.0), (Ending.FALLBACK, 6.0, 2.0),
    ]  # fmt: skip


def test_a_refused_connection_tells_no_wish_and_its_next_attempt_does() -> None:
    refused = [began(0, 1, wanted=None), over(0, 1, ok=False), met(0, 1), began(0, 2, wanted=None)]
    assert only(*refused, over(1, 2, ok=True), LAST) == CENSORED
    again = [began(1, 1, 2), began(1, 3), over(2, 1, 2, ok=False), over(3, 3, ok=True)]
    assert only(*refused, *again, LAST) == (Ending.RETRY, 3.0)
