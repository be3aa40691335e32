"""One event of the stream is damaged on its way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoslab.base.dice import Dice
from chaoslab.core.stream import Events, json_of, spelt_event
from chaoslab.faults.stream.corrupt_chunk import CorruptChunk
from chaoslab.faults.stream.cut import EVENTS_MAX
from tests.faults.answer_parts import FORMATS, TEXT, streamed
from tests.faults.fault_parts import Target, meet
from tests.seams.stream_parts import Timetable, drawn_over, events, read, streamed_over


@pytest.mark.parametrize("name", FORMATS)
def test_one_event_has_no_json_and_all_others_come(name: str) -> None:
    was = streamed(name, TEXT)
    notes = read(Timetable(was), *streamed_over(CorruptChunk(2)))
    came = Events().feed(notes.body)
    assert [*came[:2], *came[3:]] == [*was[:2], *was[3:]]
    assert (json_of(came[2]), came[2].startswith(was[2].partition(b"data:")[0] + b"data: ")) == (None, True)
    assert CorruptChunk(2).witnessed(notes.observed) == (
        f"event 3 came with damaged JSON, and the reader took {len(was)} events"
    )


@settings(max_examples=25)  # a world of its own for each
@given(st.dictionaries(st.text(), st.one_of(st.integers(), st.text()), max_size=3))
def test_whatever_the_event_says_it_is_no_json_any_more(value: dict[str, int | str]) -> None:
    came = read(Timetable([spelt_event({"type": "delta", **value})] * 2), *streamed_over(CorruptChunk(1))).body
    assert json_of(Events().feed(came)[1]) is None


def test_a_reader_that_stopped_before_is_no_witness() -> None:
    fault = CorruptChunk(2)
    assert fault.witnessed(read(Timetable(events(5)), *streamed_over(fault), stops_after=2).observed) is None
    assert fault.witnessed(read(Timetable(events(5)), *streamed_over(fault), stops_after=3).observed)
    assert fault.witnessed(replace(read(Timetable(events(5))).observed, streamed=None)) is None


@pytest.mark.parametrize(
    "body", [events(2), [b": keep\n\n"] * 4, [b"data: 17\n\n"] * 4], ids=["done", "comment", "a number"]
)
def test_an_event_without_an_object_passes(body: list[bytes]) -> None:
    assert read(Timetable(body), *streamed_over(CorruptChunk(2))).body == b"".join(body)


def test_a_whole_reply_passes_unchanged() -> None:
    met = meet(CorruptChunk(2), target := Target())
    assert (met.reply is target.reply, met.injected, met.evidence) == (True, False, None)


def test_where_is_drawn_unless_it_is_said() -> None:
    assert drawn_over(CorruptChunk()) == {CorruptChunk(n) for n in range(1, EVENTS_MAX + 1)}
    assert CorruptChunk(3).draw(Dice(1)) == CorruptChunk(3)
