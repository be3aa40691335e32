"""Further attempts at a request that had failed, as the log shows them."""

from dataclasses import dataclass

from chaoslab.analysis.measures.errors import ENDS
from chaoslab.core.events import CallFinished, CallStarted, Fallback
from chaoslab.record.history import History

PASSING = (408, 409, 425, 429)
"""The statuses of 4xx after which the same request may succeed."""


@dataclass(frozen=True)
class Again:
    """One further attempt. `before`: the failed attempt before it. `wait_s`: the seconds between its end and the start
    of this one, in the time of the run's world."""

    trial: str
    before: CallFinished
    wait_s: float


def tried_again(history: History) -> list[Again]:
    """Every attempt that began after the attempt before it had failed, in the order of time. A fallback goes elsewhere,
    so it is none, nor is an attempt after one that was given up."""
    around, gone = {at for _, _, at in history.placed(Fallback)}, history.given_up
    ends = {
        (record.trial, e.target, e.request, e.attempt): (record.t, e)
        for record, e, at in history.placed(CallFinished)
        if at not in gone
    }
    found = []
    for record, event in history.of(CallStarted):
        end_t, before = ends.get((record.trial, event.target, event.request, event.attempt - 1), (0.0, None))
        elsewhere = (record.trial, event.target, event.request, event.attempt) in around
        if before is not None and not before.ok and record.t >= end_t and not elsewhere:
            found.append(Again(record.trial or "", before, record.t - end_t))
    return found


def may_pass(call: CallFinished) -> bool:
    """True for an end without a reply, 429 and 5xx: the same call may succeed later."""
    if call.status is None:
        return call.error in ENDS
    return call.status == 429 or call.status >= 500


def refused(call: CallFinished) -> bool:
    """True for a 4xx that the same call meets again."""
    return call.status is not None and 400 <= call.status < 500 and call.status not in PASSING
