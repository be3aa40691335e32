"""The service said how long to wait, and the next attempt came earlier."""

from __future__ import annotations

from chaoslab.core.events import FaultScheduled, FaultWitnessed
from chaoslab.reports.contents.advice import Advice, Seen

SLACK_S = 0.001


def advise(seen: Seen) -> list[Advice]:
    """Advice to heed Retry-After."""
    told = _told(seen)
    early = seen.hit_at(
        (one.trial, one.before)
        for one in seen.again
        if one.wait_s < told.get((one.trial, one.before.target, one.before.request, one.before.attempt), 0.0) - SLACK_S
    )
    trials = {trial for trial, _ in early}
    return seen.beside_faults(
        lambda row: row.trial in trials,
        "Wait as long as the header Retry-After says before the next attempt.",
        "The next attempt came before the end of Retry-After in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in early,
    )


def _told(seen: Seen) -> dict[tuple[str, str, int, int], float]:
    """The seconds of Retry-After that a witnessed fault stated, by attempt."""
    met = {
        (record.trial, e.target, e.request, e.attempt, e.fault, e.injection)
        for record, e in seen.history.of(FaultWitnessed)
    }
    found = {}
    for record, e in seen.history.of(FaultScheduled):
        wait_s = e.params.get("retry_after_s")
        if isinstance(wait_s, int | float) and wait_s > 0:
            place = (record.trial or "", e.target, e.request, e.attempt)
            if (*place, e.fault, e.injection) in met:
                found[place] = float(wait_s)
    return found
