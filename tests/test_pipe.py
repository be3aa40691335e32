"""A chain of pipes hands a chunk on when it is due, whoever polls and whenever, and may be rebuilt with data in it."""

import math
from collections.abc import Iterator

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import WALK_MIN, PacedQueue, Pipe, Pipeline, Signal, Timed
from chaoslab.wire.toxics.timeout import Timeout


def late(delay_s: float, *, since: float = -math.inf) -> PacedQueue:
    def law(timed: Timed, start: float) -> Iterator[Timed]:
        yield Timed(max(start, timed.at + delay_s), timed.item)

    return PacedQueue(law, since=since)


def halves(pause_s: float) -> PacedQueue:
    def law(timed: Timed, start: float) -> Iterator[Timed]:
        assert isinstance(timed.item, bytes)
        middle = len(timed.item) // 2
        yield Timed(start, timed.item[:middle])
        yield Timed(start + pause_s, timed.item[middle:])

    return PacedQueue(law)


def run_out(pipe: Pipe, *, step_s: float | None = None) -> list[Timed]:
    """All that still comes; polled when the pipe asks for it, or on a coarse grid."""
    out: list[Timed] = []
    now = 0.0
    while (wake := pipe.find_next_due()) is not None:
        now = wake if step_s is None else max(wake, math.ceil(wake / step_s) * step_s, now)
        out += pipe.poll(now)
    return out


def chain_of(*pipes: Pipe) -> Pipeline:
    chain = Pipeline()
    for number, pipe in enumerate(pipes):
        chain.add(f"pipe {number}", pipe, 0.0)
    return chain


@pytest.mark.parametrize("step_s", [None, 0.015, 1.0])
def test_two_latencies_add_up_exactly_on_a_stream_of_tokens_however_coarsely_polled(step_s: float | None) -> None:
    chain = chain_of(late(0.1), late(0.1))
    for n in range(50):
        chain.feed(Timed(n / 100, b"token"))
    assert run_out(chain, step_s=step_s) == [Timed(n / 100 + 0.1 + 0.1, b"token") for n in range(50)]


def test_a_few_at_a_time_come_in_the_order_in_which_they_went_in() -> None:
    chain = chain_of(late(9.0), late(9.0))
    for n in range(50):
        chain.feed(Timed(n / 100, b"%d" % n))
    chain.remove("pipe 1", 1.0)
    chain.remove("pipe 0", 1.0)
    out, parts = list[bytes | Signal](), list[int]()
    while found := chain.poll(1.0, 3):
        out += [timed.item for timed in found]
        parts.append(len(found))
    assert out == [b"%d" % n for n in range(50)]
    assert parts == [3] * 16 + [2]


def test_a_chunk_is_with_the_second_pipe_only_once_the_first_is_done_with_it() -> None:
    first, second = late(1.0), late(1.0)
    chain = chain_of(first, second)
    chain.feed(Timed(0.0, b"abc"))
    assert chain.poll(0.999) == []
    assert (first.held_bytes, second.held_bytes) == (3, 0)
    assert chain.poll(1.0) == []
    assert (first.held_bytes, second.held_bytes, chain.held_bytes) == (0, 3, 3)
    assert chain.find_next_due() == 2.0


def test_what_is_held_moves_on_at_once_when_a_pipe_is_taken_out() -> None:
    chain = chain_of(late(10.0), late(1.0))
    chain.feed(Timed(0.0, b"a"))
    chain.feed(Timed(0.5, Signal.END))
    chain.remove("pipe 0", 2.0)
    assert run_out(chain) == [Timed(3.0, b"a"), Timed(3.0, Signal.END)]


def test_half_a_chunk_that_has_left_is_not_released_again() -> None:
    line = halves(5.0)
    line.feed(Timed(0.0, b"abcdef"))
    assert line.poll(1.0) == [Timed(0.0, b"abc")]
    assert line.held_bytes == 3
    assert line.release_all_items(2.0) == [Timed(2.0, b"def")]
    assert line.held_bytes == 0
    assert line.find_next_due() is None


def test_a_successor_lets_the_chunk_in_hand_go_and_keeps_the_others_by_their_arrival() -> None:
    chain = chain_of(late(10.0))
    for at in (0.0, 1.0, 2.0):
        chain.feed(Timed(at, b"x"))
    chain.replace("pipe 0", late(4.0, since=3.0), 3.0)
    assert run_out(chain) == [Timed(3.0, b"x"), Timed(5.0, b"x"), Timed(6.0, b"x")]


def test_overdue_data_taken_over_by_a_quicker_successor_never_travels_back_in_time() -> None:
    chain = chain_of(late(10.0))
    for at in (0.0, 1.0):
        chain.feed(Timed(at, b"x"))
    chain.replace("pipe 0", late(0.0, since=5.0), 5.0)
    assert run_out(chain) == [Timed(5.0, b"x"), Timed(5.0, b"x")]


def test_data_that_waited_passes_a_straight_successor_at_the_moment_of_the_change() -> None:
    chain = chain_of(late(10.0))
    for at in (0.0, 1.0):
        chain.feed(Timed(at, b"x"))
    chain.replace("pipe 0", PacedQueue(lambda timed, start: (Timed(start, timed.item),), since=5.0, straight=True), 5.0)
    assert run_out(chain) == [Timed(5.0, b"x"), Timed(5.0, b"x")]


