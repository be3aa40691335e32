"""A run as data: its verdicts and every measure. The summary, the charts and the gate are renderers of it. The measures
take the run's events in histories of whole trials, so that a long run need not be held (`_findings.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaoslab.analysis.measures._amplification import Amplification
from chaoslab.analysis.measures._calls import CallCount, Passed, Spent, Throughput
from chaoslab.analysis.measures._findings import Findings
from chaoslab.analysis.measures._grounds import Grounds, Success, grounds, success
from chaoslab.analysis.measures.cost import Costs, costs_of
from chaoslab.analysis.measures.errors import ErrorCounts
from chaoslab.analysis.measures.faults import Damage, Disturbance, FaultCount, InjectionCount, UnexplainedFailure, Unmet
from chaoslab.analysis.measures.impact import Impacts, impacts_of
from chaoslab.analysis.measures.latency import Attempts, StreamTimes, streamed
from chaoslab.analysis.measures.mttr import Mttr
from chaoslab.analysis.measures.recovery_quality import RecoveryQuality
from chaoslab.analysis.measures.reliability import Reliability, reliability_of
from chaoslab.analysis.measures.trials import TrialTable
from chaoslab.analysis.verdict.guard import Section
from chaoslab.analysis.verdict.standing import Standing, StandingOfEach, Standings
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
        found = self.delivered.value.by_injection
        return [] if any(one.eligible for one in found) else [one.injection for one in found]

    @classmethod
    @no_garbage()
    def of(cls, history: History) -> RunReport:
        """The report on a run's history."""
        found = Findings()
        found.take(history)
        return cls._of(found, history.notes, history.rulings)

    @classmethod
    @no_garbage()
    def read(cls, folder: Path) -> RunReport:
        """The report on the run in a folder, read once. The run is not held as a whole, but where its lines are out of
        order or its trials side by side. Raises FileNotFoundError: no such folder, or no log in it. OSError: a log
        cannot be read."""
        stream, found = TrialStream(folder), Findings()
        try:
            for part in stream:
                found.take(part)
        except Unordered:
            # Where trials go side by side there is no cut between them, so the history is taken as a whole.
            return cls.of(History.read(folder))
        return cls._of(found, stream.notes, stream.rulings)

    @classmethod
    def _of(cls, found: Findings, notes: Sequence[str], rulings: Rulings | None) -> RunReport:
        found.end(rulings.by_trial if rulings is not None else ())
        rulings = rulings.of_whole(found.torn) if rulings is not None else None
        rows, stated = found.rows, found.stated
        standings = Standings(rulings.by_trial if rulings is not None else {})
        of_each = StandingOfEach(standings, found.verdicts)
        finished = found.finished
        lost = max(0, finished.processed - len(found.trials)) if finished is not None else 0
        recovery = found.recovery.section(lambda taken: taken.result(found.verdicts))
        attempts = found.attempts.section(lambda taken: taken.result())
        return cls(
            name=found.name,
            started=found.started,
            finished=found.finished,
            running=found.running,
            notes=tuple(notes),
            trials=tuple(found.trials),
            torn=found.torn,
            began_t=found.began_t or 0.0,
            of_functions=found.of_functions,
            judgeable=stated,
            knows_usage=found.has(Usage),
            verdicts=found.verdicts,
            rulings=rulings,
            standings=of_each,
            # a cut log has witnesses of trials that it lacks
            met={trial: len(there) for trial, there in found.met.items() if trial in found.verdicts},
            figures=rows.section(lambda trials: trials),
            grounds=Section.of(lambda: grounds(found.verdicts.values())),
            success=Section.of(
                lambda: success(
                    [*found.verdicts.values()], [*of_each.values()], rows.measure.prompts(found.verdicts), lost=lost
                )
            ),
            delivered=found.delivery.section(lambda taken: Delivered(taken.by_injection(), taken.by_fault)),
            not_met=found.not_met.section(lambda taken: NotMet(taken.result(), found.delivery.measure.scheduled)),
            disturbance=found.disturbances.section(lambda taken: taken.result()),
            uninjected=found.uninjected.section(lambda taken: taken.result()),
            damage=found.uninjected.section(lambda taken: taken.damage),
            impacts=rows.section(lambda trials: impacts_of(trials, standings, damaged=found.damaged)),
            recovery=recovery,
            calls=found.calls.section(lambda taken: taken),
            attempts=attempts,
            streamed=Section.of(lambda: streamed(attempts.value)),
            usage=found.usage.section(lambda taken: taken.result()),
            budgets=found.budgets.section(lambda taken: taken.result(setting=not found.of_functions)),
            warnings=Section.of(lambda: found.warnings),
            throughput=found.throughput.section(lambda taken: taken.result()),
            errors=found.errors.section(lambda taken: taken.result()),
            amplification=found.amplification.section(lambda taken: taken.result()),
            reliability=rows.section(
                lambda trials: (
                    reliability_of(trials, standings, None if found.left_out else recovery.value.overall)
                    if stated or rulings
                    else None
                )
            ),
            recovery_quality=found.quality.section(lambda taken: taken.result(rows.measure) if stated else None),
            costs=rows.section(costs_of),
        )
