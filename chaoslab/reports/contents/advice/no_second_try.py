"""A call failed in a way that may pass, was not tried again, and the trial did not end as it should have."""

from __future__ import annotations

from chaoslab.core.events import CallFinished
from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.contents.attempts import may_pass


def advise(seen: Seen) -> list[Advice]:
    """Advice to retry."""
    untried = _untried(seen)
    trials = {trial for trial, _ in untried}
    return seen.beside_faults(
        lambda row: seen.short(row) and row.trial in trials,
        "Try such a call again, after a short wait that grows. Before one that changes something, look whether it was "
        "done, or send the same Idempotency-Key with both.",
        "A call that timed out, broke off or met a 429 or 5xx was not tried again, and the trial fell short, in {size} "
        "that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in untried,
    )


def _untried(seen: Seen) -> set[tuple[str | None, str]]:
    """The trials in which the last attempt at a request failed in a way that may pass, and was the first, with the
    faults that it met."""
    last: dict[tuple[str | None, str, int], CallFinished] = {}
    for record, call in seen.history.of(CallFinished):
        last[record.trial, call.target, call.request] = call
    once = ((at[0], call) for at, call in last.items() if call.attempt == 1 and not call.ok and may_pass(call))
    return seen.hit_at(once)
