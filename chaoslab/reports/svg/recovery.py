"""The share of the incidents that are not over yet, over the time since the fault began."""

from collections.abc import Sequence

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports._points import curve
from chaoslab.reports.svg.parts import Picture, axis, el, linear, picture, share, stretched, upright

HEIGHT = 190.0
"""The plot's height in pixels."""


def draw(report: RunReport) -> Picture | None:
    """Kaplan–Meier's curve with its 95 % interval (log–log); None if there are too few incidents."""
    found = curve(report)
    if found is None:
        return None
    scale = linear(0.0, found.end_s)

    y, lines = upright(HEIGHT, (0.0, 0.25, 0.5, 0.75, 1.0))

    def points(shares: Sequence[float]) -> list[str]:
        return [f"{1000 * scale.place(t):.1f},{y(value)}" for t, value in zip(found.times_s, shares, strict=True)]

    parts = [*axis(scale, "time since the call that met the fault began (s)", HEIGHT), *lines]
    band = el("polygon", points=" ".join([*points(found.highs), *reversed(points(found.lows))]), class_="band")
    parts.append(stretched(band, el("polyline", points=" ".join(points(found.shares)), class_="line"), height=HEIGHT))
    for t, value in found.censored:
        x = share(scale.place(t))
        parts.append(el("line", x1=x, x2=x, y1=y(value) - 7, y2=y(value) + 7, class_="censored"))
    if found.never:
        level = y(found.never / found.n)
        parts.append(el("line", x1="0", x2="100%", y1=level, y2=level, class_="least"))
        parts.append(el("text", f"never, or with harm: {found.never}", x="100%", y=level - 5, text_anchor="end"))
    said = (
        f"Of {found.n} incidents 100 % are not over at the start of the fault, and {found.shares[-1]:.0%} after "
        f"{found.end_s:.3g} s. {found.never} never recovered, or did so with harm. The table below holds the figures."
    )
    caption = "Incidents that are not over yet (Kaplan–Meier); shaded: 95 % interval"
    caption += "; broken line: the share that never recovered, or did so with harm" if found.never else ""
    caption += "; upright strokes: cut short, by the log's end or a dead service" if found.censored else ""
    return picture("recovery", "Recovery over time", said, HEIGHT, parts, caption=f"{caption}.")
