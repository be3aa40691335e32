"""An empty reply of a tool or a model was taken for a result."""

from __future__ import annotations

from chaoslab.reports.contents.advice import Advice, Seen

EMPTY = ("empty", "empty_answer", "empty_response")


def advise(seen: Seen) -> list[Advice]:
    """Advice to treat an empty reply as a failure."""
    return seen.beside_faults(
        seen.misled,
        "Treat an empty reply as a failed call: ask once more, then tell the user that there is no result.",
        "An empty reply was taken for a result in {size} judged trials that met {fault}.",
        of=EMPTY.__contains__,
    )
