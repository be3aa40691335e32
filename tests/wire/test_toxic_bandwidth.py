"""Bandwidth: the line is narrow."""

from __future__ import annotations

import pytest

from chaoslab.core.pipe import Timed
from chaoslab.wire.toxics.bandwidth import Bandwidth
from tests.wire.wire_parts import END, live, play


def test_a_chunk_trickles_in_pieces_worth_a_tenth_of_a_second() -> None:
    out = play(live(Bandwidth(rate=1)), [(0.0, bytes(250)), (0.0, END)])
    assert [(round(at, 9), item if item is END else len(item)) for at, item in out] == [  # type: ignore[arg-type]
        (0.1, 100),
        (0.2, 100),
        (0.25, 50),
        (0.25, END),
    ]


@pytest.mark.parametrize("chunk", [99, 999, 32768, 1_000_000])
def test_a_megabyte_takes_its_time_whatever_its_chunks(chunk: int) -> None:
    chunks = [(0.0, bytes(chunk))] * (1_000_000 // chunk)
    out = play(live(Bandwidth(rate=500)), chunks)
    assert sum(len(item) for _, item in out if isinstance(item, bytes)) == 1_000_000 // chunk * chunk
    assert out[-1][0] == pytest.approx(1_000_000 // chunk * chunk / 500_000)


def test_an_idle_line_saves_nothing_up() -> None:
    assert [at for at, _ in play(live(Bandwidth(rate=1)), [(0.0, bytes(100)), (5.0, bytes(100))])] == pytest.approx(
        [0.1, 5.1]
    )


@pytest.mark.parametrize("rate", [0, -1])
def test_at_no_rate_nothing_passes_until_the_toxic_is_taken_out(rate: int) -> None:
    line = live(Bandwidth(rate=rate))
    assert play(line, [(0.0, b"abc"), (0.0, END)]) == []
    assert line.held == 3
    assert line.release(9.0) == [Timed(9.0, b"abc"), Timed(9.0, END)]


def test_taken_out_in_the_middle_of_a_chunk_it_lets_the_rest_go_once() -> None:
    line = live(Bandwidth(rate=1))
    assert play(line, [(0.0, bytes(range(200)))], until=0.15) == [(0.1, bytes(range(100)))]
    assert line.release(0.15) == [Timed(0.15, bytes(range(100, 200)))]


def test_the_rate_is_0_by_default() -> None:
    assert Bandwidth() == Bandwidth(rate=0)
