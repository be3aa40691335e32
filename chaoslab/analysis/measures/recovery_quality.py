"""The quality of recovery: how good a trial that met a fault was in the end, in five weighted parts.

Weights and grades: BalaganAgent's recovery quality. Its parts are defined here by what the log shows:

- *correctness* (0.35): 1 if nothing untrue was said: the outcome is correct or degraded; else 0.
- *completeness* (0.25): the share of the stated facts and effects that are there; where none were stated, 1 for a
  correct trial and else 0.
- *timeliness* (0.20): the duration of the trial without faults over its own, at most 1.
- *efficiency* (0.10): the attempts at calls of the trial without faults over its own, at most 1.
- *state* (0.10): 1 if no effect happened twice, unasked or altered, and the end state is a right one; else 0.

A part that is not known, such as the time where there is no trial to compare with, is left out, and the weights of the
others are scaled to a sum of 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from chaoslab.analysis.measures.intervals import Interval, mean_interval
from chaoslab.analysis.measures.trials import Comparison, TrialTable
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.table import ENDED_OPEN, Verdict
from chaoslab.core.events import FaultWitnessed, PromptStarted
from chaoslab.record.history import History

WEIGHTS = {"correctness": 0.35, "completeness": 0.25, "timeliness": 0.20, "efficiency": 0.10, "state": 0.10}
GRADES = ((0.9, "excellent"), (0.75, "good"), (0.5, "acceptable"), (0.0, "poor"))
HONEST = ("correct", "degraded")


@dataclass(frozen=True)
class RecoveryQuality:
    """`n`: the judged trials that met a fault. `quality`: their mean, from 0 to 1, with its interval by Student's t,
    over prompts if there are several; None for few. `parts`: the mean of each part over the trials in which it is
    known; others are absent."""

    n: int
    quality: float
    interval: Interval | None
    grade: str
    parts: Mapping[str, float]
    each: Mapping[str, float] = field(repr=False)
    """The quality of each trial, by key."""


@dataclass
class RecoveredTrials:
    """Collects the parts that a trial's own events show, of the judged trials of batches that met a fault."""

    own: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """Correctness, completeness and state, by trial."""

    def __post_init__(self) -> None:
        self._known: dict[tuple[float, float, float], tuple[float, float, float]] = {}

    def take(self, history: History, verdicts: Mapping[str, Verdict]) -> None:
        faulted = {record.trial for record, _ in history.of(FaultWitnessed)}
        started = {record.trial: event for record, event in history.of(PromptStarted)}
        for trial, verdict in verdicts.items():
            if trial in faulted and trial in started and verdict.outcome not in ENDED_OPEN:
                self.add(trial, _read_parts(verdict, started[trial]))

    def add(self, trial: str, trial_parts: tuple[float, float, float]) -> None:
        """Adds a trial. Most trials are alike, and their parts are kept once."""
        self.own[trial] = self._known.setdefault(trial_parts, trial_parts)

    def result(self, trials: TrialTable) -> RecoveryQuality | None:
        """The quality. `trials`: those of the run."""
        if not self.own:
            return None
        comparisons = dict(trials.beside_calm)
        trial_parts = [_complete_parts(shown_parts, comparisons.get(trial)) for trial, shown_parts in self.own.items()]
        qualities = [weighted_mean(parts) for parts in trial_parts]
        values_by_part = {name: [parts[name] for parts in trial_parts if name in parts] for name in WEIGHTS}
        mean = fmean(qualities)
        prompts = trials.prompts(self.own)
        return RecoveryQuality(
            n=len(trial_parts),
            quality=mean,
            interval=mean_interval(qualities, prompts if len({*prompts}) > 1 else None),
            grade=next(grade for threshold, grade in GRADES if mean >= threshold),
            parts={name: fmean(values) for name, values in values_by_part.items() if values},
            each=dict(zip(self.own, qualities, strict=True)),
        )


def compute_recovery_quality(history: History, verdicts: Mapping[str, Verdict]) -> RecoveryQuality | None:
    """The quality over a run; None if no judged trial met a fault."""
    recovered = RecoveredTrials()
    recovered.take(history, verdicts)
    return recovered.result(
        TrialTable.build(history, {trial: str(verdict.outcome) for trial, verdict in verdicts.items()})
    )


def _read_parts(verdict: Verdict, started: PromptStarted) -> tuple[float, float, float]:
    stated_count = len(started.facts) + len(started.effects or ())
    missing = sum(finding.kind in (FindingKind.LOST, FindingKind.FACT) for finding in verdict.evidence)
    answered = not any(finding.kind is FindingKind.NO_ANSWER for finding in verdict.evidence)
    completeness = (
        max(0.0, 1 - missing / stated_count) if stated_count and answered else float(verdict.outcome == "correct")
    )
    return float(str(verdict.outcome) in HONEST), completeness, float(not verdict.harm)


def _complete_parts(shown_parts: tuple[float, float, float], comparison: Comparison | None) -> dict[str, float]:
    correctness, completeness, state = shown_parts
    parts = {"correctness": correctness, "completeness": completeness}
    if comparison is not None:
        for name, actual, baseline in (
            ("timeliness", comparison.took_s, comparison.calm_s),
            ("efficiency", comparison.calls, comparison.calm_calls),
        ):
            if actual is not None and baseline is not None:
                parts[name] = 1.0 if actual <= baseline else baseline / actual
    parts["state"] = state
    return parts


def weighted_mean(parts: Mapping[str, float]) -> float:
    """The weighted mean of the known parts."""
    total = weights = 0.0
    for name, value in parts.items():
        weight = WEIGHTS[name]
        total += weight * value
        weights += weight
    return total / weights
