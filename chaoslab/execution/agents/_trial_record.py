"""The events that begin and end a trial of a user's agent, and the warnings about it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from chaoslab.analysis.verdict.judge import HUNG
from chaoslab.base.clock import format_iso
from chaoslab.base.jsonable import describe_error
from chaoslab.core import events
from chaoslab.execution.agents._calling import render_answer
from chaoslab.execution.agents._case import AgentCase, AgentResult
from chaoslab.execution.agents._says import read_answer_values
from chaoslab.record.trial_log import TrialLog

UNHELD = (
    "no reference to {} was found that the agent can reach, so its calls go unseen: give in tools= the very object "
    "that the agent calls"
)
STOPPED = "what it did until its process was ended is not known"


def write_end_events(
    case: AgentCase,
    result: AgentResult,
    now: datetime,
    state: events.EndState | None,
    file_effects: Sequence[events.Effect] = (),
    *,
    told: bool = True,
) -> None:
    """Writes the events with which a trial ends; those of the answer where it was given. `now`: the moment at which it
    began. `state`: the end state, if it was read. `file_effects`: those on its files. `told`: its calls are known."""
    book, prompt_text = result.book, str(case.prompt)
    kind = HUNG if result.hung else "agent" if result.error is not None else "none"
    error = result.hung or (describe_error(result.error) if result.error is not None else "")
    text = "" if kind != "none" else render_answer(result.answer)
    end = format_iso(now + timedelta(seconds=result.seconds))
    closing_events: list[events.Event] = [
        *file_effects,
        *([] if state is None or book.has_notes_after_mark else [state]),
    ]
    closing_events += [events.LabWarning(message=warning) for warning in result.warnings]
    closing_events += _list_unreached_faults(case, book) if told else ()
    closing_events.append(
        events.PromptAttempt(
            prompt_index=1,
            prompt=prompt_text,
            response=text,
            status="ok" if kind == "none" else "error",
            start_time=format_iso(now),
            end_time=end,
            duration_s=result.seconds,
            error_type=kind,
            prompt_attempt=1,
            error=error[:2000],
        )
    )
    if kind == "none" and case.options.says is not None:
        values, read_error = read_answer_values(case.options.says, result.answer, text)
        twin = None if case.twin_says is None else dict(case.twin_says)
        closing_events.append(events.AnswerRead(says=values, twin=twin, error=read_error))
    ok = "ok" if kind == "none" else "failed"
    closing_events.append(
        events.PromptFinished(
            prompt_index=1,
            prompt=prompt_text,
            status=ok,
            answer=text,
            attempts=1,
            duration_s=result.seconds,
            error_type=kind,
            # A wait that the twin has too, such as a pulse, says nothing about this trial.
            under_way=result.pending if result.pending != case.pending and result.pending else None,
            drew=result.drew,
        )
    )
    went_on = book.has_notes_after_mark
    book.insert_events_at_mark(closing_events)
    # What went on after the answer may have changed the state, so the state stands behind it in the log.
    if state is not None and went_on:
        book.note_event(state)
    if result.pending:
        book.note_event(events.LabWarning(message=result.pending))


def _list_unreached_faults(case: AgentCase, book: TrialLog) -> list[events.FaultUnreached]:
    """The numbered requests that should have met a fault and did not."""
    if not case.plan.numbered_requests:
        return []
    scheduled = {
        (event.injection, event.target, event.request) for event in book.find_noted_events(events.FaultScheduled)
    }
    return [
        events.FaultUnreached(injection=injection.name, target=target, request=request, made=request_count)
        for injection, target, request in case.plan.numbered_requests
        if request > (request_count := book.requests.count_requests(target))
        or ((injection.name, target, request) not in scheduled and not injection.conditional)
    ]


def describe_uncalled_functions(case: AgentCase, called: frozenset[str], unheld: Sequence[str]) -> tuple[str, ...]:
    """A warning about functions, and services that faults are aimed at, that were called neither in this trial nor
    in its twin, and about the faults that had no target because of that."""
    known_names, callable_names = called.union(case.called or (), unheld), case.callable_names
    names = [name for name in callable_names if name not in known_names]
    if not names:
        return ()
    called_names = called.union(callable_names).difference(names)
    idle_injections = [
        i.name for i in case.plan.injections if i.may_hit and not i.calls and not any(map(i.covers, called_names))
    ]
    scope = "" if case.called is None else ", neither in the trial nor in its twin"
    verb, pronoun, object_text = (
        ("was", "it", "another object") if len(names) == 1 else ("were", "them", "other objects")
    )
    message = (
        f"{_join_names(names)} {verb} never called{scope}: the agent had no use for {pronoun}, or calls {object_text}"
    )
    return (f"{message}; {_join_names(idle_injections)} could hit nothing" if idle_injections else message,)


def describe_unasked_models(case: AgentCase, result: AgentResult) -> tuple[str, ...]:
    """A warning about models of which none was asked, though the agent answered: an earlier trial of this process may
    have filled a cache of answers."""
    if not case.models or case.options.isolate or not result.ok or not result.called.isdisjoint(case.models):
        return ()
    verb = "was" if len(case.models) == 1 else "were"
    twin_text = "" if (case.called or frozenset()).isdisjoint(case.models) else ", though the run without faults asked"
    return (
        f"{_join_names(case.models)} {verb} not asked in this trial{twin_text}: a cache of answers in this "
        f"process may have "
        "answered instead; isolate='fork' gives each trial a process of its own, and switching the cache off is surer",
    )


def _join_names(names: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
