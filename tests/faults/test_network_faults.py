"""Faults of the wire. Those with a guard of mutations have files of their own."""

import asyncio
import gzip
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import aiohttp
import httpx
import pytest
import requests

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.config.scenario import from_settings
from chaoslab.config.settings import SettingError, Settings
from chaoslab.core.chain import ActiveFault
from chaoslab.core.events import CallFinished, FaultHealed, FaultWitnessed
from chaoslab.core.exchange import Call, Observation, Reply, Toxic
from chaoslab.core.inject import inject
from chaoslab.core.pipe import Pipeline, Signal, Timed
from chaoslab.faults.network.bandwidth import Bandwidth
from chaoslab.faults.network.dns_failure import DnsFailure
from chaoslab.faults.network.jitter import LEAST_S, Jitter
from chaoslab.faults.network.limit_data import LimitData
from chaoslab.faults.network.slicer import Slicer
from chaoslab.faults.network.slow_close import SlowClose
from chaoslab.faults.network.tls_failure import TlsFailure
from chaoslab.wire import fault_lifecycle, toxics
from chaoslab.wire.fault_lifecycle import in_toxiproxys_words
from tests.faults.fault_parts import Target, answer, meet, saw

# bandwidth: The line is slow, so a large answer takes its time.


LARGE = answer("x" * 1000)
TAKES_S = LARGE.wire_bytes / 2000


def test_the_whole_answer_comes_as_late_as_its_bytes_make_it() -> None:
    met = meet(Bandwidth(2), target := Target(reply=LARGE))
    assert (met.reply, target.now_s) == (LARGE, TAKES_S)
    assert 0.5 < TAKES_S < 0.6
    assert met.evidence == f"took {TAKES_S:.3f} s for 1002 bytes, at most 2 kB/s were armed"


def test_one_that_is_too_large_is_not_whole_at_the_deadline() -> None:
    met = meet(Bandwidth(2), Target(reply=LARGE, deadline_s=0.4))
    assert (met.error, met.evidence) == ("timed_out", "the answer was not whole after 0.400 s")


def test_who_had_it_sooner_or_had_nothing_met_no_slow_line() -> None:
    met = meet(Bandwidth(2), Target(reply=LARGE))
    for seen in (
        replace(met.seen, duration_s=0.4),
        replace(met.seen, bytes=0, duration_s=0.005),
        replace(met.seen, status=None),
        replace(met.seen, error="reset"),
    ):
        assert Bandwidth(2).witnessed(seen) is None


def test_an_answer_without_a_body_is_late_by_its_head() -> None:
    seen = replace(meet(Bandwidth(1)).seen, bytes=0, duration_s=0.15)
    assert Bandwidth(1).witnessed(seen) == "took 0.150 s for 0 bytes, at most 1 kB/s were armed"


def test_a_line_so_fast_that_no_watch_could_tell_has_no_witness() -> None:
    met = meet(Bandwidth(10**6), Target(reply=LARGE))
    assert (met.injected, met.evidence) == (True, None)


def test_it_is_the_toxic_of_that_name() -> None:
    assert Bandwidth(2).toxics() == (Toxic("bandwidth", "downstream", {"rate_kb_s": 2}),)
    assert in_toxiproxys_words(Bandwidth(2).toxics()[0]).attributes == {"rate": 2}


def test_a_line_that_lets_nothing_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="rate_kb_s of bandwidth is 0: it should be a whole number from 1 to"):
        inject("bandwidth", "crm", rate_kb_s=0)


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
    (call,) = (event for _, event in trial.history.of(CallFinished))
    assert call.bytes < 400
    assert call.duration_s == pytest.approx(call.bytes / 1000, abs=0.05)


# dns_failure: The name is not found: the call never leaves.


def test_the_call_never_leaves() -> None:
    met = meet(DnsFailure(), target := Target())
    assert (met.error, target.sent, target.now_s, met.injected) == ("unresolved", [], 0.0, True)
    assert met.evidence == "the name was not found"


