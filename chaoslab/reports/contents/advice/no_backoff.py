"""A call that failed at once was tried again at once."""

from __future__ import annotations

from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.contents.attempts import may_pass

AT_ONCE_S = 0.05
"""The seconds below which a wait is none."""


def advise(seen: Seen) -> list[Advice]:
    """Advice to wait between attempts. A timeout has itself waited, so it does not count."""
    rushed = seen.hit_at(
        (one.trial, one.before)
        for one in seen.again
        if one.wait_s < AT_ONCE_S and may_pass(one.before) and one.before.error != "timed_out"
    )
    trials = {trial for trial, _ in rushed}
    return seen.beside_faults(
        lambda row: row.trial in trials,
        "Back off exponentially with jitter between attempts, so that a service in trouble can recover.",
        "A failed call was tried again at once in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in rushed,
    )
