"""A state on the way from the first one to the twin's is left undone; one beyond or beside it is harm."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.analysis.verdict import _end_state as end_state
from chaoslab.analysis.verdict.ledger import FindingKind

LINE = ("info", 7)


def kinds(before: Any, right: Any, after: Any) -> set[FindingKind]:
    return {finding.kind for finding in end_state.compare_states(before, right, after, line=LINE)}


@given(st.integers(), st.integers(), st.integers())
def test_a_number_is_undone_between_before_and_right_and_harm_beyond(before: int, right: int, after: int) -> None:
    between = min(before, right) <= after <= max(before, right)
    assert kinds({"n": before}, {"n": right}, {"n": after}) == (
        set() if after == right else {FindingKind.LOST if between else FindingKind.STATE}
    )


@given(st.sets(st.integers()), st.sets(st.integers(), min_size=1), st.data())
def test_some_of_the_new_rows_and_of_the_old_ones_are_undone_and_any_other_is_harm(
    old: set[int], new: set[int], data: st.DataObject
) -> None:
    rows = sorted(old - new)
    gone = data.draw(st.sets(st.sampled_from(rows))) if rows else set()
    before, right = [{"row": n} for n in rows], [{"row": n} for n in [*sorted(old - new - gone), *sorted(new)]]
    done = data.draw(st.sets(st.sampled_from(sorted(new)))) if new else set()
    deleted = data.draw(st.sets(st.sampled_from(sorted(gone)))) if gone else set()
    after = [{"row": n} for n in [*sorted(old - new - deleted), *sorted(done)]]
    if (done, deleted) != (new, gone):
        # A row in the place of another one, where nothing grew or shrank, is told by its place alone.
        whole = len(before) == len(right) == len(after)
        assert whole or kinds(before, right, after) == {FindingKind.LOST}
    assert FindingKind.STATE in kinds(before, right, [*right, {"row": "unasked"}])


@pytest.mark.parametrize(
    ("before", "right", "after", "kind"),
    [
        ({"a": {"paid": "10.00"}}, {"a": {"paid": "22.00"}}, {"a": {"paid": "17.00"}}, FindingKind.LOST),
        ({"a": {"paid": "10.00"}}, {"a": {"paid": "22.00"}}, {"a": {"paid": "23.00"}}, FindingKind.STATE),
        ({"a": {"paid": "no"}}, {"a": {"paid": "yes"}}, {"a": {"paid": "none"}}, FindingKind.STATE),
        ({"a": "1"}, {"a": "3"}, {"a": "nan"}, FindingKind.STATE),
        ({"stock": 9}, {"stock": 4}, {"stock": 6}, FindingKind.LOST),
        ({"stock": 9}, {"stock": 4}, {"stock": 3}, FindingKind.STATE),
        ({}, {"a": 5, "b": 7}, {"a": 5}, FindingKind.LOST),
        ({}, {"a": 5}, {"a": 3}, FindingKind.STATE),  # a payment of 3, which nobody asked for
        ({"owner_id": 1}, {"owner_id": 9}, {"owner_id": 4}, FindingKind.STATE),
        ({"on": False}, {"on": True}, {"on": 0}, FindingKind.STATE),
        ("a\n", "a\nb\nc\n", "a\nb\n", FindingKind.LOST),
        ("a\n", "a\nb\nc\n", "a\nc\nb\n", FindingKind.STATE),
        ("", "pay 100", "pay 10", FindingKind.STATE),
        # A row that changed stands where it stood, beside rows that are new
        ([{"n": 10}], [{"n": 22}, {"log": 1}], [{"n": 17}, {"log": 1}], FindingKind.LOST),
        ([{"n": 10}], [{"n": 22}, {"log": 1}], [{"n": 34}, {"log": 1}], FindingKind.STATE),
    ],
)
def test_a_place_is_undone_only_on_the_way(before: Any, right: Any, after: Any, kind: FindingKind) -> None:
    assert kinds(before, right, after) == {kind}


def test_the_words_tell_all_three() -> None:
    (found,) = end_state.compare_states({"ana": 10}, {"ana": 22}, {"ana": 17}, line=LINE)
    assert found.text == "missing: the state's ana is 17, which was 10, instead of 22"


balance: dict[str, int] = {}


def credited(agent: Callable[[str], str], fault: str, calls: list[int]) -> lab.Trial:
    def make() -> Callable[[str], str]:
        balance["ana"] = 10
        return agent

    faults = [lab.inject(fault, "add_credit", calls=calls)]
    return lab.run(lab.fresh(make), "Give Ana 5 and 7.", reads=[add_credit], state=lambda: balance, faults=faults)


def add_credit(amount: int) -> None:
    balance["ana"] += amount


def careless(_: str) -> str:
    for amount in (5, 7):
        try:
            add_credit(amount)
        except OSError:
            continue
    return "Ana has both credits."


def hasty(_: str) -> str:
    for amount in (5, 7):
        for _again in range(2):
            try:
                add_credit(amount)
                break
            except OSError:
                continue
    return "Ana has both credits."


@pytest.mark.parametrize("calls", [[1], [2], [1, 2]])
def test_an_account_with_one_of_two_credits_is_left_undone(calls: list[int]) -> None:
    trial = credited(careless, "refused", calls)
    assert (trial.verdict.world, trial.outcome == "harm") == ("left undone", False)


def test_an_account_that_was_credited_twice_is_harm() -> None:
    trial = credited(hasty, "lost_reply", [1])
    assert (trial.outcome, trial.why.split(";")[0]) == ("harm", "the state's ana is 27 instead of 22")
