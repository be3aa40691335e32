"""Each fault that was drawn is met."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.analysis.verdict.spoilt import failed_in_outages
from chaoslab.core.events import FaultHealed, FaultScheduled, FaultWitnessed


@dataclass(frozen=True)
class EveryFaultWitnessed(Assertion):
    """Each fault that was scheduled was witnessed, had nothing to do, or another one ended its call first."""

    example = "every_fault_witnessed"

    def check(self, seen: Seen) -> Miss | None:
        met = {(e.injection, e.fault, e.at) for _, e in seen.of(FaultWitnessed)}
        met |= {(e.injection, e.fault, e.at) for _, e in seen.of(FaultHealed) if e.masked_by or e.idle}
        failed = failed_in_outages(seen.history, seen.trial)
        for record, event in seen.of(FaultScheduled):
            if (event.injection, event.fault, event.at) not in met and event.at not in failed:
                where = f"{event.target} {event.request}.{event.attempt}"
                return Miss.at(f"{event.fault} was scheduled at {where} and not witnessed", record)
        return None
