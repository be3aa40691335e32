"""Which errors the caller met at which target, and which fault made them, if any did."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from chaoslab.analysis.measures import traits
from chaoslab.core.events import UNTOLD, CallDisturbed, CallFinished, FaultWitnessed
from chaoslab.record.history import History
from chaoslab.reports.charts.palette import FAILED, LONE, faults
from chaoslab.reports.charts.palette import LAB as LAB_COLOR
from chaoslab.reports.charts.style import canvas, legend, nothing, short, unmet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = 14
"""Kinds that get a bar of their own."""
ENDS = ("timed_out", "refused", "reset", "closed", "garbled", "too_large")
"""The lab's own words for how an exchange ended without a reply."""
_RAISED = re.compile(r"([A-Za-z_]\w*)(:.*)?", re.DOTALL)
LAB, NOBODY = "the lab was disturbed", "nobody injected"


def errors(history: History) -> Figure:
    """A bar per target and kind of error; its parts are the faults that were witnessed on the failed attempts, and what nobody injected."""
    from matplotlib.ticker import MaxNLocator

    told = history.has(FaultWitnessed)
    found, passed, met = _counted(history)
    total, lone, lab = (sum(counts[of] for counts in found.values()) for of in (None, NOBODY, LAB))
    note = f"{total - lone - lab:,} failed attempts with a witnessed fault, {lone:,} that nobody injected; "
    note = note if told else f"{total:,} failed attempts; "
    note += f"{passed:,} more met a fault and did not fail" if met else unmet(history)
    ranked = sorted(found, key=lambda kind: (-found[kind][None], kind))
    shown, rest = ranked[:ROWS], ranked[ROWS:]
    figure, axes = canvas("Errors by target and kind", note, height_in=2.2 + 0.34 * max(4, len(shown) + bool(rest)))
    if not found:
        nothing(axes, "no attempt failed in this run" if told else "no data: the log tells of no failed attempt")
        return figure
    rows = [(kind, found[kind]) for kind in shown]
    if rest:
        rows.append((f"{len(rest)} other kinds", sum((found[kind] for kind in rest), Counter())))
    places = range(len(rows))
    looks = faults(name for counts in found.values() for name in counts if name not in (None, NOBODY, LAB))
    parts = [*((name, name, look.color) for name, look in looks.items()), (LAB, LAB, LAB_COLOR)]
    parts.append((NOBODY, NOBODY if told else "injected or not", (LONE if told else FAILED).color))
    begins = [0] * len(rows)
    for name, label, color in parts:
        widths = [counts[name] for _, counts in rows]
        if not any(widths) and name != NOBODY:
            continue
        axes.barh(
            places,
            widths,
            left=begins,
            height=0.62,
            color=color,
            hatch="//" if name == NOBODY else None,
            edgecolor="white",
            linewidth=0.6,
            label=f"{short(label)} ({sum(widths):,})",
        )
        begins = [begin + width for begin, width in zip(begins, widths, strict=True)]
    axes.set_yticks(places, [short(kind, 40) for kind, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, max(begins) * 1.06)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("failed attempts (count)")
    axes.grid(visible=False, axis="y")
    legend(figure, axes)
    return figure


def _counted(history: History) -> tuple[dict[str, Counter[str | None]], int, int]:
    """By kind: failed attempts per fault, NOBODY and LAB, and under None all of them; attempts that met a fault and passed; that met one."""
    met: dict[tuple[str | None, str, int, int], list[str]] = {}
    for record, e in history.of(FaultWitnessed):
        met.setdefault((record.trial, e.target, e.request, e.attempt), []).append(e.fault)
    lab = {(record.trial, e.target, e.request, e.attempt) for record, e in history.of(CallDisturbed)}
    found: dict[str, Counter[str | None]] = {}
    passed = 0
    for record, call in history.of(CallFinished):
        place = (record.trial, call.target, call.request, call.attempt)
        # Where one that lets an attempt succeed was met with another, it is the other that failed it.
        names = sorted(met.get(place, ()), key=traits.may_succeed)
        if call.ok:
            passed += bool(names)
        else:
            of = names[0] if names else LAB if place in lab else NOBODY
            found.setdefault(f"{call.target} {kind(call)}", Counter()).update((of, None))
    return found, passed, len(met)


def kind(call: CallFinished) -> str:
    """How an attempt failed, in the lab's words and never in those of a service: a status, an end of the connection, or what was raised."""
    said = call.error or ""
    if said == UNTOLD:
        return "failed, not told how"
    if said in ENDS:
        return said.replace("_", " ")
    if call.status is not None:
        return f"{call.status}" if call.status >= 400 else f"{call.status} with an error in it"
    raised = _RAISED.fullmatch(said)
    return raised[1] if raised else "failed" if said else "failed, no reason given"
