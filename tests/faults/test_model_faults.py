"""Faults of a model's answers."""

import json
from dataclasses import replace

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core.answers import AnswerContent
from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply
from chaoslab.faults.model.confabulation import Confabulation
from chaoslab.faults.model.content_filter import ContentFilter
from chaoslab.faults.model.context_length import ContextLength
from chaoslab.faults.model.duplicate_calls import DuplicateCalls
from chaoslab.faults.model.empty_answer import EmptyAnswer
from chaoslab.faults.model.finish_length import FinishLength
from chaoslab.faults.model.garbled_answer import GarbledAnswer
from chaoslab.faults.model.malformed_arguments import MalformedArguments
from chaoslab.faults.model.missing_arguments import MissingArguments
from chaoslab.faults.model.refusal import Refusal
from chaoslab.faults.model.unknown_tool import UnknownTool
from chaoslab.faults.model.wrong_arguments import WrongArguments
from chaoslab.model.formats import format_of
from tests.faults.answer_parts import CITIES, FORMATS, NAME, PARIS, TEXT, ended, met, retold, streamed
from tests.faults.fault_parts import CALL, Target, meet

# confabulation: The model answers by itself, with figures that nobody gave it.


EVIDENCE = "an answer that the model did not give reached the caller"


@pytest.mark.parametrize("name", FORMATS)
def test_every_number_in_its_words_is_another_one(name: str) -> None:
    meeting, said = met(Confabulation(), name, calls=False)
    assert (said.text, meeting.evidence) == ("It is 54.8 degrees in Oslo and 63 in Paris.", EVIDENCE)
    assert len(said.text) == len(TEXT)


@pytest.mark.parametrize("name", FORMATS)
def test_it_may_answer_instead_of_asking_a_tool(name: str) -> None:
    meeting, _ = met(Confabulation(), name, calls=True)
    assert (meeting.injected, meeting.evidence) == (False, None)
    meeting, said = met(Confabulation(instead_of_calls=True), name, calls=True)
    assert (said.text, said.calls, meeting.evidence) == ("It is 4711.", (), EVIDENCE)


# content_filter: The provider holds the answer back for its content.


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("calls", [False, True])
def test_nothing_is_left_and_the_format_says_why(name: str, *, calls: bool) -> None:
    meeting, said = met(ContentFilter(), name, calls=calls)
    assert (said.text, said.calls, meeting.evidence) == ("", (), EVIDENCE)
    assert ended(name, meeting) == {
        "chat": "content_filter", "responses": "content_filter", "anthropic": "refusal", "gemini": "SAFETY",
    }[name]  # fmt: skip


# context_length: The provider refuses the request, since the conversation is longer than the model can read.


EVIDENCE_OF_CONTEXT_LENGTH = "the provider's refusal of a long conversation, 400, reached the caller"


@pytest.mark.parametrize(
    ("path", "words", "code"),
    [
        ("/v1/chat/completions", "maximum context length is", "context_length_exceeded"),
        ("/openai/v1/chat/completions", "Please reduce the length of the messages", "context_length_exceeded"),
        ("/v1/responses", "exceeds the context window", "context_length_exceeded"),
        ("/v1/messages", "prompt is too long", None),
        ("/v1beta/models/g:generateContent", "exceeds the maximum number of tokens", 400),
    ],
)
def test_each_provider_refuses_in_its_own_words(path: str, words: str, code: str | int | None) -> None:
    format_ = format_of(path)
    assert format_ is not None
    met = meet(ContextLength(), target := Target(), call=replace(CALL, errors=format_.errors))
    assert met.reply is not None
    error = json.loads(met.reply.body)["error"]
    assert (met.reply.status, words in error["message"], error.get("code")) == (400, True, code)
    assert (target.sent, met.injected, met.evidence) == ([], True, EVIDENCE_OF_CONTEXT_LENGTH)


def test_a_target_without_such_words_answers_400() -> None:
    met = meet(ContextLength(), call=replace(CALL, errors={400: ErrorReply(400, {"wrong": True})}))
    assert (met.reply and json.loads(met.reply.body), met.evidence) == ({"wrong": True}, EVIDENCE_OF_CONTEXT_LENGTH)
    assert CONTEXT_LENGTH not in range(400, 600)


# duplicate_calls: The model makes the same call twice in one answer.


@pytest.mark.parametrize("name", FORMATS)
def test_each_call_stands_twice_and_no_two_have_one_id(name: str) -> None:
    meeting, said = met(DuplicateCalls(), name, calls=True)
    cities = [(call.values or {})["city"] for call in said.calls]
    assert (cities, meeting.evidence) == (["Oslo", "Oslo", "Paris", "Paris"], EVIDENCE)
    ids = [native.get("call_id") or native.get("id") for call in said.calls if (native := call.native)]
    assert len(set(ids)) == (1 if name == "gemini" else 4), "Gemini's calls have no ids"


def test_or_more_often() -> None:
    assert len(met(DuplicateCalls(3), "chat", calls=True)[1].calls) == 6


# empty_answer: The model says nothing.


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("calls", [False, True])
def test_neither_words_nor_calls_are_left_and_it_ended_as_usual(name: str, *, calls: bool) -> None:
    meeting, said = met(EmptyAnswer(), name, calls=calls)
    assert (said.text, said.calls, meeting.evidence) == ("", (), EVIDENCE)
    assert ended(name, meeting) in ("stop", "completed", "end_turn", "STOP")


# finish_length: The answer ends in the middle, since the tokens it may have are used up.


