"""A trial's effects are compared with those that were asked for, under the user's statements about effects."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.verdict.ledger import EffectRules, FindingKind, compare_effects, find_missing_effects
from chaoslab.base.alike import NOW, TrialTimeSpan
from chaoslab.core.events import Effect, PromptStarted
from tests.event_parts import story as history
from tests.verdict.trials import effect

UNDO = EffectRules(undoes={"refund": "charge"})
ONCE = EffectRules(idempotent=["charge"])
ORDERED = EffectRules(ordered=True)


def charge(**content: Any) -> Effect:
    return effect("charge", **content)


def refund(**content: Any) -> Effect:
    return effect("refund", **content)


def wish(kind: str, **content: Any) -> dict[str, Any]:
    return {"effect": kind, **content}


PAID = wish("charge", order=1)


@pytest.mark.parametrize(
    ("rules", "stated", "happened", "found"),
    [
        # What is taken back
        (UNDO, [PAID], [charge(order=1), charge(order=1), refund(order=1)], []),
        (UNDO, [PAID], [charge(order=1), refund(order=1)], [FindingKind.LOST]),
        (UNDO, [], [charge(order=1, sum=5), refund(order=1, why="a mistake")], []),  # in the arguments that both have
        (UNDO, [], [charge(order=1, idempotency_key="a"), refund(order=1, idempotency_key="b")], []),
        (UNDO, [], [charge(order=1), refund(order=2)], [FindingKind.PHANTOM] * 2),
        (UNDO, [], [charge(order=1, sum=5), refund(order=1, sum=7)], [FindingKind.PHANTOM] * 2),
        (
            UNDO,
            [],
            [refund(order=1), charge(order=1)],
            [FindingKind.PHANTOM] * 2,
        ),  # it comes first, and takes nothing back
        (UNDO, [], [effect("mail", order=1), refund(order=1)], [FindingKind.PHANTOM] * 2),
        (UNDO, [], [charge(order=1), refund(order=1), refund(order=1)], [FindingKind.PHANTOM]),  # one takes back one
        (UNDO, [wish("refund", order=1), PAID], [charge(order=1), refund(order=1)], []),  # it was asked for
        (UNDO, [wish("charge", order=1, sum=5)], [charge(order=1, sum=7), charge(order=1, sum=5), refund(order=1)], []),
        (UNDO, [wish("charge", order=1, sum=5)], [charge(order=1, sum=5), charge(order=1, sum=7), refund(order=1)], []),
        # What counts once
        (ONCE, [PAID], [charge(order=1)] * 3, []),
        (ONCE, [PAID], [charge(order=1, idempotency_key=key) for key in "ab"], []),
        (ONCE, [PAID], [charge(order=1), charge(order=2)], [FindingKind.PHANTOM]),
        (ONCE, [PAID], [charge(order=1), charge(order=1, sum=5)], [FindingKind.DUPLICATE]),  # other arguments
        (ONCE, [wish("mail", order=1)], [effect("mail", order=1)] * 2, [FindingKind.DUPLICATE]),
        (ONCE, [PAID, wish("mail", order=1)], [effect("mail", order=1), charge(order=1)], []),  # of one effect
        # What comes first
        (ORDERED, [wish("backup"), PAID], [effect("backup"), charge(order=1)], []),
        (ORDERED, [wish("backup"), PAID], [charge(order=1), effect("backup")], [FindingKind.ORDER]),
        (ORDERED, [wish("backup"), PAID], [charge(order=1)], [FindingKind.LOST]),
        (EffectRules(), [wish("backup"), PAID], [charge(order=1), effect("backup")], []),
        # What is no moment is a text
        (EffectRules(), [wish("book", start="at noon")], [effect("book", start="at dawn")], [FindingKind.ALTERED]),
    ],
)
def test_effects_are_compared_under_the_rules_of_their_trial(
    rules: EffectRules, stated: list[dict[str, Any]], happened: list[Effect], found: list[FindingKind]
) -> None:
    done = [(record, each) for record, each in zip(history(*happened), happened, strict=True)]
    assert [each.kind for each in compare_effects(stated, done, rules)] == found


@pytest.mark.parametrize(
    ("right", "made", "same"),
    [
        ({"ids": [1, 2]}, {"ids": [0, 1, 2, 3]}, False),
        ({"text": "cancelled"}, {"text": "not cancelled"}, False),
        ({"path": "/srv/tmp"}, {"path": "/srv/tmp/../data"}, False),
        ({"to_all": "ana@x.org"}, {"to_all": "ana@x.org, ben@x.org"}, False),
        ({"pattern": "*"}, {"pattern": "*.log"}, False),
        ({"sql": "x > 3"}, {"sql": "x < 3"}, False),
        ({"key": "aB3x"}, {"key": "Ab3X"}, False),
        ({"user": "müller"}, {"user": "muller"}, False),
        ({"room": {"n": 1}}, {"room": {"n": 1, "breakfast": True}}, False),
        ({"order": 17}, {"order": 17, "waive_fee": True}, False),
        ({"order": 17, "note": "x"}, {"order": 17}, False),
        ({"amount": 30}, {"amount": "30 and 40"}, False),
        ({"amount": 30}, {"amount": -30}, False),
        ({"flag": [True]}, {"flag": [1]}, False),
        ({"amount": 30}, {"amount": "30.0"}, True),
        ({"amount": 0.1 + 0.2 + 0.3}, {"amount": 0.3 + 0.2 + 0.1}, True),
        ({"user": "Jose\u0301"}, {"user": "Jos\u00e9"}, True),
        ({"start": "2026-10-10T10:00:00+02:00"}, {"start": "2026-10-10T08:00:00+00:00"}, True),
        ({"note": None}, {}, True),
        ({"a": 1, "idempotency_key": "k"}, {"a": 1, "idempotency_key": "l"}, True),
    ],
)  # fmt: skip
def test_an_effect_has_the_content_of_the_twins_and_no_other(
    right: dict[str, Any], made: dict[str, Any], same: bool
) -> None:
    happened = [effect("post", **made)]
    done = list(zip(history(*happened), happened, strict=True))
    exact = EffectRules.from_prompt_event(PromptStarted(prompt_index=1, prompt="", exact=True))
    assert [each.kind for each in compare_effects([wish("post", **right)], done, exact)] == [FindingKind.ALTERED] * (
        not same
    )
    assert len(find_missing_effects([wish("post", **right)], happened, exact)) == (not same)


def test_what_the_user_states_may_be_a_part_of_what_is_done_and_what_the_twin_did_may_not() -> None:
    def delete(ids: list[int]) -> int:
        return len(ids)

    def found() -> list[int]:
        return [1, 2]

    def agent(_: str) -> str:
        try:
            delete(found())
        except lab.ToolError:
            delete([0, 1, 2, 3])
        return "Deleted."

    asked: dict[str, Any] = {"tools": [delete], "reads": [found], "faults": [lab.inject("server_error", "found")]}
    trial = lab.run(agent, "Delete what is found.", **asked)
    assert (trial.outcome, trial.why) == ("harm", "delete, but its ids is '[0, 1, 2, 3]' instead of '[1, 2]'")
    assert lab.run(agent, "Delete.", effects=[{"effect": "delete"}], **asked).outcome == "correct"


def test_the_rules_are_those_that_the_trial_states() -> None:
    stated = PromptStarted(prompt_index=1, prompt="", undoes={"refund": "charge"}, idempotent=["mail"], ordered=True)
    assert EffectRules.from_prompt_event(stated) == EffectRules({"refund": "charge"}, ["mail"], ordered=True)


def test_of_two_that_were_asked_for_the_later_one_is_taken_back() -> None:
    happened = [charge(id=1, order=7), charge(id=2, order=7), refund(order=7)]
    stated = [wish("charge", id=number) for number in (1, 2)]
    (found,) = compare_effects(stated, list(zip(history(*happened), happened, strict=True)), UNDO)
    assert found.text == "missing: charge '2'"


def test_the_first_two_effects_in_the_wrong_order_are_told() -> None:
    happened = [charge(id=1), charge(id=3), charge(id=2)]
    stated = [wish("charge", id=number) for number in (1, 2, 3)]
    (found,) = compare_effects(stated, list(zip(history(*happened), happened, strict=True)), ORDERED)
    assert (found.text, found.lines) == ("charge '3' before charge '2'", (("info", 1), ("info", 2)))


STAMPS: list[Callable[[], Any]] = [
    lambda: datetime.now(UTC).isoformat(),
    lambda: datetime.now().isoformat(timespec="seconds"),
    time.time,
    lambda: int(time.time() * 1000),
]
rows: list[Any] = []


@pytest.mark.parametrize("stamp", STAMPS)
@pytest.mark.parametrize("late", [False, True])
def test_the_moment_at_which_something_is_done_may_be_a_later_one(stamp: Callable[[], Any], *, late: bool) -> None:
    def pay(order: int, at: Any) -> None:
        rows.append([order, at])

    def look() -> None: ...

    def agent(_: str) -> str:
        rows.clear()
        try:
            look()
        except ConnectionError:
            time.sleep(7)
            pay(17, 1780304402 + 86_400)  # another day
        else:
            pay(17, stamp())
        return "Paid."

    fault = lab.inject("refused", "look") if late else lab.inject("latency", "look", delay_s=2)
    now = "2026-06-01T09:00:00Z"
    for trial in (
        lab.run(agent, "Pay 17.", tools=[pay], reads=[look], faults=[fault], now=now),
        lab.run(agent, "Pay 17.", reads=[look, pay], state=lambda: list(rows), faults=[fault], now=now),
    ):
        assert trial.outcome == ("harm" if late else "correct"), trial.why


def test_a_day_is_no_moment_of_the_trial() -> None:
    began = datetime(2026, 12, 31, 23, 59, 58, tzinfo=UTC)
    span = TrialTimeSpan(began, 10.0)
    held = {"at": "2027-01-01T00:00:03Z", "day": "2027-01-01", "later": "2027-01-01T00:00:09Z", "text": "x" * 20}
    assert span.replace_moments(held) == {**held, "at": NOW}


@pytest.mark.parametrize(
    ("held", "left"),
    [
        ("Mon, 01 Jun 2026 09:00:01 GMT", NOW),
        ("20260601T090001Z", NOW),
        (1780304401000000000, NOW),
        ("Booked at 2026-06-01T09:00:05Z.", f"Booked at {NOW}."),
        ("2026-06-01 09:00:05,123 INFO booked", f"{NOW} INFO booked"),
        ('{"at": 1780304401.25, "n": 1}', f'{{"at": {NOW}, "n": 1}}'),
        ("order-1780304401", f"order-{NOW}"),
        ({"2026-06-01T09:00:01": 1, "2026-06-01T09:00:02": 2}, {NOW: 1, f"{NOW} 2": 2}),
        ("at 2026-06-01T09:00:01,5 rooms", f"at {NOW},5 rooms"),
        *[(text, text) for text in ("at 2026-06-01T09:00:015", "17803044010", "17803044012345", "Booked at 09:00:05")],
        *[(number, number) for number in (True, -1, 9.5, 10**30)],
    ],
)
def test_a_moment_of_the_trial_is_found_wherever_it_stands(held: Any, left: Any) -> None:
    assert TrialTimeSpan(datetime(2026, 6, 1, 9, tzinfo=UTC), 10.0).replace_moments(held) == left


@pytest.mark.parametrize("gone", [0, 1])
def test_a_log_with_moments_in_its_lines_and_names_is_the_twins(gone: int) -> None:
    state: dict[str, Any] = {}

    def note(n: int) -> None:
        state["lines"].append(f"{datetime.now(UTC).isoformat()} booked {n}")
        state[datetime.now(UTC).isoformat()] = n

    def look() -> None: ...

    def agent(_: str) -> str:
        state.clear()
        state["lines"] = []
        missed = 0
        for n in (1, 2):
            try:
                look()
            except ConnectionError:
                time.sleep(3)
                missed = gone
            time.sleep(1)
            note(n + missed)
        return "Booked."

    refused = lab.inject("refused", "look", calls=[1], attempts=[1])
    trial = lab.run(agent, "Book.", reads=[look, note], state=lambda: dict(state), faults=[refused])
    assert trial.outcome == ("harm" if gone else "correct"), trial.why
