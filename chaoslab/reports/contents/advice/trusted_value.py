"""A value that a fault changed got into an answer or an effect."""

from __future__ import annotations

from chaoslab.analysis.ledger import Kind
from chaoslab.analysis.measures.traits import corrupts
from chaoslab.reports.contents.advice import Advice, Seen, kinds

WRONG = {str(Kind.ALTERED), str(Kind.VALUE)}


def advise(seen: Seen) -> list[Advice]:
    """Advice to check what a tool says."""
    return seen.beside_faults(
        lambda row: seen.short(row) and bool(WRONG & kinds(row)),
        "Check a tool's reply against its schema and a plausible range, or ask a second source, before acting on it.",
        "A wrong value was passed on in {size} judged trials that met {fault}.",
        of=lambda fault: corrupts(fault) == "reply",
    )
