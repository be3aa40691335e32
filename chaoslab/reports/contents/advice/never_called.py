"""An injection whose dice were rolled for no call."""

from __future__ import annotations

from chaoslab.analysis.measures.intervals import rate
from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.text import visible

NAME = 60


def advise(seen: Seen) -> list[Advice]:
    """Advice on each injection that no attempt was for, or that another fault kept from every attempt."""
    if not seen.report.knows_faults:
        return []
    trials = tuple(row.trial for row in seen.rows)
    size = rate(len(trials), len(trials))
    return [
        Advice(
            f"{visible(one.injection, NAME)} had no call to hit in {size.count} of {size.total} trials: none was for "
            "its target and fitted its conditions, or another fault took each.",
            "Name a target and conditions that fit the agent's calls, or leave out the fault that takes them first: "
            "this run tells nothing about it.",
            size,
            trials,
            of_run=True,
        )
        for one in seen.report.delivered.value.by_injection
        if size and not one.eligible
    ]
