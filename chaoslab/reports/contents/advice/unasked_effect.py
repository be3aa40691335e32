"""Something was done that nobody had asked for."""

from __future__ import annotations

from chaoslab.analysis.verdict.ledger import Kind
from chaoslab.reports.contents.advice import Advice, Seen, kinds


def advise(seen: Seen) -> list[Advice]:
    """Advice to confine writes to the task."""
    return seen.beside_faults(
        lambda row: bool(row.harm) and Kind.PHANTOM in kinds(row),
        "Confirm a write that the user did not ask for, also one that makes up for a failure.",
        "Something was done that nobody had asked for in {size} that met {fault}.",
        of_harm=True,
    )
