"""An empty reply of a tool or a model was taken for a result."""

from __future__ import annotations

from chaoslab.analysis.verdict.traits import leaves
from chaoslab.core.events import PromptAttempt
from chaoslab.reports.contents.advice import Advice, Seen


def advise(seen: Seen) -> list[Advice]:
    """Advice to treat an empty reply as a failure. An agent that gave an attempt up as empty has noticed it."""
    taken = seen.taken(_empties)
    noticed = {record.trial for record, end in seen.history.of(PromptAttempt) if end.error_type == "empty"}
    return seen.beside_faults(
        lambda row: seen.misled(row) and seen.amiss(row),
        "Treat an empty reply as a failed call: ask once more, then tell the user that there is no result.",
        "An empty reply was accepted, and the answer or an effect was not right, in {size} that met {fault}.",
        of=_empties,
        there=lambda row, fault: (row.trial, fault) in taken and row.trial not in noticed,
    )


def _empties(fault: str) -> bool:
    return leaves(fault) == "nothing"
