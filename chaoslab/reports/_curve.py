"""The recovery curve of a run as corners to draw: Kaplan–Meier's share of the incidents that are not over yet.
`measures/mttr.py` defines it, and the medians of a run are those of this curve."""

from dataclasses import dataclass

from chaoslab.analysis.measures.intervals import kaplan_meier
from chaoslab.analysis.measures.mttr import ENOUGH, spells
from chaoslab.analysis.measures.run_report import RunReport


@dataclass(frozen=True)
class Curve:
    """The corners of a step curve. `times_s`: seconds since the fault began. `shares`: the share of the incidents that
    are not over, 0 to 1, at each corner; `lows`, `highs`: its 95 % interval (log–log). `censored`: (seconds, share) of
    the incidents that were open when the log ended. `n`: the number of incidents. `never`: of those that never
    recovered, or did so with harm."""

    times_s: tuple[float, ...]
    shares: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    censored: tuple[tuple[float, float], ...]
    n: int
    never: int

    @property
    def end_s(self) -> float:
        """The longest observed duration in seconds, and at least a microsecond."""
        return max(self.times_s[-1], 1e-6)


def curve(report: RunReport) -> Curve | None:
    """The curve of a run's incidents; None below 8 of them, where its interval would be misleading."""
    incidents = report.recovery.value.incidents
    if len(incidents) < ENOUGH:
        return None
    never = sum(not one.recovered and not one.cut for one in incidents)
    found = kaplan_meier(spells(incidents), [incident.trial for incident in incidents])
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
    at = sorted({one.duration_s for one in incidents if one.cut})
    censored = tuple((t, next(share for when, share, *_ in reversed(corners) if when <= t)) for t in at)
    return Curve(times, shares, lows, highs, censored, len(incidents), never)
