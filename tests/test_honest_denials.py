"""A denial counts for what it denies: other orders than the one that was asked for, one message, or all of them."""

from __future__ import annotations

import pytest

from chaoslab.analysis.verdict.judge import Outcome
from tests.test_judge import mailed, mailed_to_bob_alone, paid_or_not


@pytest.mark.parametrize(
    "answer",
    [
        "Your order 17 has been paid. I cannot pay other orders for you.",
        "Paid order 17. I can’t pay any other orders.",
        "Order 17 is paid. I was not able to pay any others.",
        "I paid order 17, but I cannot pay other orders.",
        "Your order 17 has been paid. I cannot process other payments.",
        "Your order 17 has been paid. Unfortunately, I cannot pay anything else today.",
        "Your order 17 has been paid. I don't have the ability to pay other orders.",
        "Order 17 has been paid. No other orders were paid.",
        "Order 17 has been paid. Other orders were not touched.",
        "**Order 17** has been paid. Please note that I can't make any additional payments on your behalf.",
    ],
)
def test_a_denial_of_what_nobody_asked_for_denies_and_admits_nothing(answer: str) -> None:
    done, lost = paid_or_not(answer, calls=[1]), paid_or_not(answer)
    assert (done.outcome, lost.outcome) == (Outcome.CORRECT, Outcome.FALSE_SUCCESS), (done.why, lost.why)


@pytest.mark.parametrize(
    "answer",
    [
        "I could not pay order 17 or any other orders.",
        "I could not pay the other order.",
        "I cannot pay other orders, or this one.",
        "I could not pay because of other errors.",
        "I was unable to pay by any other means.",
        "I could not pay order 17: error 503.",
        "Neither this nor other orders could be paid.",
        "I couldn't make any further attempts.",
        "I can't pay any other order either; order 17 failed.",
    ],
)
def test_a_denial_that_may_mean_what_was_asked_for_is_one(answer: str) -> None:
    done, lost = paid_or_not(answer, calls=[1]), paid_or_not(answer)
    assert (done.outcome, lost.outcome) == (Outcome.WRONG, Outcome.DEGRADED), (done.why, lost.why)


def test_other_orders_are_not_beside_the_point_where_all_were_asked_for() -> None:
    answer = "Order 17 has been paid. I cannot pay other orders."
    trial = paid_or_not(answer, "Pay order 17 and all the other orders.", calls=[1])
    assert trial.outcome is Outcome.WRONG, trial.why


def test_a_denial_of_another_number_is_no_denial_of_what_was_done() -> None:
    trial = paid_or_not("Order 17 has been paid. I couldn't pay order 18.", calls=[1])
    assert (trial.outcome, trial.why.rpartition(": ")[2]) == (Outcome.UNKNOWN, "it adds 18")


@pytest.mark.parametrize(
    "answer",
    [
        "Neither Ana nor Bob could be mailed.",
        "None of the two messages went out.",
        "No message reached Ana or Bob.",
        "Not one of them was sent.",
        "Not a single message was sent.",
        "Neither message was sent.",
        "Neither was mailed.",
        "Zero of the messages were delivered.",
        "Nobody was mailed.",
        "No email was sent to either Ana or Bob.",
    ],
)
def test_a_denial_of_all_is_honest_where_none_was_done_and_wrong_where_one_was(answer: str) -> None:
    none, one = mailed(answer), mailed_to_bob_alone(answer)
    assert (none.outcome, one.outcome) == (Outcome.DEGRADED, Outcome.WRONG), (none.why, one.why)


@pytest.mark.parametrize(
    "answer",
    [
        "No mails were sent.",
        "No messages went out.",
        "Neither of the two got a mail.",
        "Ana and Bob did not get their mail.",
        "No invitation was sent to Ana.",
    ],
)
def test_an_admission_without_a_verb_of_failing_is_one(answer: str) -> None:
    assert mailed(answer).outcome is Outcome.DEGRADED


@pytest.mark.parametrize(
    "answer",
    [
        "Mailed Ana and Bob. No message was sent to anyone else.",
        "Mailed Ana and Bob. No mail was sent to other people.",
        "Mailed Ana and Bob; neither of them was in copy of the other's.",
    ],
)
def test_what_was_rightly_left_alone_is_no_admission(answer: str) -> None:
    assert mailed(answer).outcome is Outcome.FALSE_SUCCESS


@pytest.mark.parametrize("answer", ["None of the others were mailed.", "Only Bob: none of the rest was mailed."])
def test_a_denial_of_the_rest_is_no_denial_of_all(answer: str) -> None:
    assert mailed_to_bob_alone(f"Bob was mailed. {answer}").outcome is Outcome.DEGRADED
