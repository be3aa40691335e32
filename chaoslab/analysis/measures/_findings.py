"""The measures of a run, as they take its events: in the order of time, in histories of whole trials."""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Any, Generic, Protocol, TypeVar

from chaoslab.analysis.measures._amplification import RequestCounts
from chaoslab.analysis.measures._calls import CallCount, EndTimes, ExceededLimits, UsageTotals
from chaoslab.analysis.measures.faults import Disturbances, FaultStages, UninjectedFailures, UnwitnessedFaults
from chaoslab.analysis.measures.latency import AttemptDurations
from chaoslab.analysis.measures.mttr import IncidentTimes
from chaoslab.analysis.measures.trials import TrialFigures, TrialTable
from chaoslab.analysis.verdict.guard import MeasureResult, run_guarded
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core import events
from chaoslab.record.held import MAIN
from chaoslab.record.history import IN_PROCESS, UNSEEN, History, is_user_agent_run

ALL_LINES_LOST = "the log has lost all of its lines"
SHOWN_MAX = 10_000
"""The verdicts that are kept with the lines which show them."""


class Measure(Protocol):
    """A measure that takes one history after the other, and for some what was found out about it."""

    def add_history(self, *inputs: Any, **options: Any) -> None: ...


M = TypeVar("M", bound=Measure)
T = TypeVar("T")


class GuardedMeasure(Generic[M]):
    """A guard around a measure. Once it raises, it takes no more, and its sections are unknown."""

    def __init__(self, measure: M) -> None:
        self.measure, self.unknown = measure, ""

    def add_history(self, history: History, *inputs: Any) -> None:
        if not self.unknown:
            self.unknown = run_guarded(lambda: self._add_history_unguarded(history, *inputs), str)

    def _add_history_unguarded(self, history: History, *inputs: Any) -> str:
        self.measure.add_history(history, *inputs)
        return ""

    def compute_guarded_result(self, result: Callable[[M], T]) -> MeasureResult[T]:
        """The result for what was taken."""
        return (
            MeasureResult(None, self.unknown)
            if self.unknown
            else MeasureResult.from_measure(lambda: result(self.measure))
        )


