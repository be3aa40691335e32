"""Reset: the other side hangs up rudely."""

from __future__ import annotations

from chaoslab.core.pipe import Timed
from chaoslab.wire.toxics.reset_peer import ResetPeer
from tests.wire.wire_parts import END, RESET, live, play


def test_the_first_data_starts_the_clock_and_nothing_passes() -> None:
    assert play(live(ResetPeer(timeout=500)), [(1.0, b"a"), (1.25, b"b"), (1.3, END)]) == [(1.5, RESET)]


def test_an_idle_connection_is_left_alone() -> None:
    assert play(live(ResetPeer(timeout=0)), []) == []


def test_even_the_end_becomes_a_reset() -> None:
    assert play(live(ResetPeer(timeout=0)), [(2.0, END)]) == [(2.0, RESET)]


def test_taken_out_in_time_it_has_done_no_harm() -> None:
    line = live(ResetPeer(timeout=500))
    assert play(line, [(0.0, b"a"), (0.1, b"b")], until=0.25) == []
    assert line.release(0.25) == [Timed(0.25, b"a"), Timed(0.25, b"b")]


def test_it_resets_at_once_by_default_or_with_a_negative_time() -> None:
    assert ResetPeer() == ResetPeer(timeout=0)
    assert play(live(ResetPeer(timeout=-5)), [(1.0, b"a")]) == [(1.0, RESET)]
