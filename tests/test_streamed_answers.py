"""Streamed answers of models: what was said is heard, and another content is told in the format's own events."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoslab.core import changed_answer
from chaoslab.core.answers import CHAT_ANSWERS, AnswerContent, FunctionCall
from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.fault import Fault
from chaoslab.core.stream import EMPTY, EventSplitter, encode_event, get_event_data, is_done_marker, parse_event_json
from chaoslab.faults.model.confabulation import Confabulation
from chaoslab.faults.model.duplicate_calls import DuplicateCalls
from chaoslab.faults.model.empty_answer import EmptyAnswer
from chaoslab.faults.model.malformed_arguments import MalformedArguments
from chaoslab.faults.model.missing_arguments import MissingArguments
from chaoslab.faults.model.refusal import Refusal
from chaoslab.faults.model.unknown_tool import UnknownTool
from chaoslab.faults.stream.corrupt_chunk import CorruptChunk
from chaoslab.faults.stream.disconnect import Disconnect
from chaoslab.faults.stream.early_stop import EarlyStop
from chaoslab.faults.stream.slow_chunks import SlowChunks
from chaoslab.faults.stream.stall import Stall
from tests.faults.answer_parts import CITIES, FORMATS, TEXT, pipes_over, retold, spoken, streamed
from tests.seams.stream_parts import DEADLINE_S, Timetable, event, events, read

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=40)
ARGUMENTS = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.one_of(st.integers(), WORDS), max_size=3)
REFUSAL = Refusal().text
EVIDENCE = "an answer that the model did not give reached the caller"


def plain(said: AnswerContent) -> tuple[str, list[tuple[str, Any]]]:
    return said.text, [(call.name, call.parsed_arguments) for call in said.calls]


@pytest.mark.parametrize("name", FORMATS)
@given(text=WORDS, calls=st.lists(ARGUMENTS, max_size=3))
@settings(max_examples=30)
def test_what_was_streamed_is_heard(name: str, text: str, calls: list[dict[str, Any]]) -> None:
    said = spoken(name, streamed(name, text, *calls))
    assert plain(said) == (text, [("current_weather", each) for each in calls])


@pytest.mark.parametrize("name", FORMATS)
@given(was=WORDS, calls=st.lists(ARGUMENTS, max_size=2), now=WORDS, made=st.lists(ARGUMENTS, max_size=3))
@settings(max_examples=30)
def test_another_content_is_told_in_the_formats_own_events(
    name: str, was: str, calls: list[dict[str, Any]], now: str, made: list[dict[str, Any]]
) -> None:
    came = [parse_event_json(each) for each in streamed(name, was, *calls, usage=True) if get_event_data(each)]
    told = AnswerContent(now, tuple(FunctionCall(f"tool_{n}", json.dumps(each)) for n, each in enumerate(made)))
    there = [encode_event(each) for each in FORMATS[name][0].answers.rewrite_events(came, told)]
    assert plain(spoken(name, there)) == plain(told)
    kinds = {frozenset(parse_event_json(each)) for each in there}
    usual = streamed(name, "a b", *CITIES, usage=True)
    assert kinds <= {frozenset(parse_event_json(each)) for each in usual if get_event_data(each)}


def test_a_reader_that_stopped_before_the_end_is_no_witness() -> None:
    was = streamed("chat", TEXT)
    assert retold(Refusal(), "chat", was, stops_after=4).evidence is None


def finish_of(name: str, told: bytes) -> Any:
    last = [parse_event_json(each) for each in told.split(b"\n\n") if get_event_data(each)]
    if name == "chat":
        return next(each["choices"][0]["finish_reason"] for each in reversed(last) if each["choices"])
    if name == "anthropic":
        return last[-2]["delta"]["stop_reason"]
    if name == "gemini":
        return last[-1]["candidates"][0]["finishReason"]
    return last[-1]["response"]["incomplete_details"], last[-1]["type"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_fault_changes_a_streamed_answer_and_its_reader_is_the_witness(name: str) -> None:
    met = retold(Refusal(), name, streamed(name, "", *CITIES))
    assert (plain(met.said), met.changed, met.evidence) == ((REFUSAL, []), True, EVIDENCE)
    assert finish_of(name, met.read.body) == {
        "chat": "stop", "anthropic": "end_turn", "gemini": "STOP", "responses": (None, "response.completed"),
    }[name]  # fmt: skip


def test_what_the_answer_used_and_done_stay_where_they_were() -> None:
    was = streamed("chat", TEXT, usage=True)
    told = retold(Refusal(), "chat", was).read.body.split(b"\n\n")
    assert told[-3:] == [*(each.rstrip(b"\n") for each in was[-2:]), b""]
    assert is_done_marker(told[-2])


def test_a_role_and_a_thought_stay_and_other_choices_go() -> None:
    def chunk(finish: str | None = None, index: int = 0, **delta: Any) -> bytes:
        return encode_event({"choices": [{"index": index, "delta": delta, "finish_reason": finish}]})

    came = [
        encode_event({"choices": [], "prompt_filter_results": []}),
        chunk(role="assistant", content=None),
        chunk(reasoning="Hm."),
        chunk(content="17", index=1),
        chunk(content="42"),
        chunk("stop"),
    ]
    told = [parse_event_json(each) for each in EventSplitter().feed(retold(Refusal("No."), "chat", came).read.body)]
    assert told[0] == parse_event_json(came[0])
    deltas = [each["choices"][0]["delta"] for each in told[1:]]
    assert deltas == [{"role": "assistant"}, {"reasoning": "Hm."}, {"content": "No."}, {}]


def test_blocks_of_other_kinds_go_from_anthropics_answers() -> None:
    def told(kind: str, **more: Any) -> bytes:
        return encode_event({"type": kind, **more})

    was = streamed("anthropic", "", CITIES[0])
    searched = [
        told("content_block_start", index=9, content_block={"type": "server_tool_use", "name": "web_search"}),
        told("content_block_delta", index=9, delta={"type": "input_json_delta", "partial_json": "{"}),
        told("content_block_delta", index=8, delta={"type": "thinking_delta", "thinking": "Hm."}),
        told("content_block_stop", index=9),
    ]
    met = retold(UnknownTool("warmth"), "anthropic", [was[0], *searched, *was[1:]])
    assert plain(met.said) == ("", [("warmth", CITIES[0])])
    assert b"web_search" not in met.read.body


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_in_which_nothing_is_to_change_comes_as_it_was(name: str) -> None:
    was = streamed(name, TEXT)
    met = retold(UnknownTool(), name, was, every_s=0.5)
    assert (met.read.body.strip(), met.changed) == (b"".join(was).strip(), False)
    ended_s = (len(was) + 1) * 0.5
    assert {at for at, part in met.read.came if part != EMPTY} == {ended_s}
    assert [at for at, part in met.read.came if part == EMPTY] == [1.5 + n for n in range(int(ended_s - 1))]


def test_a_reader_with_a_timeout_waits_for_an_answer_that_is_held_back() -> None:
    """It gets signs of life, and is the witness of all of them and of the answer."""
    was = streamed("chat", "word " * 10)
    met = retold(Refusal(), "chat", was, every_s=DEADLINE_S / 10)
    assert (met.read.error, met.said.text, met.evidence) == (None, REFUSAL, EVIDENCE)
    assert met.read.observed.duration_s > DEADLINE_S


def test_a_model_that_says_nothing_is_not_kept_alive() -> None:
    assert retold(Refusal(), "chat", streamed("chat", TEXT), every_s=DEADLINE_S + 1).read.error == "timed_out"


@pytest.mark.parametrize(
    "came",
    [
        events(3),
        [b": only a comment\n\n"],
        [b"data: 17\n\n"],
        [b"data: {}\n\n"],
        [b'data: {"choices": 3}\n\n'],
        [event(1)],
    ],
    ids=["no reason of its end", "a comment", "a number", "no choices", "choices that are none", "one event"],
)
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_no_answer_of_the_format_comes_as_it_was(name: str, came: list[bytes]) -> None:
    assert read(Timetable(came), *pipes_over(EmptyAnswer(), name)).body == b"".join(came)


@pytest.mark.parametrize("name", FORMATS)
def test_an_event_behind_the_end_is_no_mistake_of_the_fault(name: str) -> None:
    was = [*streamed(name, TEXT), b'data: {"type": "usage"}\n\n']
    notes = read(Timetable(was), *pipes_over(Refusal(), name))
    kept = name == "responses"  # its last event has to hold the answer
    assert (notes.error, notes.body == b"".join(was)) == (None, kept)


def test_an_answer_that_breaks_off_comes_as_far_as_it_came() -> None:
    met = retold(Confabulation(), "chat", was := streamed("chat", TEXT)[:5], fails="reset")
    assert (met.read.body, met.read.error, met.changed) == (b"".join(was), "reset", False)


def test_an_answer_that_is_too_long_to_hold_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    was = streamed("chat", "word " * 200)
    monkeypatch.setattr(changed_answer, "HELD_MAX", 3000)
    met = retold(Refusal(), "chat", was, every_s=1.0)
    assert (met.read.body.lstrip(), met.changed) == (b"".join(was), False)
    assert met.read.times[25] < met.read.times[-1] / 4


@pytest.mark.parametrize("fault", [CorruptChunk(2), SlowChunks(0.5), Stall(2, 0.5), Refusal()])
def test_an_answer_comes_through_another_fault_and_one_that_holds_it_back(fault: Fault) -> None:
    was = streamed("chat", TEXT)
    notes = read(Timetable(was, every_s=0.4), *pipes_over(fault, "chat"), *pipes_over(EarlyStop(), "chat"))
    assert (notes.error, notes.seen[0].done) == (None, True)


def test_an_answer_that_a_fault_of_the_stream_cut_is_told_as_it_is() -> None:
    pipes = *pipes_over(Disconnect(3), "chat"), *pipes_over(Refusal(), "chat")
    notes = read(Timetable(streamed("chat", TEXT)), *pipes)
    assert (notes.body, notes.error) == (b"".join(streamed("chat", TEXT)[:3]), "reset")


def test_a_call_of_a_custom_tool_has_a_text_that_is_no_json() -> None:
    """Its `input` takes the place of a function's `arguments`."""
    native = {"id": "call_1", "type": "custom", "custom": {"name": "run_sql", "input": "select * from orders"}}
    message = {"role": "assistant", "content": None, "tool_calls": [native]}
    value = {"id": "x", "model": "gpt-5", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}

    def told(fault: ChangedAnswer) -> Any:
        said = CHAT_ANSWERS.extract_content(value)
        assert said is not None
        now = fault.change_content(said)
        return value if now is said else CHAT_ANSWERS.replace_content(value, now)

    def calls(value: Any) -> Any:
        return value["choices"][0]["message"]["tool_calls"]

    assert calls(told(MalformedArguments(part=0.5))) == [
        {**native, "custom": {"name": "run_sql", "input": "select * f"}}
    ]
    assert [call["custom"]["name"] for call in calls(told(UnknownTool("run")))] == ["run"]
    assert [call["id"] for call in calls(told(DuplicateCalls()))] == ["call_1", "call_1_1"]
    assert told(MissingArguments()) is value


def test_a_streamed_call_of_a_custom_tool_is_told_as_one() -> None:
    deltas: list[dict[str, Any]] = [
        {"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "run_sql", "input": ""}},
        {"index": 0, "custom": {"input": "select * "}}, {"index": 0, "custom": {"input": "from orders"}},
    ]  # fmt: skip
    made: list[Any] = [{"index": 0, "delta": {"tool_calls": [each]}, "finish_reason": None} for each in deltas]
    events = [{"choices": [each]} for each in [*made, {"index": 0, "delta": {}, "finish_reason": "tool_calls"}]]
    said = CHAT_ANSWERS.extract_stream_content(events)
    assert said is not None
    assert [(call.name, call.arguments) for call in said.calls] == [("run_sql", "select * from orders")]
    *parts, end = CHAT_ANSWERS.rewrite_events(events, MalformedArguments(part=0.5).change_content(said))
    (begun, *rest) = [call for event in parts for call in event["choices"][0]["delta"]["tool_calls"]]
    assert begun == deltas[0]
    assert "".join(call["custom"]["input"] for call in rest) == "select * f"
    assert end == events[-1]
