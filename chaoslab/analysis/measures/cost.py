"""The cost of chaos: the tokens, dollars, calls, effects and seconds that each fault added.

The rule: each trial's amounts are split into those of its match and the rest. The match is the trial's twin where the
log has its figure (`PromptStarted.twin_s`, `twin_calls`; for effects those that were asked for), else the median of the
trials of the same prompt that met no fault. The amounts of the matches are one row, *matched*, and those of the trials
that met no fault another. The rest is the fault's if the trial met one alone, and is *shared* if it met several. An
amount without a match, and all amounts of a trial that hung, is invalid or is unfinished, has *no comparison*. What was
spent outside of trials is *outside*.

So every token, dollar, call, effect and second is in one row, and the rows add up to the run's ledger exactly: they are
fractions, not floats. An answer of a model without a price adds no dollars, as in `usage`.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from chaoslab.analysis.measures.trials import NO_TIME, Prompt, TrialFigures, TrialTable

NONE = Fraction(0)
UNITS = ("tokens", "usd", "calls", "effects", "seconds")


@dataclass(frozen=True)
class Spending:
    """The sums over `trials` trials. `tokens`: to and from models. `usd`: dollars of known price. `calls`: attempts.
    `effects`: those on the ledgers; lines with one request id are one. `seconds`: of the world's time. A negative
    number was saved. None: no trial has a match to tell it by."""

    trials: int = 0
    tokens: Fraction | None = NONE
    usd: Fraction | None = NONE
    calls: Fraction | None = NONE
    effects: Fraction | None = NONE
    seconds: Fraction | None = NONE


@dataclass(frozen=True)
class Costs:
    """The rows, which add up to `total`. `by_fault`: the additional amounts of the trials that met this fault alone;
    `shared`: of those that met several. `matched`: the amounts of the matches of both. `no_fault`: those of the trials
    that met none. `trials`: those of the row; `no_comparison` may have parts of others."""

    by_fault: Mapping[str, Spending]
    shared: Spending
    matched: Spending
    no_fault: Spending
    no_comparison: Spending
    outside: Spending
    total: Spending
    incomparable: Mapping[str, int] = field(default_factory=dict)
    """By fault, the trials of its row that have no match at all; by "" those of the shared row."""


def compute_fault_costs(trials: TrialTable) -> Costs | None:
    """The cost of each fault over these trials. None if none of them met a fault."""
    if not any(trial.met for trial in trials.rows):
        return None
    profiles = Counter(map(_build_cost_profile, trials.rows))
    baselines: dict[Prompt, list[Amounts]] = defaultdict(list)
    for profile, count in profiles.items():
        if profile.prompt is not None and not profile.met and profile.timed:
            baselines[profile.prompt] += [[*map(_to_fixed_point, profile.own)]] * count
    matches = {prompt: _compute_medians(amounts_list) for prompt, amounts_list in baselines.items()}
    incomparable = Counter[str]()
    rows, faults, total = (
        defaultdict[str, _AmountSums](_AmountSums),
        defaultdict[str, _AmountSums](_AmountSums),
        _AmountSums(),
    )
    for profile, count in profiles.items():
        amounts = [*map(_to_fixed_point, profile.own)]
        total.add_amounts(int(profile.prompt is not None), amounts, count)
        names = {fault for (fault, _), _ in profile.met}
        if profile.prompt is None:
            rows["outside"].add_amounts(0, amounts, count)
        elif not profile.timed:
            rows["no_comparison"].add_amounts(1, amounts, count)
        elif not names:
            rows["no_fault"].add_amounts(1, amounts, count)
        else:
            twin = [None if amount is None else _to_fixed_point(amount) for amount in profile.twin]
            match = [
                of_twin if of_twin is not None else of_calm
                for of_twin, of_calm in zip(twin, matches.get(profile.prompt, NO_MATCH), strict=True)
            ]
            rows["matched"].add_amounts(int(match != NO_MATCH), match, count)
            incomparable[next(iter(names)) if len(names) == 1 else ""] += count * (match == NO_MATCH)
            unmatched = [amount if baseline is None else 0 for amount, baseline in zip(amounts, match, strict=True)]
            if None in match:
                rows["no_comparison"].add_amounts(int(match == NO_MATCH), unmatched, count)
            added = [
                None if baseline is None else amount - baseline for amount, baseline in zip(amounts, match, strict=True)
            ]
            (rows["shared"] if len(names) > 1 else faults[next(iter(names))]).add_amounts(1, added, count)
    row_names = ("shared", "matched", "no_fault", "no_comparison", "outside")
    spendings = {name: rows[name].spending if name in rows else Spending() for name in row_names}
    by_fault = {name: faults[name].spending for name in sorted(faults)}
    return Costs(by_fault, total=total.spending, incomparable=incomparable, **spendings)


class _CostProfile(NamedTuple):
    """The facts about a trial by which it costs what it does; many trials are alike. `own`, `twin`: its amounts and
    the known ones of its twin, by UNITS. `timed`: its amounts can be compared."""

    prompt: Prompt | None
    timed: bool
    met: tuple[tuple[tuple[str, str], int], ...]
    own: tuple[float | Fraction, ...]
    twin: tuple[float | None, ...]


def _build_cost_profile(trial: TrialFigures) -> _CostProfile:
    amounts = (trial.tokens, trial.usd, trial.calls, trial.effects, trial.spent_s)
    twin = (None, None, trial.twin_calls, trial.twin_effects, trial.twin_s)
    return _CostProfile(trial.prompt, trial.outcome not in NO_TIME, trial.met, amounts, twin)


Amounts = list[int]
"""The amounts by UNITS, exact (`_to_fixed_point`)."""
PartialAmounts = Sequence[int | None]
"""The same where one may be unknown."""
NO_MATCH: list[int | None] = [None] * len(UNITS)
SCALE = 1080
"""The smallest float is 2**-1074, and a median halves a sum of two."""


@lru_cache(maxsize=4096)
def _to_fixed_point(amount: float | Fraction) -> int:
    """The amount in units of 2**-SCALE: a float is a whole number of them."""
    if type(amount) is int:
        return amount << SCALE
    above, below = amount.as_integer_ratio()
    return above << (SCALE - below.bit_length() + 1)


class _AmountSums:
    """Sums of amounts by UNITS."""

    def __init__(self) -> None:
        self.trials, self.sums = 0, list[int | None]([None] * len(UNITS))

    def add_amounts(self, trials: int, amounts: PartialAmounts, times: int) -> None:
        self.trials += trials * times
        for nth, amount in enumerate(amounts):
            if amount is not None:
                self.sums[nth] = amount * times + (self.sums[nth] or 0)

    @property
    def spending(self) -> Spending:
        amounts = (None if amount is None else Fraction(amount, 1 << SCALE) for amount in self.sums)
        return Spending(self.trials, *amounts)


def _compute_medians(trials: list[Amounts]) -> Amounts:
    middle = len(trials) // 2
    ranked = [sorted(amounts) for amounts in zip(*trials, strict=True)]
    return [values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) // 2 for values in ranked]
