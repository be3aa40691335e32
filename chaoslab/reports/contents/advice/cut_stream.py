"""An answer was made of a reply that had been cut off."""

from __future__ import annotations

from chaoslab.analysis.verdict.traits import leaves
from chaoslab.reports.contents.advice import Advice, Seen


def advise(seen: Seen) -> list[Advice]:
    """Advice to check that a reply is complete."""
    taken = seen.taken(_cuts)
    return seen.beside_faults(
        lambda row: seen.misled(row) and seen.amiss(row) and bool(row.answer.strip()),
        "Look at the finish reason and for the stream's last event; without them ask again instead of answering.",
        "A reply that had been cut off was accepted, and the answer was not right, in {size} that met {fault}.",
        of=_cuts,
        there=lambda row, fault: (row.trial, fault) in taken,
    )


def _cuts(fault: str) -> bool:
    return leaves(fault) == "part"
