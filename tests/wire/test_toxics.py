"""Each toxic on one stream of data: what leaves it, and when."""

from dataclasses import fields

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import PacedQueue, Pipeline, Signal, Timed
from chaoslab.wire import toxics
from chaoslab.wire.server.end import CHUNK_BYTES
from chaoslab.wire.toxics import Toxic
from chaoslab.wire.toxics.bandwidth import Bandwidth
from chaoslab.wire.toxics.latency import Latency
from chaoslab.wire.toxics.limit_data import LimitData
from chaoslab.wire.toxics.noop import Noop
from chaoslab.wire.toxics.reset_peer import ResetPeer
from chaoslab.wire.toxics.slicer import Slicer
from chaoslab.wire.toxics.slow_close import SlowClose
from chaoslab.wire.toxics.timeout import Timeout
from tests.wire.wire_parts import END, RESET, live, play

Script = list[tuple[float, bytes | Signal]]
HALF_S, QUARTER_S = Timeout(timeout=500), Latency(latency=250)
PLAYED: dict[str, tuple[Toxic, float, Script, Script]] = {
    "noop: everything passes as it came": (
        Noop(), 0, [(0.0, b"a"), (0.5, b"b"), (0.5, END)], [(0.0, b"a"), (0.5, b"b"), (0.5, END)]
    ),
    "latency: each chunk is late by the same time, and the end waits for the data only": (
        QUARTER_S, 0, [(0.0, b"a"), (0.125, b"b"), (0.125, END)], [(0.25, b"a"), (0.375, b"b"), (0.375, END)]
    ),
    "latency: the end of an idle connection is not late": (QUARTER_S, 0, [(1.0, END)], [(1.0, END)]),
    "latency: none by default": (Latency(), 0, [(0.5, b"a")], [(0.5, b"a")]),
    "latency: a delay below 0 is none": (
        Latency(latency=-1000, jitter=1), 0, [(5.0, b"a"), (5.0, b"b")], [(5.0, b"a"), (5.0, b"b")]
    ),
    "limit_data: exactly so many bytes pass, then the stream ends": (
        LimitData(bytes=5), 0, [(0.0, b"abc"), (1.0, b"defg"), (2.0, b"h")], [(0.0, b"abc"), (1.0, b"de"), (1.0, END)]
    ),
    "limit_data: the last allowed byte ends it without waiting for more": (
        LimitData(bytes=3), 0, [(0.0, b"abc")], [(0.0, b"abc"), (0.0, END)]
    ),
    "limit_data: with no bytes allowed the first chunk ends it": (LimitData(), 0, [(1.0, b"abc")], [(1.0, END)]),
    "limit_data: a stream that ends earlier ends as it would": (
        LimitData(bytes=9), 0, [(0.0, b"abc"), (1.0, END)], [(0.0, b"abc"), (1.0, END)]
    ),
    "limit_data: what came before it began passes when it begins": (
        LimitData(bytes=9), 2, [(1.0, b"abc"), (3.0, b"d")], [(2.0, b"abc"), (3.0, b"d")]
    ),
    "reset_peer: the first data starts the clock and nothing passes": (
        ResetPeer(timeout=500), 0, [(1.0, b"a"), (1.25, b"b"), (1.3, END)], [(1.5, RESET)]
    ),
    "reset_peer: an idle connection is left alone": (ResetPeer(timeout=0), 0, [], []),
    "reset_peer: even the end becomes a reset": (ResetPeer(timeout=0), 0, [(2.0, END)], [(2.0, RESET)]),
    "reset_peer: at once with a negative time": (ResetPeer(timeout=-5), 0, [(1.0, b"a")], [(1.0, RESET)]),
    "slicer: each crumb is followed by a pause in microseconds": (
        Slicer(average_size=2, delay=250_000), 0, [(0.0, b"abcd"), (0.0, b"ef"), (0.0, END)],
        [(0.0, b"ab"), (0.25, b"cd"), (0.5, b"ef"), (0.75, END)],
    ),
    "slicer: pieces are halves of halves and not all of the average size": (
        Slicer(average_size=400), 0, [(0.0, bytes(2000))], [(0.0, bytes(250))] * 8
    ),
    "slicer: nothing is cut by default": (Slicer(), 0, [(0.0, bytes(5000))], [(0.0, bytes(5000))]),
    "slicer: nor below 0": (Slicer(average_size=-3), 0, [(0.0, bytes(5000))], [(0.0, bytes(5000))]),
    "slicer: nor without an average": (Slicer(size_variation=9), 0, [(0.0, bytes(5000))], [(0.0, bytes(5000))]),
    "slow_close: only the end is late": (
        SlowClose(delay=500), 0, [(0.0, b"a"), (0.25, END)], [(0.0, b"a"), (0.75, END)]
    ),
    "slow_close: a reset is late too": (SlowClose(delay=500), 0, [(0.25, RESET)], [(0.75, RESET)]),
    "slow_close: the end is there at once by default": (
        SlowClose(), 0, [(0.0, b"a"), (0.25, END)], [(0.0, b"a"), (0.25, END)]
    ),
    "slow_close: and with a delay below 0": (
        SlowClose(delay=-5), 0, [(0.0, b"a"), (0.25, END)], [(0.0, b"a"), (0.25, END)]
    ),
    "timeout: the clock starts with the connection": (HALF_S, 2, [], [(2.5, END)]),
    "timeout: each chunk is dropped and starts the clock again": (
        HALF_S, 0, [(0.25, b"a"), (0.5, b"b")], [(1.0, END)]
    ),
    "timeout: the end comes once": (HALF_S, 0, [(0.1, b"a"), (2.0, b"late")], [(0.6, END)]),
    "timeout: an end from before it began is passed on when it begins": (HALF_S, 1, [(0.25, END)], [(1.0, END)]),
}  # fmt: skip
"""The toxic, when it begins, what comes to it and what leaves it."""


