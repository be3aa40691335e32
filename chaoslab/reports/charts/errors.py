"""The errors at each target, with the fault that caused them, if any."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from chaoslab.analysis.measures.errors import LAB, NOBODY
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports.charts.palette import FAILED, LONE, hatches, of_run
from chaoslab.reports.charts.palette import LAB as LAB_COLOR
from chaoslab.reports.charts.style import canvas, legend, nothing, short, shorts, unmet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = 14
"""The most kinds with a bar of their own."""


def errors(report: RunReport) -> Figure:
    """A bar per target and kind of error. Its parts are the faults witnessed on the failed attempts, and the failures
    without one."""
    from matplotlib.ticker import MaxNLocator

    told = report.knows_faults
    counted = report.errors.value
    found = counted.by_kind
    total = sum(counts.total() for counts in found.values())
    lone, lab = (sum(counts[of] for counts in found.values()) for of in (NOBODY, LAB))
    note = f"{total - lone - lab:,} failed attempts with a witnessed fault, {lone:,} that nobody injected; "
    note = note if told else f"{total:,} failed attempts; "
    note += f"{counted.passed:,} more met a fault and did not fail" if counted.met else unmet(report)
    ranked = sorted(found, key=lambda kind: (-found[kind].total(), kind))
    shown, rest = ranked[:ROWS], ranked[ROWS:]
    figure, axes = canvas("Errors by target and kind", note, height_in=2.2 + 0.34 * max(4, len(shown) + bool(rest)))
    if not found:
        nothing(axes, "no attempt failed in this run" if told else "no data: the log tells of no failed attempt")
        return figure
    rows = [(kind, found[kind]) for kind in shown]
    if rest:
        rows.append((f"{len(rest)} other kinds", sum((found[kind] for kind in rest), Counter())))
    places = range(len(rows))
    looks = of_run(report, (name for counts in found.values() for name in counts if name not in (NOBODY, LAB)))
    patterns = {NOBODY: "//", **hatches(looks)}
    parts = [*((name, name, look.color) for name, look in looks.items()), (LAB, LAB, LAB_COLOR)]
    parts.append((NOBODY, NOBODY if told else "injected or not", (LONE if told else FAILED).color))
    begins = [0] * len(rows)
    for name, label, color in parts:
        widths = [counts[name] for _, counts in rows]
        if not any(widths) and name != NOBODY:
            continue
        axes.barh(
            places,
            widths,
            left=begins,
            height=0.62,
            color=color,
            hatch=patterns.get(name),
            edgecolor="white",
            linewidth=0.6,
            label=f"{short(label)} ({sum(widths):,})",
        )
        begins = [begin + width for begin, width in zip(begins, widths, strict=True)]
    axes.set_yticks(places, shorts([kind for kind, _ in rows], 40))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, max(begins) * 1.06)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("failed attempts (count)")
    axes.grid(visible=False, axis="y")
    legend(figure, axes)
    return figure
