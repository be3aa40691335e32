"""The events that begin and end a trial of a user's agent, and the warnings about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from chaoslab.analysis.verdict.judge import HUNG
from chaoslab.base.clock import iso
from chaoslab.base.jsonable import describe_error
from chaoslab.core import events
from chaoslab.execution.agents.calling import text_of
from chaoslab.execution.agents.case import AgentCase, AgentResult
from chaoslab.execution.agents.functions import name_of
from chaoslab.execution.agents.says import read
from chaoslab.record.trial_log import TrialLog

UNHELD = (
    "no reference to {} was found that the agent can reach, so its calls go unseen: give in tools= the very object "
    "that the agent calls"
)


def opening(case: AgentCase) -> Iterator[events.Event]:
    """The events with which a trial begins."""
    started = events.PromptStarted(
        prompt_index=1,
        prompt=str(case.prompt),
        facts=[list(fact) for fact in case.facts],
        effects=None if case.effects is None else [dict(effect) for effect in case.effects],
        stated=case.stated,
        incomparable=case.incomparable,
        state=case.right_state,
        undoes=dict(case.options.undoes) if case.options.undoes else None,
        idempotent=list(case.options.idempotent) if case.options.idempotent else None,
        ordered=case.options.ordered or None,
    )
    if case.twin is not None:
        twin = case.twin
        started = replace(started, twin=twin.answer, twin_s=twin.seconds, twin_calls=twin.calls)
    yield started
    if case.drawn:
        yield events.ValuesDrawn(values=dict(case.drawn))


def close(case: AgentCase, result: AgentResult, now: datetime) -> None:
    """Writes the events with which a trial ends. `now`: the moment at which it began."""
    book, asked = result.book, str(case.prompt)
    kind = HUNG if result.hung else "agent" if result.error is not None else "none"
    error = result.hung or (describe_error(result.error) if result.error is not None else "")
    text = "" if kind != "none" else text_of(result.answer)
    end = iso(now + timedelta(seconds=result.seconds))
    for warning in result.warnings:
        book.note(events.LabWarning(message=warning))
    for unreached in _unreached(case, book):
        book.note(unreached)
    book.note(
        events.PromptAttempt(
            prompt_index=1,
            prompt=asked,
            response=text,
            status="ok" if kind == "none" else "error",
            start_time=iso(now),
            end_time=end,
            duration_s=result.seconds,
            error_type=kind,
            prompt_attempt=1,
            error=error[:2000],
        )
    )
    if kind == "none" and case.options.says is not None:
        values, why = read(case.options.says, result.answer, text)
        twin = None if case.twin_says is None else dict(case.twin_says)
        book.note(events.AnswerRead(says=values, twin=twin, error=why))
    ok = "ok" if kind == "none" else "failed"
    book.note(
        events.PromptFinished(
            prompt_index=1,
            prompt=asked,
            status=ok,
            answer=text,
            attempts=1,
            duration_s=result.seconds,
            error_type=kind,
        )
    )


def _unreached(case: AgentCase, book: TrialLog) -> list[events.FaultUnreached]:
    """The numbered requests that should have met a fault and did not."""
    if not case.plan.named:
        return []
    met = {(event.injection, event.target, event.request) for event in book.noted(events.FaultScheduled)}
    return [
        events.FaultUnreached(injection=injection.name, target=target, request=request, made=made)
        for injection, target, request in case.plan.named
        if request > (made := book.requests.made(target))
        or ((injection.name, target, request) not in met and not injection.conditional)
    ]


def uncalled(case: AgentCase, called: frozenset[str], unheld: Sequence[str]) -> tuple[str, ...]:
    """A warning about functions, and services that faults are aimed at, that were called neither in this trial nor
    in its twin, and about the faults that had no target because of that."""
    known = called.union(case.called or (), unheld)
    services = (*case.services, *case.upstreams)
    aimed_at = [name for name in services if any(i.may_hit and i.covers(name) for i in case.plan.injections)]
    there = [*(name_of(function) for function in (*case.tools, *case.reads)), *aimed_at]
    names = [name for name in there if name not in known]
    if not names:
        return ()
    used = set(there).difference(names)
    idle = [i.name for i in case.plan.injections if i.may_hit and not i.calls and not any(map(i.covers, used))]
    where = "" if case.called is None else ", neither in the trial nor in its twin"
    were, them, others = ("was", "it", "another object") if len(names) == 1 else ("were", "them", "other objects")
    said = f"{_listed(names)} {were} never called{where}: the agent had no use for {them}, or calls {others}"
    return (f"{said}; {_listed(idle)} could hit nothing" if idle else said,)


def _listed(names: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
