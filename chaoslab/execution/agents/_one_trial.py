"""One trial of a user's agent: it is asked in its place, turn by turn, and what came of it is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.base.identity import make_nth_trial_id
from chaoslab.base.interrupts import restore_signal_handlers
from chaoslab.base.jsonable import describe_error, to_jsonable
from chaoslab.core import events
from chaoslab.core.conversation import Conversation, RunningConversation
from chaoslab.core.exchange import Call
from chaoslab.execution._place import RealTimePlace, TrialPlace
from chaoslab.execution.agents._calling import AgentStart, Ask
from chaoslab.execution.agents._case import AgentCase, AgentResult
from chaoslab.execution.agents._says import read_answer_values
from chaoslab.execution.agents._trial_record import (
    STOPPED,
    UNHELD,
    describe_unasked_models,
    describe_uncalled_functions,
    write_end_events,
)
from chaoslab.execution.agents._user import TrialUser
from chaoslab.execution.agents.functions import ProcessAgent
from chaoslab.execution.spec import AgentKilled, ProcessCrashed, TrialSpec
from chaoslab.execution.workspace import Workspace, open_workspace
from chaoslab.model.app import ModelApp
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.machine.patching import MachineSeam
from chaoslab.seams.services.seam import ServiceSeam

ENDLESS_WORDS = "again and again"
"""The words of a world about a loop that takes no time."""
SOURCE_CHANGED = (
    "{} was changed meanwhile, and the trial has a copy of it: the agent should work in its current directory, whose "
    "path is in CHAOSLAB_FILES too"
)
WAITS_MAX = 3
"""The most waits that a warning shows."""


@dataclass(frozen=True)
class TrialSetup:
    """The parts that all trials of a run share in this process. `new`: makes the place of a trial, which may take so
    many seconds. `hung`: the exceptions by which the place ends an endless trial. `of_coroutine`: the agent is async.
    `unheld`: the functions to which no reference was found."""

    functions: FunctionSeam
    services: ServiceSeam
    new: Callable[[ServiceSeam, float, str], TrialPlace]
    hung: tuple[type[Exception], ...]
    ask: Ask
    of_coroutine: bool
    unheld: Sequence[str]
    resume: Ask | None = None
    """Asked when the agent was killed, in its place."""
    machine: MachineSeam | None = None
    """The files and commands of the agent's own machine, if it has any."""


def run_trial(case: AgentCase, spec: TrialSpec, ready: TrialSetup) -> AgentResult:
    """Runs a trial in a place of its own, and in a copy of the files if there are any."""
    if case.options.files is None or spec.stopped or spec.crashed:
        return _run_trial(case, spec, ready, None, ExitStack())
    with open_workspace(Path(case.options.files)) as workspace, ExitStack() as stack:
        return _run_trial(case, spec, ready, workspace, stack)


def _run_trial(
    case: AgentCase, spec: TrialSpec, ready: TrialSetup, workspace: Workspace | None, stack: ExitStack
) -> AgentResult:
    seam, services, trial = ready.functions, ready.services, make_nth_trial_id(case.name, spec.number, 1)
    place = ready.new(services, case.deadline_s, trial.key)
    with place.enter_world():
        now = system.utc()
        book = TrialLog(trial, began=now)
        book.lines = [] if case.finds_lines else None
        switched_off = tuple(injection.name for injection in case.plan.injections if injection.name in spec.off)
        for event in (*case.opening_events, *([events.FaultsOff(injections=[*switched_off])] if switched_off else ())):
            book.note_event(event)
    result = AgentResult(
        book, warnings=(*case.notes, *(UNHELD.format(name) for name in ready.unheld)), off=switched_off
    )
    states = _TrialStates(case.options.state, seam, services)
    if (order_option := case.options.order) != "asked":
        order = order_option if isinstance(order_option, Mapping) else Dice(case.plan.seed, book.key, "order")
        seam.turns = services.turns = place.build_call_turns_if_virtual(
            order, lambda calls: book.note_event(events.CallsOrdered(calls=list(calls)))
        )
    else:
        seam.turns = services.turns = None
    seam.begin_trial(book)
    services.begin_trial(book, seam.memory, spent_usd=spec.spent_usd)
    model_warnings: list[str] = []
    for name in case.models:
        if isinstance(app := case.services.get(name), ModelApp):
            app.begin_trial(name, book.key, model_warnings.append)
    seam.pace, seam.left = place.check_limits_and_grant_calls, 0
    # Its process was ended, and what the trial did there is lost: it is written down here without being run.
    if spec.stopped:
        result.hung = spec.stopped
        result.warnings += (STOPPED,)
    elif spec.crashed:
        result.error = ProcessCrashed(spec.crashed)
        result.warnings += (STOPPED,)
    else:
        if workspace is not None and ready.machine is not None:
            stack.enter_context(ready.machine.use_folder(workspace.folder, workspace.source, place.suspend_world))
        with restore_signal_handlers():
            _ask_agent(case, ready, place, result, states)
    was_cut_short = spec.stopped or spec.crashed
    stack.close()  # what it has left running ends before its files are read
    file_effects = [] if workspace is None else workspace.list_effects()
    if workspace is not None and workspace.is_source_changed:
        result.warnings += (SOURCE_CHANGED.format(workspace.source),)
    if case.finds_lines:
        result.record_error_line()
    # An agent that swallows the exit may still answer, after the deadline.
    if result.hung:
        result.answer = result.error = None
    result.called = book.list_called_functions() | services.asked_of
    result.drew = None if spec.stopped else place.has_program_drawn_chance
    result.run_spent_usd = services.spent.cost_usd
    result.warnings += tuple(dict.fromkeys(model_warnings))
    result.warnings += tuple(place.warnings)
    if not was_cut_short:
        result.warnings += (
            *describe_uncalled_functions(case, result.called, ready.unheld),
            *describe_unasked_models(case, result),
        )
    with place.enter_world():
        state = None if case.options.state is None or was_cut_short else states.make_end_state_event()
        write_end_events(case, result, now, state, file_effects, told=not was_cut_short)
    result.warnings += (result.pending,) if result.pending else ()
    return result


