"""The incidents of each trial: a request that met a fault, with its beginning, its notice and its end.

An *incident* opens at the start of the first attempt that meets a fault at a target. It closes at the first right
result of that same request: an attempt that is ok and met no fault that corrupts the reply or leaves something else in
its place. There is one incident per request, with the name of the fault that opened it; further faults of its attempts
belong to it. It is *noticed* at the end of that attempt, when its fault is witnessed. Where a request is hedged, it is
noticed before: when the request is made again, or with the right result of an attempt that was made together with it.

Where that request never gets one, the first right result of another request of the trial for the same thing (equal
target, tool and arguments) closes it, from the opening on, if that request was

- under way *together* with it, as where two hedged calls are sent at once and one of them meets a fault: each began
  before the other's last attempt ended. The call must change nothing: the ledger has no effect of its tool from the
  beginning of both to that result. An equal call that changes something is another request, and repairs nothing.
- *later*: begun after it was over, since its reply was taken for an answer though it was only a part of one or empty.
  (In logs of before, so were empty and unreadable replies of services and functions.)

Of a conversation with a model the log has only the number of messages, so no other request is together with one to it.

Incidents of one trial may go together, as where one outage hits several requests. Their intervals are widened by how
much they do (`intervals.compute_design_effect`); trials are taken as independent.

Some faults open none, since nothing can recover from them: those that corrupt a value silently, and those that last
until the trial ends. The fault's class defines this (`traits`). Nor does a fault open one at an attempt that was
answered and also corrupted: nobody could know that a repair was needed.

It ends in one of six ways:

- `retry`: another attempt, by the tool, the agent or a new plan, at this request or at another one for the same thing.
- `fallback`: an attempt around the proxy.
- `late`: the attempt that met the fault was right all the same; there was nothing to notice.
- `harm`: a right result came, but between the opening and that result an effect happened at the target a second time:
  two entries of its ledger by the same tool with equal content and without a common request id. (An agent that wants
  the same thing twice looks alike.) Or the trial left the world that its user's function reads in a state that is
  neither the right one nor the one before; which of its calls did so is not known.
- `never`: the trial ended first, so that it never recovers.
- `censored`: nobody knows if it would have recovered, since the log ended first (`cut`), as where the lab itself died,
  or since the service was dead for a reason that nobody injected (`_dead_services.py`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from itertools import combinations
from sys import intern
from typing import NamedTuple

from chaoslab.analysis.measures._dead_services import DeadServices
from chaoslab.analysis.measures._wishes import EqualRequestFinder
from chaoslab.analysis.verdict import traits
from chaoslab.analysis.verdict._end_state import compare_states
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.core import events
from chaoslab.core.fault import get_trait
from chaoslab.record.history import History, Place
from chaoslab.record.lines import Record


class Ending(StrEnum):
    """The end of an incident."""

    RETRY = "retry"
    FALLBACK = "fallback"
    LATE = "late"
    HARM = "harm"
    NEVER = "never"
    CENSORED = "censored"


RECOVERED = (Ending.RETRY, Ending.FALLBACK, Ending.LATE)
HARMED = "an effect was repeated, or the end state is wrong"
"""The meaning of `Ending.HARM`, in words."""


class Incident(NamedTuple):
    """One request that met a fault.

    `opened_t`: the start of the attempt that met the fault. `duration_s`: from there to the right result, or to the
    trial's end. `noticed_after_s`: from there to the notice. `cut`: it is censored since the log ends before the trial.
    """

    trial: str
    target: str
    request: int
    fault: str
    injection: str
    opened_t: float
    duration_s: float
    ending: Ending
    noticed_after_s: float = 0.0
    cut: bool = False

    @property
    def recovered(self) -> bool:
        """True if a right result came without harm."""
        return self.ending in RECOVERED

    @property
    def censored(self) -> bool:
        """True if it lasted at least so long, and nobody knows how it would have ended."""
        return self.ending is Ending.CENSORED

    @property
    def beside_dead_service(self) -> bool:
        """True if it is censored because its service was dead, and nobody had injected that."""
        return self.censored and not self.cut

    @property
    def since_notice_s(self) -> float | None:
        """The time from the notice to the right result, or to the trial's end; None if there was nothing to notice."""
        return None if self.ending is Ending.LATE else round(max(0.0, self.duration_s - self.noticed_after_s), 6)


class Traits:
    """The traits of faults by their names, each looked up once: to find a fault's class takes a look at every package
    that may have been installed since."""

    def __init__(self) -> None:
        class_of = cache(traits.find_fault_class)
        self.corrupts, self.lasts, self.leaves = (
            cache(lambda fault, name=name: get_trait(class_of(fault), name)) for name in ("corrupts", "lasts", "leaves")
        )


