"""The stream stands still in its middle."""

from __future__ import annotations

import pytest

from chaoslab.faults.stream.cut import EVENTS_MAX
from chaoslab.faults.stream.stall import Stall
from tests.faults.answer_parts import retold, streamed
from tests.faults.fault_parts import Target, meet
from tests.seams.stream_parts import DEADLINE_S, Timetable, drawn_over, event, events, read, streamed_over


def test_the_next_event_comes_after_the_stall_and_the_others_at_once() -> None:
    notes = read(Timetable(events(4)), *streamed_over(Stall(2, 5.0)))
    assert notes.times == [0.0, 0.0, 5.0, 5.0, 5.0]
    assert notes.body == b"".join(events(4))
    assert Stall(2, 5.0).witnessed(notes.observed) == "nothing came for 5.000 s in the middle of the answer"


def test_for_ever_is_until_the_clients_own_timeout() -> None:
    source = Timetable(events(4))
    notes = read(source, *streamed_over(Stall(2)))
    assert (notes.body, notes.error) == (event(0) + event(1), "timed_out")
    assert Stall(2).witnessed(notes.observed) == f"nothing came for {DEADLINE_S:.3f} s in the middle of the answer"
    assert (source.taken, len(source.closed)) == (3, 1)


def test_a_stream_that_is_slow_by_itself_is_no_witness_of_a_longer_stall() -> None:
    assert Stall(2, 5.0).witnessed(read(Timetable(events(4), every_s=4.0)).observed) is None


@pytest.mark.parametrize(("name", "ping"), [("chat", b": keep-alive"), ("anthropic", b"event: ping")])
def test_meanwhile_the_provider_shows_that_it_lives(name: str, ping: bytes) -> None:
    sent = streamed(name, "It is warm in Oslo.")
    told = retold(Stall(2, 5.0, 1.5), name, sent)
    found = [event for event in told.read.body.split(b"\n\n") if event.startswith(ping)]
    own = sum(event.startswith(ping) for event in sent)
    assert (len(found) - own, told.read.error, told.changed) == (3, None, True)
    assert told.read.times[2:5] == [1.5, 3.0, 4.5]
    assert told.evidence == "nothing but 3 signs of life came in the middle of the answer"
    for_ever = retold(Stall(2, 0.0, 1.5), name, streamed(name, "It is warm in Oslo."), stops_after=9)
    assert for_ever.evidence == "nothing but 7 signs of life came in the middle of the answer"
    assert retold(Stall(2, 5.0, 1.5), name, streamed(name, "Yes."), stops_after=2).evidence is None


def test_a_whole_reply_passes_unchanged() -> None:
    met = meet(Stall(2, 1.0), target := Target())
    assert (met.reply is target.reply, met.injected, met.evidence) == (True, False, None)


def test_where_is_drawn_unless_it_is_said() -> None:
    assert drawn_over(Stall(stall_s=1.0)) == {Stall(n, 1.0) for n in range(1, EVENTS_MAX + 1)}