def _ask_agent(
    case: AgentCase, ready: TrialSetup, place: TrialPlace, result: AgentResult, states: _TrialStates
) -> None:
    """Asks the agent, each turn of a conversation after the other, and fills in the result."""
    ask, hung, book, prompt = ready.ask, ready.hung, result.book, case.prompt

    def begin_trial() -> None:
        if isinstance(case.agent, ProcessAgent):
            case.agent.begin_trial()
        states.read_state_before(book)

    start = AgentStart(begin_trial)
    talk: RunningConversation | None = None
    if isinstance(prompt, Conversation):
        twins = () if case.twin is None else case.twin.turns
        talk = RunningConversation(
            prompt,
            book.note_event,
            book.requests,
            ready.functions.memory,
            system,
            twins=twins,
            read=_read_turn_values,
            **({"wishes": case.options.wishes} if case.of_one_event else {}),
        )

    # It is given a function, so that `kill` need not know it: the two would keep the trial in a circle.
    user = TrialUser(
        book,
        ask,
        talk,
        prompt,
        place.interrupt_program_if_possible,
        lambda: start,
        lambda call: kill_agent(call, between=True),
    )
    ready.functions.memory.user = user.perform_user_act

    def list_open_calls() -> list[str]:
        return [*book.list_open_functions(), *ready.services.acting()]

    silent_lines: list[str] = []

    def record_duration() -> None:
        result.seconds = round(system.monotonic() - book.origin, 6)
        if isinstance(place, RealTimePlace):
            result.hung = place.late  # even if the agent swallowed the exit

    def note_agent_end() -> float:
        """Notes that the agent has ended; returns the time that what it has left may take: none if its world ends."""
        if book.over:
            return 0.0
        book.mark_position()
        record_duration()
        return case.settle_s

    def is_alive(mine: AgentStart) -> bool:
        """False of a process that was killed, whose threads are told to end when the trial is over."""
        return mine is start

    async def run_agent_async() -> None:
        mine = start
        with _record_error(result, hung, partial(is_alive, mine)):
            for step in (steps := user.ask_turns()):
                with steps:
                    if isinstance(step, float):
                        await system.sleep_async(step)
                    else:
                        steps.answer = await mine.loop.await_cancellable(step())
            # The answer of a process that was killed reached nobody.
            result.answer = steps.answer if is_alive(mine) else result.answer
        within_s = note_agent_end()
        with suppress(*_ERRORS):  # of what the agent has left
            await place.await_quiet(within_s, list_open_calls)
        book.over = True

    def run_agent(resume: Ask | None = None) -> None:
        mine = start
        with closing(mine.loop) as loop:
            with _record_error(result, hung, partial(is_alive, mine)):
                for step in (steps := user.ask_turns(resume)):
                    with steps:
                        if isinstance(step, float):
                            loop.sleep(step)
                        else:
                            steps.answer = loop.resolve_answer(step())
                result.answer = steps.answer if is_alive(mine) else result.answer
            if not is_alive(mine):
                return
            within_s = note_agent_end()
            with suppress(*_ERRORS):
                loop.wait_until_quiet(place, within_s, list_open_calls)
            book.over = True

    deaths = 0

    def kill_agent(call: Call, *, between: bool = False) -> None:
        nonlocal start
        book.note_event(events.AgentDied(at=call.attempt_ref, tool=call.tool, between=between))
        # Nothing to do at this start: the state was read before the first process began.
        start = AgentStart(lambda: None)
        place.kill_program()

    def make_resumed_work() -> Callable[[], None] | None:
        """The work of the process that goes on, if one does."""
        nonlocal deaths
        ready.functions.end_open_calls(book)
        ready.services.outages.end_connections_of_killed_client()
        # It died after its answer, so nobody waits for another one.
        if book.has_mark:
            return None
        if deaths == case.options.resumes or ready.resume is None:
            result.error = AgentKilled(f"killed at {[*book.find_noted_events(events.AgentDied)][-1].call_name}")
            return None
        deaths += 1
        book.note_event(events.AgentResumed(nth=deaths))
        return partial(run_agent, ready.resume)

    ready.functions.kill = ready.services.kill = kill_agent

    def finish_trial() -> None:
        book.over = True
        if not book.has_mark:
            record_duration()
            silent_lines.extend(ready.services.describe_unanswered())
        if book.has_mark:
            result.pending = _describe_pending_waits(case.settle_s, place.list_pending_waits(list_open_calls))
        ready.functions.book = None
        ready.services.end_trial()
        # Only now that the seams have let go: the calls by which the state is read are not the agent's.
        if case.options.state is not None:
            place.run_without_trial_time(states.read_state_after)
        if any(
            book.find_noted_events(events.AgentDied)
        ):  # its `finally` blocks run when its threads are ended, and must do nothing
            ready.functions.pace, ready.functions.left = partial(_raise_agent_killed, ready.functions.pace), 0

    try:
        with _record_error(result, hung):  # a task or thread may have ended everything by raising
            if ready.of_coroutine:
                place.run_program_async(run_agent_async, over=finish_trial, again=make_resumed_work)
            else:
                place.run_program(run_agent, over=finish_trial, again=make_resumed_work)
    except hung as error:
        if book.has_mark:
            result.pending = f"after the answer: {str(error).splitlines()[0]}"
        else:
            reason, *waits = str(error).splitlines()
            if ENDLESS_WORDS in reason:  # a loop waits for nobody
                silent_lines.clear()
            waits = [wait_text for wait_text in waits if not silent_lines or " waits in Queue.get" not in wait_text]
            result.hung = "\n".join([reason, *silent_lines, *waits])


