"""One request was attempted so often that the retries would add to an outage."""

from __future__ import annotations

from collections import Counter

from chaoslab.analysis.measures.intervals import rate
from chaoslab.core.events import CallFinished
from chaoslab.reports.contents.advice import Advice, Seen

MANY = 6
"""The attempts at one request from which on they are many. Those that the agent gave up do not count."""


def advise(seen: Seen) -> list[Advice]:
    """Advice to bound retries."""
    most: dict[str, int] = {}
    given_up = Counter([at[:3] for at in seen.history.given_up])
    for record, call, at in seen.history.placed(CallFinished):
        trial = record.trial or ""
        most[trial] = max(most.get(trial, 0), call.attempt - given_up[at[:3]])
    shown = tuple(row.trial for row in seen.rows if most.get(row.trial, 0) >= MANY)
    size = rate(len(shown), len(seen.rows))
    if not shown or size is None:
        return []
    longest = max(most[trial] for trial in shown)
    text = f"One request was attempted {MANY} times or more in {size.count} of {size.total} trials, {longest} at most."
    remedy = "Let one layer alone retry, and bound its attempts: stacked retries multiply."
    return [Advice(text, remedy, size, shown)]
