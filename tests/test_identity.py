"""A request keeps its id until it is answered, and no header can be a path."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.base.identity import ALONE, TOGETHER_S, Request, Requests, TrialId, canonical, make_request_id

CHARGE = {"amount": 5, "to": "Ana"}
RUNS = st.text(st.sampled_from("abcXYZ019_-"), min_size=1, max_size=64)
NUMBERS = st.integers(0, 999_999)


def book() -> Requests:
    return Requests(TrialId("run", 1))


@given(RUNS, NUMBERS, NUMBERS, st.booleans())
def test_a_trial_is_its_header(run: str, prompt: int, repeat: int, truth: bool) -> None:
    trial = TrialId(run, prompt, repeat, truth=truth)
    assert TrialId.parse(trial.header) == trial
    assert trial.header == f"{run}.{trial.key}"


def test_a_header_reads_as_documented() -> None:
    assert TrialId("20261121-091500", 3).header == "20261121-091500.p3.r1"
    assert TrialId("run", 3, 2, truth=True).key == "p3.r2.truth"


@pytest.mark.parametrize("header", [None, ""])
def test_a_call_that_names_no_trial_is_alone(header: str | None) -> None:
    assert TrialId.parse(header) == TrialId(ALONE, 0, 0)


@pytest.mark.parametrize(
    "header",
    [
        "run", "run.p1", "run.p1.r1.truth.truth", "run.p1.r1.lie", "../run.p1.r1", "/etc/passwd", "..", "a/b.p1.r1",
        "a\\b.p1.r1",
        ".p1.r1", "run.p1.r1\n", "\nrun.p1.r1", "run.p-1.r1", "run.p1.r", "run.p1234567.r1", "run.p1.r1 ", "run..p1.r1",
        "rün.p1.r1", "run.p١.r1", "%2e%2e.p1.r1", "a" * 65 + ".p1.r1", "run.p1.r1/../..", "x" * 100_000, "run\0.p1.r1",
        "~.p1.r1",
    ],
)  # fmt: skip
def test_a_header_of_another_form_is_refused_and_shown_in_short(header: str) -> None:
    with pytest.raises(ValueError, match="it should read like") as error:
        TrialId.parse(header)
    assert len(str(error.value)) < 400


@given(st.dictionaries(st.text(), st.integers() | st.text(), max_size=5))
def test_one_value_has_one_spelling_that_of_json(value: dict[str, object]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical(value) == canonical(turned)
    assert canonical([value]) == json.dumps([turned], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert " " not in canonical({"a": [1, 2]})


def test_an_id_names_all_that_makes_a_request_and_is_the_same_everywhere() -> None:
    ids = {
        make_request_id(*wish)
        for wish in [
            ("t1", "charge", CHARGE, 1), ("t2", "charge", CHARGE, 1), ("t1", "refund", CHARGE, 1),
            ("t1", "charge", {"amount": 6, "to": "Ana"}, 1), ("t1", "charge", CHARGE, 2),
        ]
    }  # fmt: skip
    assert len(ids) == 5
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in ids)
    assert make_request_id("t1", "charge", CHARGE, 1) == "d93d454f90a8a7e8e0fdda05d01fc53a"


def test_after_a_failure_the_same_wish_is_the_same_request() -> None:
    requests = book()
    first = requests.find_or_create("bank", "charge", CHARGE)
    assert [first.count_attempt(), first.count_attempt()] == [1, 2]
    again = requests.find_or_create("bank", "charge", {"to": "Ana", "amount": 5})
    assert again is first
    assert again.count_attempt() == 3


def test_after_an_answer_the_same_wish_is_a_new_request() -> None:
    requests = book()
    first = requests.find_or_create("bank", "charge", CHARGE)
    requests.mark_answered(first)
    second = requests.find_or_create("bank", "charge", CHARGE)
    assert second.id != first.id
    assert (first.number, second.number, second.attempts) == (1, 2, 0)


def test_a_replanned_effect_carries_the_id_it_had_and_a_safe_request_a_new_one() -> None:
    requests = book()
    charge = requests.find_or_create("bank", "charge", CHARGE)
    requests.mark_answered(charge)
    look = requests.find_or_create("bank", "balance", {}, safe=True)
    requests.mark_answered(look)
    requests.restart_prompt()
    assert requests.find_or_create("bank", "charge", CHARGE) is charge
    looked = requests.find_or_create("bank", "balance", {}, safe=True)
    assert looked.id != look.id
    assert looked.number == 3


def test_an_effect_wanted_twice_is_wanted_twice_after_replanning_too() -> None:
    requests = book()
    ids = []
    for _ in range(2):
        for _ in range(2):
            charge = requests.find_or_create("bank", "charge", CHARGE)
            ids.append(charge.id)
            requests.mark_answered(charge)
        requests.restart_prompt()
    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2


def test_a_turn_that_starts_over_leaves_the_effects_of_earlier_turns_done() -> None:
    requests = book()
    first = requests.find_or_create("bank", "charge", CHARGE)
    requests.mark_answered(first)
    requests.begin_turn(2)
    second = requests.find_or_create("bank", "charge", CHARGE)
    requests.mark_answered(second)
    requests.restart_prompt()
    assert requests.find_or_create("bank", "charge", CHARGE) is second
    assert second.id != first.id


def test_requests_are_numbered_per_target_in_the_order_first_asked() -> None:
    requests = book()
    asked = [("bank", 1), ("search", 1), ("bank", 2), ("bank", 1), ("search", 2)]
    assert [requests.find_or_create(target, f"{target}_tool", {"n": n}).number for target, n in asked] == [
        1,
        1,
        2,
        1,
        2,
    ]


def test_each_trial_has_ids_of_its_own() -> None:
    one, two = (Requests(TrialId("run", 1, repeat)).find_or_create("bank", "charge", CHARGE).id for repeat in (1, 2))
    assert one != two
    assert Requests(TrialId("run", 1, 1)).find_or_create("bank", "charge", CHARGE).id == one


def asked(book: Requests, now_s: float) -> Request:
    request = book.find_or_create("bank", "charge", CHARGE, now_s=now_s)
    request.begin_attempt(now_s)
    return request


def ended(book: Requests, request: Request, *, ok: bool) -> None:
    request.end_attempt()
    if ok:
        book.mark_answered(request)


def test_equal_calls_that_are_made_together_are_requests_of_their_own() -> None:
    requests = book()
    first, second, third = (asked(requests, 1.0) for _ in range(3))
    assert [each.number for each in (first, second, third)] == [1, 2, 3]
    assert len({each.id for each in (first, second, third)}) == 3
    ended(requests, second, ok=False)
    ended(requests, third, ok=True)
    retry = asked(requests, 1.2)
    assert (retry, retry.attempts) == (second, 2)
    ended(requests, retry, ok=True)
    ended(requests, first, ok=True)
    later = asked(requests, 9.0)
    assert (later.number, later.attempts) == (4, 1)
    assert later.id not in {each.id for each in (first, second, third)}


def test_an_equal_call_beside_one_that_hangs_is_its_retry() -> None:
    requests = book()
    hung = asked(requests, 1.0)
    again = asked(requests, 1.0 + TOGETHER_S)
    assert (again, again.attempts, again.under_way) == (hung, 2, 2)
    ended(requests, again, ok=True)
    assert asked(requests, 3.0).number == 2


def test_beside_one_that_hangs_and_one_that_was_answered_an_equal_call_is_new() -> None:
    requests = book()
    asked(requests, 1.0)
    ended(requests, asked(requests, 1.0), ok=True)
    assert asked(requests, 5.0).number == 3


def test_where_no_end_is_told_an_equal_call_is_another_attempt() -> None:
    requests = book()
    first = requests.find_or_create("bank", "charge", CHARGE)
    assert [first.count_attempt(), requests.find_or_create("bank", "charge", CHARGE).count_attempt()] == [1, 2]
