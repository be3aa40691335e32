"""The quality of recovery, against values worked out by hand."""

import pytest

import chaoslab as lab
from chaoslab.analysis.measures.recovery_quality import (
    _complete_parts,
    _read_parts,
    compute_recovery_quality,
    weighted_mean,
)
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.measures.trials import Comparison
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core.events import PromptStarted
from chaoslab.record.history import History

STATED = PromptStarted(
    prompt_index=1, prompt="", facts=[["12"], ["20"]], effects=[{"effect": "a"}, {"effect": "b"}], stated=True
)
TWIN_ALONE = PromptStarted(prompt_index=1, prompt="", twin="It is 12.", stated=True)
SLOWER = Comparison(took_s=4.0, calm_s=1.0, calls=6, calm_calls=3, twin=True)


def verdict(outcome: Outcome, *kinds: FindingKind, harm: tuple[str, ...] = ()) -> Verdict:
    return Verdict(outcome, "", harm, evidence=tuple(Finding(kind, "") for kind in kinds))


def of_trial(found: Verdict, started: PromptStarted, beside: Comparison | None) -> dict[str, float]:
    return _complete_parts(_read_parts(found, started), beside)


def test_the_parts_by_hand() -> None:
    assert of_trial(verdict(Outcome.CORRECT), STATED, SLOWER) == {
        "correctness": 1.0, "completeness": 1.0, "timeliness": 0.25, "efficiency": 0.5, "state": 1.0,
    }  # fmt: skip
    partly = of_trial(verdict(Outcome.DEGRADED, FindingKind.LOST, FindingKind.ADMISSION), STATED, None)
    assert partly == {"correctness": 1.0, "completeness": 0.75, "state": 1.0}
    assert weighted_mean(partly) == pytest.approx((0.35 + 0.25 * 0.75 + 0.10) / 0.70)


def test_no_answer_is_nothing_complete_and_harm_is_a_bad_state() -> None:
    assert of_trial(verdict(Outcome.FAILED, FindingKind.NO_ANSWER), STATED, None)["completeness"] == 0.0
    harmed = of_trial(verdict(Outcome.HARM, FindingKind.DUPLICATE, harm=("a twice",)), STATED, None)
    assert (harmed["correctness"], harmed["completeness"], harmed["state"]) == (0.0, 1.0, 0.0)


def test_beside_a_twin_alone_an_answer_is_complete_or_not() -> None:
    assert of_trial(verdict(Outcome.CORRECT), TWIN_ALONE, None)["completeness"] == 1.0
    assert of_trial(verdict(Outcome.WRONG, FindingKind.VALUE), TWIN_ALONE, None)["completeness"] == 0.0


def test_faster_than_the_twin_is_at_most_1() -> None:
    fast = of_trial(verdict(Outcome.CORRECT), STATED, Comparison(1.0, 2.0, 1, 2, twin=True))
    assert (fast["timeliness"], fast["efficiency"]) == (1.0, 1.0)
    assert weighted_mean(fast) == pytest.approx(1.0)


def test_without_a_trial_that_met_a_fault_there_is_no_data() -> None:
    assert compute_recovery_quality(History([]), {}) is None


def price(city: str) -> int:  # noqa: ARG001
    return 12


def agent(prompt: str) -> str:  # noqa: ARG001
    for _ in range(2):
        try:
            return f"It is {price('Oslo')}."
        except Exception:  # noqa: BLE001 - it tries again
            pass
    return "I could not find the price."


SAYS = {"*": {"undone": "could not|no price|unknown"}}


def test_over_a_run() -> None:
    once = lab.inject("server_error", "price", calls=[1], attempts=[1])
    found = RunReport.build(lab.run(agent, "How much?", reads=[price], faults=[once]).history).recovery_quality.value
    assert found is not None
    assert (found.n, found.interval, found.grade) == (1, None, "excellent")
    assert found.parts["efficiency"] == 0.5
    always = lab.inject("server_error", "price", persistence="for_good")
    given_up = RunReport.build(
        lab.run(agent, "How much?", reads=[price], faults=[always], says=SAYS).history
    ).recovery_quality.value
    assert given_up is not None
    assert given_up.parts["correctness"] == 1.0
    assert given_up.parts["completeness"] == 0.0
