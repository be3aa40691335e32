"""Something was left undone, and the answer did not say so."""

from __future__ import annotations

from chaoslab.analysis.verdict.ledger import Kind
from chaoslab.analysis.verdict.table import Said
from chaoslab.reports.contents.advice import Advice, Seen, kinds


def advise(seen: Seen) -> list[Advice]:
    """Advice to report only what was confirmed."""
    return seen.beside_faults(
        lambda row: Kind.LOST in kinds(row) and row.said in (Said.RIGHT, Said.WRONG, Said.PASSES_OVER),
        "Have the agent check a tool's reply before it reports success, and name in the answer what was not done.",
        "What was asked for was not done, and the answer did not say so, in {size} that met {fault}.",
    )