def test_only_a_name_that_was_not_found_is_its_witness() -> None:
    for other in (None, "timed_out", "refused", "untrusted"):
        assert DnsFailure().witnessed(saw(error=other)) is None


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
    ends = [(e.request, e.attempt, e.error) for _, e in trial.history.of(CallFinished)]
    assert ends[:2] == [(1, 1, "unresolved"), (1, 2, None)]
    assert [e.evidence for _, e in trial.history.of(FaultWitnessed)] == ["the name was not found"]


def test_a_client_that_asks_by_address_looks_up_nothing() -> None:
    fault = lab.inject("dns_failure", "shop", chance=1.0)
    with pytest.warns(lab.NothingHit, match="'dns_failure on shop' hit nothing"):
        trial = lab.run(by_address, "go", services={"shop": shop}, faults=[fault], twin=False)
    assert trial.answer == 200
    assert not list(trial.history.of(FaultWitnessed))


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
        from_settings(Settings().override(setting))
    assert refused.value.args[0] == line


def test_the_lab_takes_it_among_the_faults() -> None:
    plan = from_settings(Settings().override({"FAULTS": "dns_failure@search:0.1,tls_failure@model:0.1"}))
    assert {"dns_failure@search", "tls_failure@model"} <= {each.name for each in plan.injections}


# jitter: Each call is late by another time.


def test_the_delay_is_drawn_evenly_up_to_its_most() -> None:
    drawn = [Jitter(2.0).draw(Dice(1, number)).jitter_s for number in range(2000)]
    assert all(LEAST_S <= each <= 2.0 for each in drawn)
    assert len(set(drawn)) > 1000
    assert abs(sum(drawn) / len(drawn) - 1.0) < 0.05
    assert sum(each < 0.5 for each in drawn) > 400
    assert {Jitter().draw(Dice(1, number)).stream for number in range(50)} == {"upstream", "downstream"}


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_the_call_takes_the_drawn_time_which_is_that_of_its_toxic(stream: str) -> None:
    fault = Jitter(0.4, stream=stream)  # type: ignore[arg-type]
    met = meet(fault)
    assert (met.seen.duration_s, met.injected, met.error) == (0.4, True, None)
    assert met.evidence == "took 0.400 s, at least 0.400 s were armed"
    assert fault.toxics() == (Toxic("latency", stream, {"delay_s": 0.4}),)


def test_a_faster_answer_or_another_error_is_no_witness() -> None:
    assert Jitter(0.4).witnessed(saw(after_s=0.1)) is None
    assert Jitter(0.4).witnessed(saw(error="reset", after_s=0.5)) is None


def test_a_jitter_that_no_clock_could_tell_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^jitter_s of jitter is 0: it should be a number from 0\.005 to 86400$"):
        lab.inject("jitter", "shop", jitter_s=0)


# limit_data: The connection closes after some bytes of the answer.


REPLY = answer({"temp": 20})


def test_the_work_is_done_and_the_answer_is_cut_off() -> None:
    met = meet(LimitData(60), target := Target(reply=REPLY))
    assert (met.error, met.reply, len(target.sent)) == ("closed", None, 1)
    assert met.evidence == "closed in the middle of the answer after 0 s"


def test_an_answer_of_so_many_bytes_comes_whole() -> None:
    size = REPLY.wire_bytes
    assert (meet(LimitData(size), Target(reply=REPLY)).reply, meet(LimitData(size)).injected) == (REPLY, False)
    assert meet(LimitData(size - 1), Target(reply=REPLY)).error == "closed"


def test_who_had_an_answer_or_waited_in_vain_met_no_limit() -> None:
    seen = meet(LimitData(60)).seen
    for other in (replace(seen, error=None, status=200), replace(seen, error="timed_out")):
        assert LimitData(60).witnessed(other) is None


