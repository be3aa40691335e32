"""The cost of chaos: the tokens, dollars, calls, effects and seconds that each fault added.

The rule: each trial's amounts are split into those of its match and the rest. The match is the trial's twin where the
log has its figure (`PromptStarted.twin_s`, `twin_calls`; for effects those that were asked for), else the median of the
trials of the same prompt that met no fault. The amounts of the match, and of trials that met no fault, are of "no
fault". The rest is the fault's if the trial met one alone, and is *shared* if it met several. An amount without a
match, and all amounts of a trial that hung, is invalid or is unfinished, has *no comparison*. What was spent outside of
trials is *outside*.

So every token, dollar, call, effect and second is in one row, and the rows add up to the run's ledger exactly: they are
fractions, not floats. An answer of a model without a price adds no dollars, as in `usage`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median

from chaoslab.analysis.measures.impact import NO_TIME
from chaoslab.core.events import CallStarted, Effect, FaultWitnessed, PromptFinished, PromptStarted, Usage
from chaoslab.record.history import History

NONE = Fraction(0)
UNITS = ("tokens", "usd", "calls", "effects", "seconds")


@dataclass(frozen=True)
class Spending:
    """The sums over `trials` trials. `tokens`: to and from models. `usd`: dollars of known price. `calls`: attempts.
    `effects`: those on the ledgers; lines with one request id are one. `seconds`: of the world's time. A negative
    number was saved."""

    trials: int = 0
    tokens: Fraction = NONE
    usd: Fraction = NONE
    calls: Fraction = NONE
    effects: Fraction = NONE
    seconds: Fraction = NONE

    def plus(self, trials: int, **amounts: Fraction) -> Spending:
        """The sums with these added."""
        more = {unit: getattr(self, unit) + amount for unit, amount in amounts.items()}
        return replace(self, trials=self.trials + trials, **more)


@dataclass(frozen=True)
class Costs:
    """The rows, which add up to `total`. `by_fault`: the additional amounts of the trials that met this fault alone.
    `trials` in a row are those that it took amounts of; `no_fault` and `no_comparison` may have parts of one trial."""

    by_fault: Mapping[str, Spending]
    shared: Spending
    no_fault: Spending
    no_comparison: Spending
    outside: Spending
    total: Spending


def costs(history: History, outcomes: Mapping[str, str]) -> Costs | None:
    """The cost of each fault. `outcomes`: those of the trials, from `judge`. None if no trial met a fault."""
    met: dict[str, set[str]] = defaultdict(set)
    for record, fault in history.of(FaultWitnessed):
        if record.trial is not None:
            met[record.trial].add(fault.fault)
    if not met:
        return None
    own = _own(history)
    started = {record.trial: event for record, event in history.of(PromptStarted) if record.trial is not None}
    calm: dict[tuple[int, str], list[str]] = defaultdict(list)
    for trial, begun in started.items():
        if trial not in met and outcomes.get(trial) not in NO_TIME:
            calm[begun.prompt_index, begun.prompt].append(trial)
    matches = {prompt: _median([own[trial] for trial in trials]) for prompt, trials in calm.items()}
    rows: dict[str, Spending] = defaultdict(Spending)
    faults: dict[str, Spending] = defaultdict(Spending)
    for trial, amounts in own.items():
        event = started.get(trial)
        if event is None:
            rows["outside"] = rows["outside"].plus(0, **amounts)
        elif outcomes.get(trial) in NO_TIME:
            rows["no_comparison"] = rows["no_comparison"].plus(1, **amounts)
        elif trial not in met:
            rows["no_fault"] = rows["no_fault"].plus(1, **amounts)
        else:
            match = {**matches.get((event.prompt_index, event.prompt), {}), **_twin(event)}
            rows["no_fault"] = rows["no_fault"].plus(0, **match)
            alone = {unit: amount for unit, amount in amounts.items() if unit not in match}
            if alone:
                rows["no_comparison"] = rows["no_comparison"].plus(int(not match), **alone)
            more = {unit: amounts[unit] - amount for unit, amount in match.items()}
            if len(met[trial]) > 1:
                rows["shared"] = rows["shared"].plus(1, **more)
            else:
                (name,) = met[trial]
                faults[name] = faults[name].plus(1, **more)
    total = Spending(trials=len(started))
    for amounts in own.values():
        total = total.plus(0, **amounts)
    parts = {name: rows[name] for name in ("shared", "no_fault", "no_comparison", "outside")}
    return Costs(dict(sorted(faults.items())), total=total, **parts)


def _own(history: History) -> dict[str, dict[str, Fraction]]:
    """The amounts of each trial, and of what is outside of trials under an empty key."""
    found: dict[str, dict[str, Fraction]] = {trial: dict.fromkeys(UNITS, NONE) for trial in history.trials}

    def add(trial: str | None, unit: str, amount: float) -> None:
        of = found.setdefault(trial or "", dict.fromkeys(UNITS, NONE))
        of[unit] += Fraction(amount)

    for record, answer in history.of(Usage):
        add(record.trial, "tokens", answer.prompt_tokens + answer.completion_tokens)
        add(record.trial, "usd", answer.cost_usd or 0)
    for record, _ in history.of(CallStarted):
        add(record.trial, "calls", 1)
    seen: set[tuple[str | None, str, str]] = set()
    for record, effect in history.of(Effect):
        key = (record.trial, effect.target, effect.request_id)
        if not effect.request_id or key not in seen:
            seen.add(key)
            add(record.trial, "effects", 1)
    for record, end in history.of(PromptFinished):
        if not math.isnan(end.duration_s):
            add(record.trial, "seconds", end.duration_s)
    return found


def _median(trials: list[dict[str, Fraction]]) -> dict[str, Fraction]:
    return {unit: median(amounts[unit] for amounts in trials) for unit in UNITS}


def _twin(started: PromptStarted) -> dict[str, Fraction]:
    """The twin's amounts that the log has."""
    known: dict[str, float] = {}
    if started.twin_s is not None:
        known["seconds"] = started.twin_s
    if started.twin_calls is not None:
        known["calls"] = started.twin_calls
    if known and started.effects is not None and started.stated:
        known["effects"] = len(started.effects)
    return {unit: Fraction(amount) for unit, amount in known.items()}
