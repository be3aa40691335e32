"""The cost of each fault to a trial that met it."""

from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import SLATE, of_run
from chaoslab.reports.charts._style import canvas, nothing, rows_named, short, unmet
from chaoslab.reports.contents._spent import AMOUNTS, SEVERAL, amount, apart, nothing_added
from chaoslab.reports.frames import Frames

ROWS = 16
"""The most faults in the picture, the dearest."""


def cost_of_chaos(run: Frames) -> Figure:
    """A bar per fault: the seconds that it added to its trials; beside it the calls, tokens, dollars and effects."""
    title = "Cost of chaos by fault"
    report, rows = run.measures, run.costs
    if rows.empty:
        return nothing(title, nothing_added(report) if report.met else f"no data: {unmet(report)}")
    main, *others = (name for name in AMOUNTS if rows[name].notna().any())
    shown = rows[:ROWS]
    note = [
        "sum over the trials that met this fault alone, beside the same trials without faults",
        apart(report),
        f"{len(rows) - ROWS} more rows in the report" if len(rows) > ROWS else "",
    ]
    figure, axes = canvas(title, "; ".join(filter(None, note)), height_in=1.7 + 0.42 * max(3, len(shown)))
    looks = of_run(report, (fault for fault in shown["fault"] if fault != SEVERAL))
    widths = shown[main].tolist()
    colors = [looks[fault].color if fault in looks else SLATE for fault in shown["fault"]]
    axes.barh(shown.index, widths, height=0.6, color=colors)
    axes.axvline(0, color=SLATE, linewidth=0.8)
    for place, row in shown[others].iterrows():
        said = ", ".join(amount(name, value) for name, value in row.dropna().items())
        axes.text(1.01, place, said, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
    counts = zip(shown["fault"], shown["trials"], strict=True)
    rows_named(axes, [f"{short(fault)} ({trials:,})" for fault, trials in counts])
    low, high = min(0.0, *widths), max(0.0, *widths)
    margin = 0.05 * (high - low) or 1.0
    axes.set_xlim(low - (margin if low else 0.0), high + margin)
    axes.set_xlabel(f"added {main} (sum; number of trials beside the name)")
    return figure
