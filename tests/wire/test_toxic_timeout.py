"""Timeout: the answer never comes."""

from __future__ import annotations

import pytest
from wire_parts import END, live, play

from chaoslab.pipe import Timed
from chaoslab.wire.toxics.timeout import Timeout


def test_the_clock_starts_with_the_connection() -> None:
    assert play(live(Timeout(timeout=500), since=2.0), []) == [(2.5, END)]


def test_each_chunk_is_dropped_and_starts_the_clock_again() -> None:
    pipe = live(Timeout(timeout=500))
    assert play(pipe, [(0.25, b"a"), (0.5, b"b")]) == [(1.0, END)]
    assert pipe.held == 0


@pytest.mark.parametrize("timeout", [0, -5])
def test_zero_hangs_for_ever_and_its_removal_closes_the_connection(timeout: int) -> None:
    pipe = live(Timeout(timeout=timeout))
    assert play(pipe, [(0.0, b"a"), (0.5, END)]) == []
    assert pipe.release(3.0) == [Timed(3.0, END)]


def test_the_end_comes_once() -> None:
    pipe = live(Timeout(timeout=500))
    assert play(pipe, [(0.1, b"a"), (2.0, b"late")]) == [(0.6, END)]
