"""Equal words prove nothing if what they rest on was never read: found by changing that read in the calm trial."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import GroundLost

LOST = lab.inject("refused", "run_tests")


def run_tests() -> dict[str, Any]:
    return {"passed": True, "n": 12}


def second_opinion() -> dict[str, Any]:
    return {"passed": True, "n": 12, "by": "another runner"}


def claims_by_default(prompt: str) -> str:  # noqa: ARG001
    try:
        return "All tests pass." if run_tests()["passed"] else "Some tests fail."
    except OSError:
        return "All tests pass."


def claims_whatever_it_reads(prompt: str) -> str:  # noqa: ARG001
    with suppress(OSError):
        run_tests()
    return "Here is a poem."


def asks_elsewhere(prompt: str) -> str:  # noqa: ARG001
    try:
        found = run_tests()
    except OSError:
        found = second_opinion()
    return "All tests pass." if found["passed"] else "Some tests fail."


def asks_again(prompt: str) -> str:  # noqa: ARG001
    for _ in range(3):
        try:
            return "All tests pass." if run_tests()["passed"] else "Some tests fail."
        except OSError:
            continue
    return "All tests pass."


def outcome(agent: Callable[[str], str], fault: Any = LOST, **options: Any) -> lab.Trial:
    return lab.run(agent, "Do the tests pass?", reads=[run_tests, second_opinion], faults=[fault], **options)


def test_the_twins_answer_without_what_it_rests_on_is_a_false_success() -> None:
    trial = outcome(claims_by_default)
    assert (trial.outcome, trial.verdict.correct) == ("false_success", False)
    assert trial.why == "the answer is its twin's, and rests on run_tests, which it never got an answer of"
    assert [(event.tool, event.answer) for _, event in trial.history.of(GroundLost)] == [("run_tests", True)]


def test_with_facts_that_it_shows_it_is_open() -> None:
    trial = outcome(claims_by_default, facts=["pass"])
    assert (trial.outcome, trial.verdict.correct) == ("unknown", None)
    assert trial.why.startswith("its answer rests on run_tests")


def test_a_read_that_nothing_rests_on_changes_nothing() -> None:
    trial = outcome(claims_whatever_it_reads)
    assert trial.outcome == "correct"
    assert [(event.answer, event.effects) for _, event in trial.history.of(GroundLost)] == [(False, False)]


@pytest.mark.parametrize("agent", [asks_elsewhere, asks_again])
def test_the_value_from_elsewhere_or_at_another_try_is_ground_enough(agent: Callable[[str], str]) -> None:
    trial = outcome(agent, lab.inject("refused", "run_tests", calls=[1]))
    assert trial.outcome == "correct"
    assert not list(trial.history.of(GroundLost))


def test_an_effect_that_rests_on_a_lost_read_is_open() -> None:
    def price() -> int:
        return 30

    def pay(amount: int) -> str:  # noqa: ARG001
        return "ok"

    def guesses(prompt: str) -> str:  # noqa: ARG001
        try:
            amount = price()
        except OSError:
            amount = 30
        pay(amount)
        return "Paid."

    trial = lab.run(guesses, "Pay.", reads=[price], tools=[pay], faults=[lab.inject("refused", "price")])
    assert (trial.outcome, trial.verdict.world) == ("unknown", "as asked")
    assert trial.why == "what it did rests on price, which it never got an answer of"


def test_a_log_tells_the_same_as_the_trial(tmp_path: Any) -> None:
    trial = outcome(claims_by_default, logs=tmp_path)
    assert trial.folder is not None
    assert str(lab.load(trial.folder).trials.iloc[0]["outcome"]) == "false_success"