@pytest.mark.parametrize(("toxic", "since", "script", "out"), PLAYED.values(), ids=PLAYED)
def test_what_leaves_it(toxic: Toxic, since: float, script: Script, out: Script) -> None:
    pipe = live(toxic, since=since)
    assert (play(pipe, script), pipe.held_bytes) == (out, 0)


TAKEN_OUT: dict[str, tuple[Toxic, Script, float, Script, list[bytes | Signal]]] = {
    "bandwidth: at no rate nothing passes until then": (
        Bandwidth(rate=0), [(0.0, b"abc"), (0.0, END)], 9.0, [], [b"abc", END]
    ),
    "bandwidth: nor at a rate below 0": (Bandwidth(rate=-1), [(0.0, b"abc"), (0.0, END)], 9.0, [], [b"abc", END]),
    "bandwidth: the rest of a chunk goes once": (
        Bandwidth(rate=1), [(0.0, bytes(range(200)))], 0.15, [(0.1, bytes(range(100)))], [bytes(range(100, 200))]
    ),
    "reset_peer: in time it has done no harm": (
        ResetPeer(timeout=500), [(0.0, b"a"), (0.1, b"b")], 0.25, [], [b"a", b"b"]
    ),
    "slow_close: while it waits the end comes at once": (SlowClose(delay=500), [(0.0, END)], 0.25, [], [END]),
    "timeout: which hangs for ever, the connection closes": (Timeout(), [(0.0, b"a"), (0.5, b"b")], 3.0, [], [END]),
    "timeout: below 0 it hangs for ever too": (Timeout(timeout=-5), [(0.0, b"a"), (0.5, b"b")], 3.0, [], [END]),
}  # fmt: skip
"""The toxic, what comes to it, when it is taken out, what has left it until then and what leaves it then."""


@pytest.mark.parametrize(("toxic", "script", "until", "out", "rest"), TAKEN_OUT.values(), ids=TAKEN_OUT)
def test_taken_out(toxic: Toxic, script: Script, until: float, out: Script, rest: list[bytes | Signal]) -> None:
    pipe = live(toxic)
    assert play(pipe, script, until=until) == out
    assert pipe.held_bytes == sum(len(each) for each in rest if isinstance(each, bytes))
    assert pipe.release_all_items(until) == [Timed(until, each) for each in rest]


FOUR: Script = [(0.0, b"abcd")]


@pytest.mark.parametrize(
    ("toxic", "script", "out", "changed", "more", "then"),
    [
        (LimitData(bytes=10), FOUR, FOUR, LimitData(bytes=6), b"efgh", [(1.0, b"ef"), (1.0, END)]),
        (LimitData(bytes=10), FOUR, FOUR, LimitData(bytes=2), b"efgh", [(1.0, END)]),
        (SlowClose(delay=10_000), [(0.0, END)], [], SlowClose(delay=500), b"", [(1.5, END)]),
    ],
    ids=["what passed before still counts", "less than what passed lets no more through", "the wait begins again"],
)
def test_changed(toxic: Toxic, script: Script, out: Script, changed: Toxic, more: bytes, then: Script) -> None:
    chain = Pipeline()
    chain.add("it", pipe := live(toxic), 0.0)
    assert play(chain, script, until=1.0) == out
    chain.replace("it", changed.pipe(Dice(), 1.0, before=pipe), 1.0)
    assert play(chain, [(1.0, more)] if more else []) == then


