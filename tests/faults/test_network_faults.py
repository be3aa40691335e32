"""Faults of the wire."""

import asyncio
import gzip
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import aiohttp
import httpx
import pytest
import requests

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import SettingError, Settings
from chaoslab.core.chain import ActiveFault
from chaoslab.core.events import CallFinished, FaultHealed, FaultWitnessed
from chaoslab.core.exchange import Call, Observation, Toxic
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import Pipeline, Signal, Timed
from chaoslab.faults.network.bandwidth import Bandwidth
from chaoslab.faults.network.dns_failure import DnsFailure
from chaoslab.faults.network.jitter import LEAST_S, Jitter
from chaoslab.faults.network.latency import Latency
from chaoslab.faults.network.limit_data import LimitData
from chaoslab.faults.network.refused import Refused
from chaoslab.faults.network.reset_peer import ResetPeer
from chaoslab.faults.network.slicer import Slicer
from chaoslab.faults.network.slow_close import SlowClose
from chaoslab.faults.network.timeout import Timeout
from chaoslab.faults.network.tls_failure import TlsFailure
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.wire import fault_lifecycle, toxics
from chaoslab.wire.fault_lifecycle import make_toxic_info
from tests.event_parts import call_at, fault_at
from tests.faults.fault_parts import Target, meet, saw
from tests.measure_parts import errors

SLICED = Slicer(average_bytes=100, variation_bytes=20, pause_s=0.1)
SLOW = SlowClose(delay_s=1.5, bytes=30)
OF_BYTES: dict[str, tuple[Fault, Observation, str]] = {
    "bandwidth": (
        Bandwidth(2), Observation(0.5, 2.0, None, 200, 1000), "took 0.500 s for 1000 bytes, at most 2 kB/s were armed"
    ),
    "bandwidth, not whole": (
        Bandwidth(2), Observation(0.4, 0.4, "timed_out"), "the answer was not whole after 0.400 s"
    ),
    "limit_data": (
        LimitData(60), Observation(0.1, 2.0, "closed"), "closed in the middle of the answer after 0.100 s"
    ),
    "slicer": (
        SLICED, Observation(1.1, 2.0, None, 200, 1000),
        "took 1.100 s for 1000 bytes in pieces, at least 0.800 s were armed",
    ),
    "slicer, not whole": (SLICED, Observation(0.5, 0.5, "timed_out"), "the answer was not whole after 0.500 s"),
    "slicer, one piece": (
        SLICED, Observation(0.1, 2.0, None, 204), "took 0.100 s for 0 bytes in pieces, at least 0.100 s were armed"
    ),
    "slow_close": (
        SLOW, Observation(1.5, 2.0, "closed"),
        "closed in the middle of the answer after 1.500 s, at least 1.500 s were armed",
    ),
    "slow_close, given up": (
        SLOW, Observation(1.0, 1.0, "timed_out"), "neither the rest of the answer nor its end within 1.000 s"
    ),
}  # fmt: skip
"""A fault of bytes, what its caller saw, and the witness's words."""
MET: dict[str, tuple[Fault, dict[str, Any], str | None, int, float, str | None]] = {
    "dns_failure: the call never leaves": (DnsFailure(), {}, "dns", 0, 0.0, "the name was not found"),
    "jitter: the request is late": (
        Jitter(0.4, stream="upstream"), {}, None, 1, 0.4, "took 0.400 s, at least 0.400 s were armed"
    ),
    "jitter: the answer is late": (
        Jitter(0.4, stream="downstream"), {}, None, 1, 0.4, "took 0.400 s, at least 0.400 s were armed"
    ),
    "latency: the request is late": (
        Latency(0.5, stream="upstream"), {}, None, 1, 0.5, "took 0.500 s, at least 0.500 s were armed"
    ),
    "latency: the answer is late": (
        Latency(0.5, stream="downstream"), {}, None, 1, 0.5, "took 0.500 s, at least 0.500 s were armed"
    ),
    "latency: the request does not arrive in time": (
        Latency(0.5, stream="upstream"), {"deadline_s": 0.4}, "timed_out", 0, 0.4,
        "given up after 0.400 s of the 0.500 s that were armed",
    ),
    "latency: the answer does not arrive in time": (
        Latency(0.5, stream="downstream"), {"deadline_s": 0.4}, "timed_out", 1, 0.4,
        "given up after 0.400 s of the 0.500 s that were armed",
    ),
    "refused: the call never leaves": (Refused(), {}, "refused", 0, 0.0, "connection refused"),
    "reset_peer: the service never hears of it": (
        ResetPeer(stream="upstream"), {}, "reset", 0, 0.0, "connection reset after 0 s"
    ),
    "reset_peer: the work is done before": (
        ResetPeer(0.3, stream="downstream"), {}, "reset", 1, 0.3, "connection reset after 0.300 s"
    ),
    "timeout: the service never hears of it": (
        Timeout(stream="upstream"), {}, "timed_out", 0, 2.0, "no answer within the deadline of 2.00 s"
    ),
    "timeout: the work is done": (
        Timeout(stream="downstream"), {}, "timed_out", 1, 2.0, "no answer within the deadline of 2.00 s"
    ),
    "timeout: with an end it closes before the deadline": (
        Timeout(0.5, stream="downstream"), {}, "closed", 1, 0.5, "closed without an answer after 0.500 s"
    ),
    "timeout: a call that fails by itself meets none": (
        Timeout(stream="downstream"), {"fails": "refused"}, "refused", 1, 0.0, None
    ),
    "tls_failure: the call never leaves": (
        TlsFailure(), {}, "untrusted", 0, 0.0, "the certificate was not trusted"
    ),
}  # fmt: skip
"""The fault, its target, the error, how often the target was asked, after how long, and the witness's words."""


