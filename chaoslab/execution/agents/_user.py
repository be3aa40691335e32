"""The user of a trial, who may be a queue or a webhook. A fault makes it ask again, ask more, or stop the agent."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, cast

from chaoslab.base.clock import system
from chaoslab.core import events
from chaoslab.core.conversation import RunningConversation
from chaoslab.core.exchange import Call, UserActs
from chaoslab.execution.agents._calling import AgentLoop, AgentStart, Ask, await_answer, render_answer
from chaoslab.record.trial_log import TrialLog

INTERRUPTED = object()
"""The answer of an agent that its user has stopped."""
AskStep = float | Callable[[], Any]
"""Seconds to wait, or a function that gives an answer, which may have to be awaited."""
Asking = Generator[AskStep, Any, Any]
"""The steps of asking an agent. It is sent each answer, and returns the last."""


class AskSteps:
    """The steps of asking an agent, for whoever waits for its answers, in a coroutine or not. Each is done within this
    as a context, which a stop of the user's ends. `answer`: of the step, and of all at the end."""

    def __init__(self, asking: Asking, has_stopped: Callable[[], bool]) -> None:
        self._asking, self._has_stopped, self.answer = asking, has_stopped, cast(Any, None)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AskStep:
        try:
            return self._asking.send(self.answer)
        except StopIteration as end:
            self.answer = end.value
            raise

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, _: object, __: object) -> bool:
        # By its type: `isinstance` would run `__class__` of the agent's own error, which may raise.
        has_stopped = kind is not None and issubclass(kind, asyncio.CancelledError) and self._has_stopped()
        if has_stopped:
            self.answer = INTERRUPTED
        elif kind is not None:
            self._asking.close()  # its frame would keep the whole trial in a circle
        return has_stopped


class _PassThroughLoop(AgentLoop):
    """The loop of an agent that is asked beside another: its awaitables are left to that one's loop."""

    def resolve_answer(self, answer: Any) -> Any:
        return answer


