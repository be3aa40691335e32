"""The parts of a streamed tool call have the wrong index, or come among those of another."""

from __future__ import annotations

from typing import Any

import pytest

from chaoslab.core.stream import json_of
from chaoslab.faults.stream.call_index import CallIndex, How
from tests.faults.answer_parts import CITIES, FORMATS, TEXT, pipes_over, retold, spoken, streamed
from tests.faults.fault_parts import Target, meet
from tests.seams.stream_parts import Timetable, read

TWO = streamed("chat", "", *CITIES)


def indices(body: bytes) -> list[Any]:
    """The index of each part of a tool call, in order; None if it has none."""
    values = [json_of(event + b"\n\n") for event in body.split(b"\n\n") if event]
    deltas = [choice["delta"] for value in values if value for choice in value["choices"]]
    return [part.get("index") for delta in deltas for part in delta.get("tool_calls") or ()]


@pytest.mark.parametrize("how", ["missing", "repeated", "interleaved"])
def test_the_index_of_each_part(how: How) -> None:
    notes = read(Timetable(TWO), *pipes_over(CallIndex(how), "chat"))
    true = indices(b"".join(TWO))
    assert true == sorted(true)
    assert set(true) == {0, 1}
    expected = {"missing": [None] * len(true), "repeated": [0] * len(true), "interleaved": [0, 1] * (len(true) // 2)}
    assert indices(notes.body) == expected[how]
    assert retold(CallIndex(how), "chat", TWO, stops_after=99).evidence == (
        f"the parts of tool calls came with their index {how}"
    )


def test_interleaved_parts_say_the_same() -> None:
    notes = read(Timetable(TWO), *pipes_over(CallIndex("interleaved"), "chat"))
    found = [event + b"\n\n" for event in notes.body.split(b"\n\n") if event]
    assert spoken("chat", found).calls == spoken("chat", TWO).calls
    assert (sorted(found), found != list(TWO)) == (sorted(TWO), True)


@pytest.mark.parametrize(("how", "calls"), [("repeated", 1), ("interleaved", 1), ("missing", 0)])
def test_with_fewer_calls_there_is_nothing_to_change(how: How, calls: int) -> None:
    sent = streamed("chat", "" if calls else TEXT, *CITIES[:calls])
    told = retold(CallIndex(how), "chat", sent)
    assert (told.changed, told.evidence, told.read.body) == (False, None, b"".join(sent))


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"chat"}))
def test_other_formats_have_no_such_index(name: str) -> None:
    sent = streamed(name, "", *CITIES)
    assert retold(CallIndex("missing"), name, sent).evidence is None


def test_a_whole_reply_passes_unchanged() -> None:
    met = meet(CallIndex(), target := Target())
    assert (met.reply is target.reply, met.injected, met.evidence) == (True, False, None)
