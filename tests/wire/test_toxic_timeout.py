"""Timeout: the answer never comes."""

from __future__ import annotations

import pytest
from wire_parts import END, RESET, live, play

from chaoslab.core.pipe import Chain, Signal, Timed
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
    assert play(pipe, [(0.0, b"a"), (0.5, b"b")]) == []
    assert pipe.release(3.0) == [Timed(3.0, END)]


@pytest.mark.parametrize("timeout", [0, 500])
@pytest.mark.parametrize("signal", [END, RESET])
def test_when_the_sender_is_through_so_is_the_connection(timeout: int, signal: Signal) -> None:
    assert play(live(Timeout(timeout=timeout)), [(0.1, b"a"), (0.25, signal), (0.3, b"b")]) == [(0.25, signal)]


def test_the_end_comes_once() -> None:
    pipe = live(Timeout(timeout=500))
    assert play(pipe, [(0.1, b"a"), (2.0, b"late")]) == [(0.6, END)]


def test_spared_after_all_the_connection_goes_on_without_what_was_lost() -> None:
    chain = Chain()
    chain.add("t", live(Timeout()), 0.0)
    assert play(chain, [(0.0, b"lost")], until=1.0) == []
    chain.spare("t", 1.0)
    assert play(chain, [(2.0, b"heard")]) == [(2.0, b"heard")]
