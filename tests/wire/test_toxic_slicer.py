"""Slicer: the data comes in crumbs."""

from __future__ import annotations

import pytest
from wire_parts import END, live, play

from chaoslab.wire.toxics.slicer import Slicer


def test_a_chunk_is_cut_and_each_crumb_followed_by_a_pause_in_microseconds() -> None:
    out = play(live(Slicer(average_size=2, delay=250_000)), [(0.0, b"abcde"), (0.0, b"fg"), (0.0, END)])
    assert out == [(0.0, b"ab"), (0.25, b"cd"), (0.5, b"e"), (0.75, b"fg"), (1.0, END)]


def test_sizes_vary_around_the_average_and_no_byte_is_lost() -> None:
    data = bytes(n % 251 for n in range(100_000))
    crumbs = [item for _, item in play(live(Slicer(average_size=100, size_variation=30)), [(0.0, data)])]
    assert b"".join(crumb for crumb in crumbs if isinstance(crumb, bytes)) == data
    sizes = [len(crumb) for crumb in crumbs[:-1] if isinstance(crumb, bytes)]
    assert (min(sizes), max(sizes)) == (70, 130)
    assert sum(sizes) / len(sizes) == pytest.approx(100, abs=3)


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
