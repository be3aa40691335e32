"""The facts of each trial that advice on its agent rests on: its calls after a fault, its effects and its answer."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from chaoslab.analysis.measures.errors import ENDS
from chaoslab.analysis.verdict.traits import layer, unusable
from chaoslab.base.identity import canonical
from chaoslab.core import events
from chaoslab.record.history import History, Place

PASSING = (408, 409, 425, 429)
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
class Again:
    """One further attempt. `before`: the failed attempt before it. `wait_s`: the seconds between its end and the start
    of this one, in the time of the run's world."""

    at: Place
    before: events.CallFinished
    wait_s: float


def noticed(history: History) -> dict[str | None, Noticed]:
    """The facts of each trial of whole ones."""
    found: defaultdict[str | None, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    told: defaultdict[str | None, dict[str, bool]] = defaultdict(dict)
    if hit := _hit(history):
        for name, attempts in _shown(history, hit).items():
            for at in attempts:
                found[at[0]][name].update(hit.get(at, ()))
        for trial, fault in _taken(history):
            found[trial]["taken"].add(fault)
    most: dict[str | None, int] = {}
    gone = Counter([at[:3] for at in history.given_up])
    for _, call, at in history.placed(events.CallFinished):
        number = call.attempt - gone[at[:3]] if gone else call.attempt
        if number > most.get(at[0], 0):
            most[at[0]] = number
    for (trial, target), times in Counter(
        [(record.trial, e.target) for record, e in history.of(events.Effect)]
    ).items():
        if times > 1:
            found[trial]["repeated"].add(target)
    for record, scheduled in history.of(events.FaultScheduled):
        found[record.trial]["drawn"].add(scheduled.fault)
    for record, end in history.of(events.PromptFinished):
        told[record.trial] |= {
            "silent": not end.answer.strip(), "ended_ok": end.status == "ok", "raised": end.error_type == "agent",
        }  # fmt: skip
    for record, tried in history.of(events.PromptAttempt):
        if tried.error_type == "empty":
            told[record.trial]["empty"] = True
    for kind in (events.ValuesDrawn, events.FaultsOff):
        for record, _ in history.of(kind):
            told[record.trial]["unlike"] = True
    missed: defaultdict[str | None, list[tuple[str, str, int, int]]] = defaultdict(list)
    for record, plan in history.of(events.FaultUnreached):
        if plan.request > plan.made:
            missed[record.trial].append((plan.injection, plan.target, plan.request, plan.made))
    made: dict[str | None, Noticed] = {}
    for trial in {*history.trials, *most, *found, *told, *missed}:
        facts: dict[str, Any] = {name: tuple(sorted(names)) for name, names in found.get(trial, {}).items()}
        facts |= told.get(trial, {})
        made[trial] = Noticed(attempts=most.get(trial, 0), missed=tuple(missed.get(trial, ())), **facts)
    return made


def _hit(history: History) -> dict[Place, list[str]]:
    """The faults that were witnessed at each attempt."""
    found: dict[Place, list[str]] = {}
    for _, event, at in history.placed(events.FaultWitnessed):
        found.setdefault(at, []).append(event.fault)
    return found


def _shown(history: History, hit: dict[Place, list[str]]) -> dict[str, Iterable[Place]]:
    """The attempts that show each of these facts."""
    gone, ends, told = history.given_up, history.placed(events.CallFinished), _told(history, hit)
    again = tried_again(history)
    last = {at[:3]: (call, at) for _, call, at in ends}
    return {
        "failed": [
            at
            for _, call, at in ends
            if at in hit and at not in gone and (not call.ok or any(map(unusable, hit[at])))
        ],
        "early": [one.at for one in again if one.wait_s < told.get(one.at, 0.0) - SLACK_S],
        "at_once": [
            one.at
            for one in again
            if one.wait_s < AT_ONCE_S and may_pass(one.before) and one.before.error != "timed_out"
        ],
        "refused": [one.at for one in again if refused(one.before)],
        "untried": [at for call, at in last.values() if call.attempt == 1 and not call.ok and may_pass(call)],
        "waited": [
            at for _, call, at in ends if not call.ok and call.error == "timed_out" and call.duration_s > LONG_S
        ],
    }  # fmt: skip


def _told(history: History, hit: dict[Place, list[str]]) -> dict[Place, float]:
    """The seconds of Retry-After that a witnessed fault stated, by attempt."""
    found: dict[Place, float] = {}
    met = None
    for _, e, at in history.placed(events.FaultScheduled):
        wait_s = e.params.get("retry_after_s") if at in hit else None
        if isinstance(wait_s, int | float) and wait_s > 0:
            met = met or {(at, e.fault, e.injection) for _, e, at in history.placed(events.FaultWitnessed)}
            if (at, e.fault, e.injection) in met:
                found[at] = float(wait_s)
    return found


def _taken(history: History) -> Iterable[tuple[str | None, str]]:
    """The trials with each fault whose reply was taken for right."""
    last = {at[:3]: call for _, call, at in history.placed(events.CallFinished)}
    found = []
    for _, event, at in history.placed(events.FaultWitnessed):
        call = last.get(at[:3])
        if call is None or call.attempt != event.attempt:
            continue
        of_success = call.status is not None and call.status < 400
        if call.ok or layer(event.fault) == "stream" or (of_success and unusable(event.fault)):
            found.append((at, event.fault))
    anew = _asked_anew(history, {at[0] for at, _ in found}) if found else ()
    return [(at[0], fault) for at, fault in found if at[:3] not in anew]


def _asked_anew(history: History, trials: set[str | None]) -> set[tuple[str | None, str, int]]:
    """The requests of these trials after which the same call was made again as another request, since they had been
    answered."""
    found: set[tuple[str | None, str, int]] = set()
    last: dict[tuple[str | None, str, str], int] = {}
    for record, event in history.of(events.CallStarted):
        if record.trial in trials:
            wanted = (record.trial, event.target, canonical([event.tool, event.arguments]))
            if (before := last.get(wanted, event.request)) < event.request:
                found.add((record.trial, event.target, before))
            last[wanted] = event.request
    return found


def tried_again(history: History) -> list[Again]:
    """Every attempt that began after the attempt before it had failed, in the order of time. A fallback goes elsewhere,
    so it is none, nor is an attempt after one that was given up."""
    further = [(record, event) for record, event in history.of(events.CallStarted) if event.attempt > 1]
    if not further:
        return []
    around, gone = {at for _, _, at in history.placed(events.Fallback)}, history.given_up
    ends = {at: (record.t, e) for record, e, at in history.placed(events.CallFinished) if at not in gone}
    found = []
    for record, event in further:
        before = (record.trial, event.target, event.request, event.attempt - 1)
        end_t, end = ends.get(before, (0.0, None))
        elsewhere = (record.trial, event.target, event.request, event.attempt) in around
        if end is not None and not end.ok and record.t >= end_t and not elsewhere:
            found.append(Again(before, end, record.t - end_t))
    return found


def may_pass(call: events.CallFinished) -> bool:
    """True for an end without a reply, 429 and 5xx: the same call may succeed later."""
    if call.status is None:
        return call.error in ENDS
    return call.status == 429 or call.status >= 500


def refused(call: events.CallFinished) -> bool:
    """True for a 4xx that the same call meets again."""
    return call.status is not None and 400 <= call.status < 500 and call.status not in PASSING
