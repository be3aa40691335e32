"""Each call is late by another time."""

from __future__ import annotations

import pytest

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Toxic
from chaoslab.faults.network.jitter import LEAST_S, Jitter
from tests.faults.fault_parts import meet, saw


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