def find_incidents(history: History, fault_traits: Traits | None = None) -> list[Incident]:
    """The incidents in the order in which they opened. `fault_traits`: kept for several histories of one run."""
    dead_services = DeadServices()
    dead_services.add_history(history)
    return mark_censored_incidents(find_batch_incidents(history, fault_traits), dead_services.find_affected_requests())


def mark_censored_incidents(
    all_incidents: Sequence[Incident], dead_requests: Collection[tuple[str, str, int]]
) -> list[Incident]:
    """The incidents, those censored that never recovered because their service was dead. `dead_requests`: trial,
    target and number of the requests that met it so."""
    return [
        incident._replace(ending=Ending.CENSORED)
        if incident.injection
        and incident.ending is Ending.NEVER
        and (incident.trial, incident.target, incident.request) in dead_requests
        else incident
        for incident in all_incidents
    ]


def find_batch_incidents(history: History, fault_traits: Traits | None = None) -> list[Incident]:
    """The incidents of a part of a run, which does not tell all about the run's services."""
    index = _CallIndex(history, fault_traits or Traits())
    first_faults: dict[tuple[str, str, int], tuple[Record, events.FaultWitnessed]] = {}
    for record, fault, at in history.find_attempt_events(events.FaultWitnessed):
        if record.trial is None:
            continue
        request = (intern(record.trial), at[1], at[2])
        if request not in first_faults and index.is_fault_noticeable(fault, at):
            first_faults[request] = record, fault
    opened = [index.build_incident(trial, record.t, fault) for (trial, _, _), (record, fault) in first_faults.items()]
    return sorted(opened, key=time_order_key)


def time_order_key(incident: Incident) -> tuple[float, str, str, int]:
    """The place of an incident among others: by its opening, trial, target and request."""
    return incident.opened_t, incident.trial, incident.target, incident.request


def severity_key(incident: Incident) -> tuple[bool, bool, float]:
    """The place of an incident among others by how it went: harm, then no recovery, then the duration."""
    return incident.ending is Ending.HARM, not incident.recovered, incident.duration_s


_Request = tuple[str | None, str, int]
"""A trial, a target and the request's number."""
_Ended = tuple[float, events.CallFinished]
"""The end of an attempt and its time."""


