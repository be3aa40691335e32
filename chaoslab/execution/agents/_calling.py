"""Calls a user's agent: in its own event loop if it gives awaitables, and until its streamed answer is whole."""

import asyncio
import dataclasses
import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

from chaoslab.base.boundary import passes_test, reraise_unless_foreign
from chaoslab.base.clock import system
from chaoslab.base.jsonable import describe_error, lacks_json_form, to_jsonable
from chaoslab.execution._place import TrialPlace
from chaoslab.seams import adapters


class AgentLoop:
    """The event loop of a trial whose agent gives awaitables, one for all turns, made when the first one comes."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self.task: asyncio.Task[Any] | None = None
        """The task in which an answer is awaited."""

    async def await_cancellable(self, answer: Any) -> Any:
        """As `await_answer`, in a task that can be cancelled."""
        self.task = asyncio.current_task()
        try:
            return await await_answer(answer)
        finally:
            self.task = None

    def resolve_answer(self, answer: Any) -> Any:
        """The awaited answer if it is an awaitable, the whole one if it is a generator."""
        # A plain text needs no guard: none of the user's code runs when it is looked at.
        if type(answer) is str:
            return answer
        if passes_test(inspect.isawaitable, answer) or passes_test(inspect.isasyncgen, answer):
            # Not asyncio.run for each turn: a client that the agent keeps stays bound to the loop that it first ran in.
            self._runner = self._runner or asyncio.Runner()
            return self._runner.run(self.await_cancellable(answer))
        return _drain_generator(answer)

    def sleep(self, delay_s: float) -> None:
        """Waits; tasks that a turn has left in the loop go on meanwhile."""
        if self._runner is None:
            system.sleep(delay_s)
        else:
            self._runner.run(system.sleep_async(delay_s))

    def wait_until_quiet(self, place: TrialPlace, within_s: float, busy: Callable[[], Sequence[str]]) -> None:
        """Lets what the agent has left go on (`TrialPlace.wait_until_quiet`), also the tasks in the loop."""
        if self._runner is None:
            place.wait_until_quiet(within_s, busy)
        else:
            self._runner.run(place.await_quiet(within_s, busy))

    def close(self) -> None:
        """Cancels what is left in the loop and closes it, like `asyncio.run`."""
        if self._runner is not None:
            self._runner.close()


async def await_answer(answer: Any) -> Any:
    """The answer, awaited if it is an awaitable, whole if it is a generator."""
    if passes_test(inspect.isawaitable, answer):
        answer = await answer
    return (
        _join_answer_pieces([piece async for piece in answer])
        if passes_test(inspect.isasyncgen, answer)
        else _drain_generator(answer)
    )


def _drain_generator(answer: Any) -> Any:
    """The whole answer of an agent that gave a generator; any other answer as it is."""
    if not passes_test(inspect.isgenerator, answer):
        return answer
    pieces: list[Any] = []
    while True:
        try:
            pieces.append(next(answer))
        except StopIteration as end:
            # What a generator returns is its answer; what it yielded before were steps on the way.
            return _join_answer_pieces(pieces) if end.value is None else end.value


def _join_answer_pieces(pieces: list[Any]) -> Any:
    """The text that a streamed answer is, or its parts if they are no texts."""
    return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else pieces


class AgentStart:
    """The start of a trial's agent. `agent`: the one that was made for this trial, if each has its own. `loop`: where
    its awaitables are awaited."""

    def __init__(self, ready: Callable[[], None]) -> None:
        self._ready: Callable[[], None] | None = ready
        self.agent: Any = None
        self.loop = AgentLoop()

    def announce_start(self) -> None:
        """Tells that the agent begins; called once a turn, heard once."""
        if self._ready is not None:
            self._ready()
        self._ready = None


Ask = Callable[[Any, AgentStart], Any]
"""An agent: called with the prompt and with the start, which it tells before it begins."""


def make_announcing_agent(agent: Callable[[Any], Any]) -> Ask:
    """The agent as one that tells its start."""

    def announce_and_ask(prompt: Any, start: AgentStart) -> Any:
        start.announce_start()
        return agent(prompt)

    return announce_and_ask


def render_answer(answer: Any) -> str:
    """The answer as text, for the judge and the log. For a conversation (`{"messages": […]}`) it is the last
    message."""
    if type(answer) is str:
        return answer
    content = _read_answer_content(answer)
    if lacks_json_form(content):
        return json.dumps(f"a {type(content).__module__}.{type(content).__qualname__}", ensure_ascii=False)
    return content if isinstance(content, str) else json.dumps(to_jsonable(content, unread=[]), ensure_ascii=False)


def is_readable_answer(answer: Any) -> bool:
    """False for None, and for an object of which nothing is known but its type: such answers are all alike."""
    content = _read_answer_content(answer)
    return content is not None and not lacks_json_form(content)


def _read_answer_content(answer: Any) -> Any:
    """All that can be read of an answer; the answer itself if its own code raises meanwhile."""
    try:
        return _read_object_content(adapters.extract_answer(answer))
    except BaseException as error:  # noqa: BLE001 - the user's own code
        reraise_unless_foreign(error)
        return answer


def _read_object_content(answer: Any) -> Any:
    """The content of an object that is no JSON value: its public attributes, else its own text, else all that it holds,
    if its class says when two are equal."""
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):  # a framework's result has private fields too
        return {
            member.name: getattr(answer, member.name) for member in dataclasses.fields(answer) if member.name[0] != "_"
        }
    if not lacks_json_form(answer):
        return answer
    if isinstance(answer, BaseException):
        return describe_error(answer)
    # An object with slots has no __dict__; its text or its fields are read below.
    if public := {name: value for name, value in getattr(answer, "__dict__", {}).items() if not name.startswith("_")}:
        return public
    # Not object's own text, which has the address, another one in each run.
    if any("__str__" in vars(member) for member in type(answer).__mro__[:-1]):
        try:
            return str(answer)
        except BaseException as error:  # noqa: BLE001 - the user's own code
            reraise_unless_foreign(error)
    json_value = to_jsonable(answer)
    return answer if isinstance(json_value, str) else json_value  # a text is its name
