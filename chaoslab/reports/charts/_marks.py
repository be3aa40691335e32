"""Attempts as points: their colours and shapes, and their text in the legend."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.measures.latency import Attempts, latency
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import duration
from chaoslab.reports._types import Axes, DataFrame
from chaoslab.reports.charts._palette import CLEAN, INK, LONE, Look, of_run
from chaoslab.reports.charts._style import crowded, short, thin
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import count

SIZES = {"*": 90, "X": 44, "P": 44, "x": 36, "+": 52, "1": 60, "2": 60, "3": 60}
"""The sizes of shapes that would otherwise look smaller than the others."""
SECONDS = ("ended_s", "duration_s", "first_token_s", "last_token_s")
FEW = 30
"""Up to so many attempts without a fault are drawn as large as the others."""
MARK = 0.012
"""The width of a mark, as a share of its axis."""
UNFILLED = ("x", "+", "1", "2", "3")
"""The shapes that are lines, and have no edge of another colour."""


def attempts(run: Frames) -> DataFrame:
    """The calls that ended, in that order, without those whose duration is not their target's: the lab disturbed them,
    or their agent gave them up. `met`: the faults witnessed on each, as a tuple. `left`: it reached its target."""
    calls = run.calls
    found = calls[calls["ended_s"].notna() & ~calls["disturbed"] & ~calls["given_up"].fillna(value=False)]
    found = found.sort_values("ended_s", kind="stable").astype(dict.fromkeys(SECONDS, float) | {"ok": bool})
    met = [tuple(dict.fromkeys(names.split(", "))) if names else () for names in found["faults"].fillna("")]
    return found.assign(met=met, left=found["via"] != "none")


@dataclass(frozen=True)
class Group:
    """Attempts of one kind."""

    name: str
    look: Look
    size: float
    attempts: DataFrame
    share: float
    """Its place among the groups that have attempts without a positive duration, 0 to 1."""
    rank: int
    """The number of more frequent groups: those are drawn below."""

    def scatter(self, axes: Axes, place: Callable[[Any, float, float], tuple[float, float]]) -> None:
        """Draws the attempts at the positions that `place` returns for each, its share of the edge and the number of
        marks that it stands aside: an attempt with several faults has a mark for each, and none hides another."""
        shown, thinned = thin(self.attempts)
        places = [place(attempt, self.share, self._aside(attempt)) for attempt in shown.itertuples()]
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

    def _aside(self, attempt: Any) -> float:
        several = len(attempt.met) > 1
        return attempt.met.index(self.name) - (len(attempt.met) - 1) / 2 if several else 0.0


def groups(found: DataFrame, report: RunReport) -> list[Group]:
    """The attempts by the faults they met; one that met two is in both groups. `report`: that of their run."""
    calm = ~found["met"].astype(bool)
    looks = of_run(report, found["met"].explode().dropna())
    every = [
        ("no fault", Look(CLEAN, "o"), found[found["ok"] & calm]),
        *((name, look, found[[name in met for met in found["met"]]]) for name, look in looks.items()),
        ("failed, nobody injected", LONE, found[~found["ok"] & calm]),
    ]
    made = [each for each in every if len(each[2])]
    counts = sorted((len(mine) for *_, mine in made), reverse=True)
    at_edge = [name for name, _, mine in made if not (mine["duration_s"] > 0).all()]
    found_groups = []
    for name, look, mine in made:
        size = 12 if look.color == CLEAN and len(mine) > FEW else SIZES.get(look.marker, 34)
        share = (at_edge.index(name) + 0.5) / len(at_edge) if name in at_edge else 0.5
        found_groups.append(Group(name, look, size, mine, share, counts.index(len(mine))))
    return found_groups


def deadlines(axes: Axes, report: RunReport, *, axis: str) -> None:
    """A line at each deadline of the lab's agent that is within the axis, for a tool and for the model."""
    given = report.started.settings if report.started and not report.of_functions else {}
    for name, whose, dashes in (("TOOL_TIMEOUT_S", "a tool", (4, 3)), ("MODEL_TIMEOUT_S", "the model", (1, 2))):
        at = given.get(name)
        high = (axes.get_xlim() if axis == "x" else axes.get_ylim())[1]
        if isinstance(at, (int, float)) and 0 < at <= high:
            label = f"deadline of {whose} ({at:g} s)"
            (axes.axvline if axis == "x" else axes.axhline)(
                at, color=INK, linewidth=0.9, linestyle=(0, dashes), zorder=0.6, label=label
            )


def said(found: Attempts) -> str:
    """The numbers of attempts as text: those with a duration of their own, and the others."""
    figures = latency(found.timed)
    parts = []
    if figures:
        times = f"median {duration(figures.p50_s)}, 99th percentile {duration(figures.p99_s)}"
        parts.append(f"{count(figures.n, 'attempt')}: {times}")
    here = found.number(lambda kind: not kind.left)
    if here:
        parts.append(
            f"{here:,} more never reached their target"
            if figures
            else f"{count(here, 'attempt')}, none of which reached its target"
        )
    untold = found.number(lambda kind: kind.left and not kind.known)
    if untold:
        parts.append(f"of {untold:,} the log tells no duration")
    return "; ".join(parts)
