"""The consequences and the cost of each fault, by hand: six trials of two prompts, two faults, two targets."""

from collections.abc import Iterator
from typing import Any

import pytest

from chaoslab.analysis.measures.impact import Impact, Impacts, compute_impacts
from chaoslab.analysis.measures.trials import TrialTable
from chaoslab.analysis.verdict.standing import Standings
from chaoslab.core.events import CallFinished, CallStarted, Event, FaultWitnessed, PromptStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from tests.event_parts import call_at, fault_at, prompt_finished

TRIALS: dict[str, tuple[int, float, dict[str, int], dict[str, list[str]], str]] = {
    # trial: its prompt, seconds, calls by target, faults by target, outcome
    "p1.r1": (1, 2.0, {"search": 1}, {}, "correct"),
    "p1.r2": (1, 4.0, {"search": 1}, {}, "wrong"),
    "p1.r3": (1, 6.0, {"search": 3}, {"search": ["timeout", "timeout"]}, "harm"),
    "p1.r4": (1, 5.0, {"search": 2, "movies": 1}, {"search": ["timeout"], "movies": ["refused"]}, "correct"),
    "p2.r1": (2, 9.0, {"movies": 2}, {"movies": ["refused"]}, "degraded"),
    "p2.r2": (2, 3600.0, {"movies": 1}, {"movies": ["timeout"]}, "hung"),
}
OUTCOMES = {trial: outcome for trial, (*_, outcome) in TRIALS.items()}


def impacts(history: History, outcomes: dict[str, str]) -> Impacts:
    return compute_impacts(TrialTable.from_history(history, outcomes), Standings())


def history(*, twin_s: float | None = None, twin_calls: int | None = None, seconds: float | None = None) -> History:
    twin: dict[str, Any] = {"twin_s": twin_s, "twin_calls": twin_calls}

    def lines() -> Iterator[tuple[str, Event]]:
        for trial, (prompt, took_s, calls, faults, _) in TRIALS.items():
            yield trial, PromptStarted(prompt_index=prompt, prompt=f"prompt {prompt}", **twin)
            for target, n in ((target, n) for target, count in calls.items() for n in range(1, count + 1)):
                at = call_at(target, "tool", 1, n, "id")
                yield trial, CallStarted(**at)
                yield trial, CallFinished(**at, ok=True, duration_s=0.1)
            for target, names in faults.items():
                for n, fault in enumerate(names, 1):
                    yield trial, FaultWitnessed(**fault_at(fault, "wire", target, 1, n, "id"))
            yield trial, prompt_finished(prompt_index=prompt, duration_s=took_s if seconds is None else seconds)

    return History(Record("", n, "run", trial, "info", n, event) for n, (trial, event) in enumerate(lines()))


def of(found: Impact) -> tuple[int, int, dict[str, int]]:
    return found.trials, found.attempts, dict(found.outcomes)


def shares(found: Impact) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """(bad, judged) among those that met it, and among those that called the target and did not."""
    bad, without = ((r.count, r.total) if r else None for r in (found.bad, found.without))
    return bad, without


def test_trials_attempts_and_outcomes_of_those_that_met_it() -> None:
    found = impacts(history(), OUTCOMES)
    assert list(found.by_target) == [
        ("refused", "movies"), ("timeout", "movies"), ("timeout", "search")
    ]  # fmt: skip
    assert of(found.by_target["timeout", "search"]) == (2, 3, {"harm": 1, "correct": 1})
    assert of(found.by_target["refused", "movies"]) == (2, 2, {"correct": 1, "degraded": 1})
    assert of(found.by_fault["timeout"]) == (3, 4, {"harm": 1, "correct": 1, "hung": 1})


def test_the_share_of_bad_ones_is_held_against_those_that_called_the_target_and_did_not_meet_it() -> None:
    found = impacts(history(), OUTCOMES)
    assert shares(found.by_target["timeout", "search"]) == ((1, 2), (1, 2))  # r1 and r2 called search
    assert shares(found.by_target["refused", "movies"]) == ((0, 2), (1, 1))  # the hung one called movies
    assert shares(found.by_fault["timeout"]) == ((2, 3), (1, 3))


def test_no_fault_is_blamed_for_the_end_of_a_trial_that_was_hit_by_what_nobody_injected() -> None:
    told = compute_impacts(TrialTable.from_history(history(), OUTCOMES), Standings(), damaged={"p1.r3"})
    found = told.by_target["timeout", "search"]
    assert found.bad is not None
    assert found.blamed is not None
    assert (found.bad.count, found.bad.total) == (1, 2)
    assert (found.blamed.count, found.blamed.total) == (0, 1), "p1.r3, which did harm, is left out"


def test_nobody_to_hold_it_against_is_no_data_and_what_cannot_be_judged_is_left_out() -> None:
    found = impacts(history(), OUTCOMES | {"p1.r1": "invalid", "p1.r2": "unfinished", "p1.r3": "unknown"})
    assert shares(found.by_target["timeout", "search"]) == ((0, 1), None)


def test_where_nothing_was_stated_who_answered_is_neither_well_nor_bad() -> None:
    blind = {trial: "failed" if trial == "p1.r3" else "unknown" for trial in TRIALS}
    found = impacts(history(), blind)
    assert shares(found.by_target["timeout", "search"]) == ((1, 1), None)


def test_what_was_lost_is_beside_the_median_of_the_calm_trials_of_that_prompt() -> None:
    # r1 and r2 of prompt 1 met no fault: 3 s and 1 call in the median; prompt 2 has no calm trial
    found = impacts(history(), OUTCOMES)
    search = found.by_target["timeout", "search"]
    assert search.lost_s == pytest.approx(((6 - 3) + (5 - 3)) / 2)
    assert search.lost_calls == pytest.approx(((3 - 1) + (3 - 1)) / 2)
    refused = found.by_target["refused", "movies"]
    assert (refused.lost_s, refused.lost_calls) == (2.0, 2.0)


def test_it_is_beside_the_twin_where_there_is_one() -> None:
    found = impacts(history(twin_s=1.0, twin_calls=1), OUTCOMES)
    search = found.by_target["timeout", "search"]
    assert (search.lost_s, search.lost_calls) == (4.5, 2.0)
    assert found.by_target["refused", "movies"].lost_s == 6.0


def test_a_hung_trial_lost_nothing_that_could_be_told() -> None:
    hung = impacts(history(twin_s=1.0, twin_calls=1), OUTCOMES).by_target["timeout", "movies"]
    assert (hung.lost_s, hung.lost_calls) == (None, None)


def test_a_run_without_faults_has_no_rows() -> None:
    assert impacts(History([]), {}) == Impacts({}, {})