def test_a_pipe_put_in_between_sees_what_has_not_passed_its_place() -> None:
    first, last = late(1.0), late(1.0)
    chain = chain_of(first, last)
    chain.feed(Timed(0.0, b"early"))
    chain.feed(Timed(2.0, b"later"))
    chain.add("between", late(10.0), 1.5, index=1)
    assert chain.keys == ("pipe 0", "between", "pipe 1")
    assert run_out(chain) == [Timed(2.0, b"early"), Timed(14.0, b"later")]


def test_an_empty_chain_is_a_wire() -> None:
    chain = Pipeline()
    chain.feed(Timed(3.0, b"x"))
    assert chain.find_next_due() == 3.0
    assert chain.poll(3.0) == [Timed(3.0, b"x")]
    assert chain.find_next_due() is None


def test_a_piece_that_is_never_due_is_held_not_awaited() -> None:
    line = late(math.inf)
    line.feed(Timed(0.0, b"abc"))
    assert line.find_next_due() is None
    assert line.poll(1e9) == []
    assert line.held_bytes == 3


def test_nothing_comes_after_a_reset() -> None:
    def law(timed: Timed, start: float) -> Iterator[Timed]:  # noqa: ARG001
        yield Timed(start, Signal.RESET)

    line = PacedQueue(law)
    line.feed(Timed(0.0, b"a"))
    line.feed(Timed(0.0, b"b"))
    assert line.poll(1.0) == [Timed(0.0, Signal.RESET)]
    line.feed(Timed(2.0, b"c"))
    assert line.poll(3.0) == []
    assert line.held_bytes == 0


def test_what_a_law_cuts_off_is_not_held() -> None:
    def law(timed: Timed, start: float) -> Iterator[Timed]:
        assert isinstance(timed.item, bytes)
        yield Timed(start, timed.item[:1])

    line = PacedQueue(law)
    line.feed(Timed(0.0, b"abc"))
    line.feed(Timed(0.0, b"def"))
    assert line.poll(0.0) == [Timed(0.0, b"a"), Timed(0.0, b"d")]
    assert line.find_next_due() is None
    assert line.held_bytes == 0


@pytest.mark.parametrize("most", [1, 3, 64])
def test_a_chain_gives_no_more_than_it_is_asked_for_and_in_the_end_the_same(most: int) -> None:
    def crumbs() -> PacedQueue:
        def law(timed: Timed, start: float) -> Iterator[Timed]:
            assert isinstance(timed.item, bytes)
            for begin in range(len(timed.item)):
                yield Timed(start, timed.item[begin : begin + 1])

        return PacedQueue(law)

    data = bytes(range(250))
    chain = chain_of(crumbs(), late(1.0), late(0.5))
    chain.feed(Timed(0.0, data))
    out: list[Timed] = []
    while (wake := chain.find_next_due()) is not None:
        some = chain.poll(wake, most)
        assert len(some) <= max(most, WALK_MIN)
        assert chain.held_piece_count <= 2 * len(data)
        out += some
    assert out == [Timed(1.5, bytes([byte])) for byte in data]


def test_what_a_first_pipe_cuts_does_not_pile_up_before_the_second() -> None:
    """Two pipes that cut, a little at a time: the second is through with a piece before the first cuts the next."""

    def cut(size: int) -> PacedQueue:
        def law(timed: Timed, start: float) -> Iterator[Timed]:
            assert isinstance(timed.item, bytes)
            for begin in range(0, len(timed.item), size):
                yield Timed(start, timed.item[begin : begin + size])

        return PacedQueue(law)

    chain = chain_of(cut(10), cut(1))
    chain.feed(Timed(0.0, bytes(100_000)))
    most, got = 0, 0
    while chain.find_next_due() is not None:
        got += len(chain.poll(0.0, 64))
        most = max(most, chain.held_piece_count)
    assert got == 100_000
    assert most <= 64


def test_pipes_that_let_bytes_pass_at_once_are_not_even_asked_but_see_the_end() -> None:
    def straight(end_late_s: float) -> PacedQueue:
        def law(timed: Timed, start: float) -> Iterator[Timed]:
            assert isinstance(timed.item, Signal), "bytes were fed to it"
            yield Timed(start + end_late_s, timed.item)

        return PacedQueue(law, straight=True)

    chain = chain_of(straight(1.0), late(0.25), straight(2.0))
    chain.feed(Timed(0.0, b"a"))
    assert chain.poll(0.25) == [Timed(0.25, b"a")]
    chain.feed(Timed(0.5, Signal.END))
    assert run_out(chain) == [Timed(3.75, Signal.END)]


def test_releasing_a_chain_gives_back_everything_in_order() -> None:
    chain = chain_of(late(1.0), late(5.0))
    for at in (0.0, 1.0, 2.0):
        chain.feed(Timed(at, str(at).encode()))
    assert [timed.item for timed in chain.release_all_items(2.5)] == [b"0.0", b"1.0", b"2.0"]
    assert chain.keys == ()


@pytest.mark.parametrize("most", [1, 64])
def test_a_pipe_that_acts_on_silence_is_told_first_of_all_that_came_by_then(most: int) -> None:
    chain = chain_of(late(0.0), Timeout(timeout=1000).pipe(Dice(1), 0.0))
    for at in (0.5, 1.25, 2.0):
        chain.feed(Timed(at, b"x"))
    assert [timed for _ in range(4) for timed in chain.poll(9.0, most)] == [Timed(3.0, Signal.END)]
