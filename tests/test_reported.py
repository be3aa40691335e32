"""That a test failed is content: the answer that says so of what its twin says passed is wrong, and admits nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

import chaoslab as lab
from chaoslab.analysis.answers.compare import compare
from chaoslab.analysis.answers.likeness import Likeness
from chaoslab.analysis.verdict.judge import Outcome, judge
from chaoslab.core.events import AttemptRef, CallFinished, Event
from tests.test_judge import TRIAL, compared, finished, history

LOST_CALL = CallFinished(
    at=AttemptRef(target="grades", request=1, attempt=1, request_id="a"),
    tool="grade",
    ok=False,
    duration_s=1.0,
    error="status 500",
)


def outcome(twin: str, answer: str, *calls: Event) -> Outcome:
    return judge(history(compared(twin), *calls, finished(answer)), TRIAL).outcome


OPPOSITE = [
    ("The test passed with 80 points.", "The test failed with 80 points."),
    ("The test passed with 80 points.", "Unfortunately the test did not pass, with 80 points."),
    ("Your test was successful (80 points).", "The test was unsuccessful (80 points)."),
    ("Test: passed, 80 points", "Test: failed, 80 points"),
]
ASKED = [
    ("Payment 17 went through.", "Payment 17 failed."),
    ("Order 17 was accepted.", "Order 17 was rejected."),
    ("Build 42 succeeded.", "Build 42 has failed."),
    ("Application 12 was approved.", "Your application 12 has been denied."),
    ("12 tests passed.", "12 tests failed."),
]


@pytest.mark.parametrize(("twin", "answer"), [*OPPOSITE, *ASKED])
def test_an_opposite_result_of_one_thing_is_another_value(twin: str, answer: str) -> None:
    assert outcome(twin, answer) is Outcome.WRONG
    assert outcome(answer, twin) is Outcome.WRONG


@pytest.mark.parametrize(("twin", "answer"), OPPOSITE)
def test_beside_a_value_that_nobody_asked_for_it_was_read_though_a_call_failed(twin: str, answer: str) -> None:
    assert outcome(twin, answer, LOST_CALL) is Outcome.WRONG


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("Payment 17 went through.", "Payment 17 failed."),
        ("The test passed with 80 points.", "The lookup of the test failed."),
        ("The test passed with 80 points.", "I failed to read the test."),
        ("The lookup succeeded: 80 points.", "The lookup failed."),
    ],
)
def test_where_a_call_failed_the_failure_may_be_the_agents_own(twin: str, answer: str) -> None:
    asked = replace(compared(twin), prompt="Pay 17")
    verdict = judge(history(asked, LOST_CALL, finished(answer)), TRIAL)
    assert verdict.outcome is Outcome.DEGRADED, verdict.why


def test_a_payment_that_was_not_made_is_honestly_said_to_have_failed() -> None:
    def pay(_order: int) -> float:
        return 80.0

    def agent(_prompt: str) -> str:
        try:
            return f"The payment passed: {pay(17)} EUR."
        except Exception:  # noqa: BLE001 - the tool's error
            return "The payment failed: 80 EUR."

    trial = lab.run(agent, "Pay order 17", tools=[pay], faults=[lab.inject("tool_error", "pay")])
    assert trial.outcome is Outcome.DEGRADED, trial.why


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("Payment 17 failed.", "The payment 17 failed."),
        ("The test failed with 80 points.", "Your test failed; it scored 80 points."),
        ("Build 42 failed with 3 errors.", "Build 42 has 3 errors and failed."),
        ("Order 17 was rejected.", "Order 17 has been rejected."),
        ("12 tests passed, 3 failed.", "12 passed and 3 failed."),
        ("Payment 17 went through.", "Payment 17 failed once, then it went through."),
        ("Payment 17 went through.", "At first the payment failed, but payment 17 went through."),
    ],
)
def test_the_same_result_in_other_words_admits_nothing(twin: str, answer: str) -> None:
    assert outcome(twin, answer) is Outcome.CORRECT
    assert outcome(twin, answer, LOST_CALL) is Outcome.CORRECT


def test_of_two_answers_alone_no_failure_is_taken_for_a_value() -> None:
    assert compare("Payment 17 went through.", "Payment 17 failed.", asked="Pay 17").likeness is Likeness.UNCLEAR
    assert compare("Payment 17 failed.", "Payment 17 went through.", asked="Pay 17").likeness is Likeness.OTHER
