"""The errors at each target, with the fault that caused them, if any."""

from chaoslab.analysis.measures.errors import LAB, NOBODY
from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import LAB as LAB_COLOR
from chaoslab.reports.charts._palette import LONE, choose_fault_looks_of_run, choose_hatches
from chaoslab.reports.charts._style import (
    draw_legend,
    draw_message_figure,
    label_rows,
    make_figure,
    shorten_label,
    shorten_labels,
)
from chaoslab.reports.frames import Frames

ROWS = 14
"""The most kinds with a bar of their own."""


def errors(run: Frames) -> Figure:
    """A bar per target and kind of error. Its parts are the faults witnessed on the failed attempts, and the failures
    without one."""
    from matplotlib.ticker import MaxNLocator

    report, calls = run.measures, run.calls
    failed = calls[calls["failure"].notna()]
    causes = failed["cause"].fillna(NOBODY)
    total, uninjected_count, lab_count = len(failed), (causes == NOBODY).sum(), (causes == LAB).sum()
    note = f"{total - uninjected_count - lab_count:,} failed attempts with a witnessed fault, "
    note += f"{uninjected_count:,} that nobody injected"
    counts = causes.groupby(failed["target"] + " " + failed["failure"]).value_counts().unstack(fill_value=0)
    ranked = counts.loc[counts.sum(axis=1).sort_values(ascending=False, kind="stable").index]
    rows, other_kinds = ranked[:ROWS].copy(), ranked[ROWS:]
    if len(other_kinds):
        rows.loc[f"{len(other_kinds)} other kinds"] = other_kinds.sum()
    if failed.empty:
        return draw_message_figure(
            "Errors by target and kind",
            "no attempt failed in this run",
        )
    figure, axes = make_figure("Errors by target and kind", note, height_in=2.2 + 0.34 * max(4, len(rows)))
    positions = range(len(rows))
    looks = choose_fault_looks_of_run(report, {*counts} - {NOBODY, LAB})
    patterns = {NOBODY: "//", **choose_hatches(looks)}
    segments = [*((name, name, look.color) for name, look in looks.items()), (LAB, LAB, LAB_COLOR)]
    segments.append((NOBODY, NOBODY, LONE.color))
    starts = [0] * len(rows)
    for name, label, color in segments:
        widths = rows[name].tolist() if name in rows else [0] * len(rows)
        # Nobody's are drawn even if there are none: that there are none is worth a line of the legend.
        if not any(widths) and name != NOBODY:
            continue
        axes.barh(
            positions,
            widths,
            left=starts,
            height=0.62,
            color=color,
            hatch=patterns.get(name),
            edgecolor="white",
            linewidth=0.6,
            label=f"{shorten_label(label)} ({sum(widths):,})",
        )
        starts = [begin + width for begin, width in zip(starts, widths, strict=True)]
    label_rows(axes, shorten_labels([*rows.index], 40))
    axes.set_xlim(0, max(starts) * 1.06)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("failed attempts (count)")
    draw_legend(figure, axes)
    return figure
