"""A fault as text: all its stages in one line, at the event where it was met."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from chaoslab.base.durations import format_duration
from chaoslab.base.jsonable import to_one_line
from chaoslab.core import events
from chaoslab.record.lines import Record

Place = tuple[str, str, str, int, int]
"""A fault's name, its injection, and its attempt: target, request, attempt."""
WIDTH = 300


@dataclass
class AttemptFault:
    """One fault of one attempt: its stages, and the end of the attempt."""

    stages: list[events.Stage] = field(default_factory=list)
    ended: events.CallFinished | None = None
    disturbed: events.CallDisturbed | None = None

    @classmethod
    def index_by_record(cls, records: Sequence[Record]) -> dict[int, AttemptFault]:
        """A trial's faults, each by the index of the record that witnessed it, or else of its latest stage."""
        faults: dict[Place, AttemptFault] = {}
        numbers: dict[Place, int] = {}
        # By attempt, since the end of a call has neither the fault nor the injection in it.
        ended: dict[tuple[str, int, int], events.CallFinished] = {}
        disturbed: dict[tuple[str, int, int], events.CallDisturbed] = {}
        for number, event in enumerate(record.event for record in records):
            match event:
                case events.CallFinished():
                    ended[event.target, event.request, event.attempt] = event
                case events.CallDisturbed():
                    disturbed[event.target, event.request, event.attempt] = event
                case _ if isinstance(event, events.Stage):
                    key = (event.fault, event.injection, event.target, event.request, event.attempt)
                    fault = faults.setdefault(key, cls())
                    # Once witnessed it keeps the place of its witness, whatever stage follows.
                    if not fault.witness_event:
                        numbers[key] = number
                    fault.stages.append(event)
        for key, fault in faults.items():
            fault.ended, fault.disturbed = ended.get(key[2:]), disturbed.get(key[2:])
        return {numbers[key]: fault for key, fault in faults.items()}

    @property
    def witness_event(self) -> events.FaultWitnessed | None:
        return next((stage for stage in self.stages if isinstance(stage, events.FaultWitnessed)), None)

    def describe_in_words(self) -> str:
        """The fault in one line; a fault that nobody witnessed stands out, with the reason."""
        stage = self.stages[0]
        # An injection that is named after its fault and target says nothing more.
        source = "" if stage.injection.startswith(f"{stage.fault} on ") else f" ({stage.injection})"
        head = f"{stage.target} {stage.request}.{stage.attempt} {stage.fault}{source}"
        if witness := self.witness_event:
            return f"{head}: {to_one_line(witness.changed or witness.evidence, WIDTH)} – witnessed"
        params = next((s.params for s in self.stages if isinstance(s, events.FaultScheduled)), {})
        planned = f" {to_one_line(json.dumps(params, ensure_ascii=False), WIDTH)}" if params else ""
        return f"{head}{planned}: {self._explain_unmet()}"

    def _explain_unmet(self) -> str:
        if idle := next(
            (stage.idle for stage in self.stages if isinstance(stage, events.FaultHealed) and stage.idle), ""
        ):
            return f"armed, and {idle}"
        if any(isinstance(stage, events.FaultArmed) for stage in self.stages):
            return f"ARMED AND NOT WITNESSED: {self._describe_attempt_end()}"
        if any(isinstance(stage, events.FaultInjected) for stage in self.stages):
            return f"INJECTED AND NOT WITNESSED: {self._describe_attempt_end()}"
        if self.ended is not None and (self.ended.status is not None or not self.ended.error):
            return "not injected: it found nothing to change"
        return f"not injected: {self._describe_attempt_end()}"

    def _describe_attempt_end(self) -> str:
        """The end of the attempt."""
        if self.disturbed is not None:
            return f"the lab itself got in the way ({self.disturbed.why})"
        if self.ended is None:
            return "the call never ended"
        after = f"after {format_duration(self.ended.duration_s)}"
        if self.ended.status is not None:
            return f"the caller got {self.ended.status} {after}"
        if self.ended.error == events.OPEN:
            return f"the call was {events.OPEN}, {after}"
        ended = f"the call ended with {self.ended.error}" if self.ended.error else "the caller got an answer"
        return f"{ended} {after}"
