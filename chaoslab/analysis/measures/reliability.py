"""Reliability: the share of trials that ended well, the nines that are proven, error budgets, MTBF and one score.

`standing.py` says which trials ended well. Those that allow no conclusion are left out.

- *Nines*: the nines of the one-sided lower bound at 95 % of that share (Clopper and Pearson 1934). So 99.9 % is claimed
  from 2,995 trials on, all of which ended well; with k bad ones it takes more.
- *Error budget* of an objective o: N(1 − o) trials may end badly. What is left of the budget is at least 0; the burn
  rate is the share of bad trials over 1 − o (Beyer et al., Site Reliability Workbook, 2018): above 1 the objective is
  missed.
- *MTBF*: the time of the judged trials over the number that ended badly. Without one, the time is only known to be
  longer than a lower bound at 95 %, time / −ln 0.05, if failures come at a constant rate. Neither is known of trials
  that took no time, as those of functions do in the virtual world.
- *Score*: BalaganAgent's weights over availability, error handling, latency and recovery, each from 0 to 1. A part
  without data is left out, and the weights of the others are scaled to a sum of 1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from chaoslab.analysis.measures.intervals import Rate, clopper_pearson_low, rate
from chaoslab.analysis.measures.mttr import Recovery
from chaoslab.analysis.measures.trials import Beside, TrialTable
from chaoslab.analysis.verdict.standing import Count, Standing, Standings

OBJECTIVES = (0.9, 0.95, 0.99, 0.999)
"""The objectives (SLOs) whose budgets are told: the share of trials that should end well."""
WEIGHTS = {"availability": 0.30, "error handling": 0.25, "latency": 0.20, "recovery": 0.15}
ONE_SIDED = 0.05
NINES_MAX = 9


@dataclass(frozen=True)
class ErrorBudget:
    """The budget of an objective. `allowed`: the trials that may end badly, a share of a trial included. `left`: the
    share of the budget that is left, from 0 to 1. `burn`: the burn rate."""

    objective: float
    allowed: float
    failed: int
    left: float
    burn: float


@dataclass(frozen=True)
class Reliability:
    """The reliability of a run.

    `available`: the trials that ended well, of those that were judged. `handled`: the same of those that met a fault;
    None without any. `nines`: those that are proven; 0 is below one nine. `proven`: the one-sided lower bound.
    `next_needs`: the number of trials, all of which end well, that would prove one nine more. `busy_s`: the time of the
    judged trials in their world. `mtbf_s`: None without a bad trial, and then `mtbf_least_s` is known; both are None
    without any time. `score`: from 0 to 1; `parts`: those in it.
    """

    available: Rate
    handled: Rate | None
    nines: int
    proven: float
    next_needs: int
    budgets: Sequence[ErrorBudget]
    busy_s: float
    mtbf_s: float | None
    mtbf_least_s: float | None
    score: float
    parts: Mapping[str, float]


def reliability_of(trials: TrialTable, standings: Standings, recovered: Recovery | None) -> Reliability | None:
    """The reliability over these trials. `recovered`: None if it is not known."""
    found = standings.of_all(trials.keys, [trial.outcome for trial in trials.rows])
    count = Count.of(found)
    judged = [
        (trial, standing is Standing.WELL)
        for trial, standing in zip(trials.rows, found, strict=True)
        if standing is not Standing.OPEN
    ]
    handled = [well for trial, well in judged if trial.met]
    available = rate(sum(well for _, well in judged), len(judged))
    if available is None:
        return None
    failed = available.total - available.count
    busy_s = math.fsum(trial.took_s for trial, _ in judged if trial.took_s is not None)
    proven = least_share(count.well, count.total)  # an open trial proves nothing, so it may have ended badly
    nines = nines_of(proven)
    of_handled = rate(sum(handled), len(handled))
    swift = _swiftness(beside for _, beside in trials.beside_calm if beside is not None)
    parts = {
        "availability": available.value,
        "error handling": None if of_handled is None else of_handled.value,
        "latency": swift,
        "recovery": recovered.recovered / recovered.n if recovered is not None and recovered.n else None,
    }
    known = {name: value for name, value in parts.items() if value is not None}
    return Reliability(
        available=available,
        handled=of_handled,
        nines=nines,
        proven=proven,
        next_needs=trials_for(nines + 1),
        budgets=[error_budget(objective, available.total, failed) for objective in OBJECTIVES],
        busy_s=busy_s,
        mtbf_s=busy_s / failed if failed and busy_s else None,
        mtbf_least_s=busy_s / -math.log(ONE_SIDED) if busy_s and not failed else None,
        score=sum(WEIGHTS[name] * value for name, value in known.items()) / sum(WEIGHTS[name] for name in known),
        parts=known,
    )


def least_share(count: int, total: int) -> float:
    """The share that is exceeded with a confidence of 95 %, by the exact binomial test. `total` is above 0."""
    return clopper_pearson_low(count, total, confidence=1 - 2 * ONE_SIDED)


def nines_of(share: float) -> int:
    """The number of nines: 0.995 has two. No more than nine are told apart."""
    return sum(share >= 1 - 10.0**-k for k in range(1, NINES_MAX + 1))


def trials_for(nines: int) -> int:
    """The fewest trials, all of which end well, that prove so many nines at 95 %."""
    return math.ceil(math.log(ONE_SIDED) / math.log1p(-(10.0**-nines)))


def error_budget(objective: float, total: int, failed: int) -> ErrorBudget:
    """The budget of `objective` (below 1) over `total` trials (above 0), of which `failed` ended badly."""
    allowed = total * (1 - objective)
    return ErrorBudget(objective, allowed, failed, max(0.0, allowed - failed) / allowed, failed / allowed)


def _swiftness(found: Iterable[Beside]) -> float | None:
    """The mean over the trials of the time without faults over their own, at most 1; None without any."""
    shares = [
        1.0 if one.took_s <= one.calm_s else one.calm_s / one.took_s
        for one in found
        if one.took_s is not None and one.calm_s is not None
    ]
    return fmean(shares) if shares else None
