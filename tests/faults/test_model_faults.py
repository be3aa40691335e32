"""Faults of a model's answers."""

import json
from dataclasses import replace
from typing import Any

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.service_spec import CONTEXT_LENGTH, ErrorReply
from chaoslab.faults.model.confabulation import Confabulation
from chaoslab.faults.model.content_filter import ContentFilter
from chaoslab.faults.model.context_length import ContextLength
from chaoslab.faults.model.duplicate_calls import DuplicateCalls
from chaoslab.faults.model.empty_answer import EmptyAnswer
from chaoslab.faults.model.error_in_answer import ErrorInAnswer
from chaoslab.faults.model.finish_length import FinishLength
from chaoslab.faults.model.garbled_answer import GarbledAnswer
from chaoslab.faults.model.malformed_arguments import MalformedArguments
from chaoslab.faults.model.missing_arguments import MissingArguments
from chaoslab.faults.model.refusal import Refusal
from chaoslab.faults.model.unknown_tool import UnknownTool
from chaoslab.faults.model.wrong_arguments import WrongArguments
from chaoslab.model.formats import find_format
from tests.faults.answer_parts import CITIES, FORMATS, NAME, PARIS, WHOLE, ended, met, retold, streamed
from tests.faults.fault_parts import CALL, Target, answer, meet

EVIDENCE = "an answer that the model did not give reached the caller"
LAST = CITIES[1]
SAID: dict[str, tuple[ChangedAnswer, bool, str, list[dict[str, Any]]]] = {
    "confabulation: every number is another one": (
        Confabulation(), False, "It is 54.8 degrees in Oslo and 63 in Paris.", []
    ),
    "confabulation: it may answer instead of asking a tool": (
        Confabulation(instead_of_calls=True), True, "It is 4711.", []
    ),
    "content_filter: no words are left": (ContentFilter(), False, "", []),
    "content_filter: no calls are left": (ContentFilter(), True, "", []),
    "duplicate_calls: more often": (DuplicateCalls(3), True, "", [CITIES[0]] * 3 + [LAST] * 3),
    "empty_answer: no words are left": (EmptyAnswer(), False, "", []),
    "empty_answer: no calls are left": (EmptyAnswer(), True, "", []),
    "finish_length: a share of the words is left": (FinishLength(0.5), False, "It is 21.5 degrees in", []),
    "finish_length: or nothing": (FinishLength(0.0), False, "", []),
    "finish_length: at least a word is missing": (FinishLength(1.0), False, "It is 21.5 degrees in Oslo and 30 in", []),
    "garbled_answer": (GarbledAnswer(), False, "�t �s 21.5 d�gr��s �n �sl� �nd 30 �n P�r�s.", []),
    "missing_arguments: the first call's last one": (MissingArguments(), True, "", [{"city": "Oslo"}, LAST]),
    "missing_arguments: all": (MissingArguments(all=True), True, "", [{}, LAST]),
    "refusal: instead of words": (Refusal("No."), False, "No.", []),
    "refusal: instead of calls": (Refusal("No."), True, "No.", []),
    "wrong_arguments: a name that the tool does not know": (
        WrongArguments(how="name", point=0.9), True, "", [{"city": "Oslo", "unit_value": "C"}, LAST]
    ),
}  # fmt: skip
"""The fault, if the true answer calls tools, and the words and the calls in its place."""


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize(("fault", "calls", "text", "values"), SAID.values(), ids=SAID)
def test_the_model_says(fault: ChangedAnswer, calls: bool, text: str, values: list[dict[str, Any]], name: str) -> None:
    meeting, said = met(fault, name, calls=calls)
    assert (said.text, [call.parsed_arguments for call in said.calls], meeting.evidence) == (text, values, EVIDENCE)


