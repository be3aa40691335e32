"""A trial that met a fault made several times the calls of the same trial without one."""

from __future__ import annotations

from chaoslab.core.events import PromptStarted
from chaoslab.reports.contents.advice import Advice, Seen

TIMES, LEAST = 3, 4
"""The factor from which on the calls are many, and the fewest additional calls."""


def advise(seen: Seen) -> list[Advice]:
    """Advice to limit the calls of a task."""
    calm = {record.trial: begun.twin_calls for record, begun in seen.history.of(PromptStarted)}
    return seen.beside_faults(
        lambda row: (own := calm.get(row.trial)) is not None and row.calls >= own * TIMES and row.calls - own >= LEAST,
        "Give each task a budget of calls, and end with an honest answer when it is used up.",
        f"The agent made at least {TIMES} times the calls of its trial without faults in {{size}} that met {{fault}}.",
    )
