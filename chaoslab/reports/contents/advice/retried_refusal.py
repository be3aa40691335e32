"""A call that the service refuses for good was sent again."""

from __future__ import annotations

from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.contents.attempts import refused


def advise(seen: Seen) -> list[Advice]:
    """Advice to stop at a 4xx."""
    vain = seen.hit_at((one.trial, one.before) for one in seen.again if refused(one.before))
    trials = {trial for trial, _ in vain}
    return seen.beside_faults(
        lambda row: row.trial in trials,
        "Stop at a 4xx other than 408, 409, 425 and 429: change the request, or tell the user why it was refused.",
        "The same call was sent again after a 4xx that does not pass in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in vain,
    )
