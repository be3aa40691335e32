"""The facts of each trial that advice on its agent rests on: its calls after a fault, its effects and its answer."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from chaoslab.analysis.measures.errors import ENDS
from chaoslab.analysis.verdict.traits import describe_unusable_reply, find_fault_layer
from chaoslab.base.identity import canonical
from chaoslab.core import events
from chaoslab.record.history import History, Place

TRANSIENT_STATUSES = (408, 409, 425, 429)
"""The statuses of 4xx after which the same request may succeed."""
SLACK_S = 0.001
"""The seconds by which a wait may be shorter than Retry-After."""
AT_ONCE_S = 0.05
"""The seconds below which a wait is none."""
LONG_S = 30.0
"""The seconds above which a wait for nothing is long."""
Names = tuple[str, ...]


class Noticed(NamedTuple):
    """The facts of one trial. Each of the first seven has the names of the faults that were witnessed at such attempts,
    sorted."""

    failed: Names = ()
    """It failed, or had an answer that its caller cannot use."""
    taken: Names = ()
    """It was the last at its request, and its caller took the answer for right: the same call was not made again. A
    reply in parts counts also if it broke off, since its parts were there to be used, and one with nothing in it, which
    its caller may not have looked at."""
    early: Names = ()
    """The next came before the end of Retry-After."""
    at_once: Names = ()
    """It failed at once, in a way that may pass, and the next came at once. A timeout has itself waited."""
    refused: Names = ()
    """It was refused for good, and there was a next."""
    untried: Names = ()
    """It failed in a way that may pass, and was the only one at its request."""
    waited: Names = ()
    """It waited long for nothing."""
    attempts: int = 0
    """The most attempts at one request, without those that the agent gave up."""
    repeated: Names = ()
    """The targets with more than one effect."""
    silent: bool = True
    """There is no word in its answer."""
    ended_ok: bool = False
    raised: bool = False
    """An exception ended the agent."""
    empty: bool = False
    """The agent gave an attempt up as empty."""
    drawn: Names = ()
    """The faults that were scheduled."""
    missed: tuple[tuple[str, str, int, int], ...] = ()
    """Injections for a request that the agent did not make, with target, request, and the requests that it made."""
    unlike: bool = False
    """The run's plan alone does not tell it: values were drawn, or somebody switched faults off."""


NOTHING = Noticed()


@dataclass(frozen=True)
class FurtherAttempt:
    """One further attempt. `before`: the failed attempt before it. `wait_s`: the seconds between its end and the start
    of this one, in the time of the run's world."""

    at: Place
    before: events.CallFinished
    wait_s: float