@pytest.mark.parametrize(("fault", "around", "error", "asked", "took_s", "evidence"), MET.values(), ids=MET)
def test_its_caller_meets(
    fault: Fault, around: dict[str, Any], error: str | None, asked: int, took_s: float, evidence: str | None
) -> None:
    met = meet(fault, target := Target(**around))
    assert (met.error, met.reply) == (error, None if error else target.reply)
    assert len(target.sent) == asked
    assert target.now_s == pytest.approx(took_s)
    assert (met.injected, met.evidence) == (evidence is not None, evidence)


@pytest.mark.parametrize(("fault", "seen", "evidence"), OF_BYTES.values(), ids=OF_BYTES)
def test_a_fault_of_bytes_is_witnessed_by_time_and_end(fault: Fault, seen: Observation, evidence: str) -> None:
    assert fault.witnessed(seen) == evidence


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        (Bandwidth(10**6), Observation(0.5, 2.0, None, 200, 1000)),
        (Slicer(pause_s=0.001), Observation(0.5, 2.0, None, 204)),
    ],
)
def test_what_no_watch_could_tell_has_no_witness(fault: Fault, seen: Observation) -> None:
    assert fault.witnessed(seen) is None


@pytest.mark.parametrize(
    ("kind", "otherwise"),
    [
        ("bandwidth", {"duration_s": 0.4}),
        ("bandwidth", {"bytes": 0, "duration_s": 0.005}),
        ("bandwidth", {"status": None}),
        ("bandwidth", {"error": "reset"}),
        ("limit_data", {"error": None, "status": 200}),
        ("limit_data", {"error": "timed_out"}),
        ("slicer", {"duration_s": 0.7}),
        ("slicer", {"bytes": 99, "duration_s": 0.09}),
        ("slicer", {"status": None}),
        ("slicer", {"error": "reset"}),
        ("slow_close", {"duration_s": 1.4}),
        ("slow_close", {"error": None, "status": 200}),
        ("slow_close", {"error": "refused"}),
        ("slow_close", {"error": "timed_out", "duration_s": 0.5}),
    ],
)
def test_who_had_it_sooner_or_otherwise_is_no_witness(kind: str, otherwise: dict[str, Any]) -> None:
    fault, seen, _ = OF_BYTES[kind]
    assert fault.witnessed(replace(seen, **otherwise)) is None


