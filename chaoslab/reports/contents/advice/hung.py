"""A trial would never have ended."""

from __future__ import annotations

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports.contents.advice import Advice, Seen


def advise(seen: Seen) -> list[Advice]:
    """Advice to bound each wait."""
    return seen.beside_faults(
        lambda row: row.outcome is Outcome.HUNG,
        "Give every call a deadline, for the connection and for each read of it, and one to the whole task.",
        "The agent would never have ended, or not before its deadline, in {size} that met {fault}.",
    )
