"""The cost of each fault to the run."""

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.reports.contents._spent import added, amount, apart
from chaoslab.reports.page import count
from chaoslab.reports.svg.parts import Picture, axis, el, linear, picture, share
from chaoslab.reports.text import one_line

ROW = 60.0
"""The height of a fault's row in pixels."""
ROWS = 20
"""The most faults in the picture, the dearest."""
NAME = 60
"""The most characters of a name."""


def draw(report: RunReport) -> Picture | None:
    """A bar per fault: what it added to its trials. None if no trial can be compared with one without faults."""
    rows = added(report)
    if not rows:
        return None
    shown, main = rows[:ROWS], next(iter(rows[0].amounts))
    amounts = [row.amounts[main] for row in shown]
    scale = linear(min(0.0, *amounts), max(0.0, *amounts) or 1.0)
    height, zero = ROW * len(shown), scale.place(0.0)
    parts = axis(scale, f"added {main}", height)
    for number, row in enumerate(shown):
        at, top = scale.place(row.amounts[main]), ROW * number
        figures = ", ".join(amount(name, value) for name, value in row.amounts.items())
        parts.append(el("text", f"{one_line(row.fault, NAME)} ({row.trials:,})", x=2, y=top + 14))
        parts.append(el("text", figures, x=2, y=top + 48, class_="dim"))
        parts.append(
            el("rect", x=share(min(at, zero)), y=top + 19, width=share(abs(at - zero)), height=13, class_="amount")
        )
    parts.append(el("line", x1=share(zero), x2=share(zero), y1=0, y2=height, class_="lane"))
    said = f"{shown[0].fault} added {amount(main, shown[0].amounts[main])} to {count(shown[0].trials, 'trial')}."
    caption = "Sums over the trials that met this fault alone (their number), beside the same trials without faults"
    caption += f"; {apart(report)}" if apart(report) else ""
    caption += f"; {len(rows) - ROWS} more rows are in the table" if len(rows) > ROWS else ""
    said = f"{one_line(said, 2 * NAME)} The table below holds the figures."
    return picture("cost", "Cost of chaos by fault", said, height, parts, caption=f"{caption}.")
