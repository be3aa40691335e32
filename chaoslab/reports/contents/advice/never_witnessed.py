"""Faults were drawn and never met."""

from __future__ import annotations

from chaoslab.analysis.measures.faults import NOTHING
from chaoslab.analysis.measures.intervals import rate
from chaoslab.core.events import FaultScheduled, FaultWitnessed
from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.text import visible

NAME, NAMED = 60, 8
"""The most characters of a fault's name, and the most faults that are named."""


def advise(seen: Seen) -> list[Advice]:
    """One piece of advice on all faults that were drawn in trials and met in none."""
    if not seen.report.knows_faults:
        return []
    met = {event.fault for _, event in seen.history.of(FaultWitnessed)}
    drawn: dict[str, set[str | None]] = {}
    for record, event in seen.history.of(FaultScheduled):
        if event.fault not in met:
            drawn.setdefault(event.fault, set()).add(record.trial)
    shown = tuple(row.trial for row in seen.rows if any(row.trial in trials for trials in drawn.values()))
    size = rate(len(shown), len(seen.rows))
    if not shown or size is None:
        return []
    whys = {one.fault: one.why for one in reversed(seen.report.not_met.value.reasons)}
    told = [(visible(fault, NAME), whys.get(fault, "no reason is known")) for fault in sorted(drawn)]
    in_trials = f"drawn in {size.count} of {size.total} trials and met in none"
    if len(told) == 1:
        said, whose, them = f"{told[0][0]} was {in_trials}: {told[0][1]}.", "its target", "it"
    else:
        names = [f"{fault} ({why.removeprefix(f'{NOTHING}: ')})" for fault, why in told[:NAMED]]
        names += [f"{len(told) - NAMED} more"] if len(told) > NAMED else []
        said, whose, them = f"{len(told)} faults were {in_trials}: {'; '.join(names)}.", "their targets", "them"
    subject = "it" if len(told) == 1 else "they"
    do = f"Choose {whose} and parameters so that {subject} can take effect: this run tells nothing about {them}."
    return [Advice(said, do, size, shown, of_run=True)]
