"""The stream ends too early, as if it had ended as it should."""

from __future__ import annotations

from chaoslab.base.dice import Dice
from chaoslab.faults.stream.cut import EVENTS_MAX, Cut
from tests.faults.fault_parts import Target, meet
from tests.seams.stream_parts import Timetable, drawn_over, event, events, read, streamed_over


def test_the_answer_ends_after_so_many_events() -> None:
    notes = read(Timetable(events(5)), *streamed_over(Cut(2)))
    assert (notes.body, notes.error) == (event(0) + event(1), None)
    assert Cut(2).witnessed(notes.observed) == "the answer ended after 2 events, without [DONE]"


def test_done_may_come_last() -> None:
    cut = Cut(2, ending="done")
    notes = read(Timetable(events(5)), *streamed_over(cut))
    assert notes.body == event(0) + event(1) + b"data: [DONE]\n\n"
    assert cut.witnessed(notes.observed) == "the answer ended after 3 events, with [DONE]"


def test_what_is_cut_off_is_not_read() -> None:
    source = Timetable(events(100))
    read(source, *streamed_over(Cut(2)))
    assert (source.taken, len(source.closed)) == (3, 1)


def test_an_answer_that_ended_otherwise_is_no_witness() -> None:
    for seen in (
        read(Timetable(events(5))).observed,
        read(Timetable([event(0), event(1)], fails="reset")).observed,
        read(Timetable(events(5)), stops_after=2).observed,
    ):
        assert Cut(2).witnessed(seen) is None


def test_a_whole_reply_passes_unchanged() -> None:
    met = meet(Cut(2), target := Target())
    assert (met.reply is target.reply, met.injected, met.evidence) == (True, False, None)


def test_where_is_drawn_unless_it_is_said() -> None:
    assert drawn_over(Cut()) == {Cut(n) for n in range(1, EVENTS_MAX + 1)}
    assert Cut(3).draw(Dice(1)) == Cut(3)