@pytest.mark.parametrize(
    ("fault", "errors"),
    [
        (DnsFailure(), (None, "timed_out", "refused", "untrusted")),
        (Refused(), (None, "timed_out", "reset", "closed")),
        (ResetPeer(0.0, "upstream"), (None, "timed_out", "refused", "closed")),
        (TlsFailure(), (None, "timed_out", "refused", "garbled")),
    ],
)
def test_only_its_own_error_is_its_witness(fault: Fault, errors: tuple[str | None, ...]) -> None:
    assert fault.witnessed(meet(fault).seen)
    assert [fault.witnessed(saw(error=other)) for other in errors] == [None] * 4


WATCHED: dict[str, tuple[Fault, list[dict[str, Any]], list[dict[str, Any]]]] = {
    "jitter": (Jitter(0.4), [], [{"after_s": 0.1}, {"error": "reset", "after_s": 0.5}]),
    "latency": (
        Latency(0.5, stream="upstream"),
        [{"after_s": 0.51}, {"after_s": 0.5 - 0.002}, {"after_s": 0.2985, "deadline_s": 0.3, "error": "timed_out"}],
        [
            {"after_s": 0.4975}, {"after_s": 0.4}, {"after_s": 0.6, "error": "reset"},
            {"after_s": 0.2975, "deadline_s": 0.3, "error": "timed_out"},
        ],
    ),
    "timeout that is silent": (
        Timeout(0.0, "upstream"),
        [{"error": "timed_out", "after_s": 2.0 - 0.002}],
        [
            {}, {"error": "timed_out", "after_s": 1.9975},
            {"error": "timed_out", "after_s": 0.3},  # some other, shorter deadline
            {"error": "closed", "after_s": 1.0},  # this one never closes
            # something else came of it at the last moment
            {"error": None, "after_s": 2.0}, {"error": "closed", "after_s": 2.0}, {"error": "refused", "after_s": 2.0},
        ],
    ),
    "timeout with an end": (
        Timeout(0.5, "upstream"),
        [{"error": "closed", "after_s": 0.5 - 0.002}, {"error": "reset", "after_s": 0.5}],
        [
            {"error": "closed", "after_s": 0.4975}, {"error": "closed", "after_s": 0.2},  # somebody else closed it
            {"after_s": 0.5}, {"error": "refused", "after_s": 0.5}, {"error": "timed_out", "after_s": 0.5},
        ],
    ),
}  # fmt: skip
"""The fault, observations that are its witnesses, and some that are none."""


@pytest.mark.parametrize(("fault", "some", "none"), WATCHED.values(), ids=WATCHED)
def test_the_watch_of_another_process_may_run_two_milliseconds_ahead(
    fault: Fault, some: list[dict[str, Any]], none: list[dict[str, Any]]
) -> None:
    assert all(fault.witnessed(saw(**seen)) for seen in some)
    assert [fault.witnessed(saw(**seen)) for seen in none] == [None] * len(none)


