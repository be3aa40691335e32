"""A fault was planned for a numbered request that the agent did not make."""

from __future__ import annotations

from chaoslab.analysis.measures.intervals import rate
from chaoslab.core.events import FaultUnreached
from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.text import visible

NAME = 60


def advise(seen: Seen) -> list[Advice]:
    """Advice on each injection whose request never came up, by the most requests that any trial made."""
    made: dict[tuple[str, str, int], dict[str | None, int]] = {}
    for record, event in seen.history.of(FaultUnreached):
        if event.request > event.made:
            made.setdefault((event.injection, event.target, event.request), {})[record.trial] = event.made
    found = []
    for (injection, target, request), trials in sorted(made.items()):
        shown = tuple(row.trial for row in seen.rows if row.trial in trials)
        if size := rate(len(shown), len(seen.rows)):
            said = (
                f"{visible(injection, NAME)} is for request {request} of {visible(target, NAME)}, and {size.count} of "
                f"{size.total} trials made {max(trials.values())} at most."
            )
            do = "Plan it for a request that the agent makes: such trials are invalid, and tell nothing about it."
            found.append(Advice(said, do, size, shown, of_run=True))
    return found
