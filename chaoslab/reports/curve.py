"""The recovery curve of a run as corners to draw: Kaplan–Meier's share of the incidents that are not over yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.analysis.measures.incidents import Incident
from chaoslab.analysis.measures.intervals import kaplan_meier
from chaoslab.analysis.measures.mttr import ENOUGH


@dataclass(frozen=True)
class Curve:
    """The corners of a step curve. `times_s`: seconds since the fault began. `shares`: the share of the incidents that
    are not over, 0 to 1, at each corner; `lows`, `highs`: its 95 % interval (log–log). `censored`: (seconds, share) of
    the incidents that never recovered, or did so with harm. `n`: the number of incidents."""

    times_s: tuple[float, ...]
    shares: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    censored: tuple[tuple[float, float], ...]
    n: int

    @property
    def end_s(self) -> float:
        """The longest observed duration in seconds, and at least a microsecond."""
        return max(self.times_s[-1], 1e-6)


def curve(incidents: Sequence[Incident]) -> Curve | None:
    """The curve of these incidents; None below 8 of them, where its interval would be misleading."""
    spells = [incident.spell for incident in incidents]
    trials = [incident.trial for incident in incidents]
    found = kaplan_meier(spells, trials) if len(spells) >= ENOUGH else None
    if found is None:
        return None
    corners = [(0.0, 1.0, 1.0, 1.0)]
    for step in found.steps:
        _, *level = corners[-1]
        corners.append((step.at_s, level[0], level[1], level[2]))
        corners.append((step.at_s, step.share, step.interval.low, step.interval.high))
    if found.horizon_s > corners[-1][0]:
        corners.append((found.horizon_s, *corners[-1][1:]))
    times, shares, lows, highs = zip(*corners, strict=True)
    at = sorted({spell.duration_s for spell in spells if not spell.ended})
    censored = tuple((t, next(share for when, share, *_ in reversed(corners) if when <= t)) for t in at)
    return Curve(times, shares, lows, highs, censored, len(spells))
