"""An injection had no call to hit."""

from __future__ import annotations

from chaoslab.analysis.measures.intervals import rate
from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.contents.text import visible

NAME = 60


def advise(seen: Seen) -> list[Advice]:
    """Advice on each injection that no attempt was for."""
    if not seen.report.knows_faults:
        return []
    trials = tuple(row.trial for row in seen.rows)
    size = rate(len(trials), len(trials))
    return [
        Advice(
            f"No call in {size.count} of {size.total} trials was one that {visible(one.injection, NAME)} could hit.",
            "Name a target that the agent calls, or add a prompt that needs it: this run tells nothing about it.",
            size,
            trials,
            of_run=True,
        )
        for one in seen.report.delivered.value.by_injection
        if size and not one.eligible
    ]
