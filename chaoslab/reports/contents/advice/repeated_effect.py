"""An effect happened more often than asked in a trial that met a fault."""

from __future__ import annotations

from collections import Counter

from chaoslab.analysis.verdict.ledger import Kind
from chaoslab.core.events import Effect
from chaoslab.reports.contents.advice import Advice, Seen, kinds


def advise(seen: Seen) -> list[Advice]:
    """Advice to make writes safe to repeat."""
    done: dict[str | None, Counter[str]] = {}
    for record, event in seen.history.of(Effect):
        done.setdefault(record.trial, Counter())[event.target] += 1
    return seen.beside_faults(
        lambda row: bool(row.harm) and Kind.DUPLICATE in kinds(row),
        "Send the same Idempotency-Key with each attempt at a write, or look whether it was done before a retry.",
        "Something was done more often than asked in {size} that met {fault}.",
        at=lambda row, target: done.get(row.trial, Counter())[target] > 1,
        of_harm=True,
    )
