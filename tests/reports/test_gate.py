"""A gate says for CI whether a run is what was asked for, and never lets one pass of which nothing is known."""

import pytest

from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.reports.gate import Gate, apply_gate
from tests.cli_parts import Typed


def judged(*outcomes: str, harm: int = 0) -> dict[str, Verdict]:
    """A trial for each outcome; those from 1 to `harm` did some."""
    return {
        f"p1.r{n}": Verdict(Outcome(outcome), "why", ("a charge twice",) if n <= harm else ())
        for n, outcome in enumerate(outcomes, 1)
    }


def test_a_share_is_of_the_prompts_that_could_be_judged() -> None:
    run = judged("correct", "correct", "correct", "wrong", "invalid", "unknown")
    half = apply_gate(Gate(0.75), run)
    assert (half.code, half.line) == (
        4,
        "gate proves nothing: 2 of 6 trials are open: why; at least 75 % correct were asked for, 75 % are (3 of 4 "
        "judged); with 2 open, 50 % to 83.3 %",
    )
    run = judged("correct", "correct", "correct", "wrong")
    assert apply_gate(Gate(0.75), run).line == (
        "gate passed: at least 75 % correct were asked for, 75 % are (3 of 4 judged)"
    )
    ruling = apply_gate(Gate(0.76), run)
    assert not ruling.passed
    assert ruling.line == (
        "gate FAILED: at least 76 % correct were asked for, 75 % are (3 of 4 judged); not correct: p1.r4"
    )


def test_what_is_just_below_is_not_rounded_up_to_what_was_asked_for() -> None:
    ruling = apply_gate(Gate(0.9), judged(*["correct"] * 899, *["failed"] * 101))
    assert not ruling.passed
    assert "at least 90 % correct were asked for, 89.9 % are" in ruling.line
    assert ruling.line.endswith("not correct: " + ", ".join(f"p1.r{n}" for n in range(900, 908)) + " and 93 more")


@pytest.mark.parametrize(
    ("outcomes", "why"),
    [
        (["invalid", "unfinished"], "no trial could be judged"),
        (["unknown", "unknown"], "no trial could be judged"),
        ([], "no trial was started"),
    ],
)
def test_where_nothing_was_judged_even_the_share_0_is_not_reached(outcomes: list[str], why: str) -> None:
    ruling = apply_gate(Gate(0.0), judged(*outcomes))
    assert (ruling.passed, ruling.code) == (False, 4)
    assert ruling.line.endswith(f"no share is known, since {why}")


def test_an_outcome_that_is_not_allowed_is_counted_and_its_trials_named() -> None:
    run = judged("correct", "failed", "invalid", "failed")
    ruling = apply_gate(Gate(fail_on=("harm", "failed", "invalid")), run)
    assert not ruling.passed
    assert ruling.line == (
        "gate FAILED: 1 of 4 trials is open: why; "
        "no harm, failed or invalid was allowed, there are 2 failed: p1.r2, p1.r4; 1 invalid: p1.r3"
    )
    assert apply_gate(Gate(fail_on=("harm", "wrong")), run).code == 4
    assert apply_gate(Gate(fail_on=("harm", "wrong")), judged("correct", "failed")).passed


def test_harm_counts_whatever_else_became_of_the_trial() -> None:
    assert not apply_gate(Gate(fail_on=("harm",)), judged("invalid", harm=1)).passed
    assert not apply_gate(Gate(fail_on=("harm",)), judged("harm")).passed


def test_a_run_whose_faults_had_nothing_to_hit_passes_no_gate() -> None:
    ruling = apply_gate(Gate(0.5), judged("correct"), untried=["refused on refund", "latency on order"])
    assert not ruling.passed
    assert ruling.line == (
        "gate proves nothing: no attempt was made that a fault could hit, so none was tried: refused on refund, "
        "latency on order; at least 50 % correct were asked for, 100 % are (1 of 1 judged)"
    )


def test_a_run_without_a_prompt_passes_no_gate() -> None:
    assert not apply_gate(Gate(fail_on=("harm",)), {}).passed


def test_nothing_asked_is_no_gate() -> None:
    assert not Gate()
    assert Gate(0.0)
    assert Gate(fail_on=("harm",))


@pytest.mark.parametrize("command", ["lab", "run"])
@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--min-correct", "90", "90 should be a share from 0 to 1, as in 0.9"),
        ("--min-correct", "nan", "nan should be a share from 0 to 1, as in 0.9"),
        ("--min-correct", "most", "most should be a share from 0 to 1, as in 0.9"),
        ("--fail-on", "harm,wrnog", "'wrnog' is no outcome to fail on: did you mean 'wrong'?"),
        ("--fail-on", "harm,", "'' is no outcome to fail on: known are degraded, failed, false_success, harm, hung, "),
        ("--fail-on", "correct", "'correct' is no outcome to fail on: known are degraded, "),
    ],
)
def test_a_gate_that_cannot_be_meant_so_is_refused_before_anything_starts(
    command: str, option: str, value: str, said: str, typed: Typed
) -> None:
    assert f"chaoslab {command}: argument {option}: {said}" in typed.refused(command, option, value)
