"""The failure of a call ended the agent."""

from __future__ import annotations

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.core.events import PromptFinished
from chaoslab.reports.contents.advice import Advice, Seen


def advise(seen: Seen) -> list[Advice]:
    """Advice to handle the failure of a call."""
    raised = {record.trial for record, end in seen.history.of(PromptFinished) if end.error_type == "agent"}
    return seen.beside_faults(
        lambda row: row.outcome is Outcome.FAILED and row.trial in raised,
        "Catch the failure of a call where it is made, and tell the user what could not be done.",
        "An exception ended the agent in {size} that met {fault}.",
    )
