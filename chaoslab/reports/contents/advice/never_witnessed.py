"""A fault was drawn and never met."""

from __future__ import annotations

from chaoslab.analysis.measures.intervals import rate
from chaoslab.core.events import FaultScheduled, FaultWitnessed
from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.contents.text import visible

NAME = 60


def advise(seen: Seen) -> list[Advice]:
    """Advice on each fault that was drawn in trials and met in none."""
    if not seen.report.knows_faults:
        return []
    met = {event.fault for _, event in seen.history.of(FaultWitnessed)}
    drawn: dict[str, set[str | None]] = {}
    for record, event in seen.history.of(FaultScheduled):
        if event.fault not in met:
            drawn.setdefault(event.fault, set()).add(record.trial)
    found = []
    for fault, trials in sorted(drawn.items()):
        shown = tuple(row.trial for row in seen.rows if row.trial in trials)
        if size := rate(len(shown), len(seen.rows)):
            why = next(
                (one.why for one in seen.report.not_met.value.reasons if one.fault == fault), "no reason is known"
            )
            said = f"{visible(fault, NAME)} was drawn in {size.count} of {size.total} trials and met in none: {why}."
            do = "Choose its target and parameters so that it can take effect: this run tells nothing about it."
            found.append(Advice(said, do, size, shown, of_run=True))
    return found
