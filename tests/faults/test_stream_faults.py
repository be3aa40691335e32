"""Faults of a stream."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.core.exchange import Observation, Reply
from chaoslab.core.stream import EventSplitter, Streamed, encode_event, get_event_type, parse_event_json
from chaoslab.faults.stream.call_index import CallIndex, How
from chaoslab.faults.stream.corrupt_chunk import CorruptChunk
from chaoslab.faults.stream.cut import Cut
from chaoslab.faults.stream.cut_arguments import CutArguments
from chaoslab.faults.stream.disconnect import Disconnect
from chaoslab.faults.stream.early_stop import EarlyStop
from chaoslab.faults.stream.error_event import ErrorEvent
from chaoslab.faults.stream.slow_chunks import SlowChunks
from chaoslab.faults.stream.slow_first_token import SlowFirstToken
from chaoslab.faults.stream.stall import Stall
from tests.faults.answer_parts import CITIES, FORMATS, OSLO, PARIS, TEXT, met, pipes_over, retold, spoken, streamed
from tests.faults.fault_parts import CALL, Target, meet
from tests.seams.stream_parts import DEADLINE_S, STREAM, Read, Timetable, event, events, read, streamed_over
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

# call_index: The parts of a streamed tool call have the wrong index, or come among those of another.


TWO = streamed("chat", "", *CITIES)


def indices(body: bytes) -> list[Any]:
    """The index of each part of a tool call, in order; None if it has none."""
    values = [parse_event_json(event + b"\n\n") for event in body.split(b"\n\n") if event]
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


# corrupt_chunk: One event of the stream is damaged on its way.


def over(fault: CorruptChunk, body: Sequence[bytes], *, stops_after: int | None = None) -> tuple[Read, Observation]:
    """The notes of the reader of a body with the fault over it, and the observation that the fault is shown."""
    pipes = streamed_over(fault)
    notes = read(Timetable(body), *pipes, stops_after=stops_after)
    return notes, replace(notes.observed, changed_reply=Reply(200, STREAM, stream=Timetable([]), pipes=pipes))


@pytest.mark.parametrize("name", FORMATS)
def test_one_event_has_no_json_and_all_others_come(name: str) -> None:
    was = streamed(name, TEXT)
    notes, seen = over(CorruptChunk(2), was)
    came = EventSplitter().feed(notes.body)
    hit = 2 if get_event_type(was[2]) != "ping" else 3
    assert [*came[:hit], *came[hit + 1 :]] == [*was[:hit], *was[hit + 1 :]]
    assert (parse_event_json(came[hit]), came[hit].startswith(was[hit].partition(b"data:")[0] + b"data: ")) == (
        None,
        True,
    )
    assert CorruptChunk(2).witnessed(seen) == (
        f"event {hit + 1} came with damaged JSON, and the reader took {len(was)} events"
    )


def test_a_ping_that_no_client_parses_is_left_alone_and_the_next_event_is_hit() -> None:
    ping = encode_event({"type": "ping"})
    body = [*events(2)[:2], ping, ping, *events(2)]
    came = EventSplitter().feed(over(CorruptChunk(2), body)[0].body)
    assert [n for n, event in enumerate(came) if event != body[n]] == [4]
    for stops_after, by in ((3, None), (4, None), (5, "event 5 came with damaged JSON, and the reader took 5 events")):
        assert CorruptChunk(2).witnessed(over(CorruptChunk(2), body, stops_after=stops_after)[1]) == by
    notes, seen = over(CorruptChunk(2), [*body[:4], body[-1]])
    assert (notes.body, CorruptChunk(2).witnessed(seen)) == (b"".join([*body[:4], body[-1]]), None)


@settings(max_examples=25)  # a world of its own for each
@given(st.dictionaries(st.text(), st.one_of(st.integers(), st.text()), max_size=3))
def test_whatever_the_event_says_it_is_no_json_any_more(value: dict[str, int | str]) -> None:
    came = read(Timetable([encode_event({"type": "delta", **value})] * 2), *streamed_over(CorruptChunk(1))).body
    assert parse_event_json(EventSplitter().feed(came)[1]) is None


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


# cut: The stream ends too early, as if it had ended as it should.


def test_the_answer_ends_after_so_many_events() -> None:
    notes = read(Timetable(events(5)), *streamed_over(Cut(2)))
    assert (notes.body, notes.error) == (event(0) + event(1), None)
    assert Cut(2).witnessed(notes.observed) == "the answer ended after 2 events, without [DONE]"
    assert Cut(6).witnessed(read(Timetable(events(5))).observed) is None  # it had its own end


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
    *before, last = EventSplitter().feed(notes.body)
    assert before == was[:4]
    assert (LAST[name] in last.decode(), FORMATS[name][0].answers.is_last_event(last)) == (True, True)
    assert type(parse_event_json(last)) is type(parse_event_json(was[-1]))
    assert set(parse_event_json(last)) == set(parse_event_json(was[-1]))
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


# cut_arguments: The stream ends in the middle of a tool call's arguments, as if it had ended as it should.


EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic"])
def test_the_last_calls_arguments_end_in_their_middle_and_the_stream_properly(name: str) -> None:
    told = retold(CutArguments(), name, streamed(name, "", *CITIES))
    assert [call.arguments for call in told.said.calls] == [OSLO, PARIS[: len(PARIS) // 2]]
    assert told.said.calls[1].parsed_arguments is None
    assert (told.changed, told.evidence) == (True, EVIDENCE)
    end = {"chat": b'"tool_calls"', "anthropic": b'"tool_use"', "responses": b'"response.completed"'}
    assert end[name] in told.read.body


@pytest.mark.parametrize("part", [0.0, 0.99])
def test_wherever_they_end_they_are_no_json(part: float) -> None:
    (_, call) = retold(CutArguments(part), "chat", streamed("chat", "", *CITIES)).said.calls
    assert (call.parsed_arguments, call.arguments) in [(None, "{"), (None, PARIS[:-1])]


def test_arguments_that_are_objects_pass_unchanged() -> None:
    assert not retold(CutArguments(), "gemini", streamed("gemini", "", *CITIES)).changed


@pytest.mark.parametrize("name", FORMATS)
def test_words_and_a_whole_answer_pass_unchanged(name: str) -> None:
    assert not retold(CutArguments(), name, streamed(name, TEXT)).changed
    assert not met(CutArguments(), name, calls=True)[0].injected


# disconnect: The connection breaks in the middle of a stream.


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


# early_stop: The stream ends in the middle of the answer and says that the model meant it so.


@pytest.mark.parametrize("name", FORMATS)
def test_half_of_the_words_come_and_nothing_tells_of_the_rest(name: str) -> None:
    told = retold(EarlyStop(), name, streamed(name, TEXT, CITIES[0]))
    assert (told.said.text, told.said.calls) == ("It is 21.5 degrees in", ())
    assert (told.changed, told.evidence) == (True, EVIDENCE)
    end = {"chat": b'"stop"', "anthropic": b'"end_turn"', "gemini": b'"STOP"', "responses": b'"response.completed"'}
    assert end[name] in told.read.body


@pytest.mark.parametrize("name", FORMATS)
def test_of_calls_alone_some_come(name: str) -> None:
    told = retold(EarlyStop(), name, streamed(name, "", *CITIES))
    assert [call.parsed_arguments for call in told.said.calls] == [CITIES[0]]
    assert told.evidence == EVIDENCE


@pytest.mark.parametrize(("part", "text"), [(0.0, ""), (1.0, "It is 21.5 degrees in Oslo and 30 in")])
def test_at_least_a_word_is_missing(part: float, text: str) -> None:
    assert retold(EarlyStop(part), "chat", streamed("chat", TEXT)).said.text == text


@pytest.mark.parametrize("name", FORMATS)
def test_a_single_call_and_a_whole_answer_pass_unchanged(name: str) -> None:
    assert not retold(EarlyStop(), name, streamed(name, "", CITIES[0])).changed
    meeting, said = met(EarlyStop(), name, calls=False)
    assert (said.text, meeting.injected, meeting.evidence) == (TEXT, False, None)


# error_event: The stream says in its middle that the answer has failed, behind a status of success.


SAYS: dict[str, dict[str, Any]] = {
    "chat": {"error": {"type": "server_error"}},
    "responses": {"type": "error", "code": "server_error", "sequence_number": 2},
    "anthropic": {"type": "error", "error": {"type": "overloaded_error"}},
    "gemini": {"error": {"code": 503, "status": "UNAVAILABLE"}},
}
"""A part of the event of each format."""


@pytest.mark.parametrize("name", FORMATS)
def test_the_stream_ends_with_the_providers_own_event_for_an_error(name: str) -> None:
    sent = [event.replace(b"\r\n", b"\n") for event in streamed(name, "It is warm in Oslo, and it stays so.")]
    notes = read(Timetable(sent), *pipes_over(ErrorEvent(2), name))
    *before, last = notes.body.removesuffix(b"\n\n").split(b"\n\n")
    assert (before, notes.error) == ([event.removesuffix(b"\n\n") for event in sent[:2]], None)
    said = parse_event_json(last + b"\n\n")
    for key, value in SAYS[name].items():
        assert said[key].items() >= value.items() if isinstance(value, dict) else said[key] == value
    assert last.startswith(b"event: error\n") or name == "gemini"


def test_it_is_met_by_a_reader_who_comes_so_far() -> None:
    sent = streamed("chat", "It is warm in Oslo.")
    assert retold(ErrorEvent(2), "chat", sent, stops_after=5).evidence == "an error came in the stream after 2 events"
    assert retold(ErrorEvent(2), "chat", sent, stops_after=2).evidence is None


def test_a_shorter_stream_has_nothing_to_break() -> None:
    assert read(Timetable(events(2)), *pipes_over(ErrorEvent(3), "chat")).body == b"".join(events(2))


@pytest.mark.parametrize("host", ["api.openai.com", "api.anthropic.com"])
def test_an_sdk_raises_it(host: str) -> None:
    import anthropic
    import openai

    def chat(_: str) -> str:
        asked: Any = [{"role": "user", "content": "What is 17 * 3?"}]
        words = ""
        try:
            if host == "api.openai.com":
                chunks: Any = openai.OpenAI(api_key="none").chat.completions.create(
                    model="gpt-5", messages=asked, stream=True
                )  # fmt: skip
                for chunk in chunks:
                    words += chunk.choices[0].delta.content or ""
            else:
                client = anthropic.Anthropic(api_key="none")
                with client.messages.stream(model="claude", max_tokens=99, messages=asked) as told:
                    words = told.get_final_text()
        except (openai.APIError, anthropic.APIError) as error:
            return f"{type(error).__name__}: {error}"
        return words

    fault = lab.inject("error_event", host, after_events=2)
    trial = lab.run(chat, "x", services={host: lab.offline_model()}, faults=[fault], twin=False)
    said = {"api.openai.com": "APIError: The server had an error", "api.anthropic.com": "Overloaded"}[host]
    assert said in str(trial.answer)


# slow_chunks: The stream comes drop by drop.


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


# slow_first_token: The model thinks for long before it says its first word.


SLOW = SlowFirstToken(1.5)


def test_the_answer_is_the_same_and_begins_late() -> None:
    met = meet(SLOW, target := Target())
    assert (met.reply, target.now_s) == (target.reply, 1.5)
    assert met.evidence == "the first byte came after 1.500 s, at least 1.500 s were armed"


def test_who_does_not_wait_so_long_has_nothing() -> None:
    met = meet(SLOW, Target(deadline_s=1.0))
    assert (met.error, met.evidence) == ("timed_out", "nothing had come after 1.000 s")


def test_the_first_byte_of_a_stream_counts_and_not_its_end() -> None:
    seen = meet(SLOW).seen
    assert SLOW.witnessed(replace(seen, duration_s=9.0, streamed=Streamed(first_byte_s=1.6)))
    assert SLOW.witnessed(replace(seen, duration_s=9.0, streamed=Streamed(first_byte_s=0.2))) is None
    assert SLOW.witnessed(replace(seen, error="reset")) is None
    assert SLOW.witnessed(replace(seen, error="timed_out", duration_s=1.0)) is None


# stall: The stream stands still in its middle.


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
