"""The stream comes drop by drop."""

from __future__ import annotations

from chaoslab.faults.stream.slow_chunks import SlowChunks
from tests.faults.fault_parts import Target, meet
from tests.seams.stream_parts import DEADLINE_S, Timetable, event, events, read, streamed_over


def test_so_much_time_passes_between_two_events() -> None:
    notes = read(Timetable(events(3)), *streamed_over(SlowChunks(0.5)))
    assert notes.times == [0.0, 0.5, 1.0, 1.5]
    assert SlowChunks(0.5).witnessed(notes.observed) == "4 events took 1.500 s, one each 0.500 s"


def test_events_that_are_further_apart_are_not_delayed() -> None:
    notes = read(Timetable(events(3), every_s=2.0), *streamed_over(SlowChunks(0.5)))
    assert notes.times == [2.0, 4.0, 6.0, 8.0]


def test_all_together_may_take_longer_than_the_deadline() -> None:
    notes = read(Timetable(events(9)), *streamed_over(SlowChunks(DEADLINE_S / 2)))
    assert (notes.error, notes.times[-1]) == (None, 9 * DEADLINE_S / 2)


def test_a_delay_beyond_the_deadline_is_a_timeout() -> None:
    slow = SlowChunks(DEADLINE_S + 1)
    notes = read(Timetable(events(3)), *streamed_over(slow))
    assert (notes.body, notes.error) == (event(0), "timed_out")
    assert slow.witnessed(notes.observed) == f"the next event did not come within {DEADLINE_S:.3f} s"


def test_a_faster_stream_is_no_witness() -> None:
    assert SlowChunks(0.5).witnessed(read(Timetable(events(3), every_s=0.4)).observed) is None
    assert SlowChunks(0.5).witnessed(read(Timetable(events(3), every_s=0.449)).observed) is None
    assert SlowChunks(0.5).witnessed(read(Timetable([event(0)])).observed) is None


def test_a_first_event_that_is_late_takes_nothing_from_the_witness() -> None:
    assert SlowChunks(0.5).witnessed(read(Timetable(events(3), every_s=0.451)).observed) is not None


def test_a_whole_reply_passes_unchanged() -> None:
    met = meet(SlowChunks(0.5), target := Target())
    assert (met.reply is target.reply, met.injected, met.evidence) == (True, False, None)