@pytest.mark.parametrize("name", FORMATS)
def test_a_share_of_the_words_is_left_and_the_format_says_why(name: str) -> None:
    meeting, said = met(FinishLength(0.5), name, calls=False)
    assert (said.text, meeting.evidence) == ("It is 21.5 degrees in", EVIDENCE)
    assert ended(name, meeting) == {
        "chat": "length", "responses": "max_output_tokens", "anthropic": "max_tokens", "gemini": "MAX_TOKENS",
    }[name]  # fmt: skip


@pytest.mark.parametrize(("part", "text"), [(0.0, ""), (1.0, "It is 21.5 degrees in Oslo and 30 in")])
def test_at_least_a_word_is_missing(part: float, text: str) -> None:
    assert met(FinishLength(part), "chat", calls=False)[1].text == text


# garbled_answer: The text of a model's answer is garbled, as by a proxy that takes UTF-8 for Latin-1.


@pytest.mark.parametrize("name", FORMATS)
def test_the_words_are_garbled(name: str) -> None:
    meeting, said = met(GarbledAnswer(), name, calls=False)
    assert said.text == "�t �s 21.5 d�gr��s �n �sl� �nd 30 �n P�r�s."
    assert meeting.evidence == EVIDENCE


def test_letters_beyond_ascii_are_read_as_latin_1() -> None:
    assert GarbledAnswer().changed(AnswerContent("21 °C à Zürich")).text == "21 Â°C Ã\xa0 ZÃ¼rich"


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_without_words_passes_unchanged(name: str) -> None:
    meeting, said = met(GarbledAnswer(), name, calls=True)
    assert (len(said.calls), meeting.injected) == (2, False)


# malformed_arguments: The arguments of a tool call are no JSON.


@pytest.mark.parametrize("name", ["chat", "responses"])
def test_the_first_calls_arguments_end_in_the_middle(name: str) -> None:
    meeting, said = met(MalformedArguments(0.5), name, calls=True)
    assert [call.arguments for call in said.calls] == ['{"city": "Oslo', PARIS]
    assert (said.calls[0].values, meeting.evidence) == (None, EVIDENCE)


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic"])
def test_a_streamed_answer_has_arguments_as_text(name: str) -> None:
    told = retold(MalformedArguments(0.5), name, streamed(name, "", *CITIES))
    assert [call.arguments for call in told.said.calls] == ['{"city": "Oslo', PARIS]
    assert told.evidence == EVIDENCE


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_where_arguments_are_objects_a_value_is_of_another_type(name: str) -> None:
    meeting, said = met(MalformedArguments(0.5), name, calls=True)
    assert [call.values for call in said.calls] == [{"city": ["Oslo"], "unit": "C"}, {"city": "Paris", "unit": "C"}]
    assert meeting.evidence == EVIDENCE


# missing_arguments: A tool call lacks an argument.


@pytest.mark.parametrize("name", FORMATS)
def test_the_first_calls_last_argument_is_missing(name: str) -> None:
    meeting, said = met(MissingArguments(), name, calls=True)
    assert [call.values for call in said.calls] == [{"city": "Oslo"}, {"city": "Paris", "unit": "C"}]
    assert meeting.evidence == EVIDENCE


@pytest.mark.parametrize("name", FORMATS)
def test_or_all_of_them(name: str) -> None:
    assert met(MissingArguments(all=True), name, calls=True)[1].calls[0].values == {}


# refusal: The model refuses politely, though it was asked for nothing wrong.


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("calls", [False, True])
def test_it_says_that_it_cannot_and_calls_nothing(name: str, *, calls: bool) -> None:
    meeting, said = met(Refusal("No."), name, calls=calls)
    assert (said.text, said.calls, meeting.evidence) == ("No.", (), EVIDENCE)
    assert ended(name, meeting) in ("stop", "completed", "end_turn", "STOP")


# unknown_tool: The model calls a tool that there is none of.


@pytest.mark.parametrize("name", FORMATS)
def test_the_first_call_is_of_a_tool_that_nobody_has(name: str) -> None:
    meeting, said = met(UnknownTool(), name, calls=True)
    assert [call.name for call in said.calls] == [f"{NAME}_v2", NAME]
    assert said.calls[0].values == {"city": "Oslo", "unit": "C"}
    assert meeting.evidence == EVIDENCE
    assert met(UnknownTool("weather"), name, calls=True)[1].calls[0].name == "weather"


# wrong_arguments: The model calls the right tool with an argument that is wrong, and looks right.


@pytest.mark.parametrize("name", FORMATS)
def test_one_value_of_the_first_call_is_another_of_its_type(name: str) -> None:
    meeting, said = met(WrongArguments(point=0.0), name, calls=True)
    first, second = [call.values for call in said.calls]
    assert first is not None
    assert first.keys() == {"city", "unit"}
    assert first["city"] != "Oslo"
    assert isinstance(first["city"], str)
    assert first["unit"] == "C"
    assert second == {"city": "Paris", "unit": "C"}
    assert meeting.evidence == EVIDENCE


@pytest.mark.parametrize("name", FORMATS)
def test_or_one_has_a_name_that_the_tool_does_not_know(name: str) -> None:
    meeting, said = met(WrongArguments(how="name", point=0.9), name, calls=True)
    assert said.calls[0].values == {"city": "Oslo", "unit_value": "C"}
    assert meeting.evidence == EVIDENCE


def test_the_dice_pick_the_argument() -> None:
    drawn = {WrongArguments().draw(Dice(seed)).point for seed in range(9)}
    assert len(drawn) == 9
    assert all(0 <= point < 1 for point in drawn)
    assert WrongArguments(point=0.5).draw(Dice(1)).point == 0.5
