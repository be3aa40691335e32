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


def claims_in_other_words(prompt: str) -> str:  # noqa: ARG001
    with suppress(OSError):
        return "All tests pass." if run_tests()["passed"] else "Some tests fail."
    return "The tests pass, all of them."


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
    assert trial.why == "the answer is its twin's, and rests on run_tests, which never answered"
    assert [(event.tool, event.answer) for _, event in trial.history.find_events(GroundLost)] == [("run_tests", True)]


def test_facts_that_it_shows_change_nothing_about_that() -> None:
    assert outcome(claims_by_default, facts=["pass"]).outcome == "false_success"


def test_an_answer_with_the_facts_in_other_words_is_open_without_its_ground() -> None:
    trial = outcome(claims_in_other_words, facts=["pass"])
    assert (trial.outcome, trial.verdict.correct) == ("unknown", None)
    assert trial.why.startswith("its answer rests on run_tests")


def test_a_read_that_nothing_rests_on_changes_nothing() -> None:
    trial = outcome(claims_whatever_it_reads)
    assert trial.outcome == "correct"
    assert [(event.answer, event.effects) for _, event in trial.history.find_events(GroundLost)] == [(False, False)]


def test_a_ground_is_not_the_only_one_where_another_call_was_answered() -> None:
    def asks_both(prompt: str) -> str:
        price()
        return claims_by_default(prompt)

    def price() -> int:
        return 30

    trial = lab.run(asks_both, "Do the tests pass?", reads=[run_tests, price], faults=[LOST])
    assert (trial.outcome, [event.sole for _, event in trial.history.find_events(GroundLost)]) == ("unknown", [False])


@pytest.mark.parametrize("agent", [asks_elsewhere, asks_again])
def test_the_value_from_elsewhere_or_at_another_try_is_ground_enough(agent: Callable[[str], str]) -> None:
    trial = outcome(agent, lab.inject("refused", "run_tests", calls=[1]))
    assert trial.outcome == "correct"
    assert not list(trial.history.find_events(GroundLost))


@pytest.mark.parametrize(("own", "outcome"), [("", "correct"), ("code", "unknown")])
def test_an_answer_may_have_what_the_agent_has_sent_itself_and_no_more_of_a_lost_read(own: str, outcome: str) -> None:
    seats: list[str] = []

    def free_seat() -> dict[str, str]:
        return {"seat": "23D"}

    def book(seat: str) -> dict[str, str]:
        seats.append(seat)
        return {"seat": seat, "code": "X7Q"}

    def agent(_: str) -> str:
        seats.clear()
        seat = free_seat()["seat"]
        with suppress(OSError):
            book(seat)
        return f"Seat 23D is booked{', its code is X7Q' if own else ''}." if seats else "Nothing is booked."

    faults = [lab.inject("lost_reply", "book")]
    trial = lab.run(agent, "Book a seat.", reads=[free_seat, book], faults=faults, state=lambda: {"seats": seats})
    assert trial.outcome == outcome


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
    assert trial.why == "what it did rests on price, which never answered"


def test_a_log_tells_the_same_as_the_trial(tmp_path: Any) -> None:
    trial = outcome(claims_by_default, logs=tmp_path)
    assert trial.folder is not None
    assert str(lab.load(trial.folder).trials.iloc[0]["outcome"]) == "false_success"


looks = {"left": 0}


def job_state(job: str) -> dict[str, Any]:  # noqa: ARG001
    looks["left"] -= 1
    return {"state": "ready" if looks["left"] < 0 else "pending"}


def polls(until: Callable[[str], bool], said: str, instead: str, pending: int) -> Any:
    """An agent that asks for the state of a job, at most eight times, until it likes it, of a job that is pending so
    often. If it never liked it, it says the one `instead`."""

    def make() -> Callable[[str], str]:
        looks["left"] = pending

        def agent(prompt: str) -> str:  # noqa: ARG001
            for _ in range(8):
                with suppress(OSError):
                    if until(job_state("r-1")["state"]):
                        return said
            return instead

        return agent

    return lab.fresh(make)


def poll(agent: Any, **when: Any) -> lab.Trial:
    return lab.run(
        agent, "Make the report r-1.", reads=[job_state], faults=[lab.inject("refused", "job_state", **when)]
    )


READY, NO_MORE = (lambda state: state == "ready"), (lambda state: state != "pending")


@pytest.mark.parametrize("said", ["The report is ready.", "Your report r-1 can be fetched now."])
@pytest.mark.parametrize("until", [READY, NO_MORE])
@pytest.mark.parametrize(("pending", "when"), [(0, {}), (2, {}), (2, {"after_calls": 1})])
def test_a_poll_that_never_read_its_end_is_never_certainly_correct(
    until: Callable[[str], bool], pending: int, said: str, when: dict[str, Any]
) -> None:
    trial = poll(polls(until, said, said, pending), **when)
    assert trial.outcome == "unknown", trial.why
    assert "job_state, which never answered" in trial.why


def numbered_state(job: str, look: int) -> str:  # noqa: ARG001
    return "pending" if look < 2 else "ready"


def stops_too_early(prompt: str) -> str:  # noqa: ARG001
    with suppress(OSError):
        look = 0
        while numbered_state("r-1", look) == "pending":
            look += 1
    return "Your report can be fetched."


@pytest.mark.parametrize("fault", ["refused", "wrong_value"])
@pytest.mark.parametrize("call", [1, 2])
def test_a_poll_that_a_fault_ends_early_is_open_whatever_its_arguments_are(fault: str, call: int) -> None:
    trial = lab.run(
        stops_too_early, "Is r-1 ready?", reads=[numbered_state],
        faults=[lab.inject(fault, "numbered_state", calls=[call])]
    )  # fmt: skip
    assert trial.outcome == "unknown", trial.why


@pytest.mark.parametrize("pending", [0, 2])
def test_an_honest_poll_is_not_called_bad(pending: int) -> None:
    lost = poll(polls(READY, "The report is ready.", "I could not find out if it is ready.", pending))
    assert lost.outcome == "unknown"  # nothing certain reads the words
    for first in range(1, pending + 2):
        got = poll(polls(READY, "The report is ready.", "I could not find out.", pending), calls=[first])
        assert got.outcome == "correct", got.why
