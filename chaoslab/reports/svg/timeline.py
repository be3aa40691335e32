"""The faults that were met and the recoveries from them, over the time of the run."""

import math
from collections import Counter
from xml.etree.ElementTree import Element

from chaoslab.analysis.measures.incidents import Ending, Incident
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import duration
from chaoslab.reports.page import count
from chaoslab.reports.svg.parts import (
    Picture,
    PictureAxis,
    draw_axis,
    format_share,
    make_element,
    make_linear_axis,
    make_picture,
    stretch,
)
from chaoslab.reports.text import make_one_line, shorten_apart

LANE = 44.0
"""The height of a lane in pixels."""
LANES = 16
"""The most targets with a lane, those with the most faults."""
BARS = 400
"""The most incidents drawn; of more, evenly spaced ones."""
CROWD = 80
"""The number of incidents above which their marks are small."""
LINKS = 40
"""The most incidents that are links to their trials: with more, a keyboard would need too long to pass them."""
NAME, LABEL = 60, 32
"""The most characters of a name, and of one beside a lane, which must fit on a phone."""
SAID = {
    Ending.RETRY: "recovered by retry", Ending.FALLBACK: "recovered by fallback", Ending.LATE: "late, but right",
    Ending.HARM: "recovered with harm", Ending.NEVER: "never recovered",
    Ending.CENSORED: "cut short",
}  # fmt: skip


def draw(report: RunReport) -> Picture | None:
    """A lane per target: a stroke per attempt that met a fault, and a bar per incident from the fault to its end. None
    if no fault was met."""
    attempts_measure = report.attempts.value
    faulted_attempts = [attempt for attempt in attempts_measure.drawn if attempt.faults]
    counts = attempts_measure.numbers(lambda kind: bool(kind.faults))
    attempts = counts.total()
    incidents = report.recovery.value.incidents
    if not counts and not incidents:
        return None
    # A target whose faults are not among the drawn attempts has its incidents all the same.
    counts.update(incident.target for incident in incidents if incident.target not in counts)
    # By name where two met as many, so that the lanes do not depend on the log's order.
    targets = sorted(counts, key=lambda name: (-counts[name], name))[:LANES]
    ends = [attempts_measure.ended_t, *(i.opened_t + i.duration_s for i in incidents)]
    span = max(ends) - report.began_t
    # The axis needs a length, also if all took no time.
    scale = make_linear_axis(0.0, span if span > 1e-6 else 1.0)
    # or 1, where there are none.
    step = math.ceil(len(incidents) / BARS) or 1
    drawn_incidents, links = incidents[::step], len(incidents) <= LINKS
    height, names = LANE * len(targets), shorten_apart(targets, LABEL)
    elements = draw_axis(scale, "time since the first trial began (s)", height)
    for lane, target in enumerate(targets):
        top = LANE * lane
        strokes = [
            scale.place(a.t - _duration_or_zero(a.duration_s) - report.began_t)
            for a in faulted_attempts
            if a.target == target
        ]
        elements.append(make_element("text", f"{names[target]} ({counts[target]:,})", x=2, y=top + 14))
        elements.append(make_element("line", x1="0", x2="100%", y1=top + 30, y2=top + 30, class_="lane"))
        # the attempts of a lane as one path; of those at one place one
        marks = "".join(f"M{x} {top + 20:g}v20" for x in sorted({round(1000 * position, 1) for position in strokes}))
        elements.append(
            stretch(make_element("path", d=marks, class_="stroke"), height=top + LANE) if marks else make_element("g")
        )
        elements += [
            _draw_bar(i, scale, report.began_t, top, link=links) for i in drawn_incidents if i.target == target
        ]
    endings = Counter(incident.ending for incident in incidents)
    endings_text = ", ".join(
        f"{endings[ending]} {description}" for ending, description in SAID.items() if endings[ending]
    )
    description = f"{count(attempts, 'attempt')} met a fault on {count(len(counts), 'target')}. "
    description += (
        f"{count(len(incidents), 'incident')}: {endings_text}." if incidents else "None had anything to recover from."
    )
    caption = (
        "Stroke: an attempt that met a fault. Bar: an incident, to ● its recovery, ■ a recovery with harm, or ✖ its "
    )
    caption += "end without one"
    caption += "; ▸ the end of what is known of it" if endings[Ending.CENSORED] else ""
    caption += "; choose one to see its trial" if links and incidents else ""
    caption += f"; one in {step} incidents is drawn" if step > 1 else ""
    caption += f"; {attempts_measure.sample}" if attempts_measure.sample else ""
    caption += f"; {len(counts) - LANES} more targets met fewer faults" if len(counts) > LANES else ""
    return make_picture(
        "timeline",
        "Faults and recoveries",
        description,
        height,
        elements,
        caption=f"{caption}.",
        links=links,
        style="crowd" if len(drawn_incidents) > CROWD else "",
    )


def _duration_or_zero(duration_s: float) -> float:
    """The time from an attempt's beginning to its end; 0 if it is not known."""
    return 0.0 if math.isnan(duration_s) else duration_s


def _draw_bar(incident: Incident, scale: PictureAxis, start_t: float, top: float, *, link: bool) -> Element:
    left, right = (
        scale.place(incident.opened_t - start_t),
        scale.place(incident.opened_t + incident.duration_s - start_t),
    )
    y = top + 30
    is_bad = incident.ending in (Ending.HARM, Ending.NEVER)
    elements = [
        make_element(
            "line", x1=format_share(left), x2=format_share(right), y1=y, y2=y, class_=f"bar{' bad' if is_bad else ''}"
        )
    ]
    mark = {Ending.NEVER: "✖", Ending.HARM: "■", Ending.CENSORED: "▸"}.get(incident.ending)
    if mark:
        elements.append(
            make_element(
                "text",
                mark,
                x=format_share(right),
                y=y + 5,
                text_anchor="middle",
                class_=f"end{' bad' if is_bad else ''}",
            )
        )
    else:
        elements.append(make_element("circle", cx=format_share(right), cy=y, r=5, class_="end"))
    label = (
        f"{make_one_line(incident.fault, NAME)} on {make_one_line(incident.target, NAME)} in {incident.trial}: "
        f"{SAID[incident.ending]} after {duration(incident.duration_s, 2)}"
    )
    title = make_element("title", label)
    return (
        make_element("a", title, *elements, href=f"#trial={incident.trial}", aria_label=label)
        if link
        else make_element("g", title, *elements)
    )
