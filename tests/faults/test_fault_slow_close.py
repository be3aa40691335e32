"""The answer stops in its middle, and the connection closes late."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.core.events import FaultWitnessed
from chaoslab.core.exchange import Observation, Toxic
from chaoslab.core.pipe import Pipeline, Signal, Timed
from chaoslab.faults.network.limit_data import LimitData
from chaoslab.faults.network.slow_close import SlowClose
from chaoslab.wire import toxics
from chaoslab.wire.fault_lifecycle import in_toxiproxys_words
from tests.faults.fault_parts import Target, answer, meet

REPLY = answer({"temp": 20})
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


def test_a_lane_lets_a_shorter_answer_through_and_says_so() -> None:
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
