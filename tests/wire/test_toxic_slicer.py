"""Slicer: the data comes in crumbs."""

from __future__ import annotations

import pytest

from chaoslab.base.dice import Dice
from chaoslab.wire.toxics.slicer import Slicer
from tests.wire.wire_parts import END, live, play


def test_a_chunk_is_cut_and_each_crumb_followed_by_a_pause_in_microseconds() -> None:
    out = play(live(Slicer(average_size=2, delay=250_000)), [(0.0, b"abcd"), (0.0, b"ef"), (0.0, END)])
    assert out == [(0.0, b"ab"), (0.25, b"cd"), (0.5, b"ef"), (0.75, END)]


def test_pieces_are_halves_of_halves_and_not_all_of_the_average_size() -> None:
    out = play(live(Slicer(average_size=400)), [(0.0, bytes(2000))])
    assert [item for _, item in out] == [bytes(250)] * 8


def test_sizes_vary_around_the_average_and_no_byte_is_lost() -> None:
    data = bytes(n % 251 for n in range(100_000))
    crumbs = [item for _, item in play(live(Slicer(average_size=100, size_variation=30)), [(0.0, data)])]
    assert b"".join(crumb for crumb in crumbs if isinstance(crumb, bytes)) == data
    sizes = [len(crumb) for crumb in crumbs[:-1] if isinstance(crumb, bytes)]
    assert max(sizes) <= 130
    assert sum(sizes) / len(sizes) == pytest.approx(90, abs=15)
    assert len(set(sizes)) > 30


@pytest.mark.parametrize("toxic", [Slicer(), Slicer(average_size=-3), Slicer(size_variation=9)])
def test_without_an_average_nothing_is_cut(toxic: Slicer) -> None:
    assert play(live(toxic), [(0.0, bytes(5000))]) == [(0.0, bytes(5000))]


@pytest.mark.parametrize("variation", [50, 10**12, -50])
def test_a_variation_beyond_the_average_cuts_at_least_a_byte(variation: int) -> None:
    out = play(live(Slicer(average_size=1, size_variation=variation)), [(0.0, bytes(1000))])
    assert sum(len(item) for _, item in out if isinstance(item, bytes)) == 1000


def test_equal_dice_cut_alike() -> None:
    toxic, script = Slicer(average_size=100, size_variation=90), [(0.0, bytes(5000))]
    assert play(live(toxic, "seed"), script) == play(live(toxic, "seed"), script)
    assert play(live(toxic, "seed"), script) != play(live(toxic, "another"), script)


@pytest.mark.parametrize(
    ("toxic", "straight", "pause_s"),
    [
        (Slicer(), True, 0.0),
        (Slicer(average_size=-1, delay=-1), True, 0.0),
        (Slicer(size_variation=9), True, 0.0),
        (Slicer(average_size=1), False, 0.0),
        (Slicer(delay=250_000), False, 0.25),
        (Slicer(average_size=1, delay=250_000), False, 0.25),
    ],
)
def test_without_an_average_and_a_pause_it_does_nothing(toxic: Slicer, *, straight: bool, pause_s: float) -> None:
    assert (live(toxic).straight, live(toxic).pause_s) == (straight, pause_s)


def test_the_attributes_are_0_by_default() -> None:
    assert Slicer() == Slicer(average_size=0, size_variation=0, delay=0)


@pytest.mark.parametrize("seed", range(5))
def test_the_cut_is_in_the_middle_give_or_take_what_is_drawn(seed: int) -> None:
    out = play(live(Slicer(average_size=60, size_variation=30), seed), [(0.0, bytes(100))])
    first = 50 + int(Dice("test", seed).between(-30, 30))
    assert [len(item) for _, item in out if isinstance(item, bytes)] == [first, 100 - first]


@pytest.mark.parametrize(
    ("toxic", "total", "sizes"),
    [
        (Slicer(average_size=1), 2, [1, 1]),
        (Slicer(average_size=1), 3, [1, 1, 1]),
        (Slicer(average_size=1, size_variation=1), 3, [1, 2]),
        (Slicer(average_size=2), 2, [2]),
        (Slicer(average_size=2), 5, [2, 1, 2]),
    ],
)
def test_the_smallest_pieces_are_bytes(toxic: Slicer, total: int, sizes: list[int]) -> None:
    assert [len(item) for _, item in play(live(toxic), [(0.0, bytes(total))]) if isinstance(item, bytes)] == sizes


def test_a_cut_beyond_the_chunk_makes_no_empty_piece_whose_pause_would_be_heard() -> None:
    out = play(live(Slicer(average_size=1, size_variation=50, delay=1_000_000)), [(0.0, bytes(2000))])
    assert len(out) > 60
    assert [at for at, _ in out] == list(range(len(out)))
