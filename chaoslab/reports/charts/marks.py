"""Attempts as points: their colours and shapes, and their text in the legend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chaoslab.analysis.measures.durations import duration
from chaoslab.analysis.measures.latency import Attempt, latency
from chaoslab.reports.charts.palette import CLEAN, FAILED, LONE, Look, of_run
from chaoslab.reports.charts.style import counted, crowded, short, thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from chaoslab.analysis.run_report import RunReport


SIZES = {"*": 75, "X": 44, "P": 44, "x": 36, "+": 52, "1": 60, "2": 60, "3": 60}
"""The sizes of shapes that would otherwise look smaller than the others."""
FEW = 30
"""Up to so many attempts without a fault are drawn as large as the others."""
UNFILLED = ("x", "+", "1", "2", "3")
"""The shapes that are lines, and have no edge of another colour."""


@dataclass(frozen=True)
class Group:
    """Attempts of one kind."""

    name: str
    look: Look
    size: float
    attempts: Sequence[Attempt]
    share: float
    """Its place among the groups that have attempts without a positive duration, 0 to 1."""
    rank: int
    """The number of more frequent groups: those are drawn below."""

    def scatter(self, axes: Axes, place: Callable[[Attempt, float], tuple[float, float]]) -> None:
        """Draws the attempts at the positions that `place` returns."""
        shown, thinned = thin(self.attempts)
        places = [place(attempt, self.share) for attempt in shown]
        crossed = self.look.marker in UNFILLED
        size, edge = crowded(self.size, len(shown))
        axes.scatter(
            [x for x, _ in places],
            [y for _, y in places],
            s=size,
            color=self.look.color,
            marker=self.look.marker,
            edgecolors=None if crossed else "white",
            linewidths=1.5 if crossed else edge,
            zorder=2 + self.rank / 100,
            clip_on=False,
            label=f"{short(self.name)} ({len(self.attempts):,}{thinned})",
        )


def groups(found: Sequence[Attempt], report: RunReport) -> list[Group]:
    """The attempts by the faults they met; one that met two is in both groups. `report`: that of their run."""
    told = report.knows_faults
    looks = of_run(report, (fault for attempt in found for fault in attempt.faults))
    clean = [a for a in found if not a.faults and a.ok]
    lone = [a for a in found if not a.faults and not a.ok]
    made = [
        ("no fault" if told else "answered", Look(CLEAN, "o"), clean),
        *((name, look, [a for a in found if name in a.faults]) for name, look in looks.items()),
        ("failed, nobody injected", LONE, lone) if told else ("failed", FAILED, lone),
    ]
    made = [group for group in made if group[2]]
    counts = sorted((len(mine) for _, _, mine in made), reverse=True)
    at_edge = [name for name, _, mine in made if any(not a.duration_s > 0 for a in mine)]
    found_groups = []
    for name, look, mine in made:
        size = 12 if look.color == CLEAN and len(mine) > FEW else SIZES.get(look.marker, 34)
        share = (at_edge.index(name) + 0.5) / len(at_edge) if name in at_edge else 0.5
        found_groups.append(Group(name, look, size, mine, share, counts.index(len(mine))))
    return found_groups


def said(found: Sequence[Attempt]) -> str:
    """The numbers of attempts as text: those with a duration of their own, and the others."""
    figures = latency([a.duration_s for a in found if a.timed])
    parts = []
    if figures:
        times = f"median {duration(figures.p50_s)}, 99th percentile {duration(figures.p99_s)}"
        parts.append(f"{counted(figures.n, 'attempt')}: {times}")
    here = sum(not a.left for a in found)
    if here:
        parts.append(
            f"{here:,} more never reached their target"
            if figures
            else f"{counted(here, 'attempt')}, none of which reached its target"
        )
    untold = sum(a.left and not a.timed for a in found)
    if untold:
        parts.append(f"of {untold:,} the log tells no duration")
    return "; ".join(parts)
