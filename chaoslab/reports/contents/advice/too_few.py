"""No trial that met a fault ended badly, and the trials are too few to rely on that."""

from __future__ import annotations

from chaoslab.analysis.measures.intervals import rate
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.reports.contents.advice import Advice, Seen

POSSIBLE = 0.1
"""The share of bad ends that the trials should exclude at 95 %. That takes 35 of them."""


def advise(seen: Seen) -> list[Advice]:
    """Advice to run more trials, on the fault with the fewest."""
    found = []
    for name in sorted({fault for row in seen.judged for fault, _ in row.met}):
        met = [row for row in seen.judged if any(fault == name for fault, _ in row.met)]
        size = rate(sum(row.standing is Standing.BAD for row in met), len(met))
        if size and not size.count and size.interval.high > POSSIBLE:
            said = (
                f"None of {size.total} judged trials that met {name} ended badly, and up to "
                f"{size.interval.high:.0%} of all could."
            )
            found.append(Advice(said, _REMEDY, size, tuple(row.trial for row in met), of_run=True))
    return sorted(found, key=lambda one: one.size.total)[:1]


_REMEDY = "Run more trials of it before you rely on this: 35 clean ones leave 10% possible, 381 leave 1%."
