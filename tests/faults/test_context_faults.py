"""Faults of the messages that a model is sent. `truncate_context` has a file of its own."""

import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.core.dialog import collect_text, find_tool_results
from chaoslab.core.exchange import Call
from chaoslab.core.fault import Fault
from chaoslab.faults.context.circular_reference import CircularReference
from chaoslab.faults.context.compact_context import CompactContext
from chaoslab.faults.context.drop_context import DropContext
from chaoslab.faults.context.duplicate_context import DuplicateContext
from chaoslab.faults.context.garble_context import GarbleContext
from chaoslab.faults.context.garble_input import GarbleInput
from chaoslab.faults.context.overflow_context import OverflowContext
from chaoslab.faults.context.reorder_context import ReorderContext
from chaoslab.faults.context.stale_context import StaleContext
from tests.faults.dialogs import FORMATS, Message, accepted, asked, dialogs, met_by, request, said, system

ONE, TWO, THREE = (said("chat", "user", each) for each in ("one", "two", "three"))
HELLO, DONE = said("chat", "assistant", "hello"), said("chat", "assistant", "done")
LEFT_ALONE: dict[str, tuple[Fault, list[Message]]] = {
    "compact_context: wishes alone": (CompactContext(), [ONE, TWO]),
    "compact_context: nothing": (CompactContext(), []),
    "drop_context: a gap that no provider would take": (DropContext(0.0, 0.0), [HELLO, ONE, DONE]),
    "drop_context: nothing between the first and the last": (DropContext(1.0, 0.3), [ONE, TWO]),
    "duplicate_context: nothing of the user": (DuplicateContext(0.0), asked("chat", 1, 1)),
    "duplicate_context: nothing": (DuplicateContext(0.0), []),
    "garble_context: plain ASCII": (
        GarbleContext(), [said("chat", "user", "cafe"), said("chat", "assistant", "café")]
    ),
    "garble_input: no two letters": (GarbleInput("typos"), [said("chat", "user", "17 + 4")]),
    "garble_input: no two letters that differ": (GarbleInput("typos"), [said("chat", "user", "aaaa")]),
    "garble_input: no text to cut": (GarbleInput("cut"), [said("chat", "user", "")]),
    "garble_input: one letter to cut": (GarbleInput("cut"), [said("chat", "user", "a")]),
    "garble_input: nothing": (GarbleInput(), []),
    "overflow_context: nothing of the user": (OverflowContext(), []),
    "reorder_context: two turns": (ReorderContext(0.5), [ONE, DONE, THREE]),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "talk"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_it_could_not_change_is_left_alone(fault: Fault, talk: list[Message]) -> None:
    assert not met_by(fault, request("chat", talk))[0].injected


# circular_reference: Two messages say to see each other, and neither says anything else.


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_two_name_each_other_by_their_numbers(form: str) -> None:
    talk = [
        *system(form), said(form, "user", "one"), *asked(form, 1, 1), said(form, "assistant", "done"),
        said(form, "user", "two"),
    ]  # fmt: skip
    call = request(form, talk)
    met, sent = met_by(CircularReference(0.0), call)
    first = len(system(form))
    result = first + len(asked(form, 1, 1))
    assert met.injected
    assert collect_text(sent[first]) == f"See message {result + 1}."
    assert collect_text(sent[result]) == f"See message {first + 1}."
    changed = [place for place, (was, now) in enumerate(zip(talk, sent, strict=True)) if was != now]
    assert changed == [first, result]
    assert accepted(call, sent)


@given(dialogs(), st.floats(0, 1))
def test_two_change_if_there_are_two_and_a_provider_takes_them(call: Call, point: float) -> None:
    given_, role = call.value[call.dialog.key], call.dialog.role
    met, sent = met_by(CircularReference(point), call)
    assert accepted(call, sent)
    roles = [role(message) for message in given_]
    results = [each for each, message in zip(roles, given_, strict=True) if each == "tool" and collect_text(message)]
    assert met.injected == (roles.count("user") - 1 + len(results) >= 2)
    changed = [place for place, (was, now) in enumerate(zip(given_, sent, strict=True)) if was != now]
    assert len(changed) == 2 * met.injected
    newest = max(place for place, each in enumerate(roles) if each == "user")
    assert all(roles[place] in ("user", "tool") and place != newest for place in changed)


# compact_context: A summary stands for the older turns: the wishes are in it, the deeds are not.


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_wishes_stay_and_the_deeds_vanish(form: str) -> None:
    older = [said(form, "user", "refund order 17"), *asked(form, 1, 2), said(form, "assistant", "done")]
    last = [said(form, "user", "and now?"), *asked(form, 2, 1)][: None if form == "responses" else 1]
    sent = met_by(CompactContext(), request(form, [*system(form), *older, *last]))[1]
    summary = sent[len(system(form))]
    assert sent == [*system(form), summary, *last]
    assert collect_text(summary) == "Summary of the conversation so far. The user asked:\n- refund order 17"


@given(dialogs())
def test_a_provider_takes_it_and_no_older_deed_is_left(call: Call) -> None:
    met, sent = met_by(CompactContext(), call)
    assert accepted(call, sent)
    units = [unit for unit in call.dialog.group_messages(call.value) if unit.is_removable]
    older = [message for unit in units[:-1] for message in unit.messages]
    assert met.injected == any(call.dialog.role(message) != "user" for message in older)
    if met.injected:
        assert sent[-len(units[-1].messages) :] == units[-1].messages
        assert len([m for m in sent if call.dialog.role(m) != "system"]) == 1 + len(units[-1].messages)


# drop_context: Messages in the middle vanish, with the results of their calls.


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"responses"}))
def test_a_call_vanishes_with_its_results(form: str) -> None:
    first, last = said(form, "user", "one"), asked(form, 2, 1)
    call = request(form, [first, *asked(form, 1, 3), *last])
    assert met_by(DropContext(point=0.0), call)[1] == [first, *last]