AS_USUAL, ASKING, HELD_BACK, CUT = (
    dict(zip(WHOLE, words.split(), strict=True))
    for words in (
        "stop completed end_turn STOP end_turn",
        "tool_calls completed tool_use STOP tool_use",
        "content_filter content_filter refusal SAFETY content_filtered",
        "length max_output_tokens max_tokens MAX_TOKENS max_tokens",
    )
)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize(
    ("fault", "calls", "ends"),
    [
        (ContentFilter(), False, HELD_BACK),
        (ContentFilter(), True, HELD_BACK),
        (EmptyAnswer(), False, AS_USUAL),
        (EmptyAnswer(), True, AS_USUAL),
        (FinishLength(0.5), False, CUT),
        (FinishLength(0.5, tool_calls="cut"), True, CUT),
        (Refusal("No."), False, AS_USUAL),
        (Refusal("No."), True, AS_USUAL),
        (UnknownTool(), True, ASKING),
    ],
)
def test_the_format_says_why_it_ended(fault: ChangedAnswer, calls: bool, ends: dict[str, str], name: str) -> None:
    assert ended(name, met(fault, name, calls=calls)[0]) == ends[name]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("fault", [Confabulation(), GarbledAnswer()])
def test_calls_without_words_pass_unchanged(fault: ChangedAnswer, name: str) -> None:
    meeting, said = met(fault, name, calls=True)
    assert (len(said.calls), meeting.injected, meeting.evidence) == (2, False, None)


NO_VALUES = {"id": "t", "type": "function", "function": {"name": NAME, "arguments": '{"city": {}}'}}


@pytest.mark.parametrize(
    "value", [{"choices": [7]}, {"choices": [{"message": {"role": "assistant", "tool_calls": [NO_VALUES]}}]}]
)
def test_an_answer_in_which_nothing_can_be_wrong_passes_unchanged(value: dict[str, Any]) -> None:
    meeting = meet(WrongArguments(), Target(reply=answer(value)), call=replace(CALL, dialog=FORMATS["chat"][0]))
    assert (meeting.error, meeting.injected) == (None, False)


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
    format_ = find_format(path)
    assert format_ is not None
    met = meet(ContextLength(), target := Target(), call=replace(CALL, errors=format_.error_replies))
    assert met.reply is not None
    error = json.loads(met.reply.body)["error"]
    assert (met.reply.status, words in error["message"], error.get("code")) == (400, True, code)
    assert (target.sent, met.injected, met.evidence) == ([], True, EVIDENCE_OF_CONTEXT_LENGTH)


def test_a_target_without_such_words_answers_400() -> None:
    met = meet(ContextLength(), call=replace(CALL, errors={400: ErrorReply(400, {"wrong": True})}))
    assert (met.reply and json.loads(met.reply.body), met.evidence) == ({"wrong": True}, EVIDENCE_OF_CONTEXT_LENGTH)
    assert CONTEXT_LENGTH not in range(400, 600)


# duplicate_calls: The model makes the same call twice in one answer.


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize(("fault", "times"), [(DuplicateCalls(), 2), (DuplicateCalls(5), 5)])
def test_each_call_stands_so_often_and_no_two_have_one_id(fault: DuplicateCalls, times: int, name: str) -> None:
    meeting, said = met(fault, name, calls=True)
    assert [(call.parsed_arguments or {})["city"] for call in said.calls] == ["Oslo"] * times + ["Paris"] * times
    assert meeting.evidence == EVIDENCE
    ids = {
        native.get("call_id") or native.get("id") or native.get("toolUseId")
        for call in said.calls
        if (native := call.native)
    }
    assert len(ids) == (1 if name == "gemini" else 2 * times), "Gemini's calls have no ids"


# error_in_answer: The model's API answers 200, and its body is an error.


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1beta/models/g:generateContent"])
def test_a_providers_error_comes_with_status_200(path: str) -> None:
    format_ = find_format(path)
    assert format_ is not None
    meeting = meet(ErrorInAnswer(status=429), target := Target(), call=replace(CALL, errors=format_.error_replies))
    assert meeting.reply is not None
    assert (meeting.reply.status, target.sent, meeting.injected) == (200, [], True)
    assert json.loads(meeting.reply.body) == format_.error_replies[429].body
    assert meeting.evidence == "the provider's error 429 reached the caller with status 200"


@pytest.mark.parametrize("status", [200, 399, 600])
def test_the_error_in_an_answer_is_an_error(status: int) -> None:
    with pytest.raises(ValueError, match=f"status of error_in_answer is {status}"):
        ErrorInAnswer(status=status)


