"""How long it takes from meeting a fault to a right answer.

An *incident* opens at a trial's first witnessed fault on a target, and closes when that very request first gets a correct
result: an attempt that is ok and on which no fault of meaning (wrong value, truncated context) was witnessed. One incident
per trial and target, so that incidents are independent of each other; it bears the name of the fault that opened it.

It ends in one of four ways: by `retry` (a later attempt, asked by tool, agent or a new plan), by `fallback` (an attempt
around the proxy), `late` (the attempt that met a latency succeeded all the same: degraded and not failed, and its
duration is that attempt's own, from leaving the seam to its answer), or it is `censored` at the trial's end. No recovery counts
as a duration of 0, and a censored one counts as "at least so long" (Kaplan–Meier) and never as recovered.

A log that does not tell of faults (the first lab's) lets incidents only be *inferred*. At a tool, one opens when a trial's first failed
attempt was noticed, which is later than its fault came, and closes when that request first succeeds; a failure of which only the
number of attempts tells opens none, since its moment is not known. At the agent, one opens at the end of a prompt's first failed
attempt and closes at the end of the first that succeeds. Their faults' names say that they are inferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from chaoslab.events import UNTOLD, CallFinished, FaultWitnessed, PromptAttempt, PromptFinished
from chaoslab.history import History, Record
from chaoslab.measures.durations import duration
from chaoslab.measures.intervals import Estimate, Interval, Spell, bootstrap_mean, kaplan_meier

ENOUGH = 8
"""Fewer incidents get no interval and no estimate beyond the plain mean: it would promise what they cannot hold."""

MEANING = ("wrong_value", "truncate_context")
LATE_FAULTS = ("latency",)
INFERRED = "inferred"


class Ending(StrEnum):
    """How an incident ended."""

    RETRY = "retry"
    FALLBACK = "fallback"
    LATE = "late"
    CENSORED = "censored"


@dataclass(frozen=True)
class Incident:
    """One outage of a target as one trial met it."""

    trial: str
    target: str
    request: int
    fault: str
    injection: str
    opened_t: float
    duration_s: float
    ending: Ending

    @property
    def spell(self) -> Spell:
        return Spell(self.duration_s, ended=self.ending is not Ending.CENSORED)


@dataclass(frozen=True)
class Recovery:
    """What is known of some incidents. `mean_s` is over the recovered ones alone; the estimates are None below 8 incidents,
    the median also where half of the incidents never recovered in sight."""

    n: int
    retry: int
    fallback: int
    late: int
    censored: int
    mean_s: float | None
    mean_interval: Interval | None
    median: Estimate | None
    restricted_mean: Estimate | None
    horizon_s: float | None

    @property
    def recovered(self) -> int:
        return self.n - self.censored

    @property
    def enough(self) -> bool:
        return self.n >= ENOUGH


@dataclass(frozen=True)
class Mttr:
    """The incidents and what is known of them: of all, per fault, per target and fault."""

    incidents: tuple[Incident, ...]
    overall: Recovery
    by_fault: dict[str, Recovery]
    by_target: dict[tuple[str, str], Recovery]


def mttr(history: History) -> Mttr:
    """Every incident of a run, and the recovery in all groups; an empty run gives empty groups."""
    found = incidents(history)
    faults = sorted({i.fault for i in found})
    places = sorted({(i.target, i.fault) for i in found})
    return Mttr(
        tuple(found),
        recovery(found),
        {fault: recovery([i for i in found if i.fault == fault]) for fault in faults},
        {place: recovery([i for i in found if (i.target, i.fault) == place]) for place in places},
    )


def recovery(found: Sequence[Incident]) -> Recovery:
    """The figures of some incidents."""
    counts = {ending: sum(i.ending is ending for i in found) for ending in Ending}
    durations = [i.duration_s for i in found if i.ending is not Ending.CENSORED]
    curve = kaplan_meier([i.spell for i in found]) if len(found) >= ENOUGH else None
    return Recovery(
        n=len(found),
        retry=counts[Ending.RETRY],
        fallback=counts[Ending.FALLBACK],
        late=counts[Ending.LATE],
        censored=counts[Ending.CENSORED],
        mean_s=fmean(durations) if durations else None,
        mean_interval=bootstrap_mean(durations) if curve else None,
        median=curve.median if curve else None,
        restricted_mean=curve.restricted_mean if curve else None,
        horizon_s=curve.horizon_s if curve else None,
    )


def incidents(history: History) -> list[Incident]:
    """The incidents in the order in which they opened."""
    if not history.tells(FaultWitnessed):
        return sorted([*_of_tools(history), *_of_prompts(history)], key=lambda i: (i.opened_t, i.trial, i.target))
    ends = {record.trial: record.t for record, _ in history.of(PromptFinished)}
    last: dict[str | None, float] = {record.trial: record.t for record in history.records}
    first: dict[tuple[str, str], tuple[Record, FaultWitnessed]] = {}
    meaning: set[tuple[str | None, str, int, int]] = set()
    for record, fault in history.of(FaultWitnessed):
        if record.trial is not None:
            first.setdefault((record.trial, fault.target), (record, fault))
        if fault.fault in MEANING:
            meaning.add((record.trial, fault.target, fault.request, fault.attempt))
    calls: dict[tuple[str | None, str, int], list[tuple[float, CallFinished]]] = {}
    for record, call in history.of(CallFinished):
        calls.setdefault((record.trial, call.target, call.request), []).append((record.t, call))
    found = []
    for (trial, target), (record, fault) in first.items():
        tries = calls.get((trial, target, fault.request), [])
        right = [(t, c) for t, c in tries if c.ok and (trial, target, c.request, c.attempt) not in meaning]
        found.append(_incident(trial, record.t, fault, right, end_t=ends.get(trial, last[trial])))
    return sorted(found, key=lambda i: (i.opened_t, i.trial, i.target))


def _of_tools(history: History) -> list[Incident]:
    """One incident per trial and tool, opened by the first failure that was noticed."""
    ends = {record.trial: record.t for record, _ in history.of(PromptFinished)}
    opened: dict[tuple[str, str], tuple[float, CallFinished]] = {}
    closed: dict[tuple[str, str], tuple[float, Ending]] = {}
    for record, call in history.of(CallFinished):
        place = (record.trial or "", call.target)
        if record.trial is None or place in closed:
            continue
        if place not in opened:
            if not call.ok and call.error != UNTOLD:
                opened[place] = (record.t, call)
        elif call.ok and call.request == opened[place][1].request:
            closed[place] = (record.t, Ending.FALLBACK if call.via == "direct" else Ending.RETRY)
    found = []
    for (trial, target), (opened_t, call) in opened.items():
        closed_t, ending = closed.get((trial, target), (max(opened_t, ends.get(trial, opened_t)), Ending.CENSORED))
        found.append(_inferred(trial, target, call.request, call.error or "failure", opened_t, closed_t, ending))
    return found


def _of_prompts(history: History) -> list[Incident]:
    """One incident per trial with a failed attempt at its prompt."""
    tries: dict[str, list[tuple[float, PromptAttempt]]] = {}
    for record, attempt in history.of(PromptAttempt):
        tries.setdefault(record.trial or "", []).append((record.t, attempt))
    found = []
    for trial, attempts in tries.items():
        failed = next((n for n, (_, attempt) in enumerate(attempts) if attempt.status != "ok"), None)
        if failed is None:
            continue
        opened_t, attempt = attempts[failed]
        right = next((t for t, later in attempts[failed:] if later.status == "ok"), None)
        closed_t, ending = (attempts[-1][0], Ending.CENSORED) if right is None else (right, Ending.RETRY)
        kind = f"{attempt.error_type} error"
        found.append(_inferred(trial, "agent", attempt.prompt_index, kind, opened_t, closed_t, ending))
    return found


def _inferred(
    trial: str, target: str, request: int, fault: str, opened_t: float, closed_t: float, ending: Ending
) -> Incident:
    lasted_s = round(closed_t - opened_t, 6)
    return Incident(trial, target, request, f"{fault}, {INFERRED}", "", opened_t, lasted_s, ending)


def _incident(
    trial: str, opened_t: float, fault: FaultWitnessed, right: list[tuple[float, CallFinished]], *, end_t: float
) -> Incident:
    """`right`: the correct results of the fault's request. Attempts are told apart by number and not by time, because the witness of a
    fault on the wire is another process, which may log it a moment after the next attempt began."""
    ending, closed_t = Ending.CENSORED, end_t
    for t, call in right:
        if call.attempt == fault.attempt and call.via != "direct":
            if fault.fault not in LATE_FAULTS:
                continue
            opened_t, ending, closed_t = t - call.duration_s, Ending.LATE, t
            break
        if call.attempt > fault.attempt or call.via == "direct":
            ending, closed_t = (Ending.FALLBACK if call.via == "direct" else Ending.RETRY), t
            break
    duration_s = max(0.0, closed_t - opened_t)
    return Incident(
        trial, fault.target, fault.request, fault.fault, fault.injection, opened_t, round(duration_s, 6), ending
    )


def told(found: Recovery) -> str:
    """The recovery in one line."""
    if not found.n:
        return "no data"
    ways = {"retry": found.retry, "fallback": found.fallback, "late": found.late}
    by = ", ".join(f"{count} {'late' if way == 'late' else 'by ' + way}" for way, count in ways.items() if count)
    line = f"{found.recovered} of {found.n} recovered{f' ({by})' if by else ''}, {found.censored} never"
    if found.mean_s is not None:
        line += f"; mean {duration(found.mean_s, 2)}{_span(found.mean_interval)} over {found.recovered}"
    if not found.enough:
        return f"{line}; {found.n} {'fault' if found.n == 1 else 'faults'}: too few"
    median = (
        f"median {duration(found.median.value, 2)}{_span(found.median.interval)}"
        if found.median
        else "median not reached"
    )
    line += f"; Kaplan–Meier {median}"
    if found.restricted_mean and found.horizon_s is not None:
        mean = found.restricted_mean
        line += f", mean up to {duration(found.horizon_s, 2)}: {duration(mean.value, 2)}{_span(mean.interval)}"
    return line


def _span(interval: Interval | None) -> str:
    return "" if interval is None else f" [{interval.low:.2f}, {interval.high:.2f}]"
