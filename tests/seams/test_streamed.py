"""A streamed body: each part reaches its reader when it was sent, or when the pipes let it out."""

import asyncio
import json
from collections.abc import Iterable
from contextlib import nullcontext

import pytest

from chaoslab.core.events import REPLY_MAX
from chaoslab.core.exchange import Failure
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import PacedQueue, Signal, Timed
from chaoslab.core.stream import Streamed, WatchedPipe
from chaoslab.faults.stream.cut import Cut
from chaoslab.faults.stream.slow_chunks import SlowChunks
from chaoslab.faults.stream.stall import Stall
from chaoslab.seams.http._streamed import ChatReading, KeptParts
from tests.seams.stream_parts import DEADLINE_S, Timetable, event, events, read, streamed_over


def late(delay_s: float) -> PacedQueue:
    """Everything so much later, any number of bytes under way."""

    def law(timed: Timed, start: float) -> Iterable[Timed]:
        return (Timed(max(start, timed.at + delay_s), timed.item),)

    return PacedQueue(law)


def pipe_of(fault: Fault) -> WatchedPipe:
    """The pipe that a fault's story puts over a reply."""
    (pipe,) = streamed_over(fault)
    assert isinstance(pipe, WatchedPipe)
    return pipe


def test_a_part_reaches_the_reader_when_it_was_sent() -> None:
    source = Timetable(events(3), every_s=0.2)
    notes = read(source)
    assert notes.times == [0.2, 0.4, 0.6, 0.8]
    assert notes.body == b"".join(events(3))
    assert notes.seen == [Streamed(0.2, 0.8, 0.2, 4, len(notes.body), True, "end")]
    assert len(source.closed) == 1


def test_two_delays_add_up_and_do_not_pile_up() -> None:
    notes = read(Timetable(events(3), every_s=0.2), late(0.5), late(0.25))
    assert notes.times == [0.95, 1.15, 1.35, 1.55]
    assert notes.seen[0].ended == "end"


def test_an_event_in_pieces_goes_through_the_pipes_as_one() -> None:
    whole = b"".join(events(3))
    pieces = [whole[n : n + 7] for n in range(0, len(whole), 7)]
    assert read(Timetable(pieces), late(0.0)).came == [(0.0, part) for part in events(3)]
    notes = read(Timetable([whole]), late(1.0))
    assert [part for _, part in notes.came] == events(3)


def test_the_beginning_of_an_event_that_never_ends_is_passed_on() -> None:
    assert read(Timetable([event(0) + b"data: ha"]), late(0.0)).body == event(0) + b"data: ha"


def test_a_reader_that_stops_ends_it_upstream_at_once() -> None:
    source = Timetable(events(9), every_s=1.0)
    notes = read(source, stops_after=2)
    assert (source.taken, len(source.closed)) == (2, 1)
    assert notes.seen[0].ended == "cancelled"
    assert notes.failed == [None]


def test_a_reader_that_stops_behind_done_has_read_it_all() -> None:
    assert read(Timetable(events(2)), stops_after=3).seen[0].ended == "end"


def test_a_reader_that_stops_while_a_part_is_being_read_ends_it_too() -> None:
    source = Timetable(events(9), every_s=1.0)
    assert read(source, late(0.5), stops_after=1).times == [1.5]
    assert len(source.closed) == 1


@pytest.mark.parametrize("kind", ["reset", "closed"])
@pytest.mark.parametrize("pipes", [(), (0.5,)])
def test_a_stream_that_breaks_off_is_the_readers_own_error(kind: str, pipes: tuple[float, ...]) -> None:
    notes = read(Timetable([event(0)], fails=kind), *map(late, pipes))
    assert (notes.body, notes.error, notes.failed) == (event(0), kind, [kind])
    assert notes.seen[0].ended == kind


def test_silence_beyond_the_deadline_is_a_timeout_however_long_the_stream_is() -> None:
    assert read(Timetable(events(3), every_s=DEADLINE_S - 1)).error is None
    silent = read(Timetable(events(3), every_s=DEADLINE_S + 1))
    assert (silent.came, silent.error) == ([], "timed_out")
    assert silent.seen[0] == Streamed(None, None, DEADLINE_S, ended="timed_out")


