"""An answer was made of a reply that had been cut off."""

from __future__ import annotations

from chaoslab.reports.contents.advice import Advice, Seen

CUTS = ("cut", "cut_arguments", "disconnect", "early_stop", "finish_length", "limit_data", "slow_close")
"""The faults that end a reply in its middle."""


def advise(seen: Seen) -> list[Advice]:
    """Advice to check that a reply is complete."""
    taken = seen.taken(CUTS)
    return seen.beside_faults(
        lambda row: seen.misled(row) and seen.amiss(row) and bool(row.answer.strip()),
        "Look at the finish reason and for the stream's last event; without them ask again instead of answering.",
        "A reply that had been cut off was accepted, and the answer was not right, in {size} judged trials that met "
        "{fault}.",
        of=CUTS.__contains__,
        there=lambda row, fault: (row.trial, fault) in taken,
    )
