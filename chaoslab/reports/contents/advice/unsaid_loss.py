"""Something was left undone, and the answer did not say so."""

from __future__ import annotations

from chaoslab.analysis.verdict.ledger import Kind
from chaoslab.reports.contents.advice import Advice, Seen, kinds


def advise(seen: Seen) -> list[Advice]:
    """Advice to report only what was confirmed. Beside harm, the only finding on an admission is that there is none."""
    return seen.beside_faults(
        lambda row: bool(row.harm) and {Kind.LOST, Kind.ADMISSION} <= kinds(row),
        "Have the agent check a tool's reply before it reports success, and name in the answer what was not done.",
        "What was asked for was not done, and the answer did not say so, in {size} that met {fault}.",
    )