def test_in_responses_a_call_stays_with_the_message_before_it() -> None:
    one, two, three = (said("responses", "user", each) for each in ("one", "two", "three"))
    call = request("responses", [one, *asked("responses", 1, 1), two, *asked("responses", 2, 1), three])
    assert met_by(DropContext(point=0.0), call)[1] == [one, *asked("responses", 1, 1), three]


def test_the_share_is_of_the_messages_between_the_first_and_the_last() -> None:
    talk = [said("chat", "user", str(n)) for n in range(6)]
    assert met_by(DropContext(0.5, 0.0), request("chat", talk))[1] == [talk[0], *talk[3:]]
    assert met_by(DropContext(0.5, 1.0), request("chat", talk))[1] == [*talk[:3], talk[5]]
    assert met_by(DropContext(0.0, 0.0), request("chat", talk))[1] == [talk[0], *talk[2:]]
    assert met_by(DropContext(1.0, 0.3), request("chat", talk))[1] == [talk[0], talk[5]]


def test_an_answer_goes_too_where_a_call_would_follow_it() -> None:
    one, two, last = said("gemini", "user", "one"), said("gemini", "user", "two"), asked("gemini", 1, 1)
    talk = [one, said("gemini", "assistant", "done"), two, *last]
    assert met_by(DropContext(0.0, 1.0), request("gemini", talk))[1] == [one, *last]


@given(dialogs(), st.floats(0, 1), st.floats(0, 1))
def test_what_is_left_is_in_order_and_a_provider_takes_it(call: Call, part: float, point: float) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(DropContext(part, point), call)
    assert accepted(call, sent)
    rest = iter(given_)
    assert all(message in rest for message in sent)
    assert sent[-1] == given_[-1]
    assert met.injected == (sum(unit.is_removable for unit in call.dialog.group_messages(call.value)) >= 3)


# duplicate_context: A message of the user stands twice; a call never does.


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_message_of_the_user_stands_twice(form: str) -> None:
    one, two = said(form, "user", "one"), said(form, "user", "two")
    talk = [one, *asked(form, 1, 2), said(form, "assistant", "done"), two]
    assert met_by(DuplicateContext(0.0), request(form, talk))[1] == [one, *talk]
    assert met_by(DuplicateContext(1.0), request(form, talk))[1] == [*talk, two]


def test_the_copy_has_no_id_of_its_own() -> None:
    talk = [{"id": "msg_1", "role": "user", "content": "one"}]
    assert met_by(DuplicateContext(0.0), request("responses", talk))[1] == [{"role": "user", "content": "one"}, *talk]


