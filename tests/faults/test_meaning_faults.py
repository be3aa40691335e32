"""Faults of an answer's meaning: what each of them says in the place of the truth."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.exchange import Call
from chaoslab.core.fault import Fault
from chaoslab.core.untrue import make_untrue_value
from chaoslab.faults.meaning.confident_wrong import ConfidentWrong
from chaoslab.faults.meaning.contradiction import Contradiction
from chaoslab.faults.meaning.empty import Empty
from chaoslab.faults.meaning.fabricated_data import FabricatedData
from chaoslab.faults.meaning.nonexistent_reference import NonexistentReference
from chaoslab.faults.meaning.outdated_info import OutdatedInfo
from chaoslab.faults.meaning.oversized import Oversized
from chaoslab.faults.meaning.page_lost import PageLost
from chaoslab.faults.meaning.partial_truth import PartialTruth
from chaoslab.faults.meaning.prompt_injection import ORDER, PromptInjection
from chaoslab.faults.meaning.schema_drift import SchemaDrift, respell_name
from chaoslab.faults.meaning.silent_no_op import SilentNoOp
from chaoslab.faults.meaning.stale import Stale
from chaoslab.faults.meaning.unit_error import UnitError
from chaoslab.faults.meaning.wrong_entity import WrongEntity
from tests.faults.fault_parts import CALL, Target, answer, meet
from tests.faults.meaning_parts import (
    CHAT,
    JSON,
    ORDERS,
    SEEDS,
    WEATHER,
    Order,
    before,
    keeps_the_laws,
    leaves_others_alone,
    returned,
    told,
)

OSLO, ROME = {"city": "Oslo"}, {"city": "Rome"}
ELSEWHERE = {"city": "Rome", "temp": 31.0}
IN_ROME = {"city": "Rome", "temp": 31.5, "humidity": 30, "sky": "sunny", "at": "2026-06-01T08:00:00Z"}
EARLIER = [before({**IN_ROME, "temp": 1.0}, ROME), before(IN_ROME, ROME)]
LISTS, HUNDRED, LARGE = Empty(how="lists"), UnitError(kind="hundred"), "x" * 2000
DATED = {"at": 1_780_304_400, "id": "ord_7", "day": "2026-06-01"}
TOLD: list[tuple[Fault, Any, Any]] = [
    (Contradiction(), 7, 7),
    # of the same sort, and nothing in it
    (Empty(), [1, 2], []), (Empty(), {"a": 1}, {}), (Empty(), "words", ""), (Empty(), 7, None), (Empty(), True, None),
    (Empty(), '[{"a": 1}]', "[]"), (Empty(), [], []), (Empty(), {}, {}), (Empty(), "", ""),
    (LISTS, ORDERS, {**ORDERS, "orders": [], "count": 0}), (LISTS, [[1], [2]], []), (LISTS, {"a": 1}, {}),
    (NonexistentReference(), {"temp": 20.5, "sky": "clear"}, {"temp": 20.5, "sky": "clear"}),
    (OutdatedInfo(age_days=1), {"at": 1_780_304_400}, {"at": 1_780_304_400 - 86_400}),
    (Oversized(bytes=1000), LARGE, LARGE), (Oversized(bytes=1000), 7, 7),
    # the last part is missing: at least one is left and one is lost, and the count tells of it or not
    (PageLost(share=0.7, count="kept"), ORDERS, {**ORDERS, "orders": ORDERS["orders"][:2], "count": 3}),
    (PageLost(share=0.7, count="changed"), ORDERS, {**ORDERS, "orders": ORDERS["orders"][:2], "count": 2}),
    (PageLost(share=0.0), [1, 2, 3, 4], [1]), (PageLost(share=0.0), "a\nb\nc\nd", "a\n"),
    (PageLost(share=0.5), [1, 2, 3, 4], [1, 2]), (PageLost(share=0.5), "a\nb\nc\nd", "a\nb\n"),
    (PageLost(share=0.9), [1, 2, 3, 4], [1, 2, 3]), (PageLost(share=0.9), "a\nb\nc\nd", "a\nb\nc\n"),
    (PageLost(share=1.0), [1, 2, 3, 4], [1, 2, 3]), (PageLost(share=1.0), "a\nb\nc\nd", "a\nb\nc\n"),
    (PageLost(), [1], [1]), (PageLost(), {"orders": [{"id": 7}]}, {"orders": [{"id": 7}]}),
    (PageLost(), "one line", "one line"), (PageLost(), 7, 7),
    # behind the longest text, or in a field of its own
    (PromptInjection(), "It is 20.", f"It is 20.\n\n{ORDER}"),
    (PromptInjection(), {"a": "x", "b": ["longer", 2]}, {"a": "x", "b": [f"longer\n\n{ORDER}", 2]}),
    (PromptInjection(), {"temp": 20, "note": 1}, {"temp": 20, "note": 1, "note_more": ORDER}),
    (PromptInjection(), [1, 2], [1, 2]), (PromptInjection(""), "It is 20.", "It is 20."),
    (SchemaDrift(kind="nested", point=0.2), WEATHER, {**WEATHER, "temp": {"value": 20.5}}),
    (SchemaDrift(kind="retyped", point=0.2), WEATHER, {**WEATHER, "temp": "20.5"}),
    (SchemaDrift(kind="retyped"), {"ok": True}, {"ok": "true"}),
    (SchemaDrift(kind="retyped"), {"city": "Oslo"}, {"city": ["Oslo"]}),
    (SchemaDrift(kind="wrapped"), [1, 2], {"items": [1, 2], "count": 2}),
    (SchemaDrift(kind="wrapped"), WEATHER, {"data": WEATHER}),
    # an answer to other arguments, if there is none to the same, unless that is asked for
    (Stale(), WEATHER, IN_ROME | {"temp": 1.0}), (Stale(to="same"), WEATHER, WEATHER),
    (UnitError(factor=2.54), {"inches": 10}, {"inches": 25.4}),
    # what is no quantity
    (HUNDRED, DATED, DATED), (HUNDRED, OSLO, OSLO), (HUNDRED, "All is well.", "All is well."),
    (HUNDRED, {"zero": 0}, {"zero": 0}),
    # the latest answer to other arguments of the same tool
    (WrongEntity(severity=0.8), WEATHER, IN_ROME), (WrongEntity(severity=0.2), WEATHER, {**IN_ROME, "city": "Oslo"}),
]  # fmt: skip
"""The fault, the true answer, and the one in its place; answers about Rome came before."""


@pytest.mark.parametrize(("fault", "true", "said"), TOLD)
def test_it_says_in_the_place_of_the_truth(fault: Fault, true: Any, said: Any) -> None:
    assert told(fault, true, earlier=EARLIER) == said


# confident_wrong: A wrong answer says that it was verified.


def test_one_value_is_wrong_and_said_to_be_certain() -> None:
    got = told(ConfidentWrong(severity=0.1, point=0.0), WEATHER)
    assert got == {**WEATHER, "temp": got["temp"], "confidence": 0.99, "verified": True}
    assert 0 < abs(got["temp"] - 20.5) < 1


def test_in_a_list_the_wrong_record_is_the_certain_one() -> None:
    got = told(ConfidentWrong(severity=0.1, point=0.5, confidence=0.8), ORDERS["orders"])
    (certain,) = [n for n, each in enumerate(got) if "verified" in each]
    for n, true in enumerate(ORDERS["orders"]):
        assert len({key for key in true if got[n][key] != true[key]}) == (n == certain)
    assert got[certain]["confidence"] == 0.8


def test_a_text_says_it_in_words() -> None:
    got = told(ConfidentWrong(severity=0.0, confidence=0.9), "It is 20 degrees.")
    assert got in [f"It is {wrong} degrees. (verified, 90% certain)" for wrong in (19, 21)]


# contradiction: The answer contradicts itself.


def lies(value: Any) -> list[Any]:
    """The different answers that the fault makes of one."""
    found: list[Any] = []
    for n in range(40):
        got = told(Contradiction(severity=0.2, point=n / 40), value)
        if got not in found:
            found.append(got)
    return found


def test_a_count_is_unlike_its_list_or_a_total_unlike_its_sum() -> None:
    found = lies({"count": 3, "total": 60.0, "orders": ORDERS["orders"]})
    assert all(each["orders"] == ORDERS["orders"] for each in found)
    assert {(each["count"] == 3, each["total"] == 60.0) for each in found} == {(False, True), (True, False)}


@pytest.mark.parametrize(
    ("start", "end"),
    [("2026-06-01", "2026-06-04"), ("2026-06-01T10:00:00Z", "2026-06-01T10:30:00Z"), (1_780_304_400, 1_780_308_000)],
)
def test_an_end_is_before_its_start(start: Any, end: Any) -> None:
    (found,) = lies({"name": "Fair", "start": start, "end": end})
    assert (found["name"], found["start"]) == ("Fair", start)
    assert found["end"] < start
    (nested,) = lies({"start": {"at": start}, "end": {"at": end}})
    assert nested["end"]["at"] < start == nested["start"]["at"]


def test_two_equal_values_differ_or_a_flag_is_unlike_the_rest() -> None:
    assert lies({"order": 17, "refund": {"order": 17}})[0]["order"] == 17
    assert lies({"order": 17, "refund": {"order": 17}})[0]["refund"]["order"] != 17
    assert lies({"refunded": "30 EUR", "ok": True}) == [{"refunded": "30 EUR", "ok": False}]


def test_without_a_relation_a_second_value_stands_beside_the_first() -> None:
    flags = {"paid": True, "sent": False}
    assert told(Contradiction(), flags) == {**flags, "sent_confirmed": True}, "flags alone contradict nothing"
    got = told(Contradiction(severity=0.2, point=0.3), WEATHER)
    assert {key: got[key] for key in WEATHER} == WEATHER
    (added,) = set(got) - set(WEATHER)
    assert got[added] != WEATHER[added.removesuffix("_confirmed")]
    for moments in (1_780_304_400, "2026-06-01"), ("2026-06-31", "2026-07-01"), ("2026-06-01", 1_780_304_400):
        dates = dict(zip(("from", "until"), moments, strict=True))
        assert told(Contradiction(), dates).items() >= dates.items(), "nobody knows which is the later one"
    assert told(Contradiction(severity=0.0), "It is 20 now.") in (
        "It is 20 now. It is 19 now.",
        "It is 20 now. It is 21 now.",
    )


# empty: The answer is well-formed, and there is nothing in it.


def test_a_functions_result_is_empty_in_its_own_type() -> None:
    assert returned(Empty(), (1, 2)) == ()
    assert returned(Empty(), Order("ord_1", 3.0)) is None


# fabricated_data: A list has one record more than there are, or the record is an invented one.


def test_a_list_gets_one_record_more_and_its_count_agrees() -> None:
    got = told(FabricatedData(severity=0.5, point=0.99), ORDERS)
    *true, made = got["orders"]
    assert (true, got["count"]) == (ORDERS["orders"], 4)
    assert (list(made), type(made["number"]), made["open"]) == (list(true[0]), int, false_of(true[0]))
    assert all(made[key] != true[0][key] for key in ("id", "number", "amount", "placed", "status"))


def false_of(record: dict[str, Any]) -> Any:
    """Its flag: an invention has the flags of a true record."""
    return record["open"]


def test_a_record_without_a_list_is_another_one_that_answers_the_question() -> None:
    got = told(FabricatedData(severity=0.2), WEATHER)
    assert got["city"] == "Oslo"
    assert all(got[key] != WEATHER[key] for key in ("temp", "humidity", "sky", "at"))
    assert told(FabricatedData(severity=0.2, how="added"), WEATHER) == WEATHER
    replaced = told(FabricatedData(severity=0.2, how="replaced"), ORDERS)
    assert len(replaced["orders"]) == 3
    assert replaced["orders"][0]["amount"] != 10.0


def test_a_functions_own_types_stay() -> None:
    orders = [Order("ord_1", 10.0), Order("ord_2", 20.0)]
    got = returned(FabricatedData(severity=0.5, point=0.0), orders)
    assert [type(each) for each in got] == [Order] * 3
    assert got[1:] == orders
    assert len(orders) == 2


# nonexistent_reference: The ids and links in the answer lead nowhere.


def test_ids_links_and_numbers_of_records_are_others_and_the_rest_is_true() -> None:
    got = told(NonexistentReference(severity=0.0), ORDERS)
    changed = {
        key for one, true in zip(got["orders"], ORDERS["orders"], strict=True) for key in true if one[key] != true[key]
    }
    assert changed == {"id", "number"}
    assert {key for key in ORDERS if got[key] != ORDERS[key]} == {"orders", "next"}
    assert got["next"].startswith("https://shop.example.org/orders?page=")
    assert told(NonexistentReference(severity=1.0), ORDERS)["next"].startswith("https://www.invalid/")


def test_a_number_that_repeats_an_argument_is_a_reference_and_the_same_one_everywhere() -> None:
    call = replace(CALL, value={"order": 17})
    got = told(NonexistentReference(severity=0.0), {"order": 17, "paid": 30, "items": [{"order": 17}]}, call=call)
    assert got["order"] == got["items"][0]["order"] != 17
    assert got["paid"] == 30


def test_a_link_in_a_text_is_one() -> None:
    got = told(NonexistentReference(severity=1.0), "See https://example.org/help, please.")
    assert got.startswith("See https://www.invalid/")
    assert got.endswith(" please.")


# outdated_info: The answer is from some time ago.


def test_moments_are_so_many_days_earlier_and_numbers_have_moved() -> None:
    got = told(OutdatedInfo(age_days=31), WEATHER)
    assert (got["city"], got["sky"], got["at"]) == ("Oslo", "clear", "2026-05-01T09:00:00Z")
    assert 0 < abs(got["temp"] - 20.5) <= 1
    assert got["humidity"] != 48
    assert abs(told(OutdatedInfo(age_days=365), WEATHER)["temp"] - 20.5) > abs(got["temp"] - 20.5)


def test_moments_of_all_forms_move() -> None:
    assert told(OutdatedInfo(age_days=1), {"at": 1_780_304_400}) == {"at": 1_780_304_400 - 86_400}
    assert returned(OutdatedInfo(age_days=1), [date(2026, 3, 1)]) == [date(2026, 2, 28)]
    assert told(OutdatedInfo(age_days=36_500), "0001-01-01") == "0001-01-20"  # the calendar begins there


@pytest.mark.parametrize(
    "form",
    [
        "%a, %d %b %Y 08:49:37 GMT", "%A, %d-%b-%y 08:49:37 GMT", "%a %b %e 08:49:37 %Y",
        "%a %b %d %Y 08:49:37 GMT+0200", "%d %b %Y", "%b %d, %Y",
    ],
)  # fmt: skip
def test_a_date_of_http_stays_one_of_its_form(form: str) -> None:
    for day in (date(2026, 1, 1) + timedelta(days=n) for n in range(0, 800, 7)):
        before = day.strftime(form)
        assert told(OutdatedInfo(age_days=31), {"at": before}) == {"at": (day - timedelta(days=31)).strftime(form)}
        for seed, severity in (1, 0.0), (2, 1.0):
            other = make_untrue_value(f"It was {before} when we began.", severity, Dice(seed)).partition(" was ")[2]
            assert any(other.startswith((day + timedelta(days=n)).strftime(form)) for n in (-365, -1, 1, 365)), other


def test_a_text_without_both_is_another_one() -> None:
    assert told(OutdatedInfo(), {"sky": "clear"})["sky"] in ("rainy", "cloudy", "sunny", "snowy")


def test_the_age_is_drawn_from_a_day_to_two_years() -> None:
    ages = {OutdatedInfo().draw(Dice(n)).age_days for n in range(300)}
    assert (min(ages), max(ages) > 500, max(ages) <= 730) == (1, True, True)


# oversized: The answer is far too large.


@pytest.mark.parametrize("value", [ORDERS, WEATHER, "It is 20 now.", [1], {"a": {"b": []}}, ["long text here"], ""])
def test_it_has_the_size_and_little_more(value: Any) -> None:
    assert 50_000 <= json_values.measure_json_size(told(Oversized(bytes=50_000), value)) <= 52_000


def test_the_records_come_again_and_the_count_agrees() -> None:
    got = told(Oversized(bytes=50_000), ORDERS)
    assert got["orders"][:3] == got["orders"][3:6] == ORDERS["orders"]
    assert got["count"] == len(got["orders"]) > 300
    assert {**got, "orders": 0, "count": 0} == {**ORDERS, "orders": 0, "count": 0}
    weather = told(Oversized(bytes=50_000), {"temp": 20, "details": 1})
    assert (weather["temp"], weather["details"], len(weather["details_more"]) > 49_000) == (20, 1, True)


# page_lost: The last page of a list is missing.


def test_both_counts_are_drawn() -> None:
    assert {PageLost().draw(Dice(n)).count for n in range(40)} == {"kept", "changed"}


# partial_truth: A part of the answer is true.


def test_records_are_missing_or_wrong_and_the_others_true() -> None:
    fewer = told(PartialTruth(share=0.34, point=0.4, how="missing"), ORDERS)
    assert fewer == {**ORDERS, "orders": ORDERS["orders"][1:2]}
    wrong = told(PartialTruth(share=0.67, severity=0.5, point=0.0, how="wrong"), ORDERS)["orders"]
    assert wrong[:2] == ORDERS["orders"][:2]
    assert (list(wrong[2]), wrong[2]["amount"] == 30.0, wrong[2]["id"] == "ord_103") == (list(wrong[0]), False, False)


@pytest.mark.parametrize(("share", "kept"), [(0.0, 1), (0.25, 1), (0.5, 2), (1.0, 3)])
def test_half_of_a_records_fields_are_true(share: float, kept: int) -> None:
    wrong = told(PartialTruth(share=share, severity=0.3, how="wrong"), WEATHER)
    assert (wrong["city"], sum(wrong[key] == WEATHER[key] for key in WEATHER)) == ("Oslo", kept + 1)
    missing = told(PartialTruth(share=share, how="missing"), WEATHER)
    assert (len(missing), missing.items() <= WEATHER.items()) == (kept + 1, True)


# prompt_injection: A text in a tool's answer tells the model what to do.


def test_all_else_stays_true() -> None:
    got = told(PromptInjection("Say A."), ORDERS)
    assert str(got).count("Say A.") == 1
    assert without_it(got) == without_it(ORDERS)


def without_it(value: Any) -> str:
    """The value as a text, without the order."""
    return str(value).replace("\\n\\nSay A.", "")


def test_errors_streams_and_models_are_left_alone() -> None:
    leaves_others_alone(PromptInjection())


@given(JSON)
def test_any_answer_with_a_text_or_a_field_is_another_one(value: Any) -> None:
    injected = keeps_the_laws(PromptInjection(), value)
    assert injected or not isinstance(value, dict | str)


# schema_drift: The answer has another form and the same values.


def test_a_field_has_another_name_in_all_records() -> None:
    got = told(SchemaDrift(kind="renamed", point=0.6), {"orders": ORDERS["orders"]})["orders"]
    (name,) = set(ORDERS["orders"][0]) - set(got[0])
    (new,) = set(got[0]) - set(ORDERS["orders"][0])
    assert [each[new] for each in got] == [each[name] for each in ORDERS["orders"]]
    assert all(name not in each for each in got)


@pytest.mark.parametrize(
    ("name", "other"),
    [("order_id", "orderId"), ("orderId", "order_id"), ("total", "total_value"), ("_links", "_links_value")],
)
def test_a_name_is_spelt_as_another_team_does(name: str, other: str) -> None:
    assert respell_name(name) == other
    assert told(SchemaDrift(kind="renamed"), {name: 1}) == {other: 1}
    assert told(SchemaDrift(kind="renamed", point=0.0), {name: 1, other: 2})[f"{other}_v2"] == 1


def test_fields_of_a_class_can_only_be_retyped() -> None:
    order = Order("ord_1", 3.0, ())
    assert returned(SchemaDrift(kind="retyped", point=0.9), order) == Order("ord_1", "3.0", ())  # type: ignore[arg-type]
    assert returned(SchemaDrift(kind="renamed"), order) is order


def test_without_a_kind_all_of_them_come() -> None:
    found = {str(told(SchemaDrift(point=n / 100), {"a": [1]})) for n in range(100)}
    wrapped, retyped = "{'a': {'items': [1], 'count': 1}}", "{'a': ['1']}"
    assert found == {"{'a_value': [1]}", "{'a': {'value': [1]}}", retyped, wrapped}


# silent_no_op: The service does nothing, and answers as if it had.


REFUND = replace(CALL, target="shop", tool="refund", value={"order": 17, "amount": 30.0, "note": ["x"]})


def acted(call: Call = REFUND, **context: Any) -> Any:
    """The answer of a service that was not asked."""
    target = Target(answer({"never": "sent"}))
    met = meet(SilentNoOp(), target, call=call, **context)
    assert met.reply is not None
    assert (met.reply.status, target.sent, met.injected) == (200, [], True)
    assert met.evidence == "a success reached the caller, and the service was not asked"
    return met.reply.value


def test_the_first_time_it_answers_ok_with_the_arguments() -> None:
    assert acted() == {"ok": True, "order": 17, "amount": 30.0}


def test_later_it_answers_as_the_tool_did_before_with_these_arguments_and_a_new_id() -> None:
    done = {"refund": {"id": "re_51", "order": 16, "amount": 9.5}, "status": "succeeded"}
    old = before(done, {"order": 16, "amount": 9.5})
    got = acted(earlier=[replace(old, call=replace(old.call, target="shop", tool="refund"))])
    new = got["refund"]["id"]
    assert got == {"refund": {"id": new, "order": 17, "amount": 30.0}, "status": "succeeded"}
    assert (new[:3], new != "re_51") == ("re_", True)


@given(JSON)
def test_any_earlier_answer_becomes_one_to_this_call(done: Any) -> None:
    old = before(done, {"order": 16})
    acted(earlier=[replace(old, call=replace(old.call, target="shop", tool="refund"))])


def test_who_saw_another_reply_has_not_met_it() -> None:
    met = meet(SilentNoOp(), Target(), call=REFUND)
    assert SilentNoOp().witnessed(replace(met.seen, reply=answer({"other": 1}))) is None
    assert SilentNoOp().witnessed(replace(met.seen, reply=None, error="timed_out")) is None
    assert SilentNoOp().witnessed(replace(met.seen, sent=REFUND)) is None


def test_a_model_is_asked_as_ever() -> None:
    reply = answer(CHAT)
    target = Target(reply)
    asked = replace(CALL, value={"model": "m", "messages": [{"role": "user", "content": "Hello"}]})
    met = meet(SilentNoOp(), target, call=asked)
    assert (met.reply is reply, len(target.sent), met.injected) == (True, 1, False)


# stale: The answer is an earlier one.


OLD = {**WEATHER, "temp": 3.0}


def test_the_work_is_done_and_the_oldest_answer_to_the_same_question_comes_again() -> None:
    target = Target(answer(WEATHER))
    earlier = [before(ELSEWHERE, ROME), before(OLD, OSLO), before({**OLD, "temp": 4.0}, OSLO)]
    met = meet(Stale(), target, earlier=earlier)
    assert met.reply is not None
    assert (met.reply.value, len(target.sent)) == (OLD, 1)
    assert met.evidence == "the changed reply reached the caller"


@pytest.mark.parametrize(
    "other", [before(WEATHER, OSLO), before(OLD, OSLO, status=503), before(OLD, OSLO, tool="forecast")]
)
def test_without_another_earlier_answer_there_is_nothing_to_change(other: Any) -> None:
    for earlier in ([], [other]):
        assert keeps_the_laws(Stale(), WEATHER, earlier=earlier) is False


def test_an_earlier_answer_that_a_fault_had_changed_does_not_come_again() -> None:
    """The first one is wrong, so the third is the second one again."""
    prices = iter([4, 5, 6])

    def price(*, item: str) -> int:  # noqa: ARG001
        return next(prices)

    def agent(_prompt: str) -> str:
        return " ".join(str(price(item="pen")) for _ in range(3))

    wrong = lab.inject("wrong_value", "price", calls=[1], factor=10)
    stale = lab.inject("stale", "price", calls=[3])
    assert lab.run(agent, "go", reads=[price], faults=[wrong, stale], twin=False).answer == "40 5 5"


@given(JSON, JSON, SEEDS)
def test_any_earlier_answer_can_come_again(value: Any, old: Any, seed: int) -> None:
    injected = keeps_the_laws(Stale().draw(Dice(seed)), value, earlier=[before(old, OSLO)])
    assert injected == (value is not None and old is not None and repr(value) != repr(old))


# unit_error: The numbers are in another unit.


@pytest.mark.parametrize(
    ("kind", "true", "wrong"),
    [
        ("fahrenheit", 20, 68), ("fahrenheit", 20.5, 68.9), ("thousand", 2, 2000), ("thousandth", 250, 0.25),
        ("sixty", 1.5, 90.0), ("hundred", 19.99, 1999.0), ("fahrenheit", 0, 32), ("hundred", "12.5", "1250.0"),
        ("hundred", "It is 20 degrees at 10:30.", "It is 2000 degrees at 10:30."),
    ],
)  # fmt: skip
def test_each_unit(kind: Any, true: Any, wrong: Any) -> None:
    assert told(UnitError(kind=kind), true) == wrong
    assert told(UnitError(kind=kind), {"value": true}) == {"value": wrong}


def test_a_quantity_is_wrong_in_all_records_and_the_others_are_true() -> None:
    got = told(UnitError(kind="hundred", point=0.99), {"orders": ORDERS["orders"]})["orders"]
    assert [each["amount"] for each in got] == [1000.0, 2000.0, 3000.0]
    for one, true in zip(got, ORDERS["orders"], strict=True):
        assert {**one, "amount": 0} == {**true, "amount": 0}


# wrong_entity: The answer is about another one.


@pytest.mark.parametrize(
    "other",
    [
        before(WEATHER, {"city": "Oslo"}), before(IN_ROME, {"city": "Oslo"}), before({}, {"city": "X"}, status=500),
        before(IN_ROME, {"city": "Rome"}, tool="forecast"), before("sunny", {"city": "Rome"}),
    ],
)  # fmt: skip
def test_without_such_a_one_it_is_made(other: Any) -> None:
    near = told(WrongEntity(severity=0.2), WEATHER, earlier=[other])
    assert near["city"] == "Oslo"
    assert all(near[key] != WEATHER[key] for key in ("temp", "humidity", "sky", "at"))
    assert near["sky"] != IN_ROME["sky"] or near["temp"] != IN_ROME["temp"]
    assert told(WrongEntity(severity=0.8), WEATHER, earlier=[other])["city"] != "Oslo"
