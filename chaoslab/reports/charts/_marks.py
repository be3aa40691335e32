"""Attempts as points: their colours and shapes, and their text in the legend."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports._types import Axes, DataFrame
from chaoslab.reports.charts._palette import CLEAN, INK, LONE, Look, choose_fault_looks_of_run
from chaoslab.reports.charts._style import choose_mark_size, sample_rows, shorten_label
from chaoslab.reports.frames import Frames

SIZES = {"*": 90, "X": 44, "P": 44, "x": 36, "+": 52, "1": 60, "2": 60, "3": 60}
"""The sizes of shapes that would otherwise look smaller than the others."""
SECONDS = ("ended_s", "duration_s", "first_token_s", "last_token_s")
FEW = 30
"""Up to so many attempts without a fault are drawn as large as the others."""
MARK = 0.012
"""The width of a mark, as a share of its axis."""
UNFILLED = ("x", "+", "1", "2", "3")
"""The shapes that are lines, and have no edge of another colour."""


def select_ended_attempts(run: Frames) -> DataFrame:
    """The calls that ended, in that order, without those whose duration is not their target's: the lab disturbed them,
    or their agent gave them up. `fault_names`: the faults witnessed on each, as a tuple. `left`: it reached its
    target."""
    calls = run.calls
    ended_calls = calls[calls["ended_s"].notna() & ~calls["disturbed"] & ~calls["given_up"].fillna(value=False)]
    # stable, so that calls of one moment stay in the log's order; float, since NA of pandas cannot be drawn.
    ended_calls = ended_calls.sort_values("ended_s", kind="stable").astype(dict.fromkeys(SECONDS, float) | {"ok": bool})
    fault_names = [
        tuple(dict.fromkeys(names.split(", "))) if names else () for names in ended_calls["faults"].fillna("")
    ]
    return ended_calls.assign(met=fault_names, left=ended_calls["via"] != "none")


@dataclass(frozen=True)
class FaultGroup:
    """Attempts of one kind."""

    name: str
    look: Look
    size: float
    attempts: DataFrame
    share: float
    """Its place among the groups that have attempts without a positive duration, 0 to 1."""
    rank: int
    """The number of more frequent groups: those are drawn below."""

    def draw_scatter(self, axes: Axes, position: Callable[[Any, float, float], tuple[float, float]]) -> None:
        """Draws the attempts at the positions that `position` returns for each, its share of the edge and the number of
        marks that it is shifted: an attempt with several faults has a mark for each, and none hides another."""
        drawn, thinned = sample_rows(self.attempts)
        positions = [
            position(attempt, self.share, self._compute_mark_offset(attempt)) for attempt in drawn.itertuples()
        ]
        crossed = self.look.marker in UNFILLED
        size, edge = choose_mark_size(self.size, len(drawn))
        axes.scatter(
            [x for x, _ in positions],
            [y for _, y in positions],
            s=size,
            color=self.look.color,
            marker=self.look.marker,
            edgecolors=None if crossed else "white",
            linewidths=1.5 if crossed else edge,
            # Rare groups on top: they would vanish below the frequent ones.
            zorder=2 + self.rank / 100,
            # Else the points at the edge of the axes would be cut to halves.
            clip_on=False,
            label=f"{shorten_label(self.name)} ({len(self.attempts):,}{thinned})",
        )

    def _compute_mark_offset(self, attempt: Any) -> float:
        several = len(attempt.met) > 1
        return attempt.met.index(self.name) - (len(attempt.met) - 1) / 2 if several else 0.0


def group_attempts_by_fault(marks: DataFrame, report: RunReport) -> list[FaultGroup]:
    """The attempts by the faults they met; one that met two is in both groups. `report`: that of their run."""
    without_fault = ~marks["met"].astype(bool)
    looks = choose_fault_looks_of_run(report, marks["met"].explode().dropna())
    candidates = [
        ("no fault", Look(CLEAN, "o"), marks[marks["ok"] & without_fault]),
        *((name, look, marks[[name in met for met in marks["met"]]]) for name, look in looks.items()),
        ("failed, nobody injected", LONE, marks[~marks["ok"] & without_fault]),
    ]
    nonempty = [candidate for candidate in candidates if len(candidate[2])]
    counts = sorted((len(members) for *_, members in nonempty), reverse=True)
    at_edge = [name for name, _, members in nonempty if not (members["duration_s"] > 0).all()]
    drawn_groups = []
    for name, look, members in nonempty:
        # Many points without a fault would hide those with one.
        size = 12 if look.color == CLEAN and len(members) > FEW else SIZES.get(look.marker, 34)
        share = (at_edge.index(name) + 0.5) / len(at_edge) if name in at_edge else 0.5
        drawn_groups.append(FaultGroup(name, look, size, members, share, counts.index(len(members))))
    return drawn_groups


def draw_deadlines(axes: Axes, report: RunReport, *, axis: str) -> None:
    """A line at each deadline of the lab's agent that is within the axis, for a tool and for the model."""
    settings = report.started.settings if report.started and not report.of_functions else {}
    for name, owner, dashes in (("TOOL_TIMEOUT_S", "a tool", (4, 3)), ("MODEL_TIMEOUT_S", "the model", (1, 2))):
        deadline_s = settings.get(name)
        # Beyond the axis it would stand in the legend alone.
        high = (axes.get_xlim() if axis == "x" else axes.get_ylim())[1]
        if isinstance(deadline_s, (int, float)) and 0 < deadline_s <= high:
            label = f"deadline of {owner} ({deadline_s:g} s)"
            (axes.axvline if axis == "x" else axes.axhline)(
                deadline_s, color=INK, linewidth=0.9, linestyle=(0, dashes), zorder=0.6, label=label
            )