@given(dialogs(), st.floats(0, 1))
def test_there_is_one_message_more_and_a_provider_takes_them(call: Call, point: float) -> None:
    met, sent = met_by(DuplicateContext(point), call)
    assert met.injected
    assert accepted(call, sent)
    assert len(sent) == len(call.value[call.dialog.key]) + 1


# garble_context: Letters beyond ASCII are garbled in what the user and the tools said.


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_utf8_is_read_as_latin_1(form: str) -> None:
    talk = [*system(form), said(form, "user", "café"), *asked(form, 1, 1)]
    sent = met_by(GarbleContext(), request(form, talk))[1]
    assert [collect_text(message) for message in sent if "é" in collect_text(message)] == [
        collect_text(m) for m in system(form)
    ]
    assert collect_text(sent[len(system(form))]) == "cafÃ©"
    assert collect_text(sent[-1]) == "rÃ©sultat call-1-0"


def test_replacement_keeps_the_length() -> None:
    talk = [said("chat", "user", "naïve café")]
    sent = met_by(GarbleContext("replacement"), request("chat", talk))[1]
    assert sent == [said("chat", "user", "na\ufffdve caf\ufffd")]


def test_the_share_is_of_the_newest() -> None:
    talk = [said("chat", "user", f"é{n}") for n in range(4)]
    changed = [said("chat", "user", f"Ã©{n}") for n in range(4)]
    assert met_by(GarbleContext(part=0.5), request("chat", talk))[1] == [*talk[:2], *changed[2:]]
    assert met_by(GarbleContext(part=0.0), request("chat", talk))[1] == [*talk[:3], changed[3]]


@given(dialogs(), st.sampled_from(("mojibake", "replacement")), st.floats(0, 1))
def test_a_provider_takes_it_and_only_words_change(call: Call, kind: str, part: float) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(GarbleContext(kind, part), call)  # type: ignore[arg-type]
    assert accepted(call, sent)
    assert len(sent) == len(given_)
    heard = [collect_text(message) for message in given_ if call.dialog.role(message) != "system"]
    assert met.injected == any(not words.isascii() for words in heard)


# garble_input: The user's newest message is damaged, and no other.


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_only_the_newest_message_of_the_user_is_damaged(form: str) -> None:
    before = [said(form, "user", "refund order 16"), said(form, "assistant", "refunded")]
    talk = [*before, said(form, "user", "refund order 17 please"), *asked(form, 1, 1)]
    typed = met_by(GarbleInput(), request(form, talk))[1]
    assert typed == [*before, said(form, "user", "rfeund order 17 pelase"), *asked(form, 1, 1)]
    cut = met_by(GarbleInput("cut"), request(form, talk))[1]
    assert cut == [*before, said(form, "user", "refund orde"), *asked(form, 1, 1)]


def test_a_bare_text_is_the_users_only_message() -> None:
    call = request("responses", [])
    call = call.with_value({**call.value, "input": "refund order 17"})
    assert met_by(GarbleInput("cut"), call)[1] == [{"role": "user", "content": "refund o"}]
    assert not met_by(GarbleInput(), call.with_value({**call.value, "input": "17"}))[0].injected


@given(dialogs(), st.sampled_from(("typos", "cut")))
def test_a_provider_takes_it_and_one_message_differs(call: Call, kind: str) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(GarbleInput(kind), call)  # type: ignore[arg-type]
    assert met.injected
    assert accepted(call, sent)
    (place,) = (n for n, (old, new) in enumerate(zip(given_, sent, strict=True)) if old != new)
    assert call.dialog.role(given_[place]) == "user"
    assert collect_text(sent[place])


@given(st.text())
def test_typing_errors_lose_no_letter(text: str) -> None:
    sent = met_by(GarbleInput(), request("chat", [said("chat", "user", text)]))[1]
    assert sorted(collect_text(sent[0])) == sorted(text)


