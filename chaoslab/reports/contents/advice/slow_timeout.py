"""A call waited longer for nothing than a user would."""

from __future__ import annotations

from chaoslab.core.events import CallFinished
from chaoslab.reports.contents.advice import Advice, Seen

LONG_S = 30.0
"""The seconds above which a wait for nothing is long."""


def advise(seen: Seen) -> list[Advice]:
    """Advice to shorten a timeout."""
    waited = seen.hit_at(
        (record.trial, call)
        for record, call in seen.history.of(CallFinished)
        if not call.ok and call.error == "timed_out" and call.duration_s > LONG_S
    )
    trials = {trial for trial, _ in waited}
    return seen.beside_faults(
        lambda row: row.trial in trials,
        "Set the client's timeout to what a user waits; the defaults of many SDKs are minutes.",
        f"A call waited more than {LONG_S:g} s for nothing in {{size}} that met {{fault}}.",
        there=lambda row, fault: (row.trial, fault) in waited,
    )
