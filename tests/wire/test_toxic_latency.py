"""Latency: everything arrives, late."""

from __future__ import annotations

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Pipeline, ServedLine, Timed
from chaoslab.wire.server.end import CHUNK_BYTES
from chaoslab.wire.toxics.latency import Latency
from tests.wire.wire_parts import END, live, play


def test_each_chunk_is_late_by_the_same_time_and_the_end_waits_for_the_data_only() -> None:
    out = play(live(Latency(latency=250)), [(0.0, b"a"), (0.125, b"b"), (0.125, END)])
    assert out == [(0.25, b"a"), (0.375, b"b"), (0.375, END)]


def test_the_end_of_an_idle_connection_is_not_late() -> None:
    assert play(live(Latency(latency=250)), [(1.0, END)]) == [(1.0, END)]


def test_two_latencies_on_a_stream_of_tokens_add_up_to_200_ms() -> None:
    chain = Pipeline()
    chain.add("one", live(Latency(latency=100)), 0.0)
    chain.add("two", live(Latency(latency=100)), 0.0)
    out = play(chain, [(n / 100, b"token") for n in range(100)])
    assert [at for at, _ in out] == pytest.approx([n / 100 + 0.2 for n in range(100)], abs=1e-12)


@pytest.mark.parametrize("gap_s", [0.001, 0.01, 0.1, 1.0])
def test_jitter_has_the_stated_mean_and_range_at_every_pace_and_keeps_the_order(gap_s: float) -> None:
    arrivals = [n * gap_s for n in range(20_000)]
    out = play(live(Latency(latency=100, jitter=50), gap_s), [(at, b"x") for at in arrivals])
    delays = [at - arrival for (at, _), arrival in zip(out, arrivals, strict=True)]
    assert [at for at, _ in out] == sorted(at for at, _ in out)
    assert 0.05 <= min(delays) < 0.06
    assert 0.14 < max(delays) <= 0.15 + 1e-9
    assert sum(delays) / len(delays) == pytest.approx(0.1, abs=0.006)


def test_a_jitter_larger_than_the_latency_never_sends_before_the_arrival() -> None:
    arrivals = [n / 10 for n in range(1000)]
    out = play(live(Latency(latency=1, jitter=10**15)), [(at, b"x") for at in arrivals], until=1e18)
    assert len(out) == 1000
    assert all(at >= arrival for (at, _), arrival in zip(out, arrivals, strict=True))


def test_a_longer_latency_counts_from_the_arrival_of_what_is_waiting() -> None:
    line = live(Latency(latency=1000))
    line.feed(Timed(0.0, b"in hand"))
    line.feed(Timed(0.5, b"waiting"))
    assert line.poll(0.75) == []
    leave, rest = line.retire(0.75)
    assert leave == [Timed(0.75, b"in hand")]
    successor = Latency(latency=2000).pipe(None, 0.75, before=line)  # type: ignore[arg-type]  # no jitter, no dice
    assert isinstance(successor, ServedLine)
    assert play(successor, rest) == [(2.5, b"waiting")]


@pytest.mark.parametrize(
    ("toxic", "straight"),
    [
        (Latency(), True),
        (Latency(latency=-1), True),
        (Latency(latency=1), False),
        (Latency(jitter=1), False),
        (Latency(jitter=-1), False),
        (Latency(latency=-1, jitter=1), False),
    ],
)
def test_only_without_latency_and_jitter_nothing_is_ever_late(toxic: Latency, *, straight: bool) -> None:
    assert live(toxic).straight == straight


def test_the_attributes_are_0_by_default() -> None:
    assert Latency() == Latency(latency=0, jitter=0)
    assert play(live(Latency()), [(0.5, b"a")]) == [(0.5, b"a")]


def test_as_much_fits_in_as_in_toxiproxys_1024_chunks() -> None:
    assert live(Latency(latency=1)).room_bytes == 1024 * CHUNK_BYTES


def test_chunks_that_queue_up_share_draws_until_a_gap_of_two_steps() -> None:
    """A jitter of 125 ms: draws are 0.25 s apart and joined by straight lines, and a gap of 0.5 s makes a fresh one."""
    draws = [dice.between(-0.125, 0.125) for dice in [Dice("test")] for _ in range(8)]
    arrivals = [0.0, 0.125, 0.25, 0.625, 1.0, 1.375, 2.5, 2.625]
    jitters = [
        draws[0],
        (draws[0] + draws[1]) / 2,
        draws[1],
        (draws[2] + draws[3]) / 2,
        draws[4],
        (draws[5] + draws[6]) / 2,
        draws[7],
    ]
    out = play(live(Latency(latency=10_000, jitter=125)), [(at, b"x") for at in arrivals[: len(jitters)]])
    late = [at - arrival - 10 for (at, _), arrival in zip(out, arrivals, strict=False)]
    assert late == pytest.approx(jitters, abs=1e-12)


@pytest.mark.parametrize(
    ("early_s", "fresh"), [(-0.000_1, True), (0.0, True), (0.000_9, True), (0.001, True), (0.001_5, False)]
)
def test_who_comes_a_millisecond_early_at_most_finds_nobody_waiting_and_is_drawn_for_alone(
    early_s: float, *, fresh: bool
) -> None:
    first, second = (dice.between(-0.05, 0.05) for dice in [Dice("test")] for _ in range(2))
    left = 0.06 + first
    came = left - early_s
    (_, (at, _)) = play(live(Latency(latency=60, jitter=50)), [(0.0, b"a"), (came, b"b")])
    jitter = second if fresh else first + (second - first) * came / 0.1
    assert came < 0.1
    assert at == pytest.approx(max(left, came + 0.06 + jitter), abs=1e-12)
    assert at > left + 0.002


def test_a_chunk_from_before_it_began_is_late_from_its_arrival() -> None:
    jitter = Dice("test").between(-0.1, 0.1)
    ((at, _),) = play(live(Latency(latency=1000, jitter=100), since=1.0), [(0.5, b"a")])
    assert at == pytest.approx(1.5 + jitter, abs=1e-12)


def test_a_delay_below_0_is_none() -> None:
    assert play(live(Latency(latency=-1000, jitter=1)), [(5.0, b"a"), (5.0, b"b")]) == [(5.0, b"a"), (5.0, b"b")]
