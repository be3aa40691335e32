"""A trial that met a changed reply ended with a wrong value in its answer, in an effect or in the end state."""

from __future__ import annotations

from chaoslab.analysis.verdict.ledger import Kind
from chaoslab.analysis.verdict.table import Said
from chaoslab.analysis.verdict.traits import leaves
from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.contents.rows import Row


def advise(seen: Seen) -> list[Advice]:
    """Advice to check what a tool says."""
    taken = seen.taken(_values)
    return seen.beside_faults(
        lambda row: seen.misled(row) and _wrong(row),
        "Check a tool's reply against its schema and a plausible range, or ask a second source, before acting on it.",
        "The answer, an effect or the end state had a wrong value in {size} that met {fault}.",
        of=_values,
        there=lambda row, fault: (row.trial, fault) in taken,
    )


def _values(fault: str) -> bool:
    return leaves(fault) == "value"


def _wrong(row: Row) -> bool:
    """True if a value took the place of the right one. One that is only missing was not passed on; an answer that lacks
    a stated fact is wrong only if it has a value of its own."""
    return any(
        one.kind in (Kind.ALTERED, Kind.STATE)
        or (one.kind == Kind.VALUE and " instead of " in one.text)
        or (one.kind == Kind.FACT and row.said is Said.WRONG)
        for one in row.evidence
    )
