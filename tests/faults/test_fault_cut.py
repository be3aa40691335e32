"""The stream ends too early, as if it had ended as it should."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Observation
from chaoslab.core.stream import Events, json_of
from chaoslab.faults.stream.cut import EVENTS_MAX, Cut
from tests.faults.answer_parts import FORMATS, TEXT, pipes_over, streamed
from tests.faults.fault_parts import CALL, Target, meet
from tests.seams.stream_parts import Read, Timetable, drawn_over, event, events, read, streamed_over


def test_the_answer_ends_after_so_many_events() -> None:
    notes = read(Timetable(events(5)), *streamed_over(Cut(2)))
    assert (notes.body, notes.error) == (event(0) + event(1), None)
    assert Cut(2).witnessed(notes.observed) == "the answer ended after 2 events, without [DONE]"


def test_done_may_come_last() -> None:
    cut = Cut(2, ending="done")
    notes = read(Timetable(events(5)), *streamed_over(cut))
    assert notes.body == event(0) + event(1) + b"data: [DONE]\n\n"
    assert cut.witnessed(notes.observed) == "the answer ended after 3 events, with [DONE]"


LAST = {"responses": "response.completed", "anthropic": "message_stop", "gemini": "STOP"}


@pytest.mark.parametrize("name", LAST)
def test_done_is_the_last_event_of_the_format(name: str) -> None:
    cut, was = Cut(4, ending="done"), streamed(name, TEXT)
    notes = read(Timetable(was), *pipes_over(cut, name))
    *before, last = Events().feed(notes.body)
    assert before == was[:4]
    assert (LAST[name] in last.decode(), FORMATS[name][0].answers.closes(last)) == (True, True)
    assert type(json_of(last)) is type(json_of(was[-1]))
    assert set(json_of(last)) == set(json_of(was[-1]))
    assert cut.witnessed(seen_of(notes, name)) == "the answer ended after 5 events, with the format's last one"
    assert cut.witnessed(seen_of(read(Timetable(was)), name)) is None
    for taken in (4, 5):  # a reader may hang up after the last event
        notes = read(Timetable(was), *pipes_over(cut, name), stops_after=taken)
        assert bool(cut.witnessed(seen_of(notes, name))) == (taken == 5)


@pytest.mark.parametrize("name", LAST)
def test_an_answer_that_ends_there_anyway_is_no_cut(name: str) -> None:
    was = streamed(name, TEXT)
    notes = read(Timetable(was), *pipes_over(Cut(len(was) - 1, ending="done"), name))
    assert notes.body == b"".join(was)


@pytest.mark.parametrize("name", ["responses", "gemini"])
def test_what_is_no_answer_of_the_format_goes_on(name: str) -> None:
    came = [b"data: 17\n\n"] * 4
    assert read(Timetable(came), *pipes_over(Cut(2, ending="done"), name)).body == b"".join(came)


def seen_of(notes: Read, name: str) -> Observation:
    return replace(notes.observed, sent=replace(CALL, dialog=FORMATS[name][0]))


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
