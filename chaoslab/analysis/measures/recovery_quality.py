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
from chaoslab.analysis.measures.trials import Beside, TrialTable
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
class Recovered:
    """Collects the parts that a trial's own events show, of the judged trials of batches that met a fault."""

    own: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """Correctness, completeness and state, by trial."""

    def __post_init__(self) -> None:
        self._known: dict[tuple[float, float, float], tuple[float, float, float]] = {}

    def take(self, history: History, verdicts: Mapping[str, Verdict]) -> None:
        met = {record.trial for record, _ in history.of(FaultWitnessed)}
        started = {record.trial: event for record, event in history.of(PromptStarted)}
        for trial, verdict in verdicts.items():
            if trial in met and trial in started and verdict.outcome not in ENDED_OPEN:
                self.add(trial, _own(verdict, started[trial]))

    def add(self, trial: str, own: tuple[float, float, float]) -> None:
        """Adds a trial. Most trials are alike, and their parts are kept once."""
        self.own[trial] = self._known.setdefault(own, own)

    def result(self, trials: TrialTable) -> RecoveryQuality | None:
        """The quality. `trials`: those of the run."""
        if not self.own:
            return None
        beside = dict(trials.beside_calm)
        found = [_parts(own, beside.get(trial)) for trial, own in self.own.items()]
        each = [weighted(parts) for parts in found]
        known = {name: [parts[name] for parts in found if name in parts] for name in WEIGHTS}
        mean = fmean(each)
        prompts = trials.prompts(self.own)
        return RecoveryQuality(
            n=len(found),
            quality=mean,
            interval=mean_interval(each, prompts if len({*prompts}) > 1 else None),
            grade=next(grade for least, grade in GRADES if mean >= least),
            parts={name: fmean(values) for name, values in known.items() if values},
            each=dict(zip(self.own, each, strict=True)),
        )


def recovery_quality(history: History, verdicts: Mapping[str, Verdict]) -> RecoveryQuality | None:
    """The quality over a run; None if no judged trial met a fault."""
    found = Recovered()
    found.take(history, verdicts)
    return found.result(TrialTable.of(history, {trial: str(verdict.outcome) for trial, verdict in verdicts.items()}))


def _own(verdict: Verdict, started: PromptStarted) -> tuple[float, float, float]:
    stated = len(started.facts) + len(started.effects or ())
    lacking = sum(finding.kind in (FindingKind.LOST, FindingKind.FACT) for finding in verdict.evidence)
    answered = not any(finding.kind is FindingKind.NO_ANSWER for finding in verdict.evidence)
    complete = max(0.0, 1 - lacking / stated) if stated and answered else float(verdict.outcome == "correct")
    return float(str(verdict.outcome) in HONEST), complete, float(not verdict.harm)


def _parts(own: tuple[float, float, float], beside: Beside | None) -> dict[str, float]:
    correctness, complete, state = own
    found = {"correctness": correctness, "completeness": complete}
    if beside is not None:
        for name, took, calm in (
            ("timeliness", beside.took_s, beside.calm_s),
            ("efficiency", beside.calls, beside.calm_calls),
        ):
            if took is not None and calm is not None:
                found[name] = 1.0 if took <= calm else calm / took
    found["state"] = state
    return found


def weighted(parts: Mapping[str, float]) -> float:
    """The weighted mean of the known parts."""
    found = weights = 0.0
    for name, value in parts.items():
        weight = WEIGHTS[name]
        found += weight * value
        weights += weight
    return found / weights
