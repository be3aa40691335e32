"""The errors of the attempts at each target, with the fault that caused them, if any."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

from chaoslab.analysis.measures import traits
from chaoslab.core.events import UNTOLD, CallDisturbed, CallFinished, FaultWitnessed
from chaoslab.record.history import History

ENDS = ("timed_out", "refused", "reset", "closed", "garbled", "too_large", "unresolved", "untrusted")
"""The lab's names for the end of an exchange without a reply."""
_RAISED = re.compile(r"([A-Za-z_]\w*)(:.*)?", re.DOTALL)
LAB, NOBODY = "the lab was disturbed", "nobody injected"


@dataclass(frozen=True)
class Errors:
    """The failed attempts of a run. `by_kind`: per target and kind of error, their number by cause: a fault's name, LAB
    or NOBODY. `passed`: attempts that met a fault and succeeded. `met`: attempts that met one."""

    by_kind: dict[str, Counter[str]]
    passed: int
    met: int


def errors(history: History) -> Errors:
    """The failed attempts of a run."""
    met: dict[tuple[str | None, str, int, int], list[str]] = {}
    for record, e in history.of(FaultWitnessed):
        met.setdefault((record.trial, e.target, e.request, e.attempt), []).append(e.fault)
    lab = {(record.trial, e.target, e.request, e.attempt) for record, e in history.of(CallDisturbed)}
    found: dict[str, Counter[str]] = {}
    passed = 0
    may_succeed = cache(traits.may_succeed)
    for record, call in history.of(CallFinished):
        place = (record.trial, call.target, call.request, call.attempt)
        # If two faults met an attempt and one of them lets it succeed, the other one caused the failure.
        names = sorted(met.get(place, ()), key=may_succeed)
        if call.ok:
            passed += bool(names)
        else:
            of = names[0] if names else LAB if place in lab else NOBODY
            found.setdefault(f"{call.target} {kind(call)}", Counter()).update((of,))
    return Errors(found, passed, len(met))


def kind(call: CallFinished) -> str:
    """The kind of failure in the lab's own words: a status, an end of the connection, or an exception's name. A
    service's text never counts."""
    said = call.error or ""
    if said == UNTOLD:
        return "failed, not told how"
    if said in ENDS:
        return said.replace("_", " ")
    if call.status is not None:
        return f"{call.status}" if call.status >= 400 else f"{call.status} with an error in it"
    raised = _RAISED.fullmatch(said)
    return raised[1] if raised else "failed" if said else "failed, no reason given"