def test_a_lane_lets_a_shorter_answer_through_and_says_so() -> None:
    whole = Observation(0.1, 1.0, None, 200, bytes=40)
    call = Call("shop", "GET /", "p1.r1", 1, 1)

    def healed(seen: Observation) -> tuple[bool, str]:
        (event,) = fault_lifecycle.healed([ActiveFault("cut", "limit_data", LimitData(60))], call, seen)
        assert isinstance(event, FaultHealed)
        return event.witnessed, event.idle

    assert healed(whole) == (False, "nothing to cut: the answer has 40 bytes, and 60 are let through")
    for seen in (replace(whole, bytes=61), replace(whole, error="timed_out"), replace(whole, status=None)):
        assert healed(seen) == (False, "")


def test_it_is_the_toxic_of_that_name_of_limit_data() -> None:
    assert LimitData(9).toxics() == (Toxic("limit_data", "downstream", {"bytes": 9}),)
    assert in_toxiproxys_words(LimitData(9).toxics()[0]).attributes == {"bytes": 9}


# slicer: The answer comes in small pieces with pauses between them.


SLICED_BODY = answer("x" * 998)
SLICED = Slicer(average_bytes=100, variation_bytes=20, pause_s=0.1)


def test_the_whole_answer_comes_after_a_pause_for_each_piece() -> None:
    met = meet(SLICED, target := Target(reply=SLICED_BODY))
    assert met.reply is SLICED_BODY
    assert SLICED_BODY.wire_bytes == 1051
    assert abs(target.now_s - 1.1) < 1e-9
    assert met.evidence == "took 1.100 s for 1000 bytes in pieces, at least 0.800 s were armed"


def test_one_of_many_pieces_is_not_whole_at_the_deadline() -> None:
    met = meet(SLICED, Target(reply=SLICED_BODY, deadline_s=0.5))
    assert (met.error, met.evidence) == ("timed_out", "the answer was not whole after 0.500 s")


def test_who_had_it_sooner_or_had_no_answer_met_none() -> None:
    met = meet(SLICED, Target(reply=SLICED_BODY))
    for seen in (
        replace(met.seen, duration_s=0.7),
        replace(met.seen, bytes=99, duration_s=0.09),
        replace(met.seen, status=None),
        replace(met.seen, error="reset"),
    ):
        assert SLICED.witnessed(seen) is None


def test_an_answer_without_a_body_is_one_piece_and_comes_after_its_pause() -> None:
    met = meet(SLICED, target := Target(reply=Reply(204, {})))
    assert (met.reply, target.now_s) == (target.reply, 0.1)
    assert met.evidence == "took 0.100 s for 0 bytes in pieces, at least 0.100 s were armed"


def test_a_pause_that_no_watch_could_tell_has_no_witness() -> None:
    met = meet(Slicer(pause_s=0.001), Target(reply=Reply(204, {})))
    assert (met.injected, met.evidence) == (True, None)


def test_a_service_that_answers_204_is_late_and_the_trial_is_valid() -> None:
    def quiet(_: Any, start_response: Any) -> list[bytes]:
        start_response("204 No Content", [])
        return []

    def agent(_: str) -> int:
        return httpx.delete("http://shop/orders/1", timeout=5).status_code

    trial = lab.run(agent, "go", services={"shop": quiet}, faults=[lab.inject("slicer", "shop", calls=[1])])
    assert (trial.answer, round(trial.seconds, 3)) == (204, 0.01)
    assert [event.fault for _, event in trial.history.of(FaultWitnessed)] == ["slicer"]


def test_a_204_over_a_lane_of_the_wire_is_late_by_its_pause() -> None:
    carried = list(map(in_toxiproxys_words, SLICED.toxics()))
    assert [(each.type, each.stream) for each in carried] == [("slicer", "downstream"), ("latency", "downstream")]
    assert carried[1].attributes == {"latency": 100}


def test_it_is_the_toxic_of_that_name_of_slicer() -> None:
    params = {"average_bytes": 100, "variation_bytes": 20, "pause_s": 0.1}
    first_pause = Toxic("latency", "downstream", {"delay_s": 0.1})
    assert SLICED.toxics() == (Toxic("slicer", "downstream", params), first_pause)
    attributes = {"average_size": 100, "size_variation": 20, "delay": 100_000}
    assert in_toxiproxys_words(SLICED.toxics()[0]).attributes == attributes


