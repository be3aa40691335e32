"""An incident whose service was dead by itself, or that the lab's own death cut, is laid on no fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chaoslab.analysis.measures.incidents import Ending
from chaoslab.analysis.measures.mttr import IncidentTimes
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.core.events import CallFinished, Event, FaultWitnessed, PromptStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports.contents.advice import collect_advice
from tests.event_parts import call_at, fault_at, prompt_finished, run_started
from tests.reports.fake_run import summary

Line = tuple[str, Event]


def call(trial: int, attempt: int, *, error: str | None = None, target: str = "weather", **more: Any) -> Line:
    at = call_at(target, "current_weather", 1, attempt, "id")
    return f"p{trial}.r1", CallFinished(**at, ok=error is None, error=error, duration_s=0.1, **more)


def met(trial: int, attempt: int, fault: str = "timeout") -> Line:
    return f"p{trial}.r1", FaultWitnessed(**fault_at(fault, "wire", "weather", 1, attempt, "id"))


def begun(trial: int) -> Line:
    return f"p{trial}.r1", PromptStarted(
        prompt_index=trial, prompt=f"{trial}?", facts=[["21"]], effects=[], stated=True
    )


def over(trial: int, answer: str = "It cannot be told.") -> Line:
    return f"p{trial}.r1", prompt_finished(answer, prompt_index=trial, prompt=f"{trial}?")


def history(*lines: Line) -> History:
    start = Record("", 0.0, "run", None, "info", 0, run_started(prompts=9, asked=[]))
    return History(
        [start, *(Record("", float(n), "run", trial, "info", n, event) for n, (trial, event) in enumerate(lines, 1))]
    )


HIT = [begun(1), call(1, 1, error="timed_out"), met(1, 1), call(1, 2, error="dns", via="direct"), over(1, "")]
"""A trial that meets a fault, and then its service is not there."""
ALONE = [begun(2), call(2, 1, error="closed"), call(2, 2, error="dns", via="direct"), over(2)]
"""A trial that meets no fault, only the dead service."""
WELL = [begun(3), call(3, 1), over(3, "21")]
AGAIN = [begun(4), call(4, 1, error="timed_out"), met(4, 1), call(4, 2), over(4, "21")]


@pytest.mark.parametrize(
    ("lines", "ending"),
    [
        ([*HIT, *ALONE], Ending.CENSORED),
        ([*ALONE, *HIT], Ending.CENSORED),
        ([*HIT, *ALONE, *WELL], Ending.CENSORED),
        ([*HIT, *WELL, *ALONE], Ending.NEVER),
        (HIT, Ending.NEVER),
        ([*HIT, begun(5), call(5, 1, error="closed", target="search"), over(5)], Ending.NEVER),
        ([*HIT, begun(5), call(5, 1, error="status 404", status=404), over(5), *ALONE], Ending.NEVER),
    ],
    ids=["dead after it", "dead before it", "back later", "back at once", "nobody else saw it", "another service",
         "it answered no"],
)  # fmt: skip
def test_a_fault_is_not_blamed_where_its_service_was_dead_by_itself(lines: Sequence[Line], ending: Ending) -> None:
    report = RunReport.from_history(history(*lines))
    (one,) = report.recovery.value.incidents
    assert one.ending is ending
    of = report.recovery.value.overall
    assert (of.never, of.censored) == ((1, 0) if ending is Ending.NEVER else (0, 1))


def test_it_holds_wherever_a_run_is_cut_into_batches() -> None:
    times = IncidentTimes()
    for part in (HIT, ALONE[:2], ALONE[2:], WELL):
        times.add_history(history(*part))
    assert [one.ending for one in times.compute_mttr().incidents] == [Ending.CENSORED]


def test_neither_impact_nor_advice_is_drawn_from_such_a_trial() -> None:
    blamed = RunReport.from_history(history(*WELL, *HIT))
    spared = RunReport.from_history(history(*WELL, *HIT, *ALONE))
    assert [impact.blamed.count for impact in blamed.impacts.value.by_fault.values() if impact.blamed] == [1]
    assert [impact.blamed for impact in spared.impacts.value.by_fault.values()] == [None]
    order = [*spared.verdicts]
    assert any("p1.r1" in one.trials for one in collect_advice(blamed, [*blamed.verdicts]) if not one.of_run)
    assert not any("p1.r1" in one.trials for one in collect_advice(spared, order) if not one.of_run)


def test_what_the_labs_own_death_cut_is_not_told_to_have_never_recovered() -> None:
    report = RunReport.from_history(history(*AGAIN, begun(5), call(5, 1, error="timed_out"), met(5, 1)))
    of = report.recovery.value.overall
    assert (of.n, of.recovered_count, of.never, of.censored) == (2, 1, 0, 1)
    said = " ".join(summary(report).split())
    assert "1 of 2 incidents recovered (1 by retry), 0 never, 1 cut short, by the log's end or a dead service" in said
