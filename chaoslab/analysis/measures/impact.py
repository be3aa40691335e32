"""The effect and the cost of each fault, at each target and over all targets.

*Met*: the trials in which a caller witnessed the fault there. A trial that met several faults counts for each of them,
so the rows do not add up, and no row proves that its fault was the only cause. Compare with the share of bad outcomes
`without`: among the trials that called the same target and did not meet the fault there.

*Bad*: every outcome but correct. The share is of the trials that could be judged. If nothing was stated about right
answers, a trial is bad if it failed, hung or did harm, and only invalid and unfinished trials are left out.

*Lost*: the additional cost of a trial compared with one without faults, in seconds of its world and in attempts at
calls, as a mean over the trials that met the fault. It is negative if a trial gave up early. A trial is compared with
its twin if the log has the twin's figures (`PromptStarted.twin_s`, `twin_calls`), else with the median of the trials of
the same prompt that met no fault. Without either it is unknown. Trials that hung, are invalid or are unfinished are
left out, since their duration is not meaningful.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median

from chaoslab.analysis.measures.intervals import Rate, rate
from chaoslab.analysis.measures.success import UNJUDGED
from chaoslab.core.events import CallFinished, CallStarted, FaultWitnessed, PromptFinished, PromptStarted
from chaoslab.record.history import History

NO_TIME = ("hung", "invalid", "unfinished")
"""Outcomes whose duration is not meaningful."""


@dataclass(frozen=True)
class Impact:
    """The effect of a fault. `trials`, `attempts`: those that met it. `outcomes`: the outcomes of these trials with
    their counts. None stands for an unknown figure, or one without a comparison. `beside_twin`, `beside_median`: the
    numbers of trials in the means of `lost_…`, by the kind of comparison."""

    trials: int
    attempts: int
    outcomes: Mapping[str, int]
    bad: Rate | None
    without: Rate | None
    lost_s: float | None
    lost_calls: float | None
    beside_twin: int
    beside_median: int


@dataclass(frozen=True)
class Impacts:
    """The impact per fault over all its targets, and per fault and target; sorted by name."""

    by_fault: dict[str, Impact]
    by_target: dict[tuple[str, str], Impact]


def impacts(history: History, outcomes: Mapping[str, str], *, judgeable: bool = True) -> Impacts:
    """The impacts of a run's faults. `outcomes`: the outcome of each trial, from `judge`. `judgeable`: something was
    stated about right answers."""
    met: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for record, fault in history.of(FaultWitnessed):
        if record.trial is not None:
            met[fault.fault, fault.target][record.trial] += 1
    told = _Told(
        history, outcomes, judgeable=judgeable, poisoned={trial for trials in met.values() for trial in trials}
    )
    targets: dict[str, set[str]] = defaultdict(set)
    for name, target in met:
        targets[name].add(target)
    by_target = {place: told.impact(met[place], {place[1]}) for place in sorted(met)}
    by_fault = {
        name: told.impact(sum((met[name, target] for target in there), Counter()), there)
        for name, there in sorted(targets.items())
    }
    return Impacts(by_fault, by_target)


@dataclass(frozen=True)
class Beside:
    """A trial's seconds and attempts at calls, and those of its twin, or the median of the trials of its prompt that
    met no fault. None: unknown."""

    took_s: float | None
    calm_s: float | None
    calls: float | None
    calm_calls: float | None
    twin: bool


def beside_calm(history: History, outcomes: Mapping[str, str]) -> dict[str, Beside]:
    """Each trial that met a fault, beside one without; those without a comparison are left out."""
    met = {record.trial for record, _ in history.of(FaultWitnessed) if record.trial is not None}
    told = _Told(history, outcomes, judgeable=True, poisoned=met)
    return {trial: found for trial in sorted(met) if (found := told.beside(trial)) is not None}


@dataclass(frozen=True)
class _Took:
    """The cost of a trial; None if it is unknown or not meaningful."""

    seconds: float | None
    calls: int | None


class _Told:
    """The facts about each trial that the impacts need."""

    def __init__(self, history: History, outcomes: Mapping[str, str], *, judgeable: bool, poisoned: set[str]) -> None:
        self.outcomes = outcomes
        self.unjudged = UNJUDGED if judgeable else tuple(name for name in UNJUDGED if name != "unknown")
        self.good = ("correct",) if judgeable else ("correct", "unknown")
        self.started = {record.trial: event for record, event in history.of(PromptStarted) if record.trial}
        made: dict[str, set[tuple[str, int, int]]] = defaultdict(set)
        for record, began in history.of(CallStarted):
            made[record.trial or ""].add((began.target, began.request, began.attempt))
        for record, ended in history.of(CallFinished):
            made[record.trial or ""].add((ended.target, ended.request, ended.attempt))
        self.callers: dict[str, set[str]] = defaultdict(set)
        for trial, calls in made.items():
            for target, _, _ in calls:
                self.callers[target].add(trial)
        self.took = {
            record.trial: _Took(None if math.isnan(event.duration_s) else event.duration_s, len(made[record.trial]))
            for record, event in history.of(PromptFinished)
            if record.trial and outcomes.get(record.trial) not in NO_TIME
        }
        self.calm: dict[tuple[int, str], list[_Took]] = defaultdict(list)
        for trial, took in self.took.items():
            if trial in self.started and trial not in poisoned:
                self.calm[self._prompt(trial)].append(took)

    def _prompt(self, trial: str) -> tuple[int, str]:
        return self.started[trial].prompt_index, self.started[trial].prompt

    def impact(self, met: Counter[str], targets: set[str]) -> Impact:
        """The impact of a fault. `met`: the trials that met it, each with a count."""
        others = set().union(*(self.callers[target] for target in targets)) - set(met)
        lost = [found for trial in met if (found := self._lost(trial)) is not None]
        seconds = [s for s, _, _ in lost if s is not None]
        calls = [c for _, c, _ in lost if c is not None]
        return Impact(
            trials=len(met),
            attempts=met.total(),
            outcomes=Counter(self.outcomes[trial] for trial in met if trial in self.outcomes),
            bad=self._bad(set(met)),
            without=self._bad(others),
            lost_s=fmean(seconds) if seconds else None,
            lost_calls=fmean(calls) if calls else None,
            beside_twin=sum(twin for _, _, twin in lost),
            beside_median=sum(not twin for _, _, twin in lost),
        )

    def _bad(self, trials: set[str]) -> Rate | None:
        judged = [o for trial in trials if (o := self.outcomes.get(trial)) is not None and o not in self.unjudged]
        return rate(sum(outcome not in self.good for outcome in judged), len(judged))

    def beside(self, trial: str) -> Beside | None:
        """The trial beside one without faults; None if there is none, or its duration is not meaningful."""
        took, started = self.took.get(trial), self.started.get(trial)
        if took is None or started is None:
            return None
        if started.twin_s is not None or started.twin_calls is not None:
            return Beside(took.seconds, started.twin_s, took.calls, started.twin_calls, twin=True)
        if calm := self.calm.get(self._prompt(trial)):
            seconds, calls = _median([t.seconds for t in calm]), _median([t.calls for t in calm])
            return Beside(took.seconds, seconds, took.calls, calls, twin=False)
        return None

    def _lost(self, trial: str) -> tuple[float | None, float | None, bool] | None:
        """The additional seconds and calls, and True if compared with the twin; None if unknown."""
        found = self.beside(trial)
        if found is None:
            return None
        return _more(found.took_s, found.calm_s), _more(found.calls, found.calm_calls), found.twin


def _median(others: list[float | None] | list[int | None]) -> float | None:
    known = [other for other in others if other is not None]
    return median(known) if known else None


def _more(took: float | None, other: float | None) -> float | None:
    return took - other if took is not None and other is not None else None
