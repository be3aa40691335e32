"""Faults of a service's process, met by real clients in virtual time."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import httpx
import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

import chaoslab as lab
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import SettingError, Settings
from chaoslab.core.events import CallFinished, Effect, FaultInjected, FaultWitnessed
from chaoslab.core.inject import check_injections
from chaoslab.execution._validation import check_services_resettable
from chaoslab.execution.upstreams import check_no_refusing_faults
from chaoslab.faults.process.crash_after_effect import CrashAfterEffect
from chaoslab.faults.process.service_down import ServiceDown
from chaoslab.faults.process.service_paused import ServicePaused
from chaoslab.lab.launch import make_lab_spec
from tests.faults.fault_parts import Target, meet, saw
from tests.waiting import together
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


def make_bank() -> Callable[..., Iterable[bytes]]:
    """A bank that counts its transfers in its own memory, and obeys idempotency keys."""
    done: list[str] = []

    def bank(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        key = environ.get("HTTP_IDEMPOTENCY_KEY")
        if environ["REQUEST_METHOD"] == "POST" and (key is None or key not in done):
            done.append(key or f"#{len(done)}")
        if environ["PATH_INFO"] == "/slow":
            time.sleep(1)
        body = json.dumps({"transfers": len(done)}).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    return bank


def asked(client: httpx.Client, method: str = "GET", path: str = "/") -> str:
    try:
        return str(client.request(method, f"http://bank{path}").json()["transfers"])
    except httpx.HTTPError as error:
        return type(error).__name__


def ends(trial: Any) -> list[tuple[int, int, str | None]]:
    return [(e.request, e.attempt, e.error) for _, e in trial.history.find_events(CallFinished)]


def evidence(trial: Any) -> list[str]:
    return [e.evidence for _, e in trial.history.find_events(FaultWitnessed)]


def in_a_row(*pauses_s: float) -> Callable[[str], list[str]]:
    """An agent that asks over one client, with pauses between."""

    def agent(_: str) -> list[str]:
        met = []
        with httpx.Client(timeout=5) as client:
            for pause_s in (0.0, *pauses_s):
                time.sleep(pause_s)
                met.append(asked(client, "POST"))
        return met

    return agent


@pytest.mark.parametrize(("state", "last"), [("kept", "2"), ("lost", "1")])
def test_a_service_is_down_for_its_time_and_comes_back_with_its_state_or_without(state: str, last: str) -> None:
    fault = lab.inject("service_down", "bank", calls=[2], down_s=3, state=state)
    services = {"bank": lab.fresh(make_bank)}
    trial = lab.run(in_a_row(0, 1, 1, 1.5), "go", services=services, faults=[fault], twin=False)
    assert trial.answer == ["1", "ReadError", "ConnectError", "ConnectError", last]
    assert ends(trial)[:4] == [(1, 1, None), (2, 1, "reset"), (2, 2, "refused"), (2, 3, "refused")]
    assert ends(trial)[4][1:] == (4, None)
    refused = "connection refused"
    assert evidence(trial) == ["connection reset, nothing was done", refused, refused]


def test_another_fault_comes_after_two_outages_and_a_request_to_a_paused_process_begins_none() -> None:
    def agent(_: str) -> None:
        with httpx.Client(timeout=9) as client:
            together(*[lambda: asked(client)] * 2)
            asked(client), asked(client), asked(client)

    outage = lab.inject("service_paused", "bank", paused_s=2, max_times=2)
    late = lab.inject("latency", "bank", after=[outage.name, 2], delay_s=0.5)
    trial = lab.run(agent, "go", services={"bank": make_bank()}, faults=[outage, late], twin=False)
    found = sorted((e.at.request, e.at.attempt, e.fault) for _, e in trial.history.find_events(FaultInjected))
    paused = [(number, 1, "service_paused") for number in (1, 2, 3)]
    assert found == [*paused, (4, 1, "latency"), (5, 1, "latency")]


def retrying(**headers: str) -> Callable[[str], str]:
    def agent(_: str) -> str:
        with requests.Session() as session:
            session.mount("http://", HTTPAdapter(max_retries=Retry(6, backoff_factor=0.5, allowed_methods=None)))
            session.post("http://bank/transfers", json={"to": "ann", "amount": 5}, headers=headers, timeout=5)
        return "5 to ann"

    return agent


@pytest.mark.parametrize(("headers", "outcome", "effects"), [
    ({}, lab.Outcome.HARM, 2), ({"Idempotency-Key": "a7"}, lab.Outcome.CORRECT, 1)
])  # fmt: skip
def test_a_retry_after_a_crash_transfers_twice_unless_it_has_a_key(
    headers: dict[str, str], outcome: lab.Outcome, effects: int
) -> None:
    fault = lab.inject("crash_after_effect", "bank", calls=[1], down_s=2)
    trial = lab.run(retrying(**headers), "go", services={"bank": make_bank()}, faults=[fault])
    assert trial.outcome is outcome, trial.story()
    assert len(trial.effects) == effects
    assert evidence(trial)[0] == "connection reset, the work was done"
    assert set(evidence(trial)[1:]) == {"connection refused"}
    assert trial.seconds > 2


def test_a_paused_service_answers_all_when_it_goes_on() -> None:
    def agent(_: str) -> list[float]:
        began_s, took = time.monotonic(), []

        def ask(after_s: float) -> None:
            time.sleep(after_s)
            assert httpx.get("http://bank/", timeout=30).status_code == 200
            took.append(round(time.monotonic() - began_s, 1))

        together(*(partial(ask, after_s) for after_s in (0.0, 2.0, 11.0)))
        return sorted(took)

    fault = lab.inject("service_paused", "bank", calls=[1], paused_s=10)
    trial = lab.run(agent, "go", services={"bank": make_bank()}, faults=[fault], twin=False)
    assert trial.answer == [10.0, 10.0, 11.0], trial.story()
    assert [words.rpartition(" for ")[2] for words in evidence(trial)] == ["10.000 s", "8.000 s"]


def test_who_gave_up_on_a_paused_service_and_asked_again_has_asked_twice() -> None:
    def agent(_: str) -> str:
        for _again in range(4):
            try:
                return httpx.post("http://bank/", timeout=4).text
            except httpx.ReadTimeout:
                pass
        return "no answer"

    fault = lab.inject("service_paused", "bank", calls=[1], paused_s=10)
    trial = lab.run(agent, "go", services={"bank": lab.fresh(make_bank)}, faults=[fault])
    assert [end[2] for end in ends(trial)] == ["timed_out", "timed_out", None]
    assert (trial.outcome, len(list(trial.history.find_events(Effect)))) == (lab.Outcome.HARM, 3), trial.story()


def test_a_call_under_way_breaks_with_the_process_of_another_call() -> None:
    def agent(_: str) -> list[str]:
        met: dict[str, str] = {}

        def ask(path: str, after_s: float) -> None:
            with httpx.Client(timeout=5) as client:
                time.sleep(after_s)
                met[path] = asked(client, path=path)

        together(partial(ask, "/slow", 0.0), partial(ask, "/quick", 0.5))
        return [met["/slow"], met["/quick"]]

    fault = lab.inject("service_down", "bank", tool="GET /quick")
    trial = lab.run(agent, "go", services={"bank": make_bank()}, faults=[fault], twin=False)
    assert trial.answer == ["ReadError", "ReadError"], trial.story()
    assert sorted(evidence(trial)) == ["connection reset", "connection reset, nothing was done"]


async def clock(scope: dict[str, Any], _: Any, send: Any) -> None:
    """Tells each second, three times."""
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    for second in range(3 if scope["path"] == "/clock" else 1):
        await send({"type": "http.response.body", "body": b"data: %d\n\n" % second, "more_body": True})
        await asyncio.sleep(1)
    await send({"type": "http.response.body", "body": b""})


def test_a_stream_under_way_stands_still_while_its_service_is_paused() -> None:
    async def agent(_: str) -> list[float]:
        async with httpx.AsyncClient(timeout=30) as client:
            other = asyncio.ensure_future(later(client))
            began_s, came = time.monotonic(), []
            async with client.stream("GET", "http://clock/clock") as reply:
                async for _part in reply.aiter_bytes():
                    came.append(round(time.monotonic() - began_s, 1))
            await other
            return came

    async def later(client: httpx.AsyncClient) -> None:
        await asyncio.sleep(0.5)
        await client.get("http://clock/pause")

    fault = lab.inject("service_paused", "clock", tool="GET /pause", paused_s=5)
    trial = lab.run(agent, "go", services={"clock": clock}, faults=[fault], twin=False)
    assert trial.answer == [0.0, 5.5, 5.5], trial.story()
    assert len(evidence(trial)) == 2


def test_all_three_at_once_are_met_by_whom_they_hit_and_a_seed_draws_them_again() -> None:
    async def agent(_: str) -> None:
        async with httpx.AsyncClient(timeout=8) as client:
            await asyncio.gather(*(ask(client, nth * 0.7) for nth in range(40)))

    async def ask(client: httpx.AsyncClient, after_s: float) -> None:
        await asyncio.sleep(after_s)
        with contextlib.suppress(httpx.HTTPError):
            await client.get("http://bank/slow")

    faults = [
        lab.inject(name, "bank", chance=0.15) for name in ("service_down", "crash_after_effect", "service_paused")
    ]
    stories = []
    for seed in (5, 5, 6):
        trial = lab.run(agent, "go", services={"bank": make_bank()}, faults=faults, seed=seed, twin=False)
        injected = [(e.injection, e.request, e.attempt) for _, e in trial.history.find_events(FaultInjected)]
        met = [(e.injection, e.request, e.attempt) for _, e in trial.history.find_events(FaultWitnessed)]
        assert sorted(injected) == sorted(met)
        assert {name.partition(" ")[0] for name, _, _ in met} == {each.choices[0].fault for each in faults}
        stories.append(trial.story())
    assert stories[0] == stories[1] != stories[2]


def test_only_the_own_end_of_a_call_is_a_witness() -> None:
    assert meet(CrashAfterEffect(), target := Target()).evidence == "connection reset, the work was done"
    assert len(target.sent) == 1
    assert meet(ServiceDown(), target := Target()).evidence == "connection reset, nothing was done"
    assert target.sent == []
    for fault in (ServiceDown(), CrashAfterEffect(), ServicePaused()):
        assert fault.witnessed(saw(error=None)) is None
    assert meet(ServicePaused(1.0)).evidence == "took 1.000 s, of which the service was paused for 1.000 s"


def test_a_target_without_a_process_is_told_what_has_one() -> None:
    fault = lab.inject("service_down", "refund")
    with pytest.raises(ValueError, match="service_down stops a process, and refund is a function: aim it at a service"):
        check_injections([fault], ["refund"], functions=["refund"])
    with pytest.raises(ValueError, match="a service behind a gateway is none of the lab's: use reset_peer or timeout"):
        check_no_refusing_faults([fault], ["refund"])
    lost = lab.inject("service_down", "bank", state="lost")
    with pytest.raises(ValueError, match=r"'bank': lab\.fresh\(make\)"):
        lab.run(in_a_row(), "go", services={"bank": make_bank()}, faults=[lost])
    check_services_resettable([lost, fault], {"bank": lab.fresh(make_bank), "shop": make_bank()})
    with pytest.raises(
        SettingError, match="'service_down@search', which stops a tool's process, and the virtual world"
    ):
        make_lab_spec(Settings().override({"FAULTS": "service_down@search:0.1", "WORLD": "virtual"}), [])
    with pytest.raises(SettingError, match="service_down stops the process of a service, not of the model"):
        plan_from_settings(Settings().override({"FAULTS": "service_down@model:0.1"}))
    assert plan_from_settings(Settings().override({"FAULTS": "service_down@search:0.1"})).outage_targets == ("search",)
    assert plan_from_settings(Settings().override({"FAULTS": "tool_error:0.1"})).outage_targets == ()
    with pytest.raises(ValueError, match=r"down_s of service_down is 0: it should be a number from 0\.001 to 86400"):
        lab.inject("service_down", "bank", down_s=0)


def test_a_request_to_a_paused_service_names_every_fault_that_could_hit_it() -> None:
    outage = lab.inject("service_paused", "bank", calls=[1], paused_s=2)
    never = lab.inject("limit_data", "bank", chance=1e-9)

    def agent(_: str) -> None:
        one = threading.Thread(target=lambda: asked(httpx.Client(timeout=9)))
        one.start()
        time.sleep(0.5)
        asked(httpx.Client(timeout=9))
        one.join()

    trial = lab.run(agent, "go", services={"bank": make_bank()}, faults=[outage, never], twin=False)
    rolled = [sorted(event.rolled) for _, event in trial.history.find_events(CallFinished)]
    assert rolled == [sorted([outage.name, never.name])] * 2
