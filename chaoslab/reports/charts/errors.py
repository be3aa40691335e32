"""Which errors the caller met, and whether somebody injected them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from chaoslab.events import CallFinished, FaultWitnessed
from chaoslab.history import History
from chaoslab.reports.charts.style import BLUE, ORANGE, canvas, legend, nothing, short, unmet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = 12


def errors(history: History) -> Figure:
    """A bar per kind of error: failed attempts on which a fault was witnessed, and those that nobody injected."""
    from matplotlib.ticker import MaxNLocator

    met = {(record.trial, e.target, e.request, e.attempt) for record, e in history.of(FaultWitnessed)}
    injected: Counter[str] = Counter()
    lone: Counter[str] = Counter()
    passed = 0
    for record, e in history.of(CallFinished):
        hit = (record.trial, e.target, e.request, e.attempt) in met
        passed += hit and e.ok
        if not e.ok:
            (injected if hit else lone)[short(e.error or f"status {e.status}", 34)] += 1
    told = history.tells(FaultWitnessed)
    note = f"{injected.total()} failed attempts with a witnessed fault, {lone.total()} that nobody injected; "
    note = note if told else f"{lone.total()} failed attempts; "
    note += f"{passed} more met a fault and did not fail" if met else unmet(history)
    kinds = [kind for kind, _ in (injected + lone).most_common()]
    shown, rest = kinds[:ROWS], kinds[ROWS:]
    figure, axes = canvas("Errors by kind", note, height_in=2.2 + 0.34 * max(4, len(shown) + bool(rest)))
    if not kinds:
        nothing(axes, "no attempt failed in this run" if told else "no data: the log tells of no failed attempt")
        return figure
    rows = [(kind, injected[kind], lone[kind]) for kind in shown]
    if rest:
        rows.append((f"{len(rest)} other kinds", sum(injected[k] for k in rest), sum(lone[k] for k in rest)))
    places = range(len(rows))
    left = [row[1] for row in rows]
    if told:
        axes.barh(places, left, height=0.62, color=ORANGE, label=f"injected and witnessed ({injected.total()})")
    axes.barh(
        places,
        [row[2] for row in rows],
        left=left,
        height=0.62,
        color=BLUE,
        hatch="//",
        edgecolor="white",
        label=f"{'nobody injected' if told else 'injected or not'} ({lone.total()})",
    )
    axes.set_yticks(places, [row[0] for row in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, max(row[1] + row[2] for row in rows) * 1.06)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("failed attempts (count)")
    axes.grid(visible=False, axis="y")
    legend(figure, axes)
    return figure
