"""The failure of a call ended the agent."""

from __future__ import annotations

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.analysis.verdict.traits import leaves
from chaoslab.core.events import PromptFinished
from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.contents.rows import Row


def advise(seen: Seen) -> list[Advice]:
    """Advice to handle the failure of a call, and a reply that does not fit, each where that happened."""
    raised = {record.trial for record, end in seen.history.of(PromptFinished) if end.error_type == "agent"}

    def ended(row: Row) -> bool:
        return row.outcome is Outcome.FAILED and row.trial in raised

    of_calls = seen.beside_faults(
        ended,
        "Catch the failure of a call where it is made, and tell the user what could not be done.",
        "An exception ended the agent in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in seen.failed,
    )
    taken = seen.taken(lambda fault: bool(leaves(fault))) - seen.failed
    return of_calls + seen.beside_faults(
        ended,
        "Check a reply against its schema where it is read, and take one that does not fit for a failed call.",
        "An exception ended the agent after a reply that was not the right one in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in taken,
    )
