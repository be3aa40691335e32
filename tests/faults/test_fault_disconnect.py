"""The connection breaks in the middle of a stream."""

from __future__ import annotations

from chaoslab.base.dice import Dice
from chaoslab.faults.stream.cut import EVENTS_MAX
from chaoslab.faults.stream.disconnect import Disconnect
from tests.faults.fault_parts import Target, meet
from tests.seams.stream_parts import Timetable, drawn_over, event, events, read, streamed_over


def test_so_many_events_come_and_then_the_connection_is_reset() -> None:
    notes = read(Timetable(events(5)), *streamed_over(Disconnect(2)))
    assert (notes.body, notes.error) == (event(0) + event(1), "reset")
    assert Disconnect(2).witnessed(notes.observed) == "the connection broke after 2 events"


def test_a_stream_that_ended_or_broke_elsewhere_is_no_witness() -> None:
    for seen in (
        read(Timetable(events(2))).observed,
        read(Timetable(events(3), fails="reset")).observed,
        read(Timetable(events(5)), stops_after=2).observed,
    ):
        assert Disconnect(2).witnessed(seen) is None


def test_a_whole_reply_passes_unchanged() -> None:
    met = meet(Disconnect(2), target := Target())
    assert (met.reply is target.reply, met.injected, met.evidence) == (True, False, None)


def test_where_is_drawn_unless_it_is_said() -> None:
    assert drawn_over(Disconnect()) == {Disconnect(n) for n in range(1, EVENTS_MAX + 1)}
    assert Disconnect(3).draw(Dice(1)) == Disconnect(3)
