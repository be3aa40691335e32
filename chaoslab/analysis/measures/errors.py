"""The errors of the attempts at each target, with the fault that caused them, if any."""

import re
from collections.abc import Iterator
from functools import cache

from chaoslab.analysis.verdict import traits
from chaoslab.core.events import CallDisturbed, CallFinished, FaultWitnessed
from chaoslab.core.fault import UNUSABLE
from chaoslab.record.history import History, Place

ENDS = ("timed_out", "refused", "reset", "closed", "garbled", "too_large", "dns", "untrusted")
"""The lab's names for the end of an exchange without a reply."""
_RAISED = re.compile(r"([A-Za-z_]\w*)(:.*)?", re.DOTALL)
LAB, NOBODY = "the lab was disturbed", "nobody injected"


class Abilities:
    """The traits of faults by which one is the cause of a failure."""

    def __init__(self) -> None:
        self.may_succeed, self.may_fail = cache(traits.can_attempt_succeed), cache(traits.can_cause_error)


def find_failures_with_causes(history: History, abilities: Abilities | None = None) -> Iterator[tuple[Place, str, str]]:
    """Each failed attempt that was not given up, with its kind and its cause. `abilities`: kept for several
    histories of one run."""
    abilities = abilities or Abilities()
    faults_by_place: dict[Place, list[str]] = {}
    for _, fault, at in history.find_attempt_events(FaultWitnessed):
        faults_by_place.setdefault(at, []).append(fault.fault)
    disturbed, dropped = {at for _, _, at in history.find_attempt_events(CallDisturbed)}, history.given_up_attempts
    for _, call, at in history.failed_attempts:
        if not call.ok and at not in dropped:
            # If two faults met an attempt and one of them lets it succeed, the other one caused the failure.
            capable = [name for name in faults_by_place.get(at, ()) if abilities.may_fail(name, call.error)]
            yield (
                at,
                classify_failure(call),
                min(capable, key=abilities.may_succeed) if capable else LAB if at in disturbed else NOBODY,
            )


def classify_failure(call: CallFinished) -> str:
    """The kind of failure in the lab's own words: a status, an end of the connection, or an exception's name. A
    service's text never counts."""
    error = call.error or ""
    if error in ENDS:
        return error.replace("_", " ")
    if call.status is not None:
        complaints = (complaint for complaint in UNUSABLE.values() if error == f"status {call.status}, and {complaint}")
        return f"{call.status}" if call.status >= 400 else f"{call.status} with {next(complaints, 'an error in it')}"
    raised = _RAISED.fullmatch(error)
    return raised[1] if raised else "failed" if error else "failed, no reason given"
