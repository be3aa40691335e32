"""Attempts as points: which colour and shape each has, and what the legend says of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chaoslab.measures.durations import duration
from chaoslab.measures.latency import Attempt, latency
from chaoslab.reports.charts.palette import CLEAN, LONE, Look, faults
from chaoslab.reports.charts.style import counted, short, thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Group:
    """Attempts of one kind."""

    name: str
    look: Look
    size: float
    attempts: Sequence[Attempt]

    def scatter(self, axes: Axes, place: Callable[[Attempt], tuple[float, float]]) -> None:
        """Draws them where `place` says."""
        shown, thinned = thin(self.attempts)
        places = [place(attempt) for attempt in shown]
        crossed = self.look.marker == "x"
        axes.scatter(
            [x for x, _ in places],
            [y for _, y in places],
            s=self.size,
            color=self.look.color,
            marker=self.look.marker,
            edgecolors=None if crossed else "white",
            linewidths=1.5 if crossed else 0.4,
            label=f"{short(self.name)} ({len(self.attempts):,}{thinned})",
        )


def groups(found: Sequence[Attempt], *, told: bool) -> list[Group]:
    """The attempts by what they met; one that met two faults is in both groups. `told`: whether the log tells of faults."""
    looks = faults(fault for attempt in found for fault in attempt.faults)
    clean = [a for a in found if not a.faults and a.ok]
    lone = [a for a in found if not a.faults and not a.ok]
    made = [
        Group("no fault" if told else "answered", Look(CLEAN, "o"), 12, clean),
        *(Group(name, look, 34, [a for a in found if name in a.faults]) for name, look in looks.items()),
        Group("failed, nobody injected" if told else "failed", LONE, 36, lone),
    ]
    return [group for group in made if group.attempts]


def said(found: Sequence[Attempt]) -> str:
    """The attempts in numbers: those with a duration of their own, and the others."""
    figures = latency([a.duration_s for a in found if a.timed])
    parts = []
    if figures:
        times = f"median {duration(figures.p50_s)}, 99th percentile {duration(figures.p99_s)}"
        parts.append(f"{counted(figures.n, 'attempt')}: {times}")
    here = sum(not a.left for a in found)
    if here:
        parts.append(f"{here:,} more never left the agent" if figures else f"{counted(here, 'attempt')}, none of which left the agent")
    untold = sum(a.left and not a.timed for a in found)
    if untold:
        parts.append(f"of {untold:,} the log tells no duration")
    return "; ".join(parts)
