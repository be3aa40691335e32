"""A run as data: its verdicts and every measure. The summary, the charts and the gate are renderers of it. The measures
take the run's events in histories of whole trials, so that a long run need not be held (`_findings.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaoslab.analysis.measures._amplification import Amplification
from chaoslab.analysis.measures._calls import CallCount, Passed, Spent, Throughput
from chaoslab.analysis.measures._findings import Findings
from chaoslab.analysis.measures._grounds import Grounds, Success, summarize_grounds, summarize_success
from chaoslab.analysis.measures.cost import Costs, compute_costs
from chaoslab.analysis.measures.errors import ErrorCounts
from chaoslab.analysis.measures.faults import Damage, Disturbance, FaultCount, InjectionCount, UnexplainedFailure, Unmet
from chaoslab.analysis.measures.impact import Impacts, compute_impacts
from chaoslab.analysis.measures.latency import Attempts, StreamTimes, summarize_streams
from chaoslab.analysis.measures.mttr import Mttr
from chaoslab.analysis.measures.recovery_quality import RecoveryQuality
from chaoslab.analysis.measures.reliability import Reliability, compute_reliability
from chaoslab.analysis.measures.trials import TrialTable
from chaoslab.analysis.verdict.guard import Section
from chaoslab.analysis.verdict.standing import Standing, Standings, TrialStandings
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base.garbage import no_garbage
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
    figures: Section[TrialTable]
    """Those of each trial."""
    grounds: Section[Grounds]
    success: Section[Success]
    delivered: Section[Delivered]
    not_met: Section[NotMet]
    disturbance: Section[Disturbance | None]
    uninjected: Section[list[UnexplainedFailure]]
    damage: Section[Damage]
    impacts: Section[Impacts]
    recovery: Section[Mttr]
    calls: Section[CallCount]
    attempts: Section[Attempts]
    streamed: Section[StreamTimes | None]
    usage: Section[Spent | None]
    budgets: Section[list[Passed]]
    warnings: Section[list[tuple[str, str]]]
    """The writer and the text of each warning."""
    throughput: Section[Throughput | None]
    errors: Section[ErrorCounts]
    amplification: Section[list[Amplification]]
    reliability: Section[Reliability | None]
    recovery_quality: Section[RecoveryQuality | None]
    costs: Section[Costs | None]

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome of each trial, by its key."""
        return {trial: str(verdict.outcome) for trial, verdict in self.verdicts.items()}

    @property
    def lost(self) -> int:
        """The number of trials of which the log has lost lines, those without any line among them."""
        nameless = max(0, self.finished.processed - len(self.trials)) if self.finished is not None else 0
        return len(self.torn) + nameless

    @property
    def untried(self) -> list[str]:
        """The injections that no attempt was for, if there was none for any; else nothing."""
        injections = self.delivered.value.by_injection
        return (
            []
            if any(injection.eligible for injection in injections)
            else [injection.injection for injection in injections]
        )

    @classmethod
    @no_garbage()
    def build(cls, history: History) -> RunReport:
        """The report on a run's history."""
        findings = Findings()
        findings.take(history)
        return cls._of(findings, history.notes, history.rulings)

    @classmethod
    @no_garbage()
    def read(cls, folder: Path) -> RunReport:
        """The report on the run in a folder, read once. The run is not held as a whole, but where its lines are out of
        order or its trials side by side. Raises FileNotFoundError: no such folder, or no log in it. OSError: a log
        cannot be read."""
        stream, findings = TrialStream(folder), Findings()
        try:
            for history in stream:
                findings.take(history)
        except Unordered:
            # Where trials go side by side there is no cut between them, so the history is taken as a whole.
            return cls.build(History.read(folder))
        return cls._of(findings, stream.notes, stream.rulings)

    @classmethod
    def _of(cls, findings: Findings, notes: Sequence[str], rulings: Rulings | None) -> RunReport:
        findings.end(rulings.by_trial if rulings is not None else ())
        rulings = rulings.of_whole(findings.torn) if rulings is not None else None
        rows, judgeable = findings.rows, findings.stated
        standings = Standings(rulings.by_trial if rulings is not None else {})
        trial_standings = TrialStandings(standings, findings.verdicts)
        finished = findings.finished
        lost_trials = max(0, finished.processed - len(findings.trials)) if finished is not None else 0
        recovery = findings.recovery.section(lambda measure: measure.result(findings.verdicts))
        attempts = findings.attempts.section(lambda measure: measure.result())
        return cls(
            name=findings.name,
            started=findings.started,
            finished=findings.finished,
            running=findings.running,
            notes=tuple(notes),
            trials=tuple(findings.trials),
            torn=findings.torn,
            began_t=findings.began_t or 0.0,
            of_functions=findings.of_functions,
            judgeable=judgeable,
            knows_usage=findings.has(Usage),
            verdicts=findings.verdicts,
            rulings=rulings,
            standings=trial_standings,
            # a cut log has witnesses of trials that it lacks
            met={trial: len(faults_met) for trial, faults_met in findings.met.items() if trial in findings.verdicts},
            figures=rows.section(lambda trials: trials),
            grounds=Section.build(lambda: summarize_grounds(findings.verdicts.values())),
            success=Section.build(
                lambda: summarize_success(
                    [*findings.verdicts.values()],
                    [*trial_standings.values()],
                    rows.measure.prompts(findings.verdicts),
                    lost=lost_trials,
                )
            ),
            delivered=findings.delivery.section(lambda measure: Delivered(measure.by_injection(), measure.by_fault)),
            not_met=findings.not_met.section(
                lambda measure: NotMet(measure.result(), findings.delivery.measure.scheduled)
            ),
            disturbance=findings.disturbances.section(lambda measure: measure.result()),
            uninjected=findings.uninjected.section(lambda measure: measure.result()),
            damage=findings.uninjected.section(lambda measure: measure.damage),
            impacts=rows.section(lambda trials: compute_impacts(trials, standings, damaged=findings.damaged)),
            recovery=recovery,
            calls=findings.calls.section(lambda measure: measure),
            attempts=attempts,
            streamed=Section.build(lambda: summarize_streams(attempts.value)),
            usage=findings.usage.section(lambda measure: measure.result()),
            budgets=findings.budgets.section(lambda measure: measure.result(setting=not findings.of_functions)),
            warnings=Section.build(lambda: findings.warnings),
            throughput=findings.throughput.section(lambda measure: measure.result()),
            errors=findings.errors.section(lambda measure: measure.result()),
            amplification=findings.amplification.section(lambda measure: measure.result()),
            reliability=rows.section(
                lambda trials: (
                    # What is left of the stories is no fair sample of recoveries.
                    compute_reliability(trials, standings, None if findings.left_out else recovery.value.overall)
                    if judgeable or rulings
                    else None
                )
            ),
            recovery_quality=findings.quality.section(
                lambda measure: measure.result(rows.measure) if judgeable else None
            ),
            costs=rows.section(compute_costs),
        )
