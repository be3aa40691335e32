"""The recovery curve as the numbers of an inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.analysis.run_report import RunReport
from chaoslab.reports.curve import curve

WIDTH, HEIGHT = 640, 250
"""The size of the picture in its own units."""
LEFT, RIGHT, TOP, BOTTOM = 60, 622, 14, 206
TICKS = 6
"""About the number of ticks on the axis of time."""


@dataclass(frozen=True)
class Drawn:
    """A picture. `line`, `band`: points of SVG. `marks`: the places of the censored. `times`, `shares`: (place, label)
    of each tick. `said`: the same in words."""

    line: str
    band: str
    marks: Sequence[tuple[float, float]]
    times: Sequence[tuple[float, str]]
    shares: Sequence[tuple[float, str]]
    said: str


def drawn(report: RunReport) -> Drawn | None:
    """The curve of all incidents of the run; None if there are too few or the measure failed."""
    if report.recovery.unknown:
        return None
    found = curve(report.recovery.value.incidents)
    if found is None:
        return None

    def x(seconds: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * seconds / found.end_s, 1)

    def y(share: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * share, 1)

    def points(shares: Sequence[float]) -> list[str]:
        return [f"{x(t)},{y(share)}" for t, share in zip(found.times_s, shares, strict=True)]

    left = found.shares[-1]
    return Drawn(
        line=" ".join(points(found.shares)),
        band=" ".join([*points(found.highs), *reversed(points(found.lows))]),
        marks=[(x(t), y(share)) for t, share in found.censored],
        times=[(x(t), f"{t:g} s") for t in _ticks(found.end_s)],
        shares=[(y(share), f"{share:.0%}") for share in (0, 0.25, 0.5, 0.75, 1)],
        said=f"Share of {found.n} incidents that are not over yet, from 100 % at the start of the fault to "
        f"{left:.0%} after {found.end_s:.3g} s. The table below holds the figures.",
    )


def _ticks(end: float) -> list[float]:
    """Round numbers from 0 to the end."""
    rough = end / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= rough)
    return [round(n * step, 9) for n in range(int(end / step + 1e-9) + 1)]