@pytest.mark.parametrize(
    ("fault", "carried", "words"),
    [
        (Bandwidth(2), [Toxic("bandwidth", "downstream", {"rate_kb_s": 2})], {"rate": 2}),
        (Jitter(0.4, stream="upstream"), [Toxic("latency", "upstream", {"delay_s": 0.4})], {"latency": 400}),
        (Jitter(0.4, stream="downstream"), [Toxic("latency", "downstream", {"delay_s": 0.4})], {"latency": 400}),
        (Latency(0.25, stream="upstream"), [Toxic("latency", "upstream", {"delay_s": 0.25})], {"latency": 250}),
        (LimitData(9), [Toxic("limit_data", "downstream", {"bytes": 9})], {"bytes": 9}),
        (ResetPeer(0.3, "upstream"), [Toxic("reset_peer", "upstream", {"after_s": 0.3})], {"timeout": 300}),
        (
            SLICED,
            [
                Toxic("slicer", "downstream", {"average_bytes": 100, "variation_bytes": 20, "pause_s": 0.1}),
                Toxic("latency", "downstream", {"delay_s": 0.1}),
            ],
            {"average_size": 100, "size_variation": 20, "delay": 100_000, "latency": 100},
        ),
        (Timeout(0.5, "upstream"), [Toxic("timeout", "upstream", {"after_s": 0.5})], {"timeout": 500}),
    ],
)
def test_it_is_toxiproxys_toxic(fault: Fault, carried: list[Toxic], words: dict[str, int]) -> None:
    assert fault.toxics() == tuple(carried)
    assert {name: value for each in carried for name, value in make_toxic_info(each).attributes.items()} == words


@pytest.mark.parametrize("make", [ResetPeer, Timeout])
def test_the_stream_is_drawn_unless_it_is_named(make: Callable[..., Any]) -> None:
    drawn = [make().draw(Dice(1, n)) for n in range(50)]
    assert drawn == [make().draw(Dice(1, n)) for n in range(50)]
    assert {fault.stream for fault in drawn} == {"upstream", "downstream"}
    for stream in ("upstream", "downstream"):
        assert {make(stream=stream).draw(Dice(n)).stream for n in range(50)} == {stream}


@pytest.mark.parametrize("make", [partial(Latency, 0.5), partial(Jitter, 0.5)])
def test_the_reply_is_late_unless_a_direction_is_asked_for(make: Callable[..., Any]) -> None:
    assert {make().draw(Dice(1, n)).stream for n in range(20)} == {"downstream"}
    assert {make(stream="upstream").draw(Dice(1, n)).stream for n in range(20)} == {"upstream"}
    assert {make(stream="").draw(Dice(1, n)).stream for n in range(50)} == {"upstream", "downstream"}


# bandwidth: The line is slow, so a large answer takes its time.


def test_an_answer_without_a_body_is_late_by_its_head() -> None:
    seen = Observation(0.15, 2.0, None, 200)
    assert Bandwidth(1).witnessed(seen) == "took 0.150 s for 0 bytes, at most 1 kB/s were armed"