@dataclass
class Findings:
    """The measures, and the facts about the run beside them."""

    name: str = ""
    started: events.RunStarted | None = None
    finished: events.RunFinished | None = None
    began_t: float | None = None
    stated: bool = False
    trials: list[str] = field(default_factory=list)
    torn: dict[str, str] = field(default_factory=dict)
    """The trials that may have lost lines, each with the reason in words."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    met: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    """The faults that were witnessed in each trial, with their targets."""
    left_out: int = 0
    """The trials whose stories were not kept."""

    def __post_init__(self) -> None:
        self.kinds: set[type[events.Event]] = set()
        self.in_process = False
        self._alike: dict[frozenset[tuple[str, str]], frozenset[tuple[str, str]]] = {}
        self._told: dict[Verdict, Verdict] = {}
        self._off: dict[str, list[str]] = {}
        self._headless: list[str] = []
        self.rows = GuardedMeasure(TrialTable())
        self.delivery = GuardedMeasure(FaultStages())
        self.not_met = GuardedMeasure(UnwitnessedFaults())
        self.disturbances = GuardedMeasure(Disturbances())
        self.uninjected = GuardedMeasure(UninjectedFailures())
        self.recovery = GuardedMeasure(IncidentTimes())
        self.calls = GuardedMeasure(CallCount())
        self.attempts = GuardedMeasure(AttemptDurations())
        self.usage = GuardedMeasure(UsageTotals())
        self.budgets = GuardedMeasure(ExceededLimits())
        self.throughput = GuardedMeasure(EndTimes())
        self.amplification = GuardedMeasure(RequestCounts())
        self._alone: tuple[GuardedMeasure[Any], ...] = (
            self.delivery,
            self.not_met,
            self.disturbances,
            self.uninjected,
            self.recovery,
            self.calls,
            self.attempts,
            self.usage,
            self.budgets,
            self.throughput,
            self.amplification,
        )

    def finalize(self, ruled_trials: Iterable[str] = ()) -> None:
        """To be called after the last history. `ruled_trials`: the trials that a scenario has ruled on; those
        without a line
        are lost. Where stories were left out, those that are there are no fair sample, and what is told from stories is
        not known."""
        self.trials += self._headless
        for trial in ruled_trials:
            if trial not in self.verdicts:
                self.trials.append(trial)
                self.torn[trial] = ALL_LINES_LOST
                self.verdicts[trial] = Verdict(Outcome.UNFINISHED, ALL_LINES_LOST)
                self.rows.measure.add_trial(trial, TrialFigures(outcome=Outcome.UNFINISHED.value))
        if self._headless:
            self.verdicts = {trial: self.verdicts[trial] for trial in self.trials}
        self.rows.measure.finalize()
        for name, trials in self._off.items():
            location = f"{len(trials)} trials, from {trials[0]} to {trials[-1]}" if trials[1:] else trials[0]
            self.warnings.append((MAIN, f"'{name}' was switched off while the run went on, in {location}"))
        if self.left_out:
            for measure in (
                self.delivery,
                self.not_met,
                self.disturbances,
                self.uninjected,
                self.recovery,
                self.calls,
                self.attempts,
                self.throughput,
                self.amplification,
            ):
                measure.unknown = f"{self.left_out} stories of trials that ended well were left out (keep='failed')"

    def add_history(self, history: History) -> None:
        """Adds whole trials, or a whole run."""
        if not self.name:
            self.name = history.run_name
        self.started = self.started or history.find_first_event(events.RunStarted)
        self.finished = self.finished or history.find_first_event(events.RunFinished)
        self.running = history.running and self.finished is None
        self.kinds |= history.event_kinds
        self.in_process = self.in_process or any(
            e.via in IN_PROCESS for _, e in history.find_events(events.CallFinished)
        )
        if self.began_t is None:
            self.began_t = next((record.t for record, _ in history.find_events(events.PromptStarted)), None)
        self.stated = self.stated or any(event.stated for _, event in history.find_events(events.PromptStarted))
        self.trials += history.begun_trials
        self._headless += history.trials[len(history.begun_trials) :]
        self.torn |= history.gaps_by_trial
        self.warnings += [(record.writer, event.message) for record, event in history.find_events(events.LabWarning)]
        self.warnings += [
            (record.writer, f"{event.change_in_words}, from {record.trial} on")
            for record, event in history.find_events(events.ChanceSet)
        ]
        for record, switch_off in history.find_events(events.FaultsOff):
            for name in switch_off.injections:
                self._off.setdefault(name, []).append(record.trial or "")
        for record, event in history.find_events(events.FaultWitnessed):
            if record.trial is not None:
                self.add_met_faults(record.trial, {(event.fault, event.target)})
        for record, left_out in history.find_events(events.StoryLeftOut):
            self.left_out += 1
            if record.trial is not None and left_out.met:
                self.add_met_faults(record.trial, {(fault, at) for fault, by in left_out.met.items() for at in by})
        trial_verdicts = judge_all_trials(history)
        self.verdicts |= {
            trial: self.strip_evidence_lines_past_limit(verdict) for trial, verdict in trial_verdicts.items()
        }
        self.rows.add_history(history, {trial: verdict.outcome.value for trial, verdict in trial_verdicts.items()})
        for measure in self._alone:
            measure.add_history(history)

    def add_met_faults(self, trial: str, faults: Set[tuple[str, str]]) -> None:
        """Adds faults to those that a trial met. Most trials that met any met the same, which are kept once."""
        faults_met = self.met.get(trial, frozenset()) | faults
        self.met[intern(trial)] = self._alike.setdefault(faults_met, faults_met)

    def strip_evidence_lines_past_limit(self, verdict: Verdict) -> Verdict:
        """The verdict, without the lines that show it where there are too many: equal ones are kept once then."""
        if verdict.evidence and self.is_verdict_line_limit_reached:
            verdict = replace(verdict, evidence=tuple(replace(finding, lines=()) for finding in verdict.evidence))
        return self._told.setdefault(verdict, verdict)

    @property
    def is_verdict_line_limit_reached(self) -> bool:
        """True if the lines that show a further verdict are not kept."""
        return len(self._told) >= SHOWN_MAX

    @property
    def trials_with_uninjected_damage(self) -> set[str]:
        """The trials that were hit by what nobody injected."""
        dead_trials = {
            incident.trial for incident in self.recovery.measure.list_incidents() if incident.beside_dead_service
        }
        return {*self.uninjected.measure.damage.trials, *self.disturbances.measure.hit} | dead_trials

    @property
    def is_user_agent_run(self) -> bool:
        """As `History.is_user_agent_run`."""
        return self.in_process if self.started is None else is_user_agent_run(self.started)

    def can_log_event_kind(self, kind: type[events.Event]) -> bool:
        """As `History.has`."""
        return kind not in UNSEEN or not self.is_user_agent_run or kind in self.kinds
