"""Limit: so many bytes, and not one more."""

from __future__ import annotations

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Pipeline
from chaoslab.wire.toxics.limit_data import LimitData
from tests.wire.wire_parts import END, live, play


def test_exactly_so_many_bytes_pass_then_the_stream_ends() -> None:
    pipe = live(LimitData(bytes=5))
    assert play(pipe, [(0.0, b"abc"), (1.0, b"defg"), (2.0, b"h")]) == [(0.0, b"abc"), (1.0, b"de"), (1.0, END)]
    assert pipe.held == 0


def test_the_last_allowed_byte_ends_it_without_waiting_for_more() -> None:
    assert play(live(LimitData(bytes=3)), [(0.0, b"abc")]) == [(0.0, b"abc"), (0.0, END)]


def test_with_no_bytes_allowed_the_first_chunk_ends_it() -> None:
    assert play(live(LimitData()), [(1.0, b"abc")]) == [(1.0, END)]


def test_a_stream_that_ends_earlier_ends_as_it_would() -> None:
    assert play(live(LimitData(bytes=9)), [(0.0, b"abc"), (1.0, END)]) == [(0.0, b"abc"), (1.0, END)]


def test_what_passed_before_a_change_still_counts() -> None:
    chain = Pipeline()
    pipe = live(LimitData(bytes=10))
    chain.add("limit", pipe, 0.0)
    assert play(chain, [(0.0, b"abcd")]) == [(0.0, b"abcd")]
    chain.replace("limit", LimitData(bytes=6).pipe(Dice(), 1.0, before=pipe), 1.0)
    assert play(chain, [(1.0, b"efgh")]) == [(1.0, b"ef"), (1.0, END)]


def test_less_than_what_passed_already_lets_nothing_more_through() -> None:
    chain = Pipeline()
    pipe = live(LimitData(bytes=10))
    chain.add("limit", pipe, 0.0)
    assert play(chain, [(0.0, b"abcd")]) == [(0.0, b"abcd")]
    chain.replace("limit", LimitData(bytes=2).pipe(Dice(), 1.0, before=pipe), 1.0)
    assert play(chain, [(1.0, b"efgh")]) == [(1.0, END)]


def test_what_came_before_it_began_passes_when_it_begins() -> None:
    assert play(live(LimitData(bytes=9), since=2.0), [(1.0, b"abc"), (3.0, b"d")]) == [(2.0, b"abc"), (3.0, b"d")]