def test_a_packed_answer_takes_the_time_of_its_packed_bytes() -> None:
    """It is 25 times as long when it is unpacked."""

    def shop(_environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        packed = gzip.compress(b"tea and " * 1000)
        start_response("200 OK", [("Content-Encoding", "gzip"), ("Content-Length", str(len(packed)))])
        return [packed]

    def agent(_prompt: str) -> str:
        return str(len(httpx.get("http://shop.test/list", timeout=5).content))

    trial = lab.run(agent, "x", services={"shop.test": shop}, faults=[lab.inject("bandwidth", "shop.test")])
    assert (trial.answer, trial.outcome) == ("8000", lab.Outcome.CORRECT)
    (call,) = (event for _, event in trial.history.find_events(CallFinished))
    assert call.bytes < 400
    assert call.duration_s == pytest.approx(call.bytes / 1000, abs=0.05)


# dns_failure: The name is not found: the call never leaves.


def shop(request: Any) -> dict[str, Any]:
    return {"path": request.path}


def by_name(_: str) -> list[str]:
    met = []
    for _again in range(3):
        try:
            met.append(str(requests.get("http://shop/orders", timeout=5).status_code))
        except requests.ConnectionError as error:
            met.append("Name or service not known" if "Name or service not known" in str(error) else str(error))
    return met


def by_address(_: str) -> int:
    host = socket.gethostbyname("shop")
    return httpx.get(f"http://{host}/orders", timeout=5).status_code


def test_a_name_is_not_found_and_the_next_lookup_finds_it() -> None:
    trial = lab.run(by_name, "go", services={"shop": shop}, faults=[lab.inject("dns_failure", "shop", calls=[1])])
    assert trial.answer == ["Name or service not known", "200", "200"]
    ends = [(e.request, e.attempt, e.error) for _, e in trial.history.find_events(CallFinished)]
    assert ends[:2] == [(1, 1, "dns"), (1, 2, None)]
    assert [e.evidence for _, e in trial.history.find_events(FaultWitnessed)] == ["the name was not found"]


def test_a_client_that_asks_by_address_looks_up_nothing() -> None:
    fault = lab.inject("dns_failure", "shop", chance=1.0)
    with pytest.warns(lab.NothingHit, match="'dns_failure on shop' hit nothing"):
        trial = lab.run(by_address, "go", services={"shop": shop}, faults=[fault], twin=False)
    assert trial.answer == 200
    assert not list(trial.history.find_events(FaultWitnessed))


def test_an_address_behind_a_kept_connection_is_closed_so_that_its_client_looks_up_again() -> None:
    def agent(_: str) -> list[str]:
        met = []
        with httpx.Client(timeout=5) as client:
            for _again in range(3):
                try:
                    met.append(str(client.get("http://shop/orders").status_code))
                except httpx.ConnectError as error:
                    met.append(str(error))
        return met

    trial = lab.run(agent, "go", services={"shop": shop}, faults=[lab.inject("dns_failure", "shop", calls=[2])])
    assert trial.answer == ["200", "[Errno -2] Name or service not known", "200"]


@pytest.mark.parametrize(("setting", "line"), [
    ({"TOXICS": "dns_failure:1"}, "TOXICS names 'dns_failure', a fault of the layer tool: name it in FAULTS"),
    ({"FAULTS": "tls_failure:0.1"}, "FAULTS names 'tls_failure', and the tools speak no TLS: name tls_failure@model"),
])  # fmt: skip
def test_a_setting_that_cannot_carry_it_says_which_can(setting: dict[str, str], line: str) -> None:
    with pytest.raises(SettingError) as refused:
        plan_from_settings(Settings().override(setting))
    assert refused.value.args[0] == line


def test_the_lab_takes_it_among_the_faults() -> None:
    plan = plan_from_settings(Settings().override({"FAULTS": "dns_failure@search:0.1,tls_failure@model:0.1"}))
    assert {"dns_failure@search", "tls_failure@model"} <= {each.name for each in plan.injections}


# jitter: Each call is late by another time.


def test_the_delay_is_drawn_evenly_up_to_its_most() -> None:
    drawn = [Jitter(2.0).draw(Dice(1, number)).jitter_s for number in range(2000)]
    assert all(LEAST_S <= each <= 2.0 for each in drawn)
    assert len(set(drawn)) > 1000
    assert abs(sum(drawn) / len(drawn) - 1.0) < 0.05
    assert sum(each < 0.5 for each in drawn) > 400


# latency: How late, is drawn once.


def test_a_failed_attempt_that_was_only_late_besides_counts_for_what_failed_it() -> None:
    met = [
        FaultWitnessed(**fault_at(name, "any", "weather", 1, 1, "id"), evidence="seen")
        for name in ("latency", "tool_error")
    ]
    failed = CallFinished(**call_at("weather", "current_weather", 1, 1, "id"), ok=False, duration_s=0.6, status=503)
    history = History(Record("", 1.0, "run", "p1.r1", "info", n, event) for n, event in enumerate([*met, failed]))
    assert errors(history) == {"weather 503": {"tool_error": 1}}


def test_a_delay_is_drawn_to_the_millisecond_within_its_jitter_and_is_never_negative() -> None:
    assert Latency().draw(Dice(1)).delay_s == 0.5
    drawn = [Latency(0.5, jitter_s=0.2).draw(Dice(1, n)) for n in range(200)]
    assert all(fault.jitter_s == 0 for fault in drawn)
    delays = [fault.delay_s for fault in drawn]
    assert 0.3 <= min(delays) < 0.35 < 0.65 < max(delays) <= 0.7
    assert delays == [round(delay_s, 3) for delay_s in delays]
    assert any(delay_s != round(delay_s, 2) for delay_s in delays)
    assert min(Latency(0.1, jitter_s=1.0).draw(Dice(n)).delay_s for n in range(50)) == 0.0


# limit_data: The connection closes after some bytes of the answer.


def taken(faults: Any) -> bytes:
    """The bytes of an answer that a client takes."""

    def agent(_: str) -> str:
        with socket.create_connection(("shop", 80), timeout=5) as line:
            line.sendall(b"GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
            return b"".join(iter(lambda: line.recv(4096), b"")).hex()

    return bytes.fromhex(lab.run(agent, "go", services={"shop": shop}, faults=faults, twin=False).answer)


def test_an_answer_of_so_many_bytes_comes_whole_and_at_once() -> None:
    size = len(taken(()))
    for fault in ("limit_data", "slow_close"):
        assert taken([lab.inject(fault, "shop", bytes=size - 1)]) == taken(())[:-1]
        with pytest.warns(lab.NothingHit, match=f"'{fault} on shop'"):
            assert taken([lab.inject(fault, "shop", bytes=size)]) == taken(())


def test_a_lane_lets_a_shorter_answer_through_and_says_so() -> None:
    whole = Observation(0.1, 1.0, None, 200, bytes=40)
    call = Call("shop", "GET /", "p1.r1", 1, 1)

    def healed(seen: Observation) -> tuple[bool, str]:
        (event,) = fault_lifecycle.iterate_healed_events([ActiveFault("cut", "limit_data", LimitData(60))], call, seen)
        assert isinstance(event, FaultHealed)
        return event.witnessed, event.idle

    assert healed(whole) == (False, "nothing to cut: the answer has 40 bytes, and 60 are let through")
    for seen in (replace(whole, bytes=61), replace(whole, error="timed_out"), replace(whole, status=None)):
        assert healed(seen) == (False, "")


# refused: Nobody listens.


def test_nothing_is_drawn_and_it_needs_no_lane_and_no_toxics() -> None:
    assert Refused().draw(Dice(1)) == Refused()
    assert (Refused.refuses, Refused().toxics()) == (True, ())


# slicer: The answer comes in small pieces with pauses between them.


def test_a_service_that_answers_204_is_late_and_the_trial_is_valid() -> None:
    def quiet(_: Any, start_response: Any) -> list[bytes]:
        start_response("204 No Content", [])
        return []

    def agent(_: str) -> int:
        return httpx.delete("http://shop/orders/1", timeout=5).status_code

    trial = lab.run(agent, "go", services={"shop": quiet}, faults=[lab.inject("slicer", "shop", calls=[1])])
    assert (trial.answer, round(trial.seconds, 3)) == (204, 0.01)
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)] == ["slicer"]


