"""A disturbed conversation made the agent forget its work."""

from __future__ import annotations

from chaoslab.analysis.verdict.traits import layer
from chaoslab.reports.contents.advice import Advice, Seen


def advise(seen: Seen) -> list[Advice]:
    """Advice to keep the task outside of the conversation. A trial that met a fault of another kind too has two causes,
    so it does not count."""
    return seen.beside_faults(
        seen.short,
        "Keep the task and the results of its steps outside of the conversation, and check the answer against them.",
        "The agent could not do all, or did not end well, after its conversation was disturbed in {size} "
        "that met {fault}.",
        of=_of_context,
        there=lambda row, _: all(_of_context(fault) for fault, _ in row.met),
    )


def _of_context(fault: str) -> bool:
    return layer(fault) == "context"
