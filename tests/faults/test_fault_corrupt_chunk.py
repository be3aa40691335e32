"""One event of the stream is damaged on its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Observation, Reply
from chaoslab.core.stream import Events, json_of, spelt_event, type_of
from chaoslab.faults.stream.corrupt_chunk import CorruptChunk
from chaoslab.faults.stream.cut import EVENTS_MAX
from tests.faults.answer_parts import FORMATS, TEXT, streamed
from tests.faults.fault_parts import Target, meet
from tests.seams.stream_parts import STREAM, Read, Timetable, drawn_over, events, read, streamed_over


def over(fault: CorruptChunk, body: Sequence[bytes], *, stops_after: int | None = None) -> tuple[Read, Observation]:
    """The notes of the reader of a body with the fault over it, and the observation that the fault is shown."""
    pipes = streamed_over(fault)
    notes = read(Timetable(body), *pipes, stops_after=stops_after)
    return notes, replace(notes.observed, changed_reply=Reply(200, STREAM, stream=Timetable([]), pipes=pipes))


@pytest.mark.parametrize("name", FORMATS)
def test_one_event_has_no_json_and_all_others_come(name: str) -> None:
    was = streamed(name, TEXT)
    notes, seen = over(CorruptChunk(2), was)
    came = Events().feed(notes.body)
    hit = 2 if type_of(was[2]) != "ping" else 3
    assert [*came[:hit], *came[hit + 1 :]] == [*was[:hit], *was[hit + 1 :]]
    assert (json_of(came[hit]), came[hit].startswith(was[hit].partition(b"data:")[0] + b"data: ")) == (None, True)
    assert CorruptChunk(2).witnessed(seen) == (
        f"event {hit + 1} came with damaged JSON, and the reader took {len(was)} events"
    )


def test_a_ping_that_no_client_parses_is_left_alone_and_the_next_event_is_hit() -> None:
    ping = spelt_event({"type": "ping"})
    body = [*events(2)[:2], ping, ping, *events(2)]
    came = Events().feed(over(CorruptChunk(2), body)[0].body)
    assert [n for n, event in enumerate(came) if event != body[n]] == [4]
    for stops_after, met in ((3, None), (4, None), (5, "event 5 came with damaged JSON, and the reader took 5 events")):
        assert CorruptChunk(2).witnessed(over(CorruptChunk(2), body, stops_after=stops_after)[1]) == met
    notes, seen = over(CorruptChunk(2), [*body[:4], body[-1]])
    assert (notes.body, CorruptChunk(2).witnessed(seen)) == (b"".join([*body[:4], body[-1]]), None)


@settings(max_examples=25)  # a world of its own for each
@given(st.dictionaries(st.text(), st.one_of(st.integers(), st.text()), max_size=3))
def test_whatever_the_event_says_it_is_no_json_any_more(value: dict[str, int | str]) -> None:
    came = read(Timetable([spelt_event({"type": "delta", **value})] * 2), *streamed_over(CorruptChunk(1))).body
    assert json_of(Events().feed(came)[1]) is None


def test_a_reader_that_stopped_before_is_no_witness() -> None:
    fault = CorruptChunk(2)
    assert fault.witnessed(over(fault, events(5), stops_after=2)[1]) is None
    assert fault.witnessed(seen := over(fault, events(5), stops_after=3)[1])
    assert fault.witnessed(replace(seen, streamed=None)) is None


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