# overflow_context: Text that has nothing to do with the task fills the context.


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_filler_stands_before_the_newest_message_of_the_user(form: str) -> None:
    talk = [said(form, "user", "one"), said(form, "assistant", "two"), said(form, "user", "three"), *asked(form, 1, 2)]
    sent = met_by(OverflowContext(1000), request(form, talk))[1]
    assert [*sent[:2], *sent[3:]] == talk
    assert len(collect_text(sent[2]).split()) == 1000


@given(dialogs(), st.integers(1, 50))
def test_a_provider_takes_it_and_nothing_is_lost(call: Call, tokens: int) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(OverflowContext(tokens), call)
    assert met.injected
    assert accepted(call, sent)
    rest = iter(sent)
    assert all(message in rest for message in given_)


# reorder_context: The older turns of a conversation come in another order; the newest stays the last.


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_the_older_turns_change_places_and_keep_their_calls(form: str) -> None:
    first = [said(form, "user", "one"), *asked(form, 1, 2), said(form, "assistant", "done")]
    second = [said(form, "user", "two"), said(form, "assistant", "done too")]
    last = [said(form, "user", "three"), *asked(form, 3, 1)]
    call = request(form, [*system(form), *first, *second, *last])
    assert met_by(ReorderContext(0.0), call)[1] == [*system(form), *second, *first, *last]


@given(dialogs(), st.floats(0, 1))
def test_every_message_is_still_there_and_a_provider_takes_them(call: Call, point: float) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(ReorderContext(point), call)
    assert accepted(call, sent)
    assert sorted(map(repr, sent)) == sorted(map(repr, given_))
    assert sent[-1] == given_[-1]
    turns = sum(call.dialog.role(message) == "user" for message in given_)
    assert met.injected == (turns >= 3)


# stale_context: A result in the history is the one before it of the same tool.


def contents(messages: list[Message]) -> list[str]:
    """The content of each result."""
    return [str(each.content) for each in find_tool_results(messages)]


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_result_is_the_one_before_it_and_answers_its_own_call(form: str) -> None:
    talk = [*system(form), said(form, "user", "one"), *asked(form, 1, 2), said(form, "assistant", "done")]
    call = request(form, [*talk, said(form, "user", "two")])
    before = deepcopy(call.value)
    met, sent = met_by(StaleContext(0.0), call)
    assert met.injected
    first, second = contents(call.value[call.dialog.key])
    assert first != second
    assert contents(sent) == [first, first]
    assert call.value == before
    assert accepted(call, sent)


def test_a_result_of_a_custom_tool_has_the_tools_name() -> None:
    call = {"id": "call_1", "type": "custom", "custom": {"name": "run_sql", "input": "select 1"}}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "1"}
    found = find_tool_results([{"role": "assistant", "content": None, "tool_calls": [call]}, result])
    assert [(each.tool, each.content) for each in found] == [("run_sql", "1")]


def test_geminis_results_are_found_under_either_spelling() -> None:
    parts = [{name: {"name": "add", "response": 1}} for name in ("functionResponse", "function_response")]
    assert contents([{"role": "user", "parts": parts}]) == ["1", "1"]


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_another_tools_result_is_never_put_there(form: str) -> None:
    other = json.loads(json.dumps(asked(form, 2, 1)).replace('"add"', '"subtract"'))
    talk = [said(form, "user", "one"), *asked(form, 1, 1), *other]
    assert not met_by(StaleContext(0.0), request(form, talk))[0].injected


@given(dialogs(), st.floats(0, 1))
def test_one_result_changes_if_a_tool_has_two_and_a_provider_takes_the_messages(call: Call, point: float) -> None:
    given_ = call.value[call.dialog.key]
    met, sent = met_by(StaleContext(point), call)
    assert accepted(call, sent)
    was, now = contents(given_), contents(sent)
    changed = [place for place, (one, other) in enumerate(zip(was, now, strict=True)) if one != other]
    assert len(changed) == met.injected == (len(was) >= 2)
    assert all(now[place] == was[place - 1] for place in changed)


def test_what_is_no_dialog_passes() -> None:
    for value in (None, 3, {"messages": "x"}, {"messages": [3, {"tool_calls": [{"id": []}], "content": [[]]}]}):
        assert not met_by_value(value)


def met_by_value(value: object) -> bool:
    from tests.faults.fault_parts import CALL, meet

    return meet(StaleContext(0.5), call=CALL.with_value(value)).injected