@pytest.mark.parametrize(
    ("toxic", "stated"),
    [
        (Bandwidth(), Bandwidth(rate=0)),
        (Latency(), Latency(latency=0, jitter=0)),
        (ResetPeer(), ResetPeer(timeout=0)),
        (Slicer(), Slicer(average_size=0, size_variation=0, delay=0)),
        (SlowClose(), SlowClose(delay=0)),
        (Timeout(), Timeout(timeout=0)),
    ],
)
def test_the_attributes_are_0_by_default(toxic: Toxic, stated: Toxic) -> None:
    assert toxic == stated


@pytest.mark.parametrize(
    ("toxic", "straight", "piece_interval_s"),
    [
        (Noop(), True, 0.0),
        (SlowClose(delay=500), True, 0.0),
        (Latency(), True, 0.0),
        (Latency(latency=-1), True, 0.0),
        (Latency(latency=1), False, 0.0),
        (Latency(jitter=1), False, 0.0),
        (Latency(jitter=-1), False, 0.0),
        (Latency(latency=-1, jitter=1), False, 0.0),
        (Slicer(), True, 0.0),
        (Slicer(average_size=-1, delay=-1), True, 0.0),
        (Slicer(size_variation=9), True, 0.0),
        (Slicer(average_size=1), False, 0.0),
        (Slicer(delay=250_000), False, 0.25),
        (Slicer(average_size=1, delay=250_000), False, 0.25),
    ],
)
def test_data_need_not_go_through_what_does_nothing_to_it(
    toxic: Toxic, *, straight: bool, piece_interval_s: float
) -> None:
    assert (live(toxic).straight, live(toxic).piece_interval_s) == (straight, piece_interval_s)


# How toxics are found.


def test_the_eight_toxics_are_found_by_their_files_with_toxiproxys_attributes() -> None:
    assert {name: [field.name for field in fields(toxics.load_toxic(name))] for name in toxics.list_toxic_types()} == {
        "bandwidth": ["rate"],
        "latency": ["latency", "jitter"],
        "limit_data": ["bytes"],
        "noop": [],
        "reset_peer": ["timeout"],
        "slicer": ["average_size", "size_variation", "delay"],
        "slow_close": ["delay"],
        "timeout": ["timeout"],
    }


def test_a_typo_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(LookupError, match="did you mean 'latency'"):
        toxics.load_toxic("latencey")


def test_a_toxic_without_a_pipe_of_its_own_is_refused_and_not_ignored() -> None:
    with pytest.raises(NotImplementedError):
        toxics.Toxic().pipe(Dice("test"), 0.0)


# bandwidth: The line is narrow.


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


# latency: Everything arrives, late.


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
    leave, rest = line.hand_over_items(0.75)
    assert leave == [Timed(0.75, b"in hand")]
    successor = Latency(latency=2000).pipe(None, 0.75, before=line)  # type: ignore[arg-type]  # no jitter, no dice
    assert isinstance(successor, PacedQueue)
    assert play(successor, rest) == [(2.5, b"waiting")]


def test_as_much_fits_in_as_in_toxiproxys_1024_chunks() -> None:
    assert live(Latency(latency=1)).capacity_bytes == 1024 * CHUNK_BYTES


def test_chunks_that_queue_up_share_draws_until_a_gap_of_two_steps() -> None:
    """A jitter of 125 ms: draws are 0.25 s apart and joined by straight lines, and a gap of 0.5 s makes a fresh one."""
    draws = [dice.draw_between(-0.125, 0.125) for dice in [Dice("test")] for _ in range(8)]
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
    first, second = (dice.draw_between(-0.05, 0.05) for dice in [Dice("test")] for _ in range(2))
    left = 0.06 + first
    came = left - early_s
    (_, (at, _)) = play(live(Latency(latency=60, jitter=50)), [(0.0, b"a"), (came, b"b")])
    jitter = second if fresh else first + (second - first) * came / 0.1
    assert came < 0.1
    assert at == pytest.approx(max(left, came + 0.06 + jitter), abs=1e-12)
    assert at > left + 0.002


