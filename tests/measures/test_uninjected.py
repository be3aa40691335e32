"""A failure that nobody injected is told with the faults that its trial had met before."""

import pytest

import chaoslab as lab
from chaoslab.analysis.measures import faults
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.core.events import CallFinished, Event, FaultWitnessed
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports.contents._parts import TROUBLE, build_sections
from tests.event_parts import call_at, fault_at
from tests.event_parts import story as history
from tests.measure_parts import uninjected
from tests.reports.fake_run import summary


def met_on(target: str) -> FaultWitnessed:
    return FaultWitnessed(**fault_at("wrong_value", "lies", target, 1, 1, "id"))


def lone(request: int, target: str = "translator") -> CallFinished:
    return CallFinished(**call_at(target, "t", request, 1, "id"), ok=False, duration_s=0.5, error="no such language")


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([lone(1)], ""),
        ([lone(1), met_on("model")], ""),
        ([met_on("model"), lone(1)], "its trial had met wrong_value on model before"),
        ([met_on("model"), lone(1), lone(2)], "their trials had met wrong_value on model before"),
        ([lone(1), met_on("model"), lone(2)], "the trials of 1 of them had met wrong_value on model before"),
        (
            [met_on("b"), lone(1), *map(met_on, "bcad"), lone(2)],
            "their trials had met wrong_value on b, wrong_value on a, wrong_value on c and 1 more before",
        ),
    ],
)
def test_a_failure_that_nobody_injected_says_which_faults_its_trial_had_met_before(
    events: list[Event], said: str
) -> None:
    (found,) = uninjected(history(*events))
    assert found.earlier_faults_text == said


def test_a_fault_of_another_trial_is_no_cause_of_a_failure() -> None:
    story = [
        Record("", 0.0, "run", "p1.r1", "info", 1, met_on("model")),
        Record("", 1.0, "run", "p2.r1", "info", 2, lone(1)),
    ]
    (found,) = uninjected(History(story))
    assert found == faults.UnexplainedFailure("translator", "no such language", 1)


def test_a_consequence_of_a_changed_answer_is_told_with_it() -> None:
    def language(_: str) -> dict[str, int]:
        return {"code": 4}

    def translate(code: int) -> str:
        if code != 4:
            raise ValueError(f"no language {code}")
        return "tea"

    def agent(prompt: str) -> str:
        return translate(language(prompt)["code"])

    trial = lab.run(agent, "x", reads=[language, translate], faults=[lab.inject("wrong_value", "language")])
    report = RunReport.from_history(trial.history)
    text = " ".join(summary(report).split())
    assert "1 × translate: ValueError: no language" in text
    assert "its trial had met wrong_value on language before" in text
    (part,) = [each for each in build_sections(report) if each.title == TROUBLE]
    assert part.tables[0].rows[0]["error"].endswith("; its trial had met wrong_value on language before")


def test_the_most_frequent_failure_is_told_first_and_of_equal_ones_by_name() -> None:
    found = uninjected(history(lone(1, "search"), lone(1, "model"), lone(1), lone(2)))
    assert [(each.target, each.count) for each in found] == [("translator", 2), ("model", 1), ("search", 1)]
