"""Faults that make another answer out of a true one: how they read a call and its reply."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.changed_reply import (
    collect_arguments,
    dump_json_like,
    find_informative_paths,
    is_model_request,
    is_usable_reply,
    list_answered_calls,
    list_argument_values,
    pick_at_share,
    replace_echoed_arguments,
)
from chaoslab.core.exchange import Call, PastAttempt, Reply
from chaoslab.execution.agents._one_trial import _describe_pending_waits
from tests.faults.fault_parts import Target, meet

JSON = {"content-type": "application/json"}


def call(tool: str = "GET shop/orders/17", value: Any = None, target: str = "shop") -> Call:
    return Call(target, tool, "p1.r1", 1, 1, value=value)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (Reply(200, JSON, b"[1]"), True), (Reply(299, JSON, b"[1]"), True), (Reply(300, JSON, b"[1]"), False),
        (Reply(200, JSON, b""), False), (Reply(503, JSON, b"[1]"), False),
    ],
)  # fmt: skip
def test_an_answer_has_a_value_and_is_no_error(reply: Reply, answer: bool) -> None:
    assert is_usable_reply(reply) is answer


@pytest.mark.parametrize("status", [299, 300])
def test_a_redirection_is_no_answer_of_a_model(status: int) -> None:
    class Silent(ChangedAnswer):
        def change_content(self, said: Any) -> Any:
            return replace(said, text="")

    told = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}}]}'
    assert meet(Silent(), Target(reply=Reply(status, JSON, told))).injected is (status < 300)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"model": "m", "messages": [{"role": "user", "content": "x"}]}, True), ({"model": "m", "messages": []}, False),
        ({"model": 3, "messages": [{"role": "user", "content": "x"}]}, False), ([], False), (None, False),
    ],
)  # fmt: skip
def test_a_request_to_a_model_names_it_and_has_messages(value: Any, found: bool) -> None:
    assert is_model_request(call(value=value)) is found


def test_arguments_are_those_of_the_path_too_with_numbers_up_to_18_digits() -> None:
    path = f"GET shop/orders/17/{'9' * 18}/{'9' * 19}"
    assert collect_arguments(call(path, {"a": {"b": 1}})) == {
        ("path", 0): "orders", ("path", 1): 17, ("path", 2): int("9" * 18), ("path", 3): "9" * 19, "a": {"b": 1},
    }  # fmt: skip
    assert list_argument_values(call("GET shop/17", {"a": {"b": 1}})) == [17, 1]


@pytest.mark.parametrize(("like", "text"), [('{"a":1}', '{"a": "é"}'), ('{\n"a": 1}', '{\n  "a": "é"\n}')])
def test_a_changed_text_is_laid_out_like_the_true_one(like: str, text: str) -> None:
    assert dump_json_like({"a": "é"}, like) == text


@pytest.mark.parametrize(
    ("value", "places"),
    [
        ({"order": 17, "paid": True, "sum": 5}, [("sum",)]),  # neither an argument nor a flag
        ({"order": 17, "paid": True}, [("paid",)]),
        ({"order": 17}, [("order",)]),
        ({"order": 17, "link": "https://shop.test/a", "name": "Tea"}, [("name",)]),
    ],
)
def test_the_values_that_were_asked_for_come_before_flags_and_those_before_what_was_said(
    value: Any, places: list[Any]
) -> None:
    assert [tuple(place) for place in find_informative_paths(value, call())] == places


def test_an_entry_is_picked_by_its_share() -> None:
    assert [pick_at_share([*"abcd"], point) for point in (0.0, 0.24, 0.25, 0.5, 0.99, 1.0)] == [*"aabcdd"]


def test_the_answers_to_calls_of_the_same_tool_are_those_that_were_true() -> None:
    good = Reply(200, JSON, b"[1]")
    rows: list[tuple[Call, Reply | None, bool]] = [
        (call("GET shop/orders/3"), good, True),
        (call("GET shop/orders/4"), good, False),
        (call("GET shop/orders/5"), None, True),
        (call("GET shop/orders/6"), Reply(404, JSON, b"[1]"), True),
        (call("GET shop/bills/7"), good, True),
        (call("GET shop/orders/8", target="bank"), good, True),
        (call("GET shop/orders/x9"), good, True),
    ]
    earlier = [PastAttempt(asked, reply, None, 0.0, 1.0, true) for asked, reply, true in rows]
    context: Any = SimpleNamespace(earlier=earlier)
    assert list_answered_calls(call(), context) == [(rows[0][0], good), (rows[6][0], good)]


def test_an_answer_to_another_call_is_given_the_arguments_of_this_one() -> None:
    was, now = call("GET shop/3", {"city": "Oslo", "days": [1]}), call("GET shop/4", {"city": "Rome", "unit": "C"})
    assert replace_echoed_arguments({"city": "Oslo", "id": 3, "days": 1, "n": [3, 7]}, was, now) == {
        "city": "Rome", "id": 4, "days": 1, "n": [4, 7],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("waits", "shown"), [([], ""), ([*"abc"], "a; b; c"), ([*"abcd"], "a; b; c and 1 more"), (["a"], "a")]
)
def test_what_is_still_under_way_is_told_in_part(waits: list[str], shown: str) -> None:
    said = "still under way 2.5 s after the answer, so its end is not known: "
    assert _describe_pending_waits(2.5, waits) == (said + shown if shown else "")
