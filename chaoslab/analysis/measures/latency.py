"""The duration of attempts, from leaving the seam to their end."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from sys import intern
from typing import NamedTuple

from chaoslab.analysis.measures.quantiles import Quantiles
from chaoslab.base.durations import format_duration
from chaoslab.core.events import CallDisturbed, CallFinished, FaultWitnessed
from chaoslab.record.history import History

FIRST_COUNT, LATE_FACTOR, NOTICED_S = 20, 10, 0.25
"""The first attempts that a target's past is made of; the factor and the seconds beyond their median that are far."""


@dataclass(frozen=True)
class Latency:
    """Percentiles of `n` durations (n is above 0), in seconds."""

    n: int
    p50_s: float
    p90_s: float
    p99_s: float
    longest_s: float


def summarize_latency(durations_s: Quantiles) -> Latency | None:
    """The percentiles of the durations; None without any."""
    if not durations_s:
        return None
    p50, p90, p99 = map(durations_s.value_at, (0.5, 0.9, 0.99))
    return Latency(len(durations_s), p50, p90, p99, durations_s.longest)


@dataclass
class Durations:
    """The durations of the attempts at a target: without a fault, with one, and with one that ended them before
    they left the seam."""

    calm: Quantiles = field(default_factory=Quantiles)
    met: Quantiles = field(default_factory=Quantiles)
    held: Quantiles = field(default_factory=Quantiles)

    @cached_property
    def unfaulted_and_faulted(self) -> tuple[Quantiles, Quantiles]:
        """Those without a fault and with one. A fault's own count too: the caller waits for an answer, or for the end
        of a call, whether or not the target is asked. To be read after the last one."""
        return self.calm, Quantiles.merge(self.met, self.held)


@dataclass
class AttemptDurations:
    """The attempts of a run, without those that the lab disturbed or that were given up: their durations are not the
    target's. `by_target`: the durations. `first_byte`, `last_byte`: of streamed replies. `ways`: how those went that
    left the seam; `unreached`: the number of the others, which were refused, or answered in place of their target.
    `first_s`, `late_s`: by target, of the attempts without a fault that ended well, the first ones and those of the
    rest that took far longer."""

    by_target: dict[str, Durations] = field(default_factory=lambda: defaultdict(Durations))
    first_byte: Quantiles = field(default_factory=Quantiles)
    last_byte: Quantiles = field(default_factory=Quantiles)
    ways: set[str] = field(default_factory=set)
    unreached: int = 0
    first_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    late_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    _late_from_s: dict[str, float] = field(default_factory=dict)

    def add_history(self, history: History) -> None:
        excluded = {at for _, _, at in history.find_attempt_events(CallDisturbed)} | history.given_up_attempts
        faulted = {at for _, _, at in history.find_attempt_events(FaultWitnessed)}
        alike: defaultdict[tuple[str, bool, bool], list[float]] = defaultdict(list)
        for _, end, at in history.find_attempt_events(CallFinished):
            if at in excluded:
                continue
            is_faulted, has_left = at in faulted, end.via != "none"
            if has_left:
                self.ways.add(end.via)
            else:
                self.unreached += 1
            if has_left or is_faulted:
                alike[end.target, is_faulted, has_left].append(end.duration_s)
            if end.ok and has_left and not is_faulted:
                self._record_if_unusually_slow(end)
            if end.first_byte_s is not None:
                self.first_byte.add_values([end.first_byte_s])
                self.last_byte.add_values([] if end.last_byte_s is None else [end.last_byte_s])
        for (target, is_faulted, has_left), durations_s in alike.items():
            of_target = self.by_target[intern(target)]
            (of_target.held if not has_left else of_target.met if is_faulted else of_target.calm).add_values(
                durations_s
            )

    def _record_if_unusually_slow(self, end: CallFinished) -> None:
        if (bound_s := self._late_from_s.get(end.target)) is not None:
            if end.duration_s > bound_s:
                self.late_s[end.target].append(end.duration_s)
            return
        first_s = self.first_s[intern(end.target)]
        first_s.append(end.duration_s)
        if len(first_s) == FIRST_COUNT:
            usual_s = median(first_s)
            self._late_from_s[end.target] = max(LATE_FACTOR * usual_s, usual_s + NOTICED_S)

    def sort_targets(self) -> AttemptDurations:
        """The same, sorted."""
        self.by_target = dict(sorted(self.by_target.items()))
        return self

    @cached_property
    def unfaulted_durations(self) -> Quantiles:
        """The durations of the attempts at all targets that met no fault."""
        return Quantiles.merge(*(durations.calm for durations in self.by_target.values()))


@dataclass(frozen=True)
class StreamTimes:
    """The times of the streamed replies, in seconds since their attempts began."""

    first_byte: Latency
    last_byte: Latency


def summarize_streams(attempts: AttemptDurations) -> StreamTimes | None:
    """The percentiles of the streamed replies among the attempts; None if nothing was streamed."""
    first, last = summarize_latency(attempts.first_byte), summarize_latency(attempts.last_byte)
    return StreamTimes(first, last) if first is not None and last is not None else None


class UnusuallySlowAttempts(NamedTuple):
    """The attempts at a target that met no fault, ended well and took far longer than its first ones."""

    target: str
    n: int
    longest_s: float
    before_s: float
    """The median of the first ones."""

    @property
    def summary_text(self) -> str:
        calls = (
            f"{self.n} call{'s' if self.n > 1 else ''} to {self.target} took up to {format_duration(self.longest_s)}"
        )
        return (
            f"{calls} without a fault, where its first {FIRST_COUNT} took {format_duration(self.before_s)} in the "
            "median"
        )


def find_unusually_slow_attempts(attempts: AttemptDurations) -> list[UnusuallySlowAttempts]:
    """Those of each target that has any, by name."""
    return [
        UnusuallySlowAttempts(target, len(late_s), max(late_s), median(attempts.first_s[target]))
        for target, late_s in sorted(attempts.late_s.items())
    ]