@dataclass
class TrialUser:
    """The user of one trial. `prompt`: the words of a trial without turns. `interrupt`: ends what the agent's first
    thread waits for. `get_start`: gives that of the process that goes on."""

    book: TrialLog
    ask: Ask
    talk: RunningConversation | None
    prompt: Any
    interrupt: Callable[[], object]
    get_start: Callable[[], AgentStart]
    kill: Callable[[Call], object]
    """Kills the agent's process between two turns. The call is the one at which that was decided."""
    _dies: Call | None = None
    _words: Any = None
    _acted: set[int] = field(default_factory=set)
    """The turns in which the user has done something. A queue delivers once more, and not for ever."""
    _due: bool = False
    _stopped: Any = None
    _others: list[tuple["_ParallelAsk", bool]] = field(default_factory=list)
    """The same agent asked beside; True if it is asked the next turn."""

    def ask_turns(self, resume: Ask | None = None) -> AskSteps:
        """Asks the agent, each turn of a conversation after the other. `resume`: what goes on in its place."""
        return AskSteps(self._ask_turns(resume), lambda: self._stopped is not None)

    def _ask_turns(self, resume: Ask | None) -> Asking:
        talk = self.talk
        if talk is None:
            return (yield from self._ask_one_turn(self.prompt, resume or self.ask))
        if resume is not None and not talk.is_answered:
            yield from self._run_talk_turn(talk, talk.words, resume)
            resume = None
        while (words := talk.advance_turn()) is not None:
            yield talk.wait_s
            if talk.begin_turn(words):
                self.book.note_event(events.EventRepeated(turn=self.turn_number, prompt=words))
            yield from self._run_talk_turn(talk, words, resume or self.ask)
            resume = None
        return talk.joined_answers

    def _run_talk_turn(self, talk: RunningConversation, words: str, ask: Ask) -> Generator[AskStep, Any, None]:
        talk.finish_turn(render_answer((yield from self._ask_one_turn(words, ask))))
        for other, is_next in self._others:
            if is_next:
                talk.finish_overlapping_turn(render_answer(other.answer))
        self._others.clear()
        if self._dies is not None:
            call, self._dies = self._dies, None
            self.kill(call)

    def _ask_one_turn(self, words: Any, ask: Ask) -> Asking:
        self._words, start = words, self.get_start()
        answer = yield partial(ask, words, start)
        if (other_words := self._stopped) is not None:  # an agent that goes on all the same is asked, too
            self._stopped = None
            answer = yield partial(self.ask, other_words, start)
        yield self._wait_for_parallel_asks
        for other, is_next in self._others:
            other.raise_error()
            if not is_next:
                self._note_repeat_answer(other.answer, other.began_s)
        if self._due:
            self._due, began_s = False, system.monotonic()
            self.book.note_event(events.EventRepeated(turn=self.turn_number, prompt=str(words)))
            self._note_repeat_answer((yield partial(self.ask, words, start)), began_s)
        return answer

    @property
    def turn_number(self) -> int:
        return self.book.requests.turn

    def _note_repeat_answer(self, answer: Any, began_s: float) -> None:
        duration_s = round(system.monotonic() - began_s, 6)
        self.book.note_event(
            events.RepeatAnswered(turn=self.turn_number, answer=render_answer(answer), duration_s=duration_s)
        )

    # What faults have it do.

    def perform_user_act(self, step: UserActs, call: Call) -> bool:
        """Does what a story asks for, once a turn. False if there is nothing to do."""
        if self.turn_number in self._acted:
            return False
        words = self._words
        if step.deed == "next" and (words := None if self.talk is None else self.talk.begin_overlapping_turn()) is None:
            return False
        if step.deed == "die" and (self.talk is None or not self.talk.has_next):
            return False
        self._acted.add(self.turn_number)
        if step.deed == "die":
            self._dies = call
        elif step.deed == "again":
            self._due = True
        elif step.deed == "stop":
            self._stopped = step.say or self._words
            self.book.note_event(events.UserStopped(at=call.attempt_ref, tool=call.tool, prompt=str(self._stopped)))
            self._cancel_agent()
        else:
            if step.deed == "at_once":
                self.book.note_event(events.EventRepeated(turn=self.turn_number, prompt=str(words), at_once=True))
            self._others.append((_ParallelAsk(self.ask, words, self.get_start()), step.deed == "next"))
        return True

    def _cancel_agent(self) -> None:
        task = self.get_start().loop.task
        if task is None:
            self.interrupt()
        elif task is not _current_task():  # that one is told where it stands, by an exception at the call
            task.get_loop().call_soon_threadsafe(task.cancel)

    def _wait_for_parallel_asks(self) -> Any:
        """Waits for what was asked beside; gives an awaitable if it is tasks."""
        tasks = [other.task for other, _ in self._others if other.task is not None]
        if tasks:
            return _join_tasks(tasks)
        for other, _ in self._others:
            other.join()
        return None


async def _join_tasks(tasks: list[Awaitable[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def _current_task() -> Any:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


class _ParallelAsk:
    """The same agent asked beside, in a task of its loop if it has one, else in a thread."""

    def __init__(self, ask: Ask, words: Any, start: AgentStart) -> None:
        self._ask, self._words = ask, words
        self._start = AgentStart(lambda: None)
        self._start.agent, self._start.loop = start.agent, _PassThroughLoop()
        self.answer: Any = None
        self.began_s = system.monotonic()
        self._error: BaseException | None = None
        self.task: Awaitable[Any] | None = None
        self._thread: threading.Thread | None = None
        main = start.loop.task
        if main is None:
            self._thread = threading.Thread(target=self._ask_agent, name="the same agent, asked beside")
            self._thread.start()
        elif _current_task() is not None:
            self.task = asyncio.ensure_future(self._ask_agent_async())
        else:
            self.task = asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(self._ask_agent_async(), main.get_loop()), loop=main.get_loop()
            )

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def raise_error(self) -> None:
        """Raises what the agent raised."""
        if self._error is not None:
            raise self._error

    def _ask_agent(self) -> None:
        try:
            self.answer = AgentLoop().resolve_answer(self._ask(self._words, self._start))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the agent's own
            self._error = error

    async def _ask_agent_async(self) -> None:
        try:
            self.answer = await await_answer(self._ask(self._words, self._start))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the agent's own
            self._error = error
