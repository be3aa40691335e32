"""A run as data: its verdicts and every measure. The summary, the charts and the gate are renderers of it. The measures
take the run's events in histories of whole trials, so that a long run need not be held (`_findings.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaoslab.analysis.measures._amplification import Amplification
from chaoslab.analysis.measures._calls import CallCount, Passed, Spent, Throughput
from chaoslab.analysis.measures._findings import Findings
from chaoslab.analysis.measures._grounds import Success, VerdictBasisCounts, count_verdict_bases, summarize_success
from chaoslab.analysis.measures.cost import Costs, compute_fault_costs
from chaoslab.analysis.measures.faults import (
    Disturbance,
    FaultCount,
    InjectionCount,
    UnexplainedFailure,
    UninjectedDamage,
    Unmet,
)
from chaoslab.analysis.measures.impact import Impacts, compute_impacts
from chaoslab.analysis.measures.latency import AttemptDurations, StreamTimes, summarize_streams
from chaoslab.analysis.measures.mttr import Mttr
from chaoslab.analysis.measures.reliability import Reliability, compute_reliability
from chaoslab.analysis.measures.trials import TrialTable
from chaoslab.analysis.verdict.guard import MeasureResult
from chaoslab.analysis.verdict.standing import Standing, Standings, TrialStandings
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base.garbage import pause_collector
from chaoslab.core.events import RunFinished, RunStarted, Usage
from chaoslab.record.history import History
from chaoslab.record.rulings import Rulings
from chaoslab.record.trial_stream import TrialStream, Unordered


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

    `name`, `started`, `finished`: empty or None if the log lacks them. `running`: it had not ended when it was read.
    `notes`: the log's defects. `trials`: their keys, in the order in which they began, and then those whose beginning
    is lost. `began_t`: the start of the first, in seconds since the run's start. `of_functions`: the run is a Python
    user's agent. `judgeable`: something was stated about right answers. `knows_usage`: its log can tell the use
    of models.
    """

    name: str
    started: RunStarted | None
    finished: RunFinished | None
    running: bool
    notes: Sequence[str]
    trials: Sequence[str]
    torn: Mapping[str, str]
    """The trials that may have lost lines, each with the reason in words. They are unfinished."""
    began_t: float
    of_functions: bool
    judgeable: bool
    knows_usage: bool
    verdicts: Mapping[str, Verdict]
    rulings: Rulings | None
    """Those of the scenario that ran it, if one did; without the trials that passed and have lost lines since."""
    standings: Mapping[str, Standing]
    """The standing of each trial: whether it ended well."""
    met: Mapping[str, int]
    """The trials in which a fault was witnessed, with the number of different faults, each at its target."""
    figures: MeasureResult[TrialTable]
    """Those of each trial."""
    grounds: MeasureResult[VerdictBasisCounts]
    success: MeasureResult[Success]
    delivered: MeasureResult[Delivered]
    not_met: MeasureResult[NotMet]
    disturbance: MeasureResult[Disturbance | None]
    uninjected: MeasureResult[list[UnexplainedFailure]]
    damage: MeasureResult[UninjectedDamage]
    impacts: MeasureResult[Impacts]
    recovery: MeasureResult[Mttr]
    calls: MeasureResult[CallCount]
    attempts: MeasureResult[AttemptDurations]
    streamed: MeasureResult[StreamTimes | None]
    usage: MeasureResult[Spent | None]
    budgets: MeasureResult[list[Passed]]
    warnings: MeasureResult[list[tuple[str, str]]]
    """The writer and the text of each warning."""
    throughput: MeasureResult[Throughput | None]
    amplification: MeasureResult[list[Amplification]]
    reliability: MeasureResult[Reliability | None]
    costs: MeasureResult[Costs | None]

    @property
    def outcomes_by_trial(self) -> dict[str, str]:
        """The outcome of each trial, by its key."""
        return {trial: str(verdict.outcome) for trial, verdict in self.verdicts.items()}

    @property
    def lost_trial_count(self) -> int:
        """The number of trials of which the log has lost lines, those without any line among them."""
        nameless = max(0, self.finished.processed - len(self.trials)) if self.finished is not None else 0
        return len(self.torn) + nameless

    @property
    def untried_injections(self) -> list[str]:
        """The injections that no attempt was for, if there was none for any; else nothing."""
        injections = self.delivered.value.by_injection
        return (
            []
            if any(injection.eligible for injection in injections)
            else [injection.injection for injection in injections]
        )

    @classmethod
    @pause_collector()
    def from_history(cls, history: History) -> RunReport:
        """The report on a run's history."""
        findings = Findings()
        findings.add_history(history)
        return cls._from_findings(findings, history.notes, history.rulings)

    @classmethod
    @pause_collector()
    def from_folder(cls, folder: Path) -> RunReport:
        """The report on the run in a folder, read once. The run is not held as a whole, but where its lines are out of
        order or its trials side by side. Raises FileNotFoundError: no such folder, or no log in it. OSError: a log
        cannot be read."""
        stream, findings = TrialStream(folder), Findings()
        try:
            for history in stream:
                findings.add_history(history)
        except Unordered:
            # Where trials go side by side there is no cut between them, so the history is taken as a whole.
            return cls.from_history(History.read(folder))
        return cls._from_findings(findings, stream.notes, stream.rulings)

    @classmethod
    def _from_findings(cls, findings: Findings, notes: Sequence[str], rulings: Rulings | None) -> RunReport:
        findings.finalize(rulings.by_trial if rulings is not None else ())
        rulings = rulings.drop_passes_with_gaps(findings.torn) if rulings is not None else None
        rows, judgeable = findings.rows, findings.stated
        standings = Standings(rulings.by_trial if rulings is not None else {})
        trial_standings = TrialStandings(standings, findings.verdicts)
        finished = findings.finished
        lost_trials = max(0, finished.processed - len(findings.trials)) if finished is not None else 0
        recovery = findings.recovery.compute_guarded_result(lambda measure: measure.compute_mttr(findings.verdicts))
        attempts = findings.attempts.compute_guarded_result(lambda measure: measure.sort_targets())
        return cls(
            name=findings.name,
            started=findings.started,
            finished=findings.finished,
            running=findings.running,
            notes=tuple(notes),
            trials=tuple(findings.trials),
            torn=findings.torn,
            began_t=findings.began_t or 0.0,
            of_functions=findings.is_user_agent_run,
            judgeable=judgeable,
            knows_usage=findings.can_log_event_kind(Usage),
            verdicts=findings.verdicts,
            rulings=rulings,
            standings=trial_standings,
            # a cut log has witnesses of trials that it lacks
            met={trial: len(faults_met) for trial, faults_met in findings.met.items() if trial in findings.verdicts},
            figures=rows.compute_guarded_result(lambda trials: trials),
            grounds=MeasureResult.from_measure(lambda: count_verdict_bases(findings.verdicts.values())),
            success=MeasureResult.from_measure(
                lambda: summarize_success(
                    [*findings.verdicts.values()],
                    [*trial_standings.values()],
                    rows.measure.list_prompt_texts(findings.verdicts),
                    lost=lost_trials,
                )
            ),
            delivered=findings.delivery.compute_guarded_result(
                lambda measure: Delivered(measure.count_by_injection(), measure.counts_by_fault)
            ),
            not_met=findings.not_met.compute_guarded_result(
                lambda measure: NotMet(measure.list_reasons(), findings.delivery.measure.scheduled_count)
            ),
            disturbance=findings.disturbances.compute_guarded_result(lambda measure: measure.build_disturbance()),
            uninjected=findings.uninjected.compute_guarded_result(lambda measure: measure.list_failures()),
            damage=findings.uninjected.compute_guarded_result(lambda measure: measure.damage),
            impacts=rows.compute_guarded_result(
                lambda trials: compute_impacts(trials, standings, damaged=findings.trials_with_uninjected_damage)
            ),
            recovery=recovery,
            calls=findings.calls.compute_guarded_result(lambda measure: measure),
            attempts=attempts,
            streamed=MeasureResult.from_measure(lambda: summarize_streams(attempts.value)),
            usage=findings.usage.compute_guarded_result(lambda measure: measure.compute_totals()),
            budgets=findings.budgets.compute_guarded_result(
                lambda measure: measure.list_exceeded_limits(setting=not findings.is_user_agent_run)
            ),
            warnings=MeasureResult.from_measure(lambda: findings.warnings),
            throughput=findings.throughput.compute_guarded_result(lambda measure: measure.compute_throughput()),
            amplification=findings.amplification.compute_guarded_result(lambda measure: measure.list_amplifications()),
            reliability=rows.compute_guarded_result(
                lambda trials: compute_reliability(trials, standings) if judgeable or rulings else None
            ),
            costs=rows.compute_guarded_result(compute_fault_costs),
        )
