"""The measures of a run, as they take its events: in the order of time, in histories of whole trials."""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Any, Generic, Protocol, TypeVar

from chaoslab.analysis.measures._amplification import RequestCounts
from chaoslab.analysis.measures._calls import Bill, CallCount, EndTimes, LimitsPassed
from chaoslab.analysis.measures.errors import FailureCounts
from chaoslab.analysis.measures.faults import Disturbances, FaultStages, NotWitnessed, Uninjected
from chaoslab.analysis.measures.latency import Attempts
from chaoslab.analysis.measures.mttr import IncidentTimes
from chaoslab.analysis.measures.recovery_quality import RecoveredTrials
from chaoslab.analysis.measures.trials import TrialFigures, TrialTable
from chaoslab.analysis.verdict.guard import Section, run_guarded
from chaoslab.analysis.verdict.judge import judge_all
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core import events
from chaoslab.record.held import MAIN
from chaoslab.record.history import IN_PROCESS, UNSEEN, History, of_functions

ALL_LINES_LOST = "the log has lost all of its lines"
SHOWN_MAX = 10_000
"""The verdicts that are kept with the lines which show them."""


class Measure(Protocol):
    """A measure that takes one history after the other, and for some what was found out about it."""

    def take(self, *inputs: Any, **options: Any) -> None: ...


M = TypeVar("M", bound=Measure)
T = TypeVar("T")


class GuardedMeasure(Generic[M]):
    """A guard around a measure. Once it raises, it takes no more, and its sections are unknown."""

    def __init__(self, measure: M) -> None:
        self.measure, self.unknown = measure, ""

    def take(self, history: History, *inputs: Any) -> None:
        if not self.unknown:
            self.unknown = run_guarded(lambda: self._take(history, *inputs), str)

    def _take(self, history: History, *inputs: Any) -> str:
        self.measure.take(history, *inputs)
        return ""

    def section(self, result: Callable[[M], T]) -> Section[T]:
        """The result for what was taken."""
        return Section(None, self.unknown) if self.unknown else Section.build(lambda: result(self.measure))


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
        self.not_met = GuardedMeasure(NotWitnessed())
        self.disturbances = GuardedMeasure(Disturbances())
        self.uninjected = GuardedMeasure(Uninjected())
        self.recovery = GuardedMeasure(IncidentTimes())
        self.calls = GuardedMeasure(CallCount())
        self.attempts = GuardedMeasure(Attempts())
        self.usage = GuardedMeasure(Bill())
        self.budgets = GuardedMeasure(LimitsPassed())
        self.throughput = GuardedMeasure(EndTimes())
        self.errors = GuardedMeasure(FailureCounts())
        self.amplification = GuardedMeasure(RequestCounts())
        self.quality = GuardedMeasure(RecoveredTrials())
        self._alone: tuple[GuardedMeasure[Any], ...] = (
            self.delivery, self.not_met, self.disturbances, self.uninjected, self.recovery, self.calls,
            self.attempts, self.usage, self.budgets, self.throughput, self.errors,
            self.amplification,
        )  # fmt: skip

    def end(self, ruled_trials: Iterable[str] = ()) -> None:
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
                self.rows.measure.add(trial, TrialFigures(outcome=Outcome.UNFINISHED.value))
        if self._headless:
            self.verdicts = {trial: self.verdicts[trial] for trial in self.trials}
        self.rows.measure.end()
        for name, trials in self._off.items():
            location = f"{len(trials)} trials, from {trials[0]} to {trials[-1]}" if trials[1:] else trials[0]
            self.warnings.append((MAIN, f"'{name}' was switched off while the run went on, in {location}"))
        if self.left_out:
            for measure in (
                self.delivery, self.not_met, self.disturbances, self.uninjected, self.recovery,
                self.calls, self.attempts, self.throughput, self.errors, self.amplification,
            ):  # fmt: skip
                measure.unknown = f"{self.left_out} stories of trials that ended well were left out (keep='failed')"

    def take(self, history: History) -> None:
        """Adds whole trials, or a whole run."""
        if not self.name:
            self.name = history.run
        self.started = self.started or history.first(events.RunStarted)
        self.finished = self.finished or history.first(events.RunFinished)
        self.running = history.running and self.finished is None
        self.kinds |= history.kinds
        self.in_process = self.in_process or any(e.via in IN_PROCESS for _, e in history.of(events.CallFinished))
        if self.began_t is None:
            self.began_t = next((record.t for record, _ in history.of(events.PromptStarted)), None)
        self.stated = self.stated or any(event.stated for _, event in history.of(events.PromptStarted))
        self.trials += history.begun
        self._headless += history.trials[len(history.begun) :]
        self.torn |= history.torn
        self.warnings += [(record.writer, event.message) for record, event in history.of(events.LabWarning)]
        self.warnings += [
            (record.writer, f"{event.said}, from {record.trial} on") for record, event in history.of(events.ChanceSet)
        ]
        for record, switch_off in history.of(events.FaultsOff):
            for name in switch_off.injections:
                self._off.setdefault(name, []).append(record.trial or "")
        for record, event in history.of(events.FaultWitnessed):
            if record.trial is not None:
                self.meet(record.trial, {(event.fault, event.target)})
        for record, left_out in history.of(events.StoryLeftOut):
            self.left_out += 1
            if record.trial is not None and left_out.met:
                self.meet(record.trial, {(fault, at) for fault, by in left_out.met.items() for at in by})
        trial_verdicts = judge_all(history)
        self.verdicts |= {trial: self.thin(verdict) for trial, verdict in trial_verdicts.items()}
        self.rows.take(history, {trial: verdict.outcome.value for trial, verdict in trial_verdicts.items()})
        self.quality.take(history, trial_verdicts)
        for measure in self._alone:
            measure.take(history)

    def meet(self, trial: str, faults: Set[tuple[str, str]]) -> None:
        """Adds faults to those that a trial met. Most trials that met any met the same, which are kept once."""
        faults_met = self.met.get(trial, frozenset()) | faults
        self.met[intern(trial)] = self._alike.setdefault(faults_met, faults_met)

    def thin(self, verdict: Verdict) -> Verdict:
        """The verdict, without the lines that show it where there are too many: equal ones are kept once then."""
        if verdict.evidence and self.told_all:
            verdict = replace(verdict, evidence=tuple(replace(finding, lines=()) for finding in verdict.evidence))
        return self._told.setdefault(verdict, verdict)

    @property
    def told_all(self) -> bool:
        """True if the lines that show a further verdict are not kept."""
        return len(self._told) >= SHOWN_MAX

    @property
    def damaged(self) -> set[str]:
        """The trials that were hit by what nobody injected."""
        dead_trials = {incident.trial for incident in self.recovery.measure.settled() if incident.beside_dead_service}
        return {*self.uninjected.measure.damage.trials, *self.disturbances.measure.hit} | dead_trials

    @property
    def of_functions(self) -> bool:
        """As `History.of_functions`."""
        return self.in_process if self.started is None else of_functions(self.started)

    def has(self, kind: type[events.Event]) -> bool:
        """As `History.has`."""
        return kind not in UNSEEN or not self.of_functions or kind in self.kinds
