"""The errors of the attempts at each target, with the fault that caused them, if any."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from chaoslab.analysis.verdict import traits
from chaoslab.core.events import UNTOLD, CallDisturbed, CallFinished, FaultWitnessed
from chaoslab.core.fault import UNUSABLE
from chaoslab.record.history import History, Place

ENDS = ("timed_out", "refused", "reset", "closed", "garbled", "too_large", "dns", "untrusted")
"""The lab's names for the end of an exchange without a reply."""
_RAISED = re.compile(r"([A-Za-z_]\w*)(:.*)?", re.DOTALL)
LAB, NOBODY = "the lab was disturbed", "nobody injected"


@dataclass(frozen=True)
class ErrorCounts:
    """The failed attempts of a run, without those that were given up. `by_kind`: per target and kind of error, their
    number by cause: a fault's name, LAB or NOBODY. `passed`: attempts that met a fault and succeeded. `met`: attempts
    that met one."""

    by_kind: dict[str, Counter[str]]
    passed: int
    met: int


@dataclass
class Failed:
    """Counts the failed attempts of batches."""

    by_kind: dict[str, Counter[str]] = field(default_factory=dict)
    passed: int = 0
    met: int = 0

    def __post_init__(self) -> None:
        self._of = Abilities()

    def take(self, history: History) -> None:
        met = {at for _, _, at in history.placed(FaultWitnessed)}
        self.met += len(met)
        if met:
            self.passed += sum([at in met for _, call, at in history.placed(CallFinished) if call.ok])
        for at, said, cause in failures(history, self._of):
            self.by_kind.setdefault(f"{at[1]} {said}", Counter())[cause] += 1

    def result(self) -> ErrorCounts:
        return ErrorCounts(self.by_kind, self.passed, self.met)


class Abilities:
    """The traits of faults by which one is the cause of a failure."""

    def __init__(self) -> None:
        self.may_succeed, self.may_fail = cache(traits.may_succeed), cache(traits.may_fail)


def failures(history: History, of: Abilities | None = None) -> Iterator[tuple[Place, str, str]]:
    """Each failed attempt that was not given up, with its kind and its cause. `of`: kept for several histories of one
    run."""
    of = of or Abilities()
    met: dict[Place, list[str]] = {}
    for _, fault, at in history.placed(FaultWitnessed):
        met.setdefault(at, []).append(fault.fault)
    lab, gone = {at for _, _, at in history.placed(CallDisturbed)}, history.given_up
    for _, call, at in history.failed:
        if not call.ok and at not in gone:
            # If two faults met an attempt and one of them lets it succeed, the other one caused the failure.
            able = [name for name in met.get(at, ()) if of.may_fail(name, call.error)]
            yield at, kind(call), min(able, key=of.may_succeed) if able else LAB if at in lab else NOBODY


def kind(call: CallFinished) -> str:
    """The kind of failure in the lab's own words: a status, an end of the connection, or an exception's name. A
    service's text never counts."""
    said = call.error or ""
    if said == UNTOLD:
        return "failed, not told how"
    if said in ENDS:
        return said.replace("_", " ")
    if call.status is not None:
        left = (words for words in UNUSABLE.values() if said == f"status {call.status}, and {words}")
        return f"{call.status}" if call.status >= 400 else f"{call.status} with {next(left, 'an error in it')}"
    raised = _RAISED.fullmatch(said)
    return raised[1] if raised else "failed" if said else "failed, no reason given"
