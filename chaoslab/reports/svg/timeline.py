"""The faults that were met and the recoveries from them, over the time of the run."""

import math
from collections import Counter
from xml.etree.ElementTree import Element

from chaoslab.analysis.measures.incidents import Ending, Incident
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import duration
from chaoslab.reports.page import count
from chaoslab.reports.svg.parts import Picture, PictureAxis, axis, el, linear, picture, share, stretched
from chaoslab.reports.text import apart, one_line

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
    every = report.attempts.value
    met = [attempt for attempt in every.drawn if attempt.faults]
    counts = every.numbers(lambda kind: bool(kind.faults))
    attempts = counts.total()
    incidents = report.recovery.value.incidents
    if not counts and not incidents:
        return None
    counts.update(incident.target for incident in incidents if incident.target not in counts)
    targets = sorted(counts, key=lambda name: (-counts[name], name))[:LANES]
    ends = [every.ended_t, *(i.opened_t + i.duration_s for i in incidents)]
    span = max(ends) - report.began_t
    scale = linear(0.0, span if span > 1e-6 else 1.0)
    step = math.ceil(len(incidents) / BARS) or 1
    shown, links = incidents[::step], len(incidents) <= LINKS
    height, names = LANE * len(targets), apart(targets, LABEL)
    parts = axis(scale, "time since the first trial began (s)", height)
    for lane, target in enumerate(targets):
        top = LANE * lane
        strokes = [scale.place(a.t - _took(a.duration_s) - report.began_t) for a in met if a.target == target]
        parts.append(el("text", f"{names[target]} ({counts[target]:,})", x=2, y=top + 14))
        parts.append(el("line", x1="0", x2="100%", y1=top + 30, y2=top + 30, class_="lane"))
        # the attempts of a lane as one path; of those at one place one
        marks = "".join(f"M{x} {top + 20:g}v20" for x in sorted({round(1000 * place, 1) for place in strokes}))
        parts.append(stretched(el("path", d=marks, class_="stroke"), height=top + LANE) if marks else el("g"))
        parts += [_bar(i, scale, report.began_t, top, link=links) for i in shown if i.target == target]
    endings = Counter(incident.ending for incident in incidents)
    told = ", ".join(f"{endings[ending]} {said}" for ending, said in SAID.items() if endings[ending])
    said = f"{count(attempts, 'attempt')} met a fault on {count(len(counts), 'target')}. "
    said += f"{count(len(incidents), 'incident')}: {told}." if incidents else "None had anything to recover from."
    caption = (
        "Stroke: an attempt that met a fault. Bar: an incident, to ● its recovery, ■ a recovery with harm, or ✖ its "
    )
    caption += "end without one"
    caption += "; ▸ the end of what is known of it" if endings[Ending.CENSORED] else ""
    caption += "; choose one to see its trial" if links and incidents else ""
    caption += f"; one in {step} incidents is drawn" if step > 1 else ""
    caption += f"; {every.sample}" if every.sample else ""
    caption += f"; {len(counts) - LANES} more targets met fewer faults" if len(counts) > LANES else ""
    return picture("timeline", "Faults and recoveries", said, height, parts, caption=f"{caption}.", links=links,
                   style="crowd" if len(shown) > CROWD else "")  # fmt: skip


def _took(duration_s: float) -> float:
    """The time from an attempt's beginning to its end; 0 if it is not known."""
    return 0.0 if math.isnan(duration_s) else duration_s


def _bar(one: Incident, scale: PictureAxis, began_t: float, top: float, *, link: bool) -> Element:
    left, right = scale.place(one.opened_t - began_t), scale.place(one.opened_t + one.duration_s - began_t)
    y = top + 30
    bad = one.ending in (Ending.HARM, Ending.NEVER)
    parts = [el("line", x1=share(left), x2=share(right), y1=y, y2=y, class_=f"bar{' bad' if bad else ''}")]
    mark = {Ending.NEVER: "✖", Ending.HARM: "■", Ending.CENSORED: "▸"}.get(one.ending)
    if mark:
        parts.append(
            el("text", mark, x=share(right), y=y + 5, text_anchor="middle", class_=f"end{' bad' if bad else ''}")
        )
    else:
        parts.append(el("circle", cx=share(right), cy=y, r=5, class_="end"))
    said = (
        f"{one_line(one.fault, NAME)} on {one_line(one.target, NAME)} in {one.trial}: "
        f"{SAID[one.ending]} after {duration(one.duration_s, 2)}"
    )
    title = el("title", said)
    return el("a", title, *parts, href=f"#trial={one.trial}", aria_label=said) if link else el("g", title, *parts)
