"""The faults of one attempt: their stories for `chain`, and the stages of those that hit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from chaoslab.core.chain import ActiveFault
from chaoslab.core.events import Event, FaultInjected, FaultWitnessed
from chaoslab.core.exchange import Call, Observation
from chaoslab.core.fault import trait
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import HITS, Decision, Injection, together


class AttemptFaults:
    """The faults of one attempt. What each injection decided was asked of the trial's memory before.

    `rolled`: the names of the injections that were asked; `active`: the faults that hit. `elapsed_s` and `spent`: the
    trial's so far. `note` takes the events.
    """

    __slots__ = ("_call", "_elapsed_s", "_memory", "_note", "_spent", "active", "rolled")

    def __init__(
        self,
        memory: TrialMemory,
        call: Call,
        note: Callable[[Event], object],
        *,
        elapsed_s: float = 0.0,
        spent: Mapping[str, float] | None = None,
    ) -> None:
        self._memory, self._call, self._note = memory, call, note
        self._elapsed_s, self._spent = elapsed_s, spent or {}
        self.rolled: list[str] = []
        self.active: list[ActiveFault] = []

    def stories(
        self, injections: Sequence[Injection], decisions: Sequence[Decision]
    ) -> list[Callable[[Call], ActiveFault | None]]:
        """A function per injection that the attempt concerns, in the same order, for `chain`. Faults of the wire are
        those that one lane would carry."""
        found: list[Callable[[Call], ActiveFault | None]] = []
        concerned = [(i, each in HITS) for i, each in zip(injections, decisions, strict=True) if each]
        several = [i for i, hit in concerned if hit and i.layer == "wire"]
        if len(several) < 2:
            several = []
        carried = {active.injection: active for active in together([self._drawn(each) for each in several])}
        for injection, hit in concerned:
            drawn = carried.get(injection.name)
            if drawn is not None or injection not in several:
                found.append(partial(self._reach, injection, hit=hit, drawn=drawn))
        return found

    def _reach(self, injection: Injection, _: Call, *, hit: bool, drawn: ActiveFault | None) -> ActiveFault | None:
        """The fault of an injection whose story is reached, if it hits."""
        self.rolled.append(injection.name)
        if not hit:
            return None
        active = drawn or self._drawn(injection)
        self.active.append(active)
        if not injection.conditional:
            self._note(active.scheduled(self._call))
        return active

    def _drawn(self, injection: Injection) -> ActiveFault:
        active = self._memory.plan.fault_for(injection, self._call)
        active.context = self._memory.context(injection.name, self._elapsed_s, self._spent)
        return active

    def injected(self, active: ActiveFault) -> None:
        """Notes that the story has changed the exchange; `chain` calls it."""
        if trait(active.fault, "conditional"):
            self._note(active.scheduled(self._call))
        self._note(FaultInjected(fault=active.fault_name, injection=active.injection, at=self._call.at))

    def witnessed(self, seen: Observation) -> None:
        """Notes which of the faults the caller met, once the attempt is over."""
        for active in self.active:
            changed = active.call or active.reply
            its = replace(seen, changed_call=active.call, changed_reply=active.reply) if changed else seen
            evidence = active.injected and active.evidence(its)
            if evidence:
                self._note(
                    FaultWitnessed(
                        fault=active.fault_name,
                        injection=active.injection,
                        at=self._call.at,
                        evidence=evidence,
                        changed=active.changed(),
                    )
                )