# slow_close: The answer stops in its middle, and the connection closes late.


SLOW = SlowClose(delay_s=1.5, bytes=30)


def test_the_work_is_done_and_the_caller_waits_for_the_end_of_half_an_answer() -> None:
    met = meet(SLOW, target := Target(reply=REPLY))
    assert (met.error, met.reply, len(target.sent), target.now_s) == ("closed", None, 1, 1.5)
    assert met.evidence == "closed in the middle of the answer after 1.500 s, at least 1.500 s were armed"


def test_an_answer_of_so_many_bytes_comes_whole_and_at_once() -> None:
    size = REPLY.wire_bytes
    met = meet(SlowClose(bytes=size), target := Target(reply=REPLY))
    assert (met.reply, target.now_s, met.injected) == (REPLY, 0.0, False)
    assert meet(SlowClose(bytes=size - 1), Target(reply=REPLY)).error == "closed"


def test_a_caller_that_gives_up_before_the_end_has_met_it() -> None:
    met = meet(SLOW, Target(reply=REPLY, deadline_s=1.0))
    assert (met.error, met.evidence) == ("timed_out", "neither the rest of the answer nor its end within 1.000 s")


def test_who_was_cut_off_at_once_or_had_an_answer_met_another_fault() -> None:
    seen = meet(SLOW, Target(reply=REPLY)).seen
    for other in (
        replace(seen, duration_s=1.4),
        replace(seen, error=None, status=200),
        replace(seen, error="refused"),
        replace(seen, error="timed_out", duration_s=0.5),
    ):
        assert SLOW.witnessed(other) is None


def test_a_lane_lets_a_shorter_answer_through_and_says_so_of_slow_close() -> None:
    whole = Observation(0.1, 1.0, None, 200, bytes=20)
    assert SLOW.idle(whole) == "nothing to cut: the answer has 20 bytes, and 30 are let through"
    assert SLOW.idle(replace(whole, bytes=31)) == ""


def test_its_toxics_cut_first_and_then_close_late() -> None:
    assert SLOW.toxics() == (*LimitData(30).toxics(), Toxic("slow_close", "downstream", {"delay_s": 1.5}))
    limit, slow = map(in_toxiproxys_words, SLOW.toxics())
    assert (limit.attributes, slow.attributes) == ({"bytes": 30}, {"delay": 1500})
    chain = Pipeline()
    for each in (limit, slow):
        chain.add(each.name, toxics.load(each.type)(**each.attributes).pipe(Dice(1), 0.0), 0.0)
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
    assert [event.fault for _, event in trial.history.of(FaultWitnessed)] == ["slow_close"]


def test_a_function_has_no_bytes_to_cut() -> None:
    def order(number: int) -> dict[str, int]:
        return {"order": number}

    with pytest.raises(ValueError, match=r"slow_close .*bytes"):
        lab.run(lambda _: order(1), "go", tools=[order], faults=[lab.inject("slow_close", "order")])


# tls_failure: The certificate has expired: every client that checks it ends the handshake.


URL = "https://shop/orders"


def test_the_call_never_leaves_of_tls_failure() -> None:
    met = meet(TlsFailure(), target := Target())
    assert (met.error, target.sent, met.injected) == ("untrusted", [], True)
    assert met.evidence == "the certificate was not trusted"


def test_only_a_certificate_that_was_not_trusted_is_its_witness() -> None:
    for other in (None, "timed_out", "refused", "garbled"):
        assert TlsFailure().witnessed(saw(error=other)) is None


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
    assert [e.error for _, e in trial.history.of(CallFinished)][:2] == ["untrusted", None]
    assert [e.evidence for _, e in trial.history.of(FaultWitnessed)] == ["the certificate was not trusted"]


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
    assert not list(trial.history.of(FaultWitnessed))
