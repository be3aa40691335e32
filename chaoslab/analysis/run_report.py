"""A run as data: its verdicts and every measure. The summary, the charts and the gate are renderers of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaoslab.analysis.judge import Verdict, judgeable, verdicts
from chaoslab.analysis.measures import faults
from chaoslab.analysis.measures.amplification import Amplification, amplification
from chaoslab.analysis.measures.budgets import Passed, budgets
from chaoslab.analysis.measures.calls import Calls, calls
from chaoslab.analysis.measures.consistency import Consistency, consistency
from chaoslab.analysis.measures.cost import Costs, costs
from chaoslab.analysis.measures.coverage import Coverage, coverage
from chaoslab.analysis.measures.errors import Errors, errors
from chaoslab.analysis.measures.faults import Disturbance, Failure, FaultCount, InjectionCount, Unmet
from chaoslab.analysis.measures.impact import Impacts, impacts
from chaoslab.analysis.measures.latency import Attempt, Streamed, every_attempt, streamed
from chaoslab.analysis.measures.mttr import Mttr, mttr
from chaoslab.analysis.measures.recovery_quality import RecoveryQuality, recovery_quality
from chaoslab.analysis.measures.reliability import Reliability, reliability
from chaoslab.analysis.measures.response import Response, responses
from chaoslab.analysis.measures.success import UNJUDGED, Success, success
from chaoslab.analysis.measures.surface import Point, point
from chaoslab.analysis.measures.throughput import Throughput, first_prompt_t, throughput
from chaoslab.analysis.measures.usage import Spent, usage
from chaoslab.analysis.section import Section
from chaoslab.core.events import (
    Effect,
    FaultScheduled,
    FaultWitnessed,
    LabWarning,
    PromptStarted,
    RunFinished,
    RunStarted,
    Usage,
)
from chaoslab.record.history import History, no_garbage


@dataclass(frozen=True)
class Delivered:
    """The plan's result: per injection, and per fault and target of each."""

    by_injection: Sequence[InjectionCount]
    by_fault: Sequence[FaultCount]


@dataclass(frozen=True)
class NotMet:
    """The reasons why scheduled faults were not witnessed, and the number of scheduled faults."""

    reasons: Sequence[Unmet]
    scheduled: int


@dataclass(frozen=True)
class RunReport:
    """The findings about a run.

    `name`, `started`, `finished`: empty or None if the log lacks them. `notes`: the log's defects. `trials`: their
    keys, in the order in which they began. `began_t`: the start of the first, in seconds since the run's start.
    `of_functions`: the run is a Python user's agent. `judgeable`: something was stated about right answers. `knows_…`:
    this kind of log can record such events.
    """

    name: str
    started: RunStarted | None
    finished: RunFinished | None
    notes: Sequence[str]
    trials: Sequence[str]
    began_t: float
    of_functions: bool
    judgeable: bool
    knows_faults: bool
    knows_effects: bool
    knows_usage: bool
    verdicts: Mapping[str, Verdict]
    met: frozenset[str]
    """The trials in which a fault was witnessed."""
    success: Section[Success]
    delivered: Section[Delivered]
    not_met: Section[NotMet]
    disturbance: Section[Disturbance | None]
    uninjected: Section[list[Failure]]
    impacts: Section[Impacts]
    recovery: Section[Mttr]
    calls: Section[Calls]
    attempts: Section[list[Attempt]]
    streamed: Section[Streamed | None]
    usage: Section[Spent | None]
    budgets: Section[list[Passed]]
    warnings: Section[list[tuple[str, str]]]
    """The writer and the text of each warning."""
    throughput: Section[Throughput | None]
    errors: Section[Errors]
    responses: Section[list[Response]]
    amplification: Section[list[Amplification]]
    consistency: Section[Consistency | None]
    reliability: Section[Reliability | None]
    recovery_quality: Section[RecoveryQuality | None]
    costs: Section[Costs | None]
    coverage: Section[Coverage | None]
    surface: Section[Point | None]

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome of each trial, by its key."""
        return {trial: str(verdict.outcome) for trial, verdict in self.verdicts.items()}

    @property
    def untried(self) -> list[str]:
        """The injections that no attempt was for, if there was none for any; else nothing."""
        found = self.delivered.value.by_injection if self.knows_faults else ()
        return [] if any(one.eligible for one in found) else [one.injection for one in found]

    @classmethod
    @no_garbage()
    def of(cls, history: History) -> RunReport:
        """The report on a run's history."""
        judged, stated = verdicts(history), judgeable(history)
        outcomes = {trial: str(verdict.outcome) for trial, verdict in judged.items()}
        recovery = Section.of(lambda: mttr(history))
        attempts = Section.of(lambda: every_attempt(history))
        alike = Section.of(lambda: consistency(_passed(history, outcomes)))
        return cls(
            name=history.records[0].run if history.records else "",
            started=history.first(RunStarted),
            finished=history.first(RunFinished),
            notes=tuple(history.notes),
            trials=tuple(history.trials),
            began_t=first_prompt_t(history),
            of_functions=history.of_functions,
            judgeable=stated,
            knows_faults=history.has(FaultWitnessed),
            knows_effects=history.has(Effect),
            knows_usage=history.has(Usage),
            verdicts=judged,
            met=frozenset(r.trial for r, _ in history.of(FaultWitnessed) if r.trial is not None),
            success=Section.of(lambda: success(outcomes.values(), judgeable=stated)),
            delivered=Section.of(lambda: Delivered(faults.by_injection(history), faults.by_fault(history))),
            not_met=Section.of(lambda: NotMet(faults.unmet(history), sum(1 for _ in history.of(FaultScheduled)))),
            disturbance=Section.of(lambda: faults.disturbance(history)),
            uninjected=Section.of(lambda: faults.uninjected(history)),
            impacts=Section.of(lambda: impacts(history, outcomes, judgeable=stated)),
            recovery=recovery,
            calls=Section.of(lambda: calls(history)),
            attempts=attempts,
            streamed=Section.of(lambda: streamed(attempts.value)),
            usage=Section.of(lambda: usage(history)),
            budgets=Section.of(lambda: budgets(history)),
            warnings=Section.of(lambda: [(r.writer, e.message) for r, e in history.of(LabWarning)]),
            throughput=Section.of(lambda: throughput(history)),
            errors=Section.of(lambda: errors(history)),
            responses=Section.of(lambda: responses(history)),
            amplification=Section.of(lambda: amplification(history)),
            consistency=alike,
            reliability=Section.of(
                lambda: reliability(history, outcomes, recovery.value.overall, alike.value) if stated else None
            ),
            recovery_quality=Section.of(lambda: recovery_quality(history, judged) if stated else None),
            costs=Section.of(lambda: costs(history, outcomes)),
            coverage=Section.of(lambda: coverage(history)),
            surface=Section.of(lambda: point(history, alike.value)),
        )


def _passed(history: History, outcomes: Mapping[str, str]) -> dict[str, list[bool]]:
    """The judged trials of each prompt: True where the outcome is correct."""
    found: dict[str, list[bool]] = {}
    for record, started in history.of(PromptStarted):
        outcome = outcomes.get(record.trial or "", "unknown")
        if outcome not in UNJUDGED:
            found.setdefault(str(started.prompt_index), []).append(outcome == "correct")
    return found