# finish_length: The answer ends in the middle, since the tokens it may have are used up.


@pytest.mark.parametrize("name", FORMATS)
def test_a_call_is_cut_where_the_tokens_are_used_up(name: str) -> None:
    meeting, said = met(FinishLength(0.5, tool_calls="cut"), name, calls=True)
    first, last = said.calls
    assert (first.parsed_arguments, meeting.evidence) == (CITIES[0], EVIDENCE)
    assert last.parsed_arguments == ({"city": "Paris"} if said.objects else None)
    assert said.objects or last.arguments == PARIS[: len(PARIS) // 2]


# garbled_answer: The text of a model's answer is garbled, as by a proxy that takes UTF-8 for Latin-1.


def test_letters_beyond_ascii_are_read_as_latin_1() -> None:
    assert GarbledAnswer().change_content(AnswerContent("21 °C à Zürich")).text == "21 Â°C Ã\xa0 ZÃ¼rich"


# malformed_arguments: The arguments of a tool call are no JSON.


@pytest.mark.parametrize("name", ["chat", "responses"])
def test_the_first_calls_arguments_end_in_the_middle(name: str) -> None:
    meeting, said = met(MalformedArguments(0.5), name, calls=True)
    assert [call.arguments for call in said.calls] == ['{"city": "Oslo', PARIS]
    assert (said.calls[0].parsed_arguments, meeting.evidence) == (None, EVIDENCE)


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic"])
def test_a_streamed_answer_has_arguments_as_text(name: str) -> None:
    told = retold(MalformedArguments(0.5), name, streamed(name, "", *CITIES))
    assert [call.arguments for call in told.said.calls] == ['{"city": "Oslo', PARIS]
    assert told.evidence == EVIDENCE


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_where_arguments_are_objects_a_value_is_of_another_type(name: str) -> None:
    meeting, said = met(MalformedArguments(0.5), name, calls=True)
    assert [call.parsed_arguments for call in said.calls] == [
        {"city": ["Oslo"], "unit": "C"},
        {"city": "Paris", "unit": "C"},
    ]
    assert meeting.evidence == EVIDENCE


# unknown_tool: The model calls a tool that there is none of.


@pytest.mark.parametrize("name", WHOLE)
def test_the_first_call_is_of_a_tool_that_nobody_has(name: str) -> None:
    meeting, said = met(UnknownTool(), name, calls=True)
    assert [call.name for call in said.calls] == [f"{NAME}_v2", NAME]
    assert said.calls[0].parsed_arguments == {"city": "Oslo", "unit": "C"}
    assert meeting.evidence == EVIDENCE
    assert met(UnknownTool("weather"), name, calls=True)[1].calls[0].name == "weather"


def test_a_call_may_come_without_arguments() -> None:
    answers, value, asks = FORMATS["chat"]
    message = asks["choices"][0]["message"]
    bare = {**message, "tool_calls": [{"id": "c", "type": "function", "function": {"name": NAME}}]}
    target = Target(reply=answer({**value, "choices": [{"index": 0, "message": bare}]}))
    meeting = meet(UnknownTool(), target, call=replace(CALL, dialog=answers))
    assert meeting.evidence == EVIDENCE


# wrong_arguments: The model calls the right tool with an argument that is wrong, and looks right.


@pytest.mark.parametrize("name", WHOLE)
def test_one_value_of_the_first_call_is_another_of_its_type(name: str) -> None:
    meeting, said = met(WrongArguments(point=0.0), name, calls=True)
    first, second = [call.parsed_arguments for call in said.calls]
    assert first is not None
    assert first.keys() == {"city", "unit"}
    assert first["city"] != "Oslo"
    assert isinstance(first["city"], str)
    assert first["unit"] == "C"
    assert second == {"city": "Paris", "unit": "C"}
    assert meeting.evidence == EVIDENCE


def test_the_dice_pick_the_argument() -> None:
    drawn = {WrongArguments().draw(Dice(seed)).point for seed in range(9)}
    assert len(drawn) == 9
    assert all(0 <= point < 1 for point in drawn)
    assert WrongArguments(point=0.5).draw(Dice(1)).point == 0.5
