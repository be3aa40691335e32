"""A call failed in a way that may pass, was not tried again, and the trial did not end as it should have."""

from __future__ import annotations

from chaoslab.core.events import CallFinished
from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.contents.attempts import may_pass


def advise(seen: Seen) -> list[Advice]:
    """Advice to retry."""
    untried = _untried(seen)
    return seen.beside_faults(
        lambda row: seen.short(row) and row.trial in untried,
        "Try such a call again, after a short wait that grows. Before one that changes something, look whether it was "
        "done, or send the same Idempotency-Key with both.",
        "A call that timed out, broke off or met a 429 or 5xx was not tried again, and the trial fell short, in {size} "
        "that met {fault}.",
    )


def _untried(seen: Seen) -> set[str | None]:
    """The trials in which the last attempt at a request failed in a way that may pass, and was the first."""
    last: dict[tuple[str | None, str, int], CallFinished] = {}
    for record, call in seen.history.of(CallFinished):
        last[record.trial, call.target, call.request] = call
    return {trial for (trial, _, _), call in last.items() if call.attempt == 1 and not call.ok and may_pass(call)}
