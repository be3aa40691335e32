"""The agent ended well and said nothing."""

from __future__ import annotations

from chaoslab.core.events import PromptFinished
from chaoslab.reports.contents.advice import Advice, Seen


def advise(seen: Seen) -> list[Advice]:
    """Advice never to end without a word."""
    mute = {
        record.trial for record, end in seen.history.of(PromptFinished) if end.status == "ok" and not end.answer.strip()
    }
    return seen.beside_faults(
        lambda row: row.trial in mute,
        "Check the agent's last answer before it is sent: if it is empty, say what failed.",
        "The agent ended without a word in {size} that met {fault}.",
    )
