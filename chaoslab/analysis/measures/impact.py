"""The effect and the cost of each fault, at each target and over all targets.

*Met*: the trials in which a caller witnessed the fault there. A trial that met several faults counts for each of them,
so the rows do not add up, and no row proves that its fault was the only cause: that takes the trials that met it
*alone*. Compare with the share of bad outcomes `without`: among the trials that called the same target and did not meet
the fault there.

*Bad*: the trials that did not end well (`standing.py`). The share is of the trials that allow a conclusion.

*Lost*: the additional cost of a trial compared with one without faults, in seconds of its world and in attempts at
calls, as a mean over the trials that met the fault. It is negative if a trial gave up early. A trial is compared with
its twin if the log has the twin's figures (`PromptStarted.twin_s`, `twin_calls`), else with the median of the trials of
the same prompt that met no fault. Without either it is unknown. Trials that hung, are invalid or are unfinished are
left out, since their duration is not meaningful.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from chaoslab.analysis.measures.intervals import Rate, compute_pooled_rate
from chaoslab.analysis.measures.trials import TrialTable
from chaoslab.analysis.verdict.standing import Standing, Standings


@dataclass(frozen=True)
class Impact:
    """The effect of a fault. `trials`, `attempts`: those that met it. `outcomes`: the outcomes of these trials with
    their counts. None stands for an unknown figure, or one without a comparison."""

    trials: int
    attempts: int
    outcomes: Mapping[str, int]
    bad: Rate | None
    without: Rate | None
    lost_s: float | None
    lost_calls: float | None
    blamed: Rate | None
    """As `bad`, without the trials that were hit by what nobody injected: no fault is blamed for their ends."""
    alone: Rate | None
    """As `blamed`, of the trials that met no other fault, nor this one elsewhere."""
    worst_of: Mapping[str, int]
    """The outcomes of those trials; of all that met it if none of them was judged."""


@dataclass(frozen=True)
class Impacts:
    """The impact per fault over all its targets, and per fault and target; sorted by name."""

    by_fault: dict[str, Impact]
    by_target: dict[tuple[str, str], Impact]


def compute_impacts(trials: TrialTable, standings: Standings, *, damaged: Collection[str] = ()) -> Impacts:
    """The impacts over these trials. `damaged`: those that were hit by what nobody injected."""
    facts = _TrialFacts(trials, standings, damaged)
    targets: dict[str, set[str]] = defaultdict(set)
    for name, target in facts.met:
        targets[name].add(target)
    by_target = {key: facts.compute_impact([key]) for key in sorted(facts.met)}
    by_fault = {
        name: facts.compute_impact([(name, target) for target in fault_targets])
        for name, fault_targets in sorted(targets.items())
    }
    return Impacts(by_fault, by_target)


_PromptStanding = tuple[str | None, Standing]
Lost = tuple[float | None, float | None]
"""The additional seconds and calls."""


class _TrialFacts:
    """The facts about the trials that the impacts need."""

    def __init__(self, trials: TrialTable, standings: Standings, damaged: Collection[str]) -> None:
        self.rows = trials.rows
        self.standing = standings.list_standings(trials.keys, [trial.outcome for trial in trials.rows])
        self.damaged = {n for n, key in enumerate(trials.keys) if key in damaged} if damaged else set()
        self.met: dict[tuple[str, str], array[int]] = defaultdict(lambda: array("l"))
        """The places in `rows` of the trials that met each fault."""
        for n, trial in enumerate(trials.rows):
            for place_met, _ in trial.met:
                self.met[place_met].append(n)
        comparisons = (comparison for _, comparison in trials.fault_comparisons)
        self.lost: dict[int, Lost] = {
            n: (
                _subtract_or_none(comparison.took_s, comparison.calm_s),
                _subtract_or_none(comparison.calls, comparison.calm_calls),
            )
            for n, trial in enumerate(trials.rows)
            if trial.met and (comparison := next(comparisons)) is not None
        }
        alike = Counter(
            (trial.called, trial.met, (trial.prompt_text, standing))
            for trial, standing in zip(trials.rows, self.standing, strict=True)
        )
        places = {faults_met: frozenset(place_met for place_met, _ in faults_met) for _, faults_met, _ in alike}
        self.alike = [
            (called, places[faults_met], stood, count) for (called, faults_met, stood), count in alike.items()
        ]

    def compute_impact(self, places: Collection[tuple[str, str]]) -> Impact:
        """The impact of a fault at these places, each a fault and a target."""
        fault_targets, fault_keys, rows = {target for _, target in places}, set(places), self.rows
        # Each once: a trial may have met the fault at several places.
        trials = [*dict.fromkeys(chain.from_iterable(self.met[key] for key in places))]
        unaffected = Counter[_PromptStanding]()
        for called, faults, stood, count in self.alike:
            if not called.isdisjoint(fault_targets) and faults.isdisjoint(fault_keys):
                unaffected[stood] += count
        lost = [self.lost[n] for n in trials if n in self.lost]
        seconds = [s for s, _ in lost if s is not None]
        calls = [c for _, c in lost if c is not None]
        blamed = [n for n in trials if n not in self.damaged]
        single_fault_trials = [n for n in blamed if fault_keys.issuperset(key for key, _ in rows[n].met)]
        single_fault_rate = self._compute_bad_rate(single_fault_trials)
        return Impact(
            trials=len(trials),
            attempts=sum([count for n in trials for key, count in rows[n].met if key in fault_keys]),
            outcomes=self._count_outcomes(trials),
            bad=self._compute_bad_rate(trials),
            without=_compute_pooled_bad_rate(unaffected),
            lost_s=fmean(seconds) if seconds else None,
            lost_calls=fmean(calls) if calls else None,
            blamed=self._compute_bad_rate(blamed),
            alone=single_fault_rate,
            worst_of=self._count_outcomes(single_fault_trials if single_fault_rate is not None else trials),
        )

    def _count_outcomes(self, trials: Iterable[int]) -> Counter[str]:
        return Counter([outcome for n in trials if (outcome := self.rows[n].outcome) is not None])

    def _compute_bad_rate(self, trials: Iterable[int]) -> Rate | None:
        return _compute_pooled_bad_rate(Counter([(self.rows[n].prompt_text, self.standing[n]) for n in trials]))


def _compute_pooled_bad_rate(counts: Mapping[_PromptStanding, int]) -> Rate | None:
    shares: dict[str | None, tuple[int, int]] = {}
    for (prompt, standing), count in counts.items():
        if standing is not Standing.OPEN:
            bad, judged = shares.get(prompt, (0, 0))
            shares[prompt] = bad + (count if standing is Standing.BAD else 0), judged + count
    return compute_pooled_rate([*shares.values()])


def _subtract_or_none(actual: float | None, baseline: float | None) -> float | None:
    return actual - baseline if actual is not None and baseline is not None else None
