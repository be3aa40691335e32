"""The errors at each target, with the fault that caused them, if any."""

from chaoslab.analysis.measures.errors import LAB, NOBODY
from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import LAB as LAB_COLOR
from chaoslab.reports.charts._palette import LONE, hatches, of_run
from chaoslab.reports.charts._style import canvas, legend, nothing, rows_named, short, shorts, unmet
from chaoslab.reports.frames import Frames

ROWS = 14
"""The most kinds with a bar of their own."""


def errors(run: Frames) -> Figure:
    """A bar per target and kind of error. Its parts are the faults witnessed on the failed attempts, and the failures
    without one."""
    from matplotlib.ticker import MaxNLocator

    report, calls = run.measures, run.calls
    met = calls["faults"].fillna("") != ""
    failed = calls[calls["failure"].notna()]
    causes = failed["cause"].fillna(NOBODY)
    total, lone, lab = len(failed), (causes == NOBODY).sum(), (causes == LAB).sum()
    note = f"{total - lone - lab:,} failed attempts with a witnessed fault, {lone:,} that nobody injected; "
    note += f"{(met & calls['ok']).sum():,} more met a fault and did not fail" if met.any() else unmet(report)
    found = causes.groupby(failed["target"] + " " + failed["failure"]).value_counts().unstack(fill_value=0)
    ranked = found.loc[found.sum(axis=1).sort_values(ascending=False, kind="stable").index]
    rows, rest = ranked[:ROWS].copy(), ranked[ROWS:]
    if len(rest):
        rows.loc[f"{len(rest)} other kinds"] = rest.sum()
    if failed.empty:
        return nothing(
            "Errors by target and kind",
            "no attempt failed in this run",
        )
    figure, axes = canvas("Errors by target and kind", note, height_in=2.2 + 0.34 * max(4, len(rows)))
    places = range(len(rows))
    looks = of_run(report, {*found} - {NOBODY, LAB})
    patterns = {NOBODY: "//", **hatches(looks)}
    parts = [*((name, name, look.color) for name, look in looks.items()), (LAB, LAB, LAB_COLOR)]
    parts.append((NOBODY, NOBODY, LONE.color))
    begins = [0] * len(rows)
    for name, label, color in parts:
        widths = rows[name].tolist() if name in rows else [0] * len(rows)
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
    rows_named(axes, shorts([*rows.index], 40))
    axes.set_xlim(0, max(begins) * 1.06)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("failed attempts (count)")
    legend(figure, axes)
    return figure
