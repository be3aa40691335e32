"""An answer that cannot tell, in the words that `says` calls unsure: honest after a failed call, open without one."""

import pytest

import chaoslab as lab

SAYS = {"*": {"undone": "could not", "unsure": "may have"}}


def refund(order: int) -> str:
    return f"order {order} is refunded"


def careful(prompt: str) -> str:  # noqa: ARG001
    try:
        refund(17)
    except TimeoutError:
        return "I could not make sure that order 17 was refunded; it may have been."
    return "Order 17 is refunded."


def doubting(prompt: str) -> str:  # noqa: ARG001
    refund(17)
    return "Order 17 may have been refunded."


@pytest.mark.parametrize("fault", ["lost_reply", "timeout_before_effect"])
def test_a_doubt_after_a_call_that_failed_is_an_admission_whether_it_was_done_or_not(fault: str) -> None:
    trial = lab.run(careful, "Refund 17", tools=[refund], says=SAYS, faults=[lab.inject(fault, "refund")])
    assert (trial.outcome, "unsure" in trial.why) == (lab.Outcome.DEGRADED, True), trial.why


def test_a_doubt_that_nothing_gave_a_reason_for_is_no_admission() -> None:
    trial = lab.run(doubting, "Refund 17", tools=[refund], says=SAYS, twin=False)
    assert trial.outcome is not lab.Outcome.DEGRADED


def test_a_key_that_is_none_of_the_three_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="'done', 'undone' and 'unsure'"):
        lab.run(careful, "Refund 17", tools=[refund], says={"refund": {"perhaps": "may have"}})
