"""A trial has one name, which every command understands; a wrong one gets a line with those that there are."""

import re
from dataclasses import replace

import pytest

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core.events import PromptStarted, RunStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports.contents._rows import sort_trials_worst_first
from chaoslab.reports.trials import count_prompts, expand_trial_name, format_outcome_counts, parse_outcomes

THERE = ["p1.r1", "p2.r1", "p3.r1", "p1.r2", "p2.r2", "p3.r2", "p1.r3"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("p2.r2", ["p2.r2"]),
        ("p1", ["p1.r1", "p1.r2", "p1.r3"]),
        ("p3", ["p3.r1", "p3.r2"]),
        ("4", ["p1.r2"]),
        ("2-4", ["p2.r1", "p3.r1", "p1.r2"]),
        ("7-7", ["p1.r3"]),
    ],
)
def test_a_name_stands_for_trials(name: str, meant: list[str]) -> None:
    assert expand_trial_name(name, THERE, prompts=3) == meant


@pytest.mark.parametrize(
    "name", ["0", "8", "6-8", "4-2", "p4", "p1.r4", "p", "p1.", "first", "", "-1", "1-", "9" * 20, "²", "p²"]
)
def test_a_name_that_stands_for_none_is_refused_with_those_that_there_are(name: str) -> None:
    line = f"this run has no trial {name}: its trials are 1 to 7 (p1.r1 to p1.r3)"
    with pytest.raises(LookupError, match=f"^{re.escape(line)}$"):
        expand_trial_name(name, THERE, prompts=3)
    with pytest.raises(LookupError, match=r"it has p1\.r1$"):
        expand_trial_name("2", ["p1.r1"], prompts=1)


def test_a_run_knows_how_many_prompts_it_asked_even_where_it_does_not_state_them() -> None:
    begun = [Record("", 1.0, "run", f"p{n}.r1", "info", n, PromptStarted(prompt_index=n, prompt="?")) for n in (1, 2)]
    stated = RunStarted(seed=1, settings={}, plan={}, prompts=6, now="", model="", asked=[{}, {}, {}])
    assert count_prompts(History(begun)) == 2
    assert count_prompts(History([Record("", 0.0, "run", None, "info", 0, stated), *begun])) == 3
    assert count_prompts(History([])) == 1


def test_outcomes_are_named_one_by_one_or_with_commas() -> None:
    assert parse_outcomes(["harm,wrong", " failed "]) == {Outcome.HARM, Outcome.WRONG, Outcome.FAILED}
    assert parse_outcomes([]) == set()
    with pytest.raises(LookupError, match=r"^no outcome is called 'wrnog': did you mean 'wrong'\?$"):
        parse_outcomes(["correct,wrnog"])
    with pytest.raises(LookupError, match="no outcome is called 'Wrong'"):
        parse_outcomes(["Wrong"])


def test_the_first_of_the_worst_is_the_one_to_look_at() -> None:
    nothing = RunReport.from_history(History([]))

    def worst(*found: Outcome) -> str:
        verdicts = {f"p{n}.r1": Verdict(outcome, "") for n, outcome in enumerate(found, 1)}
        return sort_trials_worst_first(replace(nothing, verdicts=verdicts, trials=[*verdicts]))[0]

    worst_first = [
        Outcome.HARM,
        Outcome.WRONG,
        Outcome.FAILED,
        Outcome.HUNG,
        Outcome.DEGRADED,
        Outcome.INVALID,
        Outcome.UNFINISHED,
    ]
    for n in range(len(worst_first)):
        assert worst(Outcome.CORRECT, *reversed(worst_first[n:])) == f"p{1 + len(worst_first) - n}.r1"
    assert worst(Outcome.WRONG, Outcome.WRONG) == "p1.r1"
    assert format_outcome_counts({Outcome.WRONG: 2, Outcome.HARM: 0, Outcome.CORRECT: 1}) == "1 correct, 2 wrong"
    assert format_outcome_counts({}) == "none"
