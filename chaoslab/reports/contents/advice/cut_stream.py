"""An answer was made of a reply that had been cut off."""

from __future__ import annotations

from chaoslab.reports.contents.advice import Advice, Seen

CUTS = ("cut", "cut_arguments", "disconnect", "early_stop", "finish_length", "limit_data", "slow_close")
"""The faults that end a reply in its middle."""


def advise(seen: Seen) -> list[Advice]:
    """Advice to check that a reply is complete."""
    return seen.beside_faults(
        lambda row: seen.misled(row) and bool(row.answer.strip()),
        "Look at the finish reason and for the stream's last event; without them ask again instead of answering.",
        "A reply that had been cut off passed for an answer in {size} judged trials that met {fault}.",
        of=CUTS.__contains__,
    )
