"""The oldest messages vanish from what the model is sent; the rest is still a conversation that a provider takes."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Call
from chaoslab.faults.context.truncate_context import TruncateContext
from tests.faults.fault_parts import Target, meet

Message = dict[str, Any]
SYSTEM: Message = {"role": "system", "content": "You are a careful assistant."}


def said(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def tools(number: int, results: int) -> list[Message]:
    """The assistant asks for some tools at once, and each answers."""
    calls = [{"id": f"call-{number}-{n}", "function": {"name": "calculate"}} for n in range(results)]
    asked: Message = {"role": "assistant", "content": None, "tool_calls": calls}
    return [asked, *({"role": "tool", "tool_call_id": call["id"], "content": "4"} for call in calls)]


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages = [SYSTEM] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 8))):
        if draw(st.booleans()):
            messages += [said("user", f"question {number}"), said("assistant", f"answer {number}")]
        else:
            messages += [said("user", f"task {number}"), *tools(number, draw(st.integers(1, 4)))]
    return messages


def chat(messages: list[Message]) -> Call:
    return Call("model", "chat", "p1.r1", 1, 1, value={"model": "m", "messages": messages, "temperature": 0})


def sent(messages: list[Message], keep: float = 0.5) -> list[Message]:
    target = Target()
    meet(TruncateContext(keep), target, call=chat(messages))
    value: dict[str, Any] = target.sent[0].value
    assert {k: v for k, v in value.items() if k != "messages"} == {"model": "m", "temperature": 0}
    kept: list[Message] = value["messages"]
    return kept


def test_the_oldest_half_vanishes_and_the_system_stays() -> None:
    talk = [said("user", "one"), said("assistant", "two"), said("user", "three"), said("assistant", "four")]
    assert sent([SYSTEM, *talk]) == [SYSTEM, *talk[2:]]


def test_a_call_is_kept_with_its_results() -> None:
    talk = [said("user", "add them"), *tools(1, 3)]
    assert sent([SYSTEM, *talk]) == [SYSTEM, *talk[1:]]


def test_a_single_question_is_left_alone_and_then_no_fault_was_injected() -> None:
    met = meet(TruncateContext(), call=chat([SYSTEM, said("user", "one")]))
    assert (met.injected, met.evidence) == (False, None)


def test_a_call_without_messages_passes() -> None:
    target = Target()
    empty: list[Any] = [None, {}, {"messages": []}]
    for value in empty:
        met = meet(TruncateContext(), target, call=replace(chat([]), value=value))
        assert (met.reply, met.injected) == (target.reply, False)


@given(conversations(), st.floats(0, 1))
def test_no_result_is_orphaned_nothing_is_reordered_and_the_newest_message_survives(
    talk: list[Message], keep: float
) -> None:
    kept = sent(talk, keep)
    others = [message for message in talk if message["role"] != "system"]
    left = [message for message in kept if message["role"] != "system"]
    assert [m for m in kept if m["role"] == "system"] == [m for m in talk if m["role"] == "system"]
    assert left == others[len(others) - len(left) :]
    assert bool(left) == bool(others)
    asked = {call["id"] for message in left for call in message.get("tool_calls", [])}
    assert {message["tool_call_id"] for message in left if message["role"] == "tool"} == asked


def test_at_least_one_message_is_left_and_no_more_than_the_share() -> None:
    talk = [said("user", str(n)) for n in range(5)]
    assert sent(talk, 0.0) == talk[4:]
    assert sent(talk, 0.5) == talk[3:]
    assert sent([SYSTEM, *talk], 0.99) == [SYSTEM, *talk[1:]]


def test_a_call_at_the_very_beginning_is_kept_with_its_results() -> None:
    talk = tools(1, 3)
    assert sent(talk, 0.0) == talk
    assert sent([*talk, said("assistant", "4")], 0.5) == [*talk, said("assistant", "4")]


def test_results_that_answer_nothing_are_kept_from_the_first_on() -> None:
    orphans = tools(1, 2)[1:]
    assert sent(orphans, 0.0) == orphans


@given(conversations())
def test_keeping_all_keeps_all(talk: list[Message]) -> None:
    assert sent(talk, 1.0) == talk


def test_the_witness_is_the_request_that_really_left() -> None:
    met = meet(TruncateContext(), call=chat([SYSTEM, *(said("user", str(n)) for n in range(4))]))
    assert met.evidence == "the model was sent 3 messages"
    fault = met.active.fault
    assert fault.witnessed(replace(met.seen, sent=None)) is None
    assert fault.witnessed(replace(met.seen, sent=chat([SYSTEM]))) is None
    assert fault.witnessed(replace(met.seen, changed_call=None)) is None


def test_nothing_is_drawn_and_nothing_is_on_the_wire() -> None:
    assert TruncateContext(0.3).draw(Dice(1)) == TruncateContext(0.3)
    assert TruncateContext().toxics() == ()