def test_a_chunk_from_before_it_began_is_late_from_its_arrival() -> None:
    jitter = Dice("test").draw_between(-0.1, 0.1)
    ((at, _),) = play(live(Latency(latency=1000, jitter=100), since=1.0), [(0.5, b"a")])
    assert at == pytest.approx(1.5 + jitter, abs=1e-12)


# slicer: The data comes in crumbs.


def test_sizes_vary_around_the_average_and_no_byte_is_lost() -> None:
    data = bytes(n % 251 for n in range(100_000))
    crumbs = [item for _, item in play(live(Slicer(average_size=100, size_variation=30)), [(0.0, data)])]
    assert b"".join(crumb for crumb in crumbs if isinstance(crumb, bytes)) == data
    sizes = [len(crumb) for crumb in crumbs[:-1] if isinstance(crumb, bytes)]
    assert max(sizes) <= 130
    assert sum(sizes) / len(sizes) == pytest.approx(90, abs=15)
    assert len(set(sizes)) > 30


@pytest.mark.parametrize("variation", [50, 10**12, -50])
def test_a_variation_beyond_the_average_cuts_at_least_a_byte(variation: int) -> None:
    out = play(live(Slicer(average_size=1, size_variation=variation)), [(0.0, bytes(1000))])
    assert sum(len(item) for _, item in out if isinstance(item, bytes)) == 1000


def test_equal_dice_cut_alike() -> None:
    toxic, script = Slicer(average_size=100, size_variation=90), [(0.0, bytes(5000))]
    assert play(live(toxic, "seed"), script) == play(live(toxic, "seed"), script)
    assert play(live(toxic, "seed"), script) != play(live(toxic, "another"), script)


@pytest.mark.parametrize("seed", range(5))
def test_the_cut_is_in_the_middle_give_or_take_what_is_drawn(seed: int) -> None:
    out = play(live(Slicer(average_size=60, size_variation=30), seed), [(0.0, bytes(100))])
    first = 50 + int(Dice("test", seed).draw_between(-30, 30))
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


# timeout: The answer never comes.


@pytest.mark.parametrize("timeout", [0, 500])
@pytest.mark.parametrize("signal", [END, RESET])
def test_when_the_sender_is_through_so_is_the_connection(timeout: int, signal: Signal) -> None:
    assert play(live(Timeout(timeout=timeout)), [(0.1, b"a"), (0.25, signal), (0.3, b"b")]) == [(0.25, signal)]


def test_spared_after_all_the_connection_goes_on_without_what_was_lost() -> None:
    chain = Pipeline()
    chain.add("t", live(Timeout()), 0.0)
    assert play(chain, [(0.0, b"lost")], until=1.0) == []
    chain.remove_as_replaced("t", 1.0)
    assert play(chain, [(2.0, b"heard")]) == [(2.0, b"heard")]


def test_it_says_its_one_thing_when_it_is_due_and_not_again() -> None:
    pipe = live(Timeout(timeout=500))
    assert (pipe.poll(0.25), pipe.find_next_due()) == ([], 0.5)
    assert (pipe.poll(0.5), pipe.find_next_due()) == ([Timed(0.5, END)], None)
    assert (pipe.poll(0.75), pipe.find_next_due()) == ([], None)


def test_a_chunk_at_the_very_moment_is_too_late() -> None:
    pipe = live(Timeout(timeout=500))
    pipe.feed(Timed(0.5, b"a"))
    assert pipe.poll(2.0) == [Timed(0.5, END)]


def test_it_hears_what_arrives_late_by_another_toxic_however_seldom_it_is_polled() -> None:
    chain = Pipeline()
    chain.add("late", live(Latency(latency=125)), 0.0)
    chain.add("silent", live(Timeout(timeout=500)), 0.0)
    chain.feed(Timed(0.0, b"a"))
    chain.feed(Timed(0.375, b"b"))
    assert chain.poll(10.0) == [Timed(1.0, END)]


def test_it_never_closes_by_default_and_keeps_nothing() -> None:
    pipe = live(Timeout())
    pipe.feed(Timed(0.0, b"a"))
    assert (pipe.held_bytes, pipe.held_piece_count, pipe.piece_interval_s, pipe.find_next_due()) == (0, 0, 0.0, None)