# slow_close: The answer stops in its middle, and the connection closes late.


def test_a_lane_lets_a_shorter_answer_through_and_says_so_of_slow_close() -> None:
    whole = Observation(0.1, 1.0, None, 200, bytes=20)
    assert SLOW.explain_idle(whole) == "nothing to cut: the answer has 20 bytes, and 30 are let through"
    assert SLOW.explain_idle(replace(whole, bytes=31)) == ""


def test_its_toxics_cut_first_and_then_close_late() -> None:
    assert SLOW.toxics() == (*LimitData(30).toxics(), Toxic("slow_close", "downstream", {"delay_s": 1.5}))
    limit, slow = map(make_toxic_info, SLOW.toxics())
    assert (limit.attributes, slow.attributes) == ({"bytes": 30}, {"delay": 1500})
    chain = Pipeline()
    for each in (limit, slow):
        chain.add(each.name, toxics.load_toxic(each.type)(**each.attributes).pipe(Dice(1), 0.0), 0.0)
    chain.feed(Timed(0.2, b"x" * 50))
    assert chain.poll(9.0) == [Timed(0.2, b"x" * 30), Timed(1.7, Signal.END)]


def test_a_client_of_a_service_waits_for_the_close() -> None:
    def shop(_: object) -> dict[str, str]:
        return {"text": "x" * 100}

    def agent(_: str) -> str:
        try:
            return httpx.get("http://shop/orders/1", timeout=5).text
        except httpx.RemoteProtocolError as error:
            return type(error).__name__

    trial = lab.run(agent, "go", services={"shop": shop}, faults=[lab.inject("slow_close", "shop", delay_s=3.0)])
    assert (trial.answer, round(trial.seconds, 3)) == ("RemoteProtocolError", 3.0)
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)] == ["slow_close"]


