"""The answer was incomplete or wrong, and did not say so."""

from __future__ import annotations

from chaoslab.analysis.verdict.ledger import Kind
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports.contents.advice import Advice, Seen, kinds


def advise(seen: Seen) -> list[Advice]:
    """Advice to admit what is missing, where a call failed."""
    return seen.beside_faults(
        lambda row: row.outcome is Outcome.WRONG and _silent(kinds(row)),
        "Have the answer name the tool that failed and the part that is missing, instead of filling the gap.",
        "The answer lacked something or had another value, and did not say so, in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in seen.failed,
    )


def _silent(found: set[str]) -> bool:
    """True if the answer lacks or alters something and admits nothing. A denial speaks of a failure, and one that also
    has another value has a finding on its admission."""
    if Kind.DENIAL in found or {Kind.VALUE, Kind.ADMISSION} <= found:
        return False
    return bool({Kind.FACT, Kind.VALUE} & found)
