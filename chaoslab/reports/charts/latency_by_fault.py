"""The durations of attempts with and without a fault, by target."""

from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import CLEAN, MET
from chaoslab.reports.charts._style import canvas, legend, nothing, rows_named, scale, shorts, unmet
from chaoslab.reports.frames import Frames

ROWS = 16
"""The most targets in the picture, those with the most attempts."""
KINDS = (("no fault", CLEAN, "o", -0.17), ("met a fault", MET, "D", 0.17))
"""Each kind: its name, colour, shape, and place within its row."""
PERCENTILES = ("p10_s", "p50_s", "p90_s")


def latency_by_fault(run: Frames) -> Figure:
    """Two lines per target, without and with a fault: the median as a point, from the 10th to the 90th percentile.
    Percentiles by type 7 of Hyndman and Fan."""
    title, report, found = "Latency with and without faults", run.measures, run.latency
    if found.empty or not report.knows_faults:
        return nothing(
            title, unmet(report) if not report.knows_faults else "no data: no call with a duration in this run"
        )
    sizes = (
        found.pivot(index="target", columns="met", values="attempts")
        .reindex(columns=[False, True])
        .fillna(0)
        .astype(int)
    )
    ranked = sizes.sum(axis=1).sort_values(ascending=False, kind="stable").index
    names = [*ranked[:ROWS]]
    note = "point: median; line: 10th to 90th percentile; n without and with a fault"
    note += f"; {len(ranked) - ROWS} more targets have fewer attempts" if len(ranked) > ROWS else ""
    figure, axes = canvas(title, note, height_in=1.9 + 0.46 * len(names))
    shown = found[found["target"].isin(names)]
    scaled = scale(axes, [value for name in PERCENTILES for value in shown[name]], axis="x")
    for met, (said, color, marker, aside) in enumerate(KINDS):
        drawn = shown[shown["met"] == bool(met)]
        if len(drawn):
            lows, middles, highs = (scaled.places(drawn[name]) for name in PERCENTILES)
            rows = [names.index(name) + aside for name in drawn["target"]]
            axes.hlines(rows, lows, highs, color=color, linewidth=3, alpha=0.75)
            axes.plot(middles, rows, linestyle="", marker=marker, markersize=7, color=color, label=said, clip_on=False)
    labels = [
        f"{said} ({', '.join(f'{n:,}' for n in sizes.loc[name])})"
        for name, said in zip(names, shorts(names), strict=True)
    ]
    rows_named(axes, labels)
    axes.set_xlabel(f"duration of the attempt (s{scaled.suffix})")
    legend(figure, axes)
    return figure
