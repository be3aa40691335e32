"""The answer says that something was not done, and it was."""

from __future__ import annotations

from chaoslab.analysis.verdict.ledger import Kind
from chaoslab.reports.contents.advice import Advice, Seen, kinds


def advise(seen: Seen) -> list[Advice]:
    """Advice to look before it reports a failure."""
    return seen.beside_faults(
        lambda row: Kind.DENIAL in kinds(row),
        "Read back whether a write took place when its reply is lost or says no: a user who is told no does it again.",
        "The answer denied what had been done in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in seen.failed,
    )
