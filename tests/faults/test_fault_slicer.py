"""The answer comes in small pieces with pauses between them."""

from __future__ import annotations

from dataclasses import replace

from chaoslab.core.exchange import Toxic
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


def test_who_had_it_sooner_or_had_too_little_for_two_pieces_met_none() -> None:
    met = meet(SLICED, Target(reply=LARGE))
    for seen in (replace(met.seen, duration_s=0.7), replace(met.seen, bytes=99), replace(met.seen, error="reset")):
        assert SLICED.witnessed(seen) is None


def test_it_is_the_toxic_of_that_name() -> None:
    params = {"average_bytes": 100, "variation_bytes": 20, "pause_s": 0.1}
    assert SLICED.toxics() == (Toxic("slicer", "downstream", params),)
    attributes = {"average_size": 100, "size_variation": 20, "delay": 100_000}
    assert in_toxiproxys_words(SLICED.toxics()[0]).attributes == attributes
