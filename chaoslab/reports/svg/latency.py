"""The durations of each target's attempts, without and with a fault."""

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import duration
from chaoslab.reports.svg.parts import Picture, axis, durations, el, picture, share
from chaoslab.reports.text import apart, one_line

ROW = 54.0
"""The height of a target's row in pixels."""
ROWS = 16
"""The most targets in the picture, those with the most attempts."""
NAME, LABEL = 60, 22
"""The most characters of a name, and of one beside its lines, which must fit on a phone."""
QUANTILES = (0.1, 0.5, 0.9)


def draw(report: RunReport) -> Picture | None:
    """Two lines per target, from the 10th to the 90th percentile with a mark at the median (type 7 of Hyndman and Fan).
    None if the log tells of no fault or no duration."""
    found = report.attempts.value.by_target
    if not found or not any(of.both[1] for of in found.values()):
        return None
    ranked = sorted(found, key=lambda name: (*(-len(each) for each in reversed(found[name].both)), name))
    names = ranked[:ROWS]
    figures = {
        (name, met): [*map(values.at, QUANTILES)]
        for name in names
        for met, values in enumerate(found[name].both)
        if values
    }
    scale = durations([value for three in figures.values() for value in three])
    height, labels = ROW * len(names), apart(names, LABEL)
    parts = axis(scale, f"duration of the attempt (s{', logarithmic' if scale.logarithmic else ''})", height)
    for row, name in enumerate(names):
        calm, met = map(len, found[name].both)
        parts.append(el("text", f"{labels[name]} ({calm:,} without, {met:,} with)", x=2, y=ROW * row + 14))
        for kind in (0, 1):
            if three := figures.get((name, kind)):
                low, middle, high = (share(scale.place(value)) for value in three)
                y, said = ROW * row + 26 + 15 * kind, ("without a fault", "with a fault")[kind]
                title = el("title", f"{one_line(name, NAME)} {said}: median {duration(three[1], 2)}, "
                           f"{duration(three[0], 2)} to {duration(three[2], 2)}")  # fmt: skip
                style = ("calm", "met")[kind]
                mark = (
                    el("circle", cx=middle, cy=y, r=5, class_=f"end {style}")
                    if kind == 0
                    else el("text", "◆", x=middle, y=y + 6, text_anchor="middle", class_=f"end {style}")
                )
                parts.append(el("g", title, el("line", x1=low, x2=high, y1=y, y2=y, class_=f"bar {style}"), mark))
    worst = max(names, key=lambda name: figures.get((name, 1), [0, 0])[1])
    said = f"The longest median with a fault is that of {one_line(worst, NAME)}, {duration(figures[worst, 1][1], 2)}"
    said += f"; without one it is {duration(figures[worst, 0][1], 2)}." if (worst, 0) in figures else "."
    caption = "● without a fault, ◆ with one: the median, and a line from the 10th to the 90th percentile"
    caption += f"; {len(ranked) - ROWS} more targets have fewer attempts" if len(ranked) > ROWS else ""
    said += " The table below holds the figures."
    return picture("latency", "Latency with and without faults", said, height, parts, caption=f"{caption}.")
