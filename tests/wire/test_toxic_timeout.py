"""Timeout: the answer never comes."""

from __future__ import annotations

import pytest

from chaoslab.core.pipe import Pipeline, Signal, Timed
from chaoslab.wire.toxics.latency import Latency
from chaoslab.wire.toxics.timeout import Timeout
from tests.wire.wire_parts import END, RESET, live, play


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
    chain = Pipeline()
    chain.add("t", live(Timeout()), 0.0)
    assert play(chain, [(0.0, b"lost")], until=1.0) == []
    chain.spare("t", 1.0)
    assert play(chain, [(2.0, b"heard")]) == [(2.0, b"heard")]


def test_it_says_its_one_thing_when_it_is_due_and_not_again() -> None:
    pipe = live(Timeout(timeout=500))
    assert (pipe.poll(0.25), pipe.wake()) == ([], 0.5)
    assert (pipe.poll(0.5), pipe.wake()) == ([Timed(0.5, END)], None)
    assert (pipe.poll(0.75), pipe.wake()) == ([], None)


def test_a_chunk_at_the_very_moment_is_too_late() -> None:
    pipe = live(Timeout(timeout=500))
    pipe.feed(Timed(0.5, b"a"))
    assert pipe.poll(2.0) == [Timed(0.5, END)]


def test_an_end_from_before_it_began_is_passed_on_when_it_begins() -> None:
    assert play(live(Timeout(timeout=500), since=1.0), [(0.25, END)]) == [(1.0, END)]


def test_it_hears_what_arrives_late_by_another_toxic_however_seldom_it_is_polled() -> None:
    chain = Pipeline()
    chain.add("late", live(Latency(latency=125)), 0.0)
    chain.add("silent", live(Timeout(timeout=500)), 0.0)
    chain.feed(Timed(0.0, b"a"))
    chain.feed(Timed(0.375, b"b"))
    assert chain.poll(10.0) == [Timed(1.0, END)]


def test_it_never_closes_by_default_and_keeps_nothing() -> None:
    assert Timeout() == Timeout(timeout=0)
    pipe = live(Timeout())
    pipe.feed(Timed(0.0, b"a"))
    assert (pipe.held, pipe.pieces, pipe.pause_s, pipe.wake()) == (0, 0, 0.0, None)
