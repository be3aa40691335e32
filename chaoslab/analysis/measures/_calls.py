"""The number of attempts, of those that failed and of those given up, and of those ended in each interval of time; the
cost of the model's answers, and the limits that were exceeded, with the effect of each."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from chaoslab.core.events import Budget, CallFinished, Fallback, PromptFinished, PromptStarted, Usage
from chaoslab.record.history import History, Place

# Lengths that people have words for, so that an axis has round numbers.
WIDTHS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0, 21600.0, 86400.0, 604800.0, 2592000.0)
STRETCHES = 40


@dataclass(frozen=True)
class Throughput:
    """Ends per interval of `width_s`; the first begins with the first prompt. `lasted_s`: the time from there to the
    last end."""

    width_s: float
    prompts: tuple[int, ...]
    calls: tuple[int, ...]
    lasted_s: float


@dataclass
class EndTimes:
    """Collects the moments at which prompts and calls of batches ended, in their order."""

    began_t: float | None = None
    # Eight bytes each, since a run may have millions of them.
    prompts: array[float] = field(default_factory=lambda: array("d"))
    calls: array[float] = field(default_factory=lambda: array("d"))

    def add_history(self, history: History) -> None:
        if self.began_t is None:
            self.began_t = next((record.t for record, _ in history.find_events(PromptStarted)), None)
        self.prompts.extend([record.t for record, _ in history.find_events(PromptFinished)])
        self.calls.extend([record.t for record, _ in history.find_events(CallFinished)])

    def compute_throughput(self) -> Throughput | None:
        return _count_per_interval(self.began_t or 0.0, self.prompts, self.calls)


def _count_per_interval(began_t: float, prompts: Sequence[float], calls: Sequence[float]) -> Throughput | None:
    last_moments = [max(moments) for moments in (prompts, calls) if moments]
    if not last_moments:
        return None
    lasted_s = max(last_moments) - began_t
    whole_hours = math.ceil(lasted_s / WIDTHS_S[-1] / STRETCHES) * WIDTHS_S[-1]
    width_s = next((width for width in WIDTHS_S if lasted_s <= width * STRETCHES), whole_hours)
    stretches = int(max(lasted_s, 0.0) / width_s) + 1

    def interval_index(moment: float) -> int:
        return int(max(moment - began_t, 0.0) / width_s)

    def count_per_interval(moments: Sequence[float]) -> tuple[int, ...]:
        # The moments are in order, so that it takes a few looks for an interval and not one for each moment.
        ends = [bisect_right(moments, n, key=interval_index) for n in range(stretches)]
        return tuple(end - begin for begin, end in pairwise([0, *ends]))

    return Throughput(width_s, count_per_interval(prompts), count_per_interval(calls), lasted_s)


@dataclass
class CallCount:
    """Counts the attempts of batches: `made` in all, `to_model`, `failed`, `given_up`, `retries`, `fallbacks`: those
    that the lab's agent made around the proxy."""

    made: int = 0
    to_model: int = 0
    failed: int = 0
    given_up: int = 0
    retries: int = 0
    fallbacks: int = 0

    def add_history(self, history: History) -> None:
        self.made += len(history.attempt_keys)
        self.to_model += sum([target == "model" for _, target, _, _ in history.attempt_keys])
        dropped = len(history.given_up_attempts)
        self.given_up += dropped
        self.failed += sum([not event.ok for _, event, _ in history.failed_attempts]) - dropped
        self.retries += len(find_retries(history))
        self.fallbacks += sum(1 for _ in history.find_events(Fallback))


def find_retries(history: History) -> list[Place]:
    """The attempts at a request after its first, by the SDK, the tool, the agent or a new plan; without fallbacks, and
    without those that were given up or came after nothing else. Recovery takes the same ones for retries, and
    another request for the same thing (`incidents`)."""
    fallbacks, dropped = {at for _, _, at in history.find_attempt_events(Fallback)}, history.given_up_attempts
    further = [at for at in history.attempt_keys if at[3] > 1 and at not in fallbacks]
    if not dropped:
        return further
    first: dict[tuple[str | None, str, int], int] = {}
    for at in history.attempt_keys - dropped:
        first[at[:3]] = min(at[3], first.get(at[:3], at[3]))
    return [at for at in further if at not in dropped and at[3] > first[at[:3]]]


@dataclass(frozen=True)
class Passed:
    """A limit that was exceeded. `mode`: hard (the calls were refused) or soft (it was only recorded). `calls`,
    `trials`: the numbers of calls and trials concerned."""

    limit: str
    mode: str
    calls: int
    trials: int


@dataclass
class ExceededLimits:
    """Collects the limits that batches exceeded."""

    found: dict[tuple[str, float, str], list[tuple[Budget, str | None]]] = field(default_factory=dict)

    def add_history(self, history: History) -> None:
        for record, event in history.find_events(Budget):
            self.found.setdefault((event.limit, event.allowed, event.mode), []).append((event, record.trial))

    def list_exceeded_limits(self, *, setting: bool) -> list[Passed]:
        """Each limit, sorted by its name. `setting`: a setting states it, and no Python code."""
        named: dict[tuple[str, str], list[str | None]] = {}
        for events in self.found.values():
            first = events[0][0]
            trials = named.setdefault((first.describe_passed_limit(setting=setting), first.mode), [])
            trials += [trial for _, trial in events]
        return [Passed(*key, len(trials), len(set(trials))) for key, trials in sorted(named.items())]


@dataclass(frozen=True)
class Spent:
    """The sums of tokens and costs. `cost_usd`: the sum of the known costs, None if none is known. `unpriced`: the
    number of answers without a known cost."""

    answers: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    unpriced: int


@dataclass
class UsageTotals:
    """Adds up the answers of batches."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    costs: list[float] = field(default_factory=list)

    def add_history(self, history: History) -> None:
        for _, event in history.find_events(Usage):
            self.answers += 1
            self.prompt_tokens += event.prompt_tokens
            self.completion_tokens += event.completion_tokens
            if event.cost_usd is not None:
                self.costs.append(event.cost_usd)

    def compute_totals(self) -> Spent | None:
        if not self.answers:
            return None
        # fsum, whose result is the same in whatever order the parts of a run come.
        cost_usd = math.fsum(self.costs) if self.costs else None
        return Spent(self.answers, self.prompt_tokens, self.completion_tokens, cost_usd, self.answers - len(self.costs))
