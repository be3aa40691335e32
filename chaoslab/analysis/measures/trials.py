"""The figures of each trial that several measures need: its calls, its faults, its time, its spending and its match. A
run's events are taken batch by batch, each with whole trials; what is kept of a trial is one small row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from operator import attrgetter, itemgetter
from statistics import median
from typing import NamedTuple, Protocol, TypeVar

from chaoslab.analysis.measures._calls import find_retries
from chaoslab.analysis.measures.noticed import NOTHING, Noticed, collect_advice_facts
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
    def prompt_text(self) -> str | None:
        """The text of its prompt; None if its beginning is lost."""
        return None if self.prompt is None else self.prompt[1]

    @property
    def is_comparable(self) -> bool:
        """True if it began and ended, and its duration is meaningful."""
        return self.ended and self.prompt is not None and self.outcome not in NO_TIME


class Comparison(NamedTuple):
    """A trial's seconds and attempts at calls, and those of its twin, or the median of the trials of its prompt that
    met no fault. None: unknown."""

    took_s: float | None
    calm_s: float | None
    calls: float | None
    calm_calls: float | None


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
    def from_history(cls, history: History, outcomes: Mapping[str, str]) -> TrialTable:
        """The trials of a whole run."""
        table = cls()
        table.add_history(history, outcomes)
        table.finalize()
        return table

    def finalize(self) -> None:
        """To be called after the last batch. What never began, or is outside of trials, comes last, by key: else its
        place would tell where a batch ended."""
        outside_indices = [n for n, row in enumerate(self.rows) if row.prompt is None]
        last = sorted([(self.keys[n], self.rows[n]) for n in outside_indices], key=itemgetter(0))
        # From the end, so that the places before stay right.
        for n in reversed(outside_indices):
            del self.keys[n], self.rows[n]
        for key, row in last:
            self.keys.append(key)
            self.rows.append(row)

    def add_history(self, history: History, outcomes: Mapping[str, str]) -> None:
        """Adds the trials of a batch. `outcomes`: those of its trials."""
        rows = {trial: TrialFigures(outcome=outcomes.get(trial)) for trial in history.trials}

        def get_row(trial: str | None) -> TrialFigures:
            key = trial or ""
            if key not in rows:
                rows[key] = TrialFigures(outcome=outcomes.get(key))
            return rows[key]

        self._add_prompt_facts(history, rows)
        fault_counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        for record, fault in history.find_events(FaultWitnessed):
            if record.trial is not None:
                fault_counts[record.trial][fault.fault, fault.target] += 1
        for key, faults in fault_counts.items():
            get_row(key).met = self._intern(tuple(faults.items()))
        called: dict[str | None, set[str]] = defaultdict(set)
        for (trial, target), count in Counter(map(itemgetter(0, 1), history.attempt_keys)).items():
            called[trial].add(target)
            get_row(trial).attempts += count
        for trial_key, targets in called.items():
            get_row(trial_key).called |= targets
        for _, end, at_call in history.failed_attempts:
            get_row(at_call[0]).failed += not end.ok and at_call not in history.given_up_attempts
        for trial, *_ in find_retries(history):
            get_row(trial).retries += 1
        noticed_facts = collect_advice_facts(history)
        for trial_key, count in Counter([record.trial for record, _ in history.find_events(CallStarted)]).items():
            get_row(trial_key).calls += count
        for record, left_out in history.find_events(StoryLeftOut):
            figures = get_row(record.trial)
            figures.calls = figures.attempts = sum(left_out.calls.values())
            figures.called |= frozenset(left_out.calls)
            figures.met = self._intern(
                tuple(((fault, target), n) for fault, by in left_out.met.items() for target, n in by.items())
            )
        self._add_spending(history, get_row)
        for key, figures_row in rows.items():
            figures_row.called = self._intern(figures_row.called)
            figures_row.noticed = self._intern(noticed_facts.get(key or None, NOTHING))
            self.add_trial(key, figures_row)

    def add_trial(self, key: str, trial: TrialFigures) -> None:
        """Adds the figures of a trial."""
        self.keys.append(key)
        if len(self._alike) < ALIKE_MAX:
            trial = self._alike.setdefault(_all_figures(trial), trial)
        self.rows.append(trial)

    def _add_prompt_facts(self, history: History, rows: Mapping[str, TrialFigures]) -> None:
        for record, event in history.find_events(PromptStarted):
            if record.trial is not None:
                figures = rows[record.trial]
                figures.prompt = self._intern((event.prompt_index, event.prompt))
                figures.twin_s, figures.twin_calls = self._intern(event.twin_s), event.twin_calls
                has_twin_figures = event.twin_s is not None or event.twin_calls is not None
                has_twin_effects = has_twin_figures and event.effects is not None and event.stated
                figures.twin_effects = len(event.effects or ()) if has_twin_effects else None

    def _add_spending(self, history: History, row: _Row) -> None:
        for record, answer in history.find_events(Usage):
            figures = row(record.trial)
            figures.tokens += answer.prompt_tokens + answer.completion_tokens
            figures.usd, figures.unpriced = (
                _add_exactly(figures.usd, answer.cost_usd or 0),
                figures.unpriced or answer.cost_usd is None,
            )
        effect_counts = Counter(record.trial for record, _ in find_distinct_effects(history.find_events(Effect)))
        for trial_key, count in effect_counts.items():
            row(trial_key).effects += count
        for record, end in history.find_events(PromptFinished):
            figures, took_s = row(record.trial), self._intern(end.duration_s)
            figures.ended, figures.took_s, figures.drew = True, took_s, end.drew
            figures.spent_s = _add_exactly(figures.spent_s, took_s)

    def _intern(self, value: H_) -> H_:
        """The equal value that was kept first: most trials are alike."""
        return self._known.setdefault(value, value)  # type: ignore[return-value]

    @cached_property
    def figures_by_key(self) -> Mapping[str, TrialFigures]:
        """The figures by key. To be read after the last batch."""
        return dict(zip(self.keys, self.rows, strict=True))

    def list_prompt_texts(self, keys: Iterable[str]) -> list[str | None]:
        """The text of the prompt of each of these trials; None if its beginning is lost."""
        return [self.figures_by_key.get(key, TrialFigures()).prompt_text for key in keys]

    @property
    def has_drawn_randomness(self) -> bool | None:
        """True if one of the trials drew chance of its own; None: no trial tells."""
        known = [row.drew for row in self.rows if row.drew is not None]
        return any(known) if known else None

    @property
    def durations_s(self) -> list[float]:
        """The known durations of the trials that began and ended, in the order in which they began."""
        return [row.took_s for row in self.rows if row.prompt is not None and row.took_s is not None]

    @cached_property
    def fault_comparisons(self) -> Sequence[tuple[str, Comparison | None]]:
        """The key of each trial that met a fault, with it beside one without; None if there is none, or its duration is
        not meaningful. To be read after the last batch."""
        baselines = self._fault_free_medians()
        by_trial: dict[int, Comparison | None] = {}
        for trial in self.rows:
            # By identity: rows that are alike are one object.
            if trial.met and id(trial) not in by_trial:
                by_trial[id(trial)] = _compare_trial(trial, baselines) if trial.is_comparable else None
        return [(key, by_trial[id(trial)]) for key, trial in zip(self.keys, self.rows, strict=True) if trial.met]

    def _fault_free_medians(self) -> dict[Prompt, tuple[float | None, float | None]]:
        """The median seconds and attempts of the trials without a fault, by prompt."""
        trials_by_prompt: dict[Prompt, list[TrialFigures]] = defaultdict(list)
        for trial in self.rows:
            if not trial.met and trial.is_comparable and trial.prompt is not None:
                trials_by_prompt[trial.prompt].append(trial)
        return {
            prompt: (
                _median_or_none([t.took_s for t in trials if t.took_s is not None]),
                _median_or_none([t.attempts for t in trials]),
            )
            for prompt, trials in trials_by_prompt.items()
        }


_all_figures = attrgetter(*(figure.name for figure in fields(TrialFigures)))


class _Row(Protocol):
    def __call__(self, trial: str | None, /) -> TrialFigures: ...


def _compare_trial(
    trial: TrialFigures, baselines: Mapping[Prompt, tuple[float | None, float | None]]
) -> Comparison | None:
    if trial.twin_s is None and trial.twin_calls is None and trial.prompt not in baselines:
        return None
    seconds, attempts = (None, None) if trial.prompt is None else baselines.get(trial.prompt, (None, None))
    seconds = seconds if trial.twin_s is None else trial.twin_s  # the virtual twin of a trial in real time has none
    attempts = attempts if trial.twin_calls is None else trial.twin_calls
    return Comparison(trial.took_s, seconds, trial.attempts, attempts)


def _median_or_none(values: list[float]) -> float | None:
    return median(values) if values else None


def _add_exactly(total: float | Fraction, addend: float) -> float | Fraction:
    """The exact sum. One number alone stays as it is."""
    # Exact, so that the rows of cost.py add up to the ledger, however the run is cut into batches.
    return Fraction(total) + Fraction(addend) if total and addend else total or addend