def _raise_agent_killed(count_calls: Callable[[str], int], function: str) -> int:
    # Counted all the same: an agent that swallows the error would call again and again.
    count_calls(function)
    raise AgentKilled(f"{function} is called by an agent whose process was killed")


def _read_turn_values(reader: Any, text: str) -> dict[str, Any] | None:
    values, reason = read_answer_values(reader, text, text)
    return None if reason else values


def _describe_pending_waits(settle_s: float, waits: Sequence[str]) -> str:
    """The warning about what went on when the time to settle was over; empty if nothing did."""
    rest = f" and {len(waits) - WAITS_MAX} more" if len(waits) > WAITS_MAX else ""
    introduction = f"still under way {settle_s:g} s after the answer, so its end is not known: "
    return f"{introduction}{'; '.join(waits[:WAITS_MAX])}{rest}" if waits else ""


_ERRORS = (Exception, SystemExit, asyncio.CancelledError)
"""The exceptions by which an agent fails."""


@contextmanager
def _record_error(
    result: AgentResult, hung: tuple[type[Exception], ...], alive: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Records an exception of the agent as the trial's error, so that it does not end the caller. `alive`: it may tell
    anything yet."""
    try:
        yield
    # First, because the world's own end of a trial must not be taken for an error of the agent's.
    except hung:
        raise
    except asyncio.CancelledError as error:
        result.error = error if alive() else result.error
    except BaseException as error:  # noqa: BLE001 - the agent's own, whatever it is
        reraise_unless_foreign(error)
        result.error = error if alive() else result.error


@dataclass(frozen=True)
class _StateReading:
    """A state as a JSON value, or the reason why it could not be read."""

    value: Any = None
    error: str = ""


class _TrialStates:
    """The user's state before and after a trial, if there is a function that reads it."""

    def __init__(self, read: Callable[[], Any] | None, functions: FunctionSeam, services: ServiceSeam) -> None:
        self._state, self._functions, self._services = read, functions, services
        self._before: _StateReading | None = None
        self._after: _StateReading | None = None

    def read_state_before(self, book: TrialLog) -> None:
        """Reads the state, unwatched: these calls are not the agent's."""
        if self._state is not None:
            self._functions.book = self._services.book = None
            self._before = self._read_state()
            self._functions.book = self._services.book = book

    def read_state_after(self) -> None:
        self._after = self._read_state()

    def _read_state(self) -> _StateReading:
        assert self._state is not None
        unread: list[str] = []
        try:
            state = self._state()
            # a cursor or a generator gives its rows once
            value = to_jsonable([*state] if isinstance(state, Iterator) else state, unread=unread)
        except BaseException as error:  # noqa: BLE001 - of the user's function
            reraise_unless_foreign(error)
            return _StateReading(error=f"state raised {describe_error(error)}")
        if unread:  # two of them would be alike whatever they hold
            return _StateReading(error=f"{unread[0]} in it cannot be read: state should return what it holds")
        return _StateReading(value)

    def make_end_state_event(self) -> events.EndState:
        """The event; without a value if one of the two could not be read."""
        before = self._before or _StateReading(error="it was not read before the trial")
        after = self._after or _StateReading(error="it was not read after the trial")
        if before.error or after.error:
            return events.EndState(error=before.error or after.error)
        return events.EndState(before=before.value, after=after.value)
