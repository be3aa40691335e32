"""The answer comes in small pieces with pauses between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx

import chaoslab as lab
from chaoslab.core.events import FaultWitnessed
from chaoslab.core.exchange import Reply, Toxic
from chaoslab.faults.network.slicer import Slicer
from chaoslab.wire.fault_lifecycle import in_toxiproxys_words
from tests.faults.fault_parts import Target, answer, meet

LARGE = answer("x" * 998)
SLICED = Slicer(average_bytes=100, variation_bytes=20, pause_s=0.1)


def test_the_whole_answer_comes_after_a_pause_for_each_piece() -> None:
    met = meet(SLICED, target := Target(reply=LARGE))
    assert met.reply is LARGE
    assert LARGE.wire_bytes == 1051
    assert abs(target.now_s - 1.1) < 1e-9
    assert met.evidence == "took 1.100 s for 1000 bytes in pieces, at least 0.800 s were armed"


def test_one_of_many_pieces_is_not_whole_at_the_deadline() -> None:
    met = meet(SLICED, Target(reply=LARGE, deadline_s=0.5))
    assert (met.error, met.evidence) == ("timed_out", "the answer was not whole after 0.500 s")


def test_who_had_it_sooner_or_had_no_answer_met_none() -> None:
    met = meet(SLICED, Target(reply=LARGE))
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


def test_it_is_the_toxic_of_that_name() -> None:
    params = {"average_bytes": 100, "variation_bytes": 20, "pause_s": 0.1}
    first_pause = Toxic("latency", "downstream", {"delay_s": 0.1})
    assert SLICED.toxics() == (Toxic("slicer", "downstream", params), first_pause)
    attributes = {"average_size": 100, "size_variation": 20, "delay": 100_000}
    assert in_toxiproxys_words(SLICED.toxics()[0]).attributes == attributes
