"""How long attempts took, from leaving the seam to their end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.core.events import CallDisturbed, CallFinished, FaultWitnessed
from chaoslab.record.history import History


@dataclass(frozen=True)
class Attempt:
    """One attempt; `t` is its end, `faults` are those witnessed on it, by name. A duration of NaN is not told."""

    trial: str
    target: str
    t: float
    duration_s: float
    ok: bool
    via: str
    faults: tuple[str, ...]

    @property
    def left(self) -> bool:
        """Whether it left the seam; else it was refused, or answered in its target's place."""
        return self.via != "none"

    @property
    def timed(self) -> bool:
        """Whether its duration is the target's own, and told."""
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
    """Every attempt that left the seam and whose duration is told, in the order in which they ended; but for those that the lab
    itself got in the way of, since their durations are no target's."""
    return [attempt for attempt in every_attempt(history) if attempt.timed]


def every_attempt(history: History) -> list[Attempt]:
    """The same, with those that never left the seam and those whose duration is not told."""
    disturbed = {(record.trial, e.target, e.request, e.attempt) for record, e in history.of(CallDisturbed)}
    faults: dict[tuple[str | None, str, int, int], list[str]] = {}
    for record, met in history.of(FaultWitnessed):
        faults.setdefault((record.trial, met.target, met.request, met.attempt), []).append(met.fault)
    found = []
    for record, e in history.of(CallFinished):
        place = (record.trial, e.target, e.request, e.attempt)
        if place not in disturbed:
            names = tuple(dict.fromkeys(faults.get(place, ())))
            found.append(Attempt(record.trial or "", e.target, record.t, e.duration_s, e.ok, e.via, names))
    return found


def latency(durations_s: Sequence[float]) -> Latency | None:
    """None without durations."""
    if not durations_s:
        return None
    p50, p90, p99 = (percentile(durations_s, share) for share in (0.5, 0.9, 0.99))
    return Latency(len(durations_s), p50, p90, p99, max(durations_s))


def percentile(values: Sequence[float], share: float) -> float:
    """Linear between the two nearest ranks: type 7 of Hyndman and Fan (1996), which NumPy uses too."""
    ranked = sorted(values)
    place = share * (len(ranked) - 1)
    low = ranked[math.floor(place)]
    return low + (ranked[math.ceil(place)] - low) * (place - math.floor(place))
