"""The figures of each trial that several measures need: its calls, its faults, its time, its spending and its match. A
run's events are taken batch by batch, each with whole trials; what is kept of a trial is one small row."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from operator import attrgetter, itemgetter
from statistics import median
from typing import NamedTuple, Protocol, TypeVar

from chaoslab.analysis.measures._calls import retries
from chaoslab.analysis.measures.noticed import NOTHING, Noticed, noticed
from chaoslab.core.events import CallStarted, Effect, FaultWitnessed, PromptFinished, PromptStarted, StoryLeftOut, Usage
from chaoslab.record.effects import find_distinct_effects
from chaoslab.record.history import History

NO_TIME = ("hung", "invalid", "unfinished")
"""Outcomes whose duration is not meaningful."""
ALIKE_MAX = 10_000
"""The most kinds of trials for which it is looked up whether another is alike."""
Prompt = tuple[int, str]
H_ = TypeVar("H_", bound=Hashable)


@dataclass(slots=True)
class TrialFigures:
    """The figures of a trial, or of what is outside of trials. Those of trials that are alike are one object.

    `outcome`: None if there is no verdict. `met`: the faults witnessed, by name and target, with their number.
    `called`: its targets. `attempts`: at calls, by name. `failed`: those that failed and were not given up. `retries`:
    those after the first of a request, without fallbacks. `took_s`: the duration that its end states; None if it is not
    known. `calls`, `effects`, `tokens`, `usd`, `spent_s`: its spending. `unpriced`: an answer of the model has no
    price. `twin_…`: of its twin, if the log has it. `drew`: it drew chance of its own; None: not known.
    """

    prompt: Prompt | None = None
    outcome: str | None = None
    met: tuple[tuple[tuple[str, str], int], ...] = ()
    called: frozenset[str] = frozenset()
    attempts: int = 0
    failed: int = 0
    retries: int = 0
    ended: bool = False
    took_s: float | None = None
    calls: int = 0
    effects: int = 0
    tokens: int = 0
    usd: float | Fraction = 0
    unpriced: bool = False
    spent_s: float | Fraction = 0
    twin_s: float | None = None
    twin_calls: int | None = None
    twin_effects: int | None = None
    drew: bool | None = None
    noticed: Noticed = NOTHING

    @property
    def asked(self) -> str | None:
        """The text of its prompt; None if its beginning is lost."""
        return None if self.prompt is None else self.prompt[1]

    @property
    def comparable(self) -> bool:
        """True if it began and ended, and its duration is meaningful."""
        return self.ended and self.prompt is not None and self.outcome not in NO_TIME


class Beside(NamedTuple):
    """A trial's seconds and attempts at calls, and those of its twin, or the median of the trials of its prompt that
    met no fault. None: unknown."""

    took_s: float | None
    calm_s: float | None
    calls: float | None
    calm_calls: float | None
    twin: bool


@dataclass
class TrialTable:
    """The trials of a run."""

    keys: list[str] = field(default_factory=list)
    """The key of each trial; empty for what is outside of trials."""
    rows: list[TrialFigures] = field(default_factory=list)
    """The figures of each, in the same order."""
    _known: dict[Hashable, Hashable] = field(default_factory=dict, repr=False, compare=False)
    _alike: dict[Hashable, TrialFigures] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, history: History, outcomes: Mapping[str, str]) -> TrialTable:
        """The trials of a whole run."""
        found = cls()
        found.take(history, outcomes)
        found.end()
        return found

    def end(self) -> None:
        """To be called after the last batch. What never began, or is outside of trials, comes last, by key: else its
        place would tell where a batch ended."""
        others = [n for n, row in enumerate(self.rows) if row.prompt is None]
        last = sorted([(self.keys[n], self.rows[n]) for n in others], key=itemgetter(0))
        for n in reversed(others):
            del self.keys[n], self.rows[n]
        for key, row in last:
            self.keys.append(key)
            self.rows.append(row)

    def take(self, history: History, outcomes: Mapping[str, str]) -> None:
        """Adds the trials of a batch. `outcomes`: those of its trials."""
        rows = {trial: TrialFigures(outcome=outcomes.get(trial)) for trial in history.trials}

        def row(trial: str | None) -> TrialFigures:
            key = trial or ""
            if key not in rows:
                rows[key] = TrialFigures(outcome=outcomes.get(key))
            return rows[key]

        self._begun(history, rows)
        met: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        for record, fault in history.of(FaultWitnessed):
            if record.trial is not None:
                met[record.trial][fault.fault, fault.target] += 1
        for key, faults in met.items():
            row(key).met = self._same(tuple(faults.items()))
        called: dict[str | None, set[str]] = defaultdict(set)
        for (trial, target), count in Counter(map(itemgetter(0, 1), history.made)).items():
            called[trial].add(target)
            row(trial).attempts += count
        for at, there in called.items():
            row(at).called |= there
        for _, end, at_call in history.failed:
            row(at_call[0]).failed += not end.ok and at_call not in history.given_up
        for trial, *_ in retries(history):
            row(trial).retries += 1
        seen = noticed(history)
        for at, count in Counter([record.trial for record, _ in history.of(CallStarted)]).items():
            row(at).calls += count
        for record, left_out in history.of(StoryLeftOut):
            of = row(record.trial)
            of.calls = of.attempts = sum(left_out.calls.values())
            of.called |= frozenset(left_out.calls)
            of.met = self._same(
                tuple(((fault, target), n) for fault, by in left_out.met.items() for target, n in by.items())
            )
        self._spent(history, row)
        for key, each in rows.items():
            each.called = self._same(each.called)
            each.noticed = self._same(seen.get(key or None, NOTHING))
            self.add(key, each)

    def add(self, key: str, trial: TrialFigures) -> None:
        """Adds the figures of a trial."""
        self.keys.append(key)
        if len(self._alike) < ALIKE_MAX:
            trial = self._alike.setdefault(_figures(trial), trial)
        self.rows.append(trial)

    def _begun(self, history: History, rows: Mapping[str, TrialFigures]) -> None:
        for record, event in history.of(PromptStarted):
            if record.trial is not None:
                of = rows[record.trial]
                of.prompt = self._same((event.prompt_index, event.prompt))
                of.twin_s, of.twin_calls = self._same(event.twin_s), event.twin_calls
                known = event.twin_s is not None or event.twin_calls is not None
                stated = known and event.effects is not None and event.stated
                of.twin_effects = len(event.effects or ()) if stated else None

    def _spent(self, history: History, row: _Row) -> None:
        for record, answer in history.of(Usage):
            of = row(record.trial)
            of.tokens += answer.prompt_tokens + answer.completion_tokens
            of.usd, of.unpriced = _plus(of.usd, answer.cost_usd or 0), of.unpriced or answer.cost_usd is None
        had = Counter(record.trial for record, _ in find_distinct_effects(history.of(Effect)))
        for at, count in had.items():
            row(at).effects += count
        for record, end in history.of(PromptFinished):
            of, known = row(record.trial), not math.isnan(end.duration_s)
            took_s = self._same(end.duration_s)
            of.ended, of.took_s, of.drew = True, took_s if known else None, end.drew
            if known:
                of.spent_s = _plus(of.spent_s, took_s)

    def _same(self, value: H_) -> H_:
        """The equal value that was kept first: most trials are alike."""
        return self._known.setdefault(value, value)  # type: ignore[return-value]

    @cached_property
    def by_key(self) -> Mapping[str, TrialFigures]:
        """The figures by key. To be read after the last batch."""
        return dict(zip(self.keys, self.rows, strict=True))

    def prompts(self, keys: Iterable[str]) -> list[str | None]:
        """The text of the prompt of each of these trials; None if its beginning is lost."""
        return [self.by_key.get(key, TrialFigures()).asked for key in keys]

    @property
    def drew(self) -> bool | None:
        """True if one of the trials drew chance of its own; None: no trial tells."""
        told = [row.drew for row in self.rows if row.drew is not None]
        return any(told) if told else None

    @property
    def took_s(self) -> list[float]:
        """The known durations of the trials that began and ended, in the order in which they began."""
        return [row.took_s for row in self.rows if row.prompt is not None and row.took_s is not None]

    @cached_property
    def beside_calm(self) -> Sequence[tuple[str, Beside | None]]:
        """The key of each trial that met a fault, with it beside one without; None if there is none, or its duration is
        not meaningful. To be read after the last batch."""
        calm = self._calm()
        found: dict[int, Beside | None] = {}
        for trial in self.rows:
            if trial.met and id(trial) not in found:
                found[id(trial)] = _beside(trial, calm) if trial.comparable else None
        return [(key, found[id(trial)]) for key, trial in zip(self.keys, self.rows, strict=True) if trial.met]

    def _calm(self) -> dict[Prompt, tuple[float | None, float | None]]:
        """The median seconds and attempts of the trials without a fault, by prompt."""
        calm: dict[Prompt, list[TrialFigures]] = defaultdict(list)
        for trial in self.rows:
            if not trial.met and trial.comparable and trial.prompt is not None:
                calm[trial.prompt].append(trial)
        return {
            prompt: (_median([t.took_s for t in trials if t.took_s is not None]), _median([t.attempts for t in trials]))
            for prompt, trials in calm.items()
        }


_figures = attrgetter(*(each.name for each in fields(TrialFigures)))


class _Row(Protocol):
    def __call__(self, trial: str | None, /) -> TrialFigures: ...


def _beside(trial: TrialFigures, calm: Mapping[Prompt, tuple[float | None, float | None]]) -> Beside | None:
    twin = trial.twin_s is not None or trial.twin_calls is not None
    if not twin and trial.prompt not in calm:
        return None
    seconds, attempts = (None, None) if trial.prompt is None else calm.get(trial.prompt, (None, None))
    seconds = seconds if trial.twin_s is None else trial.twin_s  # the virtual twin of a trial in real time has none
    attempts = attempts if trial.twin_calls is None else trial.twin_calls
    return Beside(trial.took_s, seconds, trial.attempts, attempts, twin=twin)


def _median(known: list[float]) -> float | None:
    return median(known) if known else None


def _plus(sum_: float | Fraction, more: float) -> float | Fraction:
    """The exact sum. One number alone stays as it is."""
    # Exact, so that the rows of cost.py add up to the ledger, however the run is cut into batches.
    return Fraction(sum_) + Fraction(more) if sum_ and more else sum_ or more