def collect_advice_facts(history: History) -> dict[str | None, Noticed]:
    """The facts of each trial of whole ones."""
    names_by_fact: defaultdict[str | None, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    flags: defaultdict[str | None, dict[str, bool]] = defaultdict(dict)
    if faults_by_place := _group_faults_by_attempt(history):
        for name, attempts in _find_attempts_by_fact(history, faults_by_place).items():
            for at in attempts:
                names_by_fact[at[0]][name].update(faults_by_place.get(at, ()))
        for trial, fault in _find_trusted_replies(history):
            names_by_fact[trial]["taken"].add(fault)
    attempt_counts: dict[str | None, int] = {}
    dropped = Counter([at[:3] for at in history.given_up_attempts])
    for _, call, at in history.find_attempt_events(events.CallFinished):
        number = call.attempt - dropped[at[:3]] if dropped else call.attempt
        if number > attempt_counts.get(at[0], 0):
            attempt_counts[at[0]] = number
    for (trial, target), times in Counter(
        [(record.trial, e.target) for record, e in history.find_events(events.Effect)]
    ).items():
        if times > 1:
            names_by_fact[trial]["repeated"].add(target)
    for record, scheduled in history.find_events(events.FaultScheduled):
        names_by_fact[record.trial]["drawn"].add(scheduled.fault)
    for record, end in history.find_events(events.PromptFinished):
        flags[record.trial] |= {
            "silent": not end.answer.strip(), "ended_ok": end.status == "ok", "raised": end.error_type == "agent",
        }  # fmt: skip
    for record, attempt in history.find_events(events.PromptAttempt):
        if attempt.error_type == "empty":
            flags[record.trial]["empty"] = True
    for kind in (events.ValuesDrawn, events.FaultsOff):
        for record, _ in history.find_events(kind):
            flags[record.trial]["unlike"] = True
    missed: defaultdict[str | None, list[tuple[str, str, int, int]]] = defaultdict(list)
    for record, plan in history.find_events(events.FaultUnreached):
        if plan.request > plan.made:
            missed[record.trial].append((plan.injection, plan.target, plan.request, plan.made))
    facts_by_trial: dict[str | None, Noticed] = {}
    for trial in {*history.trials, *attempt_counts, *names_by_fact, *flags, *missed}:
        facts: dict[str, Any] = {name: tuple(sorted(names)) for name, names in names_by_fact.get(trial, {}).items()}
        facts |= flags.get(trial, {})
        facts_by_trial[trial] = Noticed(
            attempts=attempt_counts.get(trial, 0), missed=tuple(missed.get(trial, ())), **facts
        )
    return facts_by_trial


def _group_faults_by_attempt(history: History) -> dict[Place, list[str]]:
    """The faults that were witnessed at each attempt."""
    faults_by_place: dict[Place, list[str]] = {}
    for _, event, at in history.find_attempt_events(events.FaultWitnessed):
        faults_by_place.setdefault(at, []).append(event.fault)
    return faults_by_place


def _find_attempts_by_fact(history: History, faults_by_place: dict[Place, list[str]]) -> dict[str, Iterable[Place]]:
    """The attempts that show each of these facts."""
    dropped, ends, retry_after = (
        history.given_up_attempts,
        history.find_attempt_events(events.CallFinished),
        _find_stated_retry_after(history, faults_by_place),
    )
    further = find_retry_attempts(history)
    last = {at[:3]: (call, at) for _, call, at in ends}
    return {
        "failed": [
            at
            for _, call, at in ends
            if at in faults_by_place
            and at not in dropped
            and (not call.ok or any(map(describe_unusable_reply, faults_by_place[at])))
        ],
        "early": [
            further_attempt.at
            for further_attempt in further
            if further_attempt.wait_s < retry_after.get(further_attempt.at, 0.0) - SLACK_S
        ],
        "at_once": [
            further_attempt.at
            for further_attempt in further
            if further_attempt.wait_s < AT_ONCE_S
            and is_transient_failure(further_attempt.before)
            and further_attempt.before.error != "timed_out"
        ],
        "refused": [further_attempt.at for further_attempt in further if is_permanent_refusal(further_attempt.before)],
        "untried": [
            at for call, at in last.values() if call.attempt == 1 and not call.ok and is_transient_failure(call)
        ],
        "waited": [
            at for _, call, at in ends if not call.ok and call.error == "timed_out" and call.duration_s > LONG_S
        ],
    }


def _find_stated_retry_after(history: History, faults_by_place: dict[Place, list[str]]) -> dict[Place, float]:
    """The seconds of Retry-After that a witnessed fault stated, by attempt."""
    waits: dict[Place, float] = {}
    witnessed = None
    for _, e, at in history.find_attempt_events(events.FaultScheduled):
        wait_s = e.params.get("retry_after_s") if at in faults_by_place else None
        if isinstance(wait_s, int | float) and wait_s > 0:
            witnessed = witnessed or {
                (at, e.fault, e.injection) for _, e, at in history.find_attempt_events(events.FaultWitnessed)
            }
            if (at, e.fault, e.injection) in witnessed:
                waits[at] = float(wait_s)
    return waits


def _find_trusted_replies(history: History) -> Iterable[tuple[str | None, str]]:
    """The trials with each fault whose reply was taken for right."""
    last = {at[:3]: call for _, call, at in history.find_attempt_events(events.CallFinished)}
    trusted = []
    for _, event, at in history.find_attempt_events(events.FaultWitnessed):
        call = last.get(at[:3])
        if call is None or call.attempt != event.attempt:
            continue
        of_success = call.status is not None and call.status < 400
        if (
            call.ok
            or find_fault_layer(event.fault) == "stream"
            or (of_success and describe_unusable_reply(event.fault))
        ):
            trusted.append((at, event.fault))
    asked_again = _find_repeated_requests(history, {at[0] for at, _ in trusted}) if trusted else ()
    return [(at[0], fault) for at, fault in trusted if at[:3] not in asked_again]


def _find_repeated_requests(history: History, trials: set[str | None]) -> set[tuple[str | None, str, int]]:
    """The requests of these trials after which the same call was made again as another request, since they had been
    answered."""
    requests: set[tuple[str | None, str, int]] = set()
    last: dict[tuple[str | None, str, str], int] = {}
    for record, event in history.find_events(events.CallStarted):
        if record.trial in trials:
            call_key = (record.trial, event.target, canonical([event.tool, event.arguments]))
            if (earlier := last.get(call_key, event.request)) < event.request:
                requests.add((record.trial, event.target, earlier))
            last[call_key] = event.request
    return requests


def find_retry_attempts(history: History) -> list[FurtherAttempt]:
    """Every attempt that began after the attempt before it had failed, in the order of time. A fallback goes elsewhere,
    so it is none, nor is an attempt after one that was given up."""
    further = [(record, event) for record, event in history.find_events(events.CallStarted) if event.attempt > 1]
    if not further:
        return []
    fallbacks, dropped = {at for _, _, at in history.find_attempt_events(events.Fallback)}, history.given_up_attempts
    ends = {
        at: (record.t, e) for record, e, at in history.find_attempt_events(events.CallFinished) if at not in dropped
    }
    retried = []
    for record, event in further:
        previous = (record.trial, event.target, event.request, event.attempt - 1)
        end_t, end = ends.get(previous, (0.0, None))
        elsewhere = (record.trial, event.target, event.request, event.attempt) in fallbacks
        if end is not None and not end.ok and record.t >= end_t and not elsewhere:
            retried.append(FurtherAttempt(previous, end, record.t - end_t))
    return retried


def is_transient_failure(call: events.CallFinished) -> bool:
    """True for an end without a reply, 429 and 5xx: the same call may succeed later."""
    if call.status is None:
        return call.error in ENDS
    return call.status == 429 or call.status >= 500


def is_permanent_refusal(call: events.CallFinished) -> bool:
    """True for a 4xx that the same call meets again."""
    return call.status is not None and 400 <= call.status < 500 and call.status not in TRANSIENT_STATUSES
