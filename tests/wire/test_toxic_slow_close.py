"""Slow close: the data is there at once, the end is not."""

from __future__ import annotations

import pytest

from chaoslab.core.pipe import Pipeline, Timed
from chaoslab.wire.toxics.slow_close import SlowClose
from tests.wire.wire_parts import END, RESET, live, play


def test_only_the_end_is_late() -> None:
    assert play(live(SlowClose(delay=500)), [(0.0, b"a"), (0.25, END)]) == [(0.0, b"a"), (0.75, END)]


def test_a_reset_is_late_too() -> None:
    assert play(live(SlowClose(delay=500)), [(0.25, RESET)]) == [(0.75, RESET)]


def test_taken_out_while_it_waits_the_end_comes_at_once() -> None:
    line = live(SlowClose(delay=500))
    assert play(line, [(0.0, END)], until=0.25) == []
    assert line.release(0.25) == [Timed(0.25, END)]


def test_changed_while_it_waits_the_wait_begins_again() -> None:
    chain = Pipeline()
    chain.add("slow", live(SlowClose(delay=10_000)), 0.0)
    assert play(chain, [(0.0, END)], until=1.0) == []
    chain.replace("slow", live(SlowClose(delay=500), since=1.0), 1.0)
    assert play(chain, []) == [(1.5, END)]


@pytest.mark.parametrize("toxic", [SlowClose(), SlowClose(delay=-5)])
def test_without_a_delay_the_end_is_there_at_once(toxic: SlowClose) -> None:
    assert SlowClose() == SlowClose(delay=0)
    assert play(live(toxic), [(0.0, b"a"), (0.25, END)]) == [(0.0, b"a"), (0.25, END)]


def test_data_need_not_go_through_it() -> None:
    assert live(SlowClose(delay=500)).straight