def test_a_function_has_no_bytes_to_cut() -> None:
    def order(number: int) -> dict[str, int]:
        return {"order": number}

    with pytest.raises(ValueError, match=r"slow_close .*bytes"):
        lab.run(lambda _: order(1), "go", tools=[order], faults=[lab.inject("slow_close", "order")])


# tls_failure: The certificate has expired: every client that checks it ends the handshake.


URL = "https://shop/orders"


def by_urllib() -> int:
    with urllib.request.urlopen(URL, timeout=5) as reply:
        return int(reply.status)


def by_httpx_async() -> int:
    async def ask() -> int:
        async with httpx.AsyncClient(timeout=5) as client:
            return (await client.get(URL)).status_code

    return asyncio.run(ask())


def by_aiohttp() -> int:
    async def ask() -> int:
        async with aiohttp.ClientSession() as session, session.get(URL) as reply:
            return reply.status

    return asyncio.run(ask())


CLIENTS: dict[str, tuple[Callable[[], int], type[Exception]]] = {
    "urllib": (by_urllib, urllib.error.URLError),
    "requests": (lambda: requests.get(URL, timeout=5).status_code, requests.exceptions.SSLError),
    "httpx": (lambda: httpx.get(URL, timeout=5).status_code, httpx.ConnectError),
    "httpx, async": (by_httpx_async, httpx.ConnectError),
    "aiohttp": (by_aiohttp, aiohttp.ClientConnectorCertificateError),
}


@pytest.mark.parametrize(("client", "error"), CLIENTS.values(), ids=CLIENTS)
def test_every_client_meets_its_own_error_once(client: Callable[[], int], error: type[Exception]) -> None:
    def agent(_: str) -> list[Any]:
        met: list[Any] = []
        for _again in range(2):
            try:
                met.append(client())
            except Exception as caught:  # noqa: BLE001 - it is what is looked at
                met.append((type(caught) is error, "certificate has expired" in repr(caught) + str(caught)))
        return met

    trial = lab.run(agent, "go", services={"shop": shop}, faults=[lab.inject("tls_failure", "shop", calls=[1])])
    assert trial.answer == [(True, True), 200]
    assert [e.error for _, e in trial.history.find_events(CallFinished)][:2] == ["untrusted", None]
    assert [e.evidence for _, e in trial.history.find_events(FaultWitnessed)] == ["the certificate was not trusted"]


@pytest.mark.parametrize("url", ["http://shop/orders", URL])
def test_a_client_that_checks_no_certificate_does_not_meet_it(url: str) -> None:
    def agent(_: str) -> int:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return httpx.get(url, timeout=5, verify=context).status_code

    fault = lab.inject("tls_failure", "shop", chance=1.0)
    with pytest.warns(lab.NothingHit, match="'tls_failure on shop' hit nothing"):
        trial = lab.run(agent, "go", services={"shop": shop}, faults=[fault], twin=False)
    assert trial.answer == 200
    assert not list(trial.history.find_events(FaultWitnessed))
