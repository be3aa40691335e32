"""The share of the incidents that are not over yet, over the time since the fault began."""

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports.frames import recovery_corners
from chaoslab.reports.svg.parts import (
    Picture,
    draw_axis,
    draw_share_axis,
    format_share,
    make_element,
    make_linear_axis,
    make_picture,
    stretch,
)

HEIGHT = 190.0
"""The plot's height in pixels."""


def draw(report: RunReport) -> Picture | None:
    """Kaplan–Meier's curve with its 95 % interval (log–log); None if there are too few incidents."""
    corner_rows, incidents = recovery_corners(report), report.recovery.value.incidents
    if not corner_rows:
        return None
    corners, still_open = ([row for row in corner_rows if row["open"] is is_open] for is_open in (False, True))
    never_count, end_s = (
        sum(not incident.recovered and not incident.censored for incident in incidents),
        # The axis needs a length, also if all took no time.
        max(corners[-1]["seconds"], 1e-6),
    )
    scale = make_linear_axis(0.0, end_s)

    y, lines = draw_share_axis(HEIGHT, (0.0, 0.25, 0.5, 0.75, 1.0))

    def points(name: str) -> list[str]:
        return [f"{1000 * scale.place(row['seconds']):.1f},{y(row[name])}" for row in corners]

    elements = [*draw_axis(scale, "time since the call that met the fault began (s)", HEIGHT), *lines]
    band = make_element("polygon", points=" ".join([*points("high"), *reversed(points("low"))]), class_="band")
    elements.append(
        stretch(band, make_element("polyline", points=" ".join(points("share")), class_="line"), height=HEIGHT)
    )
    for row in still_open:
        x, middle = format_share(scale.place(row["seconds"])), y(row["share"])
        elements.append(make_element("line", x1=x, x2=x, y1=middle - 7, y2=middle + 7, class_="censored"))
    if never_count:
        level = y(never_count / len(incidents))
        elements.append(make_element("line", x1="0", x2="100%", y1=level, y2=level, class_="least"))
        elements.append(
            make_element("text", f"never, or with harm: {never_count}", x="100%", y=level - 5, text_anchor="end")
        )
    description = (
        f"Of {len(incidents)} incidents 100 % are not over at the start of the fault, and "
        f"{corners[-1]['share']:.0%} after "
        f"{end_s:.3g} s. {never_count} never recovered, or did so with harm. The table below holds the figures."
    )
    caption = "Incidents that are not over yet (Kaplan–Meier); shaded: 95 % interval"
    caption += "; broken line: the share that never recovered, or did so with harm" if never_count else ""
    caption += "; upright strokes: cut short, by the log's end or a dead service" if still_open else ""
    return make_picture("recovery", "Recovery over time", description, HEIGHT, elements, caption=f"{caption}.")