@dataclass
class _CallIndex:
    """The calls of requests that met a fault, the effects and the ends of a log, indexed for lookup."""

    history: History
    of: Traits

    def __post_init__(self) -> None:
        history, fault_traits = self.history, self.of
        witnessed = history.find_attempt_events(events.FaultWitnessed)
        requests = {at[:3] for _, _, at in witnessed}
        self.targets = targets = {at[:2] for at in requests}
        self.corrupted: set[Place] = {at for _, e, at in witnessed if fault_traits.corrupts(e.fault)}
        self.spoilt: set[Place] = {at for _, e, at in witnessed if fault_traits.leaves(e.fault)} - self.corrupted
        self.ends = {record.trial: record.t for record, _ in history.find_events(events.PromptFinished)}
        self.began: dict[Place, float] = {
            at: record.t for record, _, at in history.find_attempt_events(events.CallStarted) if at[:3] in requests
        }
        self.calls: dict[_Request, list[_Ended]] = {}
        for record, call, at in history.find_attempt_events(events.CallFinished):
            if at[:3] in requests:
                self.calls.setdefault(at[:3], []).append((record.t, call))
        self.effects: dict[tuple[str | None, str], list[tuple[float, events.Effect]]] = {}
        for record, effect in history.find_events(events.Effect):
            if (key := (record.trial, effect.target)) in targets:
                self.effects.setdefault(key, []).append((record.t, effect))

    @cached_property
    def last_event_times(self) -> dict[str | None, float]:
        """The time of each trial's last event."""
        return {record.trial: record.t for record in self.history.records}

    @cached_property
    def effect_targets(self) -> dict[str | None, set[str]]:
        """The targets of each trial's effects."""
        targets: dict[str | None, set[str]] = {}
        for record, effect in self.history.find_events(events.Effect):
            targets.setdefault(record.trial, set()).add(effect.target)
        return targets

    @cached_property
    def wrong_state_trials(self) -> set[str | None]:
        """The trials whose end state is neither the right one nor the one before."""
        right_states = {record.trial: event.state for record, event in self.history.find_events(events.PromptStarted)}
        return {
            record.trial
            for record, end in self.history.find_events(events.EndState)
            if not end.error
            and (state := right_states.get(record.trial)) is not None
            and any(
                finding.kind is FindingKind.STATE
                for finding in compare_states(end.before, state, end.after, line=(record.writer, 0))
            )
        }

    def _may_have_spoilt_state(self, trial: str, target: str) -> bool:
        """True if the end state is wrong and the target may have made it so: one with effects, or any if the log has no
        effects of the trial."""
        return trial in self.wrong_state_trials and target in self.effect_targets.get(trial, (target,))

    def is_fault_noticeable(self, fault: events.FaultWitnessed, attempt: Place) -> bool:
        """True if somebody could notice the fault and react to it."""
        # Nothing can recover from what nobody notices, or from what goes on to the trial's end.
        if self.of.corrupts(fault.fault) or self.of.lasts(fault.fault):
            return False
        answered = any(c.ok for _, c in self.calls.get(attempt[:3], ()) if c.attempt == fault.attempt)
        return not (answered and attempt in self.corrupted)

    def build_incident(self, trial: str, witnessed_t: float, fault: events.FaultWitnessed) -> Incident:
        """The incident of a fault. Attempts are identified by number and not by time: another process witnesses a fault
        on the wire, and may log it just after the next attempt began."""
        attempt: Place = (trial, fault.target, fault.request, fault.attempt)
        tries = self.calls.get(attempt[:3], [])
        noticed_t, faulted_call = witnessed_t, None
        for t, call in tries:
            if call.attempt == fault.attempt:
                noticed_t, faulted_call = t, call
                break
        lasted_s = faulted_call.duration_s if faulted_call else 0.0
        # Where the log lacks the start of the attempt, its duration tells it.
        opened_t = min(self.began.get(attempt, noticed_t - lasted_s), noticed_t)
        closed_t, ending = self._find_recovery_and_ending(fault, self._drop_replaced_replies(attempt, tries))
        if closed_t is None:
            counts_later = attempt in self.spoilt and faulted_call is not None and faulted_call.ok
            if other_result := self._equal_requests.find_result_of_equal_request(
                attempt[:2], attempt[2], opened_t, anew=counts_later
            ):
                closed_t, ending = other_result[0], _classify_recovery_ending(other_result[1])
        if closed_t is None:
            closed_t = self.ends[trial] if trial in self.ends else self.last_event_times[trial]
        elif self._may_have_spoilt_state(trial, fault.target) or _has_repeated_effect(
            [e for t, e in self.effects.get((trial, fault.target), ()) if opened_t <= t <= closed_t]
        ):
            ending = Ending.HARM
        again_t = self.began.get((*attempt[:3], fault.attempt + 1), opened_t)
        noticed_t = min(noticed_t, closed_t, again_t if again_t > opened_t else noticed_t)
        duration_s, noticed_after_s = _elapsed_s(opened_t, closed_t), _elapsed_s(opened_t, noticed_t)
        target, name, injection = intern(fault.target), intern(fault.fault), intern(fault.injection)
        cut = ending is Ending.NEVER and trial not in self.ends
        ending = Ending.CENSORED if cut else ending
        return Incident(
            trial, target, fault.request, name, injection, opened_t, duration_s, ending, noticed_after_s, cut
        )

    def _drop_replaced_replies(self, attempt: Place, tries: list[_Ended]) -> list[_Ended]:
        """The attempts whose reply is not another one in the place of the right one."""
        if not self._attempts_with_replaced_reply:
            return tries
        return [
            (t, call) for t, call in tries if (*attempt[:3], call.attempt) not in self._attempts_with_replaced_reply
        ]

    @cached_property
    def _attempts_with_replaced_reply(self) -> set[Place]:
        """The attempts that left another reply in the place of the right one."""
        return self.corrupted | self.spoilt

    @cached_property
    def _equal_requests(self) -> EqualRequestFinder:
        return EqualRequestFinder(self.history, self.targets, self._attempts_with_replaced_reply)

    def _find_recovery_and_ending(
        self, fault: events.FaultWitnessed, tries: list[_Ended]
    ) -> tuple[float | None, Ending]:
        """The end of the request's first right attempt, and its kind."""
        for t, call in tries:
            if call.ok and (call.attempt >= fault.attempt or call.via == "direct"):
                return (
                    t,
                    Ending.LATE
                    if call.attempt == fault.attempt and call.via != "direct"
                    else _classify_recovery_ending(call),
                )
        return None, Ending.NEVER


def _classify_recovery_ending(call: events.CallFinished) -> Ending:
    return Ending.FALLBACK if call.via == "direct" else Ending.RETRY


def _elapsed_s(begun_t: float, ended_t: float) -> float:
    return round(max(0.0, ended_t - begun_t), 6)


def _has_repeated_effect(effects: Sequence[events.Effect]) -> bool:
    """True if one of them happened twice; entries with the same request id are one effect."""
    return len(effects) > 1 and any(
        (left.tool, left.effect, left.content) == (right.tool, right.effect, right.content)
        and (not right.request_id or right.request_id != left.request_id)
        for left, right in combinations(effects, 2)
    )