def test_a_pipe_may_reset_the_stream() -> None:
    def law(timed: Timed, start: float) -> Iterable[Timed]:
        return (Timed(start, Signal.RESET if timed.item == event(1) else timed.item),)

    notes = read(Timetable(events(3)), PacedQueue(law))
    assert (notes.body, notes.error) == (event(0), "reset")


def test_no_more_is_read_than_the_pipes_have_room_for() -> None:
    source = Timetable([event(0)] * 1000)
    ahead: list[int] = []
    notes = read(source, pipe_of(SlowChunks(0.1)), on=lambda: ahead.append(source.taken))
    assert len(notes.came) == 1000
    assert max(taken - read_ for read_, taken in enumerate(ahead, 1)) <= 1


@pytest.mark.parametrize("fault", [Cut(9), Cut(3, ending="done"), Stall(9), SlowChunks(0.1)])
def test_a_pipe_that_changed_nothing_is_no_fault(fault: Fault) -> None:
    pipe = pipe_of(fault)
    acted: list[int] = []
    pipe.on_change = lambda: acted.append(1)
    assert (read(Timetable(events(3), every_s=0.2), pipe).body, acted) == (b"".join(events(3)), [])


@pytest.mark.parametrize("fault", [Cut(2), Cut(2, ending="done"), Cut(3), Stall(3, 0.1), SlowChunks(0.3), Stall(0)])
def test_a_pipe_that_changed_something_says_so_once(fault: Fault) -> None:
    pipe = pipe_of(fault)
    acted: list[int] = []
    pipe.on_change = lambda: acted.append(1)
    read(Timetable(events(3), every_s=0.2), pipe)
    assert acted == [1]


@pytest.mark.parametrize("fails", ["", "reset"])
def test_what_is_recorded_is_told_once_with_the_failure_that_ended_it(fails: str) -> None:
    told: list[tuple[bytes, str]] = []

    async def main() -> None:
        parts = KeptParts(Timetable((b"a", b"b"), fails=fails), lambda body, failure: told.append((body, failure)))
        with nullcontext() if not fails else pytest.raises(Failure):
            while await parts.read_part() is not None:
                pass
        await parts.aclose()

    asyncio.run(main())
    assert told == [(b"ab", fails)]


def test_calls_that_come_in_pieces_are_put_together_by_their_place() -> None:
    heard = ChatReading()
    for index, function in (
        (0, {"name": "charge", "arguments": '{"a'}),
        (1, {"name": "mail"}),
        (0, {"arguments": '": 1}'}),
    ):
        delta = {"content": "Hm. ", "tool_calls": [{"index": index, "function": function}]}
        heard.feed(b"data: " + json.dumps({"model": "m", "choices": [{"delta": delta}]}).encode() + b"\n\n")
    for chunk in ({"x_groq": {"usage": {"n": 1}}}, {"usage": {"n": 2}}, {"choices": [{"delta": None}]}, {"choices": 3}):
        heard.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    assert (heard.count, heard.done, heard.heard.model, heard.usage) == (7, False, "m", {"n": 2})
    heard.feed(b"data: [DONE]\n\n")
    assert heard.heard.rendered_content == 'Hm. Hm. Hm.  calls charge({"a": 1}), mail()'
    assert (heard.count, heard.done) == (8, True)


def test_of_an_answer_no_more_is_read_than_the_log_keeps_but_its_usage() -> None:
    heard = ChatReading()
    for delta in ({"content": "x" * (REPLY_MAX - 1)}, {"content": "y"}, {"content": "z"}):
        heard.feed(b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n")
    heard.feed(b'data: {"usage": {"n": 1}}\n\n')
    assert (heard.heard.text, heard.usage, heard.count) == ("x" * (REPLY_MAX - 1) + "y", {"n": 1}, 4)
