"""Reliability: the share of trials that ended well, the nines that are proven, error budgets and MTBF.

`standing.py` says which trials ended well. Those that allow no conclusion are left out.

- *Nines*: the nines of the one-sided lower bound at 95 % of that share, over further trials of one prompt (Clopper and
  Pearson 1934), or over other prompts like these (Gaffke 2005, in `intervals.py`). So 99.9 % is claimed from 2,995
  trials of one prompt on, all of which ended well, or from 2,995 prompts on; with bad ones it takes more.
- *Error budget* of an objective o: N(1 − o) trials may end badly. What is left of the budget is at least 0; the burn
  rate is the share of bad trials over 1 − o (Beyer et al., Site Reliability Workbook, 2018). The objective is kept or
  missed if the interval of the share, whose unit is the prompt, lies on one side of it, whatever the open trials were;
  else that is not known.
- *MTBF*: the time of the judged trials over the number that ended badly. Without one, the time is only known to be
  longer than a lower bound at 95 %, time / −ln 0.05, if failures come at a constant rate. Neither is known of trials
  that took no time, as those of functions do in the virtual world.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from chaoslab.analysis.measures.intervals import (
    H,
    Rate,
    compute_flag_rate,
    compute_pooled_rate,
    count_by_prompt,
    rate_lower_bound,
)
from chaoslab.analysis.measures.trials import TrialFigures, TrialTable
from chaoslab.analysis.verdict.standing import Standing, StandingCount, Standings

OBJECTIVES = (0.9, 0.95, 0.99, 0.999)
"""The objectives (SLOs) whose budgets are told: the share of trials that should end well."""
ONE_SIDED = 0.05
NINES_MAX = 9


@dataclass(frozen=True)
class ErrorBudget:
    """The budget of an objective. `allowed`: the trials that may end badly, a share of a trial included. `left`: the
    share of the budget that is left, from 0 to 1. `burn`: the burn rate. `kept`: None if it is not known."""

    objective: float
    allowed: float
    failed: int
    left: float
    burn: float
    kept: bool | None = None


@dataclass(frozen=True)
class Reliability:
    """The reliability of a run.

    `available`: the trials that ended well, of those that were judged. `handled`: the same of those that met a fault;
    None without any. `nines`: those that are proven; 0 is below one nine. `proven`: the one-sided lower bound.
    `next_needs`: the trials of one prompt, or the prompts if there are several, all of which end well, that would prove
    one nine more. `busy_s`: the time of the
    judged trials in their world. `mtbf_s`: None without a bad trial, and then `mtbf_least_s` is known; both are None
    without any time.
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


def compute_reliability(trials: TrialTable, standings: Standings) -> Reliability | None:
    """The reliability over these trials; None if none was judged."""
    trial_standings = standings.list_standings(trials.keys, [trial.outcome for trial in trials.rows])
    count = StandingCount.from_standings(trial_standings)
    judged = [
        (trial, standing is Standing.WELL)
        for trial, standing in zip(trials.rows, trial_standings, strict=True)
        if standing is not Standing.OPEN
    ]
    available = _compute_well_rate(judged)
    if available is None:
        return None
    busy_s = math.fsum(trial.took_s for trial, _ in judged if trial.took_s is not None)
    failed = count.bad
    # An open trial proves nothing, so it may have ended badly.
    prompts = [trial.prompt_text for trial in trials.rows]
    counts = count_by_prompt((standing is Standing.WELL for standing in trial_standings), prompts)
    proven = rate_lower_bound([*counts.values()], ONE_SIDED)
    least = compute_pooled_rate([*counts.values()])
    most = compute_flag_rate((standing is not Standing.BAD for standing in trial_standings), prompts)
    bounds = (least, most) if least is not None and most is not None else None
    nines = count_nines(proven)
    of_handled = _compute_well_rate([judged_trial for judged_trial in judged if judged_trial[0].met])
    return Reliability(
        available=available,
        handled=of_handled,
        nines=nines,
        proven=proven,
        next_needs=count_trials_needed(nines + 1),
        budgets=[compute_error_budget(objective, available, bounds) for objective in OBJECTIVES],
        busy_s=busy_s,
        mtbf_s=busy_s / failed if failed and busy_s else None,
        mtbf_least_s=busy_s / -math.log(ONE_SIDED) if busy_s and not failed else None,
    )


def compute_ended_well_rate(standings: Iterable[Standing], prompts: Iterable[Hashable]) -> Rate | None:
    """The rate of well trials among the judged; None if none was judged. `prompts`: that of each standing."""
    return compute_pooled_rate([*count_well_by_prompt(standings, prompts).values()])


def count_well_by_prompt(standings: Iterable[Standing], prompts: Iterable[H]) -> dict[H, tuple[int, int]]:
    """By prompt, the trials that ended well and those that were judged. `prompts`: that of each standing."""
    judged = [pair for pair in zip(standings, prompts, strict=True) if pair[0] is not Standing.OPEN]
    return count_by_prompt((standing is Standing.WELL for standing, _ in judged), (prompt for _, prompt in judged))


def _compute_well_rate(judged: Sequence[tuple[TrialFigures, bool]]) -> Rate | None:
    return compute_flag_rate((well for _, well in judged), (trial.prompt_text for trial, _ in judged))


def count_nines(share: float) -> int:
    """The number of nines: 0.995 has two. No more than nine are told apart."""
    return sum(share >= 1 - 10.0**-k for k in range(1, NINES_MAX + 1))


def count_trials_needed(nines: int) -> int:
    """The fewest trials of one prompt, or prompts, all of which end well, that prove so many nines at 95 %."""
    return math.ceil(math.log(ONE_SIDED) / math.log1p(-(10.0**-nines)))


def compute_error_budget(objective: float, well: Rate, bounds: tuple[Rate, Rate] | None = None) -> ErrorBudget:
    """The budget of `objective` (below 1) over trials, of which such a rate ended well. `bounds`: the rates if all open
    trials had ended badly, and if all had ended well; None if none is open."""
    allowed, failed = well.total * (1 - objective), well.total - well.count
    least, most = bounds or (well, well)
    is_kept = True if least.interval.low >= objective else False if most.interval.high < objective else None
    return ErrorBudget(objective, allowed, failed, max(0.0, allowed - failed) / allowed, failed / allowed, is_kept)
