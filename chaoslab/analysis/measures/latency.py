"""The duration of attempts, from leaving the seam to their end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import NamedTuple

from chaoslab.core.events import CallDisturbed, CallFinished, FaultWitnessed
from chaoslab.record.history import History, Place


class Attempt(NamedTuple):
    """One attempt. `t`: its end. `faults`: the names of those witnessed on it. A duration of NaN is unknown.

    `first_byte_s` and `last_byte_s` tell when a streamed reply's first and last part reached the caller; None for any
    other.
    """

    trial: str
    target: str
    t: float
    duration_s: float
    ok: bool
    via: str
    faults: tuple[str, ...]
    first_byte_s: float | None = None
    last_byte_s: float | None = None

    @property
    def left(self) -> bool:
        """True if it left the seam. Otherwise it was refused, or answered in place of its target."""
        return self.via != "none"

    @property
    def timed(self) -> bool:
        """True if its duration is known and the target's own."""
        return self.left and not math.isnan(self.duration_s)


@dataclass(frozen=True)
class Latency:
    """Percentiles of `n` durations (n is above 0), in seconds."""

    n: int
    p50_s: float
    p90_s: float
    p99_s: float
    longest_s: float


def attempts(history: History) -> list[Attempt]:
    """The attempts that left the seam with a known duration, in the order in which they ended. Those that the lab
    disturbed and those that were given up are left out, since their durations are not the target's."""
    return [attempt for attempt in every_attempt(history) if attempt.timed]


@dataclass
class Attempts:
    """Collects the attempts of batches."""

    found: list[Attempt] = field(default_factory=list)

    def take(self, history: History) -> None:
        aside = {at for _, _, at in history.placed(CallDisturbed)} | history.given_up
        faults: dict[Place, tuple[str, ...]] = {}
        for _, met, at in history.placed(FaultWitnessed):
            before = faults.get(at, ())
            if met.fault not in before:
                faults[at] = (*before, intern(met.fault))
        new = tuple.__new__  # a NamedTuple's own takes three times as long
        self.found += [
            new(
                Attempt,
                (
                    intern(at[0] or ""),
                    intern(at[1]),
                    record.t,
                    e.duration_s,
                    e.ok,
                    intern(e.via),
                    faults.get(at, ()),
                    first_s := e.first_byte_s,
                    None if first_s is None else e.last_byte_s,
                ),
            )
            for record, e, at in history.placed(CallFinished)
            if not aside or at not in aside
        ]


def every_attempt(history: History) -> list[Attempt]:
    """The same, with those that never left the seam and those without a known duration."""
    found = Attempts()
    found.take(history)
    return found.found


@dataclass(frozen=True)
class Streamed:
    """The times of the streamed replies, in seconds since their attempts began."""

    first_byte: Latency
    last_byte: Latency


def streamed(found: Sequence[Attempt]) -> Streamed | None:
    """The percentiles of the streamed replies among the attempts; None if nothing was streamed."""
    first = latency([a.first_byte_s for a in found if a.first_byte_s is not None])
    last = latency([a.last_byte_s for a in found if a.last_byte_s is not None])
    return Streamed(first, last) if first is not None and last is not None else None


def by_fault(found: Iterable[Attempt]) -> dict[str, tuple[list[float], list[float]]]:
    """The known durations of each target's attempts, without a fault and with one. A fault's own count too: the caller
    waits for an answer, or for the end of a call, whether or not the target is asked."""
    durations: dict[str, tuple[list[float], list[float]]] = {}
    for attempt in found:
        if attempt.timed or (attempt.faults and not math.isnan(attempt.duration_s)):
            durations.setdefault(attempt.target, ([], []))[bool(attempt.faults)].append(attempt.duration_s)
    return durations


def latency(durations_s: Sequence[float]) -> Latency | None:
    """The percentiles of the durations; None without any."""
    if not durations_s:
        return None
    p50, p90, p99 = (percentile(durations_s, share) for share in (0.5, 0.9, 0.99))
    return Latency(len(durations_s), p50, p90, p99, max(durations_s))


def percentile(values: Sequence[float], share: float) -> float:
    """The percentile, linear between the two nearest ranks: type 7 of Hyndman and Fan (1996), as in NumPy."""
    ranked = sorted(values)
    place = share * (len(ranked) - 1)
    low = ranked[math.floor(place)]
    return low + (ranked[math.ceil(place)] - low) * (place - math.floor(place))
