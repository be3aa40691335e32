"""A trial that met a fault left its world in an end state that is neither the right one nor the one before."""

from __future__ import annotations

from chaoslab.analysis.verdict.ledger import Kind
from chaoslab.reports.contents.advice import Advice, Seen, kinds


def advise(seen: Seen) -> list[Advice]:
    """Advice to make writes safe to repeat and to undo."""
    return seen.beside_faults(
        lambda row: bool(row.harm) and Kind.STATE in kinds(row),
        "Look at what was done before a write is tried again or made up for, and undo what was done by half.",
        "The end state was neither the right one nor the one before in {size} that met {fault}.",
    )
