"""The seam of Python functions: a call is an exchange, its result the reply, its exception the failure.

The fake of a function runs all of the plan's stories, those of the wire too, since there is no wire here. Where no
injection can hit, it only notes the call. Faults of the wire become Python's own exceptions. An exception of the
function itself passes unchanged.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Protocol

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.clock import Clock, system
from chaoslab.base.identity import make_request_id
from chaoslab.base.jsonable import decode_to_one_line, render_brief, to_jsonable
from chaoslab.base.user_line import find_function_line, find_user_line
from chaoslab.core.attempt import Attempt
from chaoslab.core.chain import run_synchronously
from chaoslab.core.events import CANCELLED, OPEN, REPLY_MAX, Event, quote_reserved_error
from chaoslab.core.exchange import Call, Failure, Reply
from chaoslab.core.machine import TARGETS
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import Candidates, Decision, Plan
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.functions._call_record import CallRecord, Spelt, abridge_result
from chaoslab.seams.functions.mitigations import Mitigation
from chaoslab.seams.functions.native_errors import PYTHON, NativeErrors, make_system_error, mark_as_fault
from chaoslab.seams.functions.wrapped import Returned, ReturnedFactory, WrappedFunction

# The most calls in a row, by default, that an agent may make while no virtual time passes.
CALLS_MAX = 10_000
UNPACED = sys.maxsize


class _Noted:
    """A context that notes a call's begin and end. A class costs less than a generator."""

    __slots__ = ("book", "made", "numbering")

    def __init__(self, book: TrialLog, call: CallRecord, numbering: Lock) -> None:
        self.book, self.made, self.numbering = book, call, numbering

    def __enter__(self) -> None:
        self.made.nth = self.book.calls = self.book.calls + 1
        self.made.began_s = self.book.note_call_phase(self.made, "begin")
        if self.book.lines is not None:  # a framework may call in a thread, where no line of the user's is under way
            self.book.lines.append(find_user_line() or find_function_line(self.made.tool.function))

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        book, call = self.book, self.made
        # Its agent was killed: its end stands in the log already.
        if call.cut:
            return
        if error is not None:
            if call.ok:
                call.note_error(error)
            # After the answer a cancelled call is open: nobody gave it up.
            if book.over and call.error == CANCELLED:
                call.error = OPEN
        if call.request is not None and not call.late:  # else its events are made as they are noted
            # Other threads of the trial may be numbering theirs.
            with self.numbering:
                call.end_attempt(book.requests)
        book.note_call_phase(call, "end")


class CallTurnGate(Protocol):
    """The turns of calls that begin at the same moment (`order="seeded"`)."""

    def wait_for_turn(self, name: str) -> None:
        """Waits for the turn of a call of this name, in a thread."""

    async def await_turn(self, name: str) -> None:
        """Waits for the turn of a call of this name, in a task."""


class FunctionSeam:
    """Makes the fakes of functions. `timeout_s` limits the wait that a fault may cause in one attempt. The
    function's own work has no limit, as without the lab.

    `plan` may be another from one trial to the next. `book` takes the calls; while it is None a fake only calls its
    function. `pace` is called with a function's name before a call when no call is `left`. It returns the number of
    calls until it is called again, or ends the trial. `ordered`: each call waits for its turn first. `mitigation`: a
    change that is tried around each function.
    """

    def __init__(self, plan: Plan, *, timeout_s: float, clock: Clock = system, ordered: bool = False) -> None:
        self.plan, self.timeout_s, self.clock, self._ordered = plan, timeout_s, clock, ordered
        self.turns: CallTurnGate | None = None
        self.mitigation: Mitigation | None = None
        self.book: TrialLog | None = None
        self.memory = TrialMemory(plan, "")
        self.pace: Callable[[str], int] = lambda _: UNPACED
        self.left = 0
        self.kill: Callable[[Call], object] = lambda _: None
        """Kills the agent's process at this call."""
        # A trial's threads may call at once. No thread waits while it holds this, so no world need know of it.
        self._numbering = Lock()

    def begin_trial(self, book: TrialLog) -> None:
        """Begins a trial, whose calls go into this log."""
        self.book, self.memory = book, TrialMemory(self.plan, book.key, clock=self.clock, note=book.note_event)
        if self.mitigation is not None:
            self.mitigation.forget_last_trial()

    def end_open_calls(self, book: TrialLog) -> None:
        """Ends the calls that are under way, whose agent was killed."""
        # Ended in the log only; their threads are never run again.
        for made in book.list_open_calls():
            if isinstance(made, CallRecord):
                made.ok, made.error, made.cut = False, made.error or CANCELLED, True
                made.end_attempt(book.requests)
                book.note_call_phase(made, "end")

    def make_fake_function(self, tool: WrappedFunction) -> Callable[..., Any]:
        """Returns a wrapper with the function's signature; async if the function is."""
        original = tool
        # Of the original: what the agent calls has its signature, whatever the mitigation makes of it.
        if self.mitigation is not None:
            tool = self.mitigation.wrap_service_side(tool)
        make = {"sync": self._wrap_generator, "async": self._wrap_async_generator}.get(tool.generator_kind)
        if make is None:
            make = self._wrap_coroutine if tool.is_coroutine else self._wrap_function
        wrapper = make(tool)
        if self.mitigation is not None:
            wrapper = self.mitigation.wrap_client_side(original, wrapper)
        # Outermost, so that a call waits before anything of it is noted.
        return functools.wraps(original.function)(
            self._wrap_to_wait_for_turn(tool, wrapper) if self._ordered else wrapper
        )

    def _wrap_to_wait_for_turn(self, tool: WrappedFunction, wrapper: Callable[..., Any]) -> Callable[..., Any]:
        """The fake of a function, which waits for its turn first. A generator does not."""

        def wait_and_call(*args: Any, **kwargs: Any) -> Any:
            if self.turns is not None and self.book is not None:
                self.turns.wait_for_turn(tool.name)
            return wrapper(*args, **kwargs)

        async def await_turn_and_call(*args: Any, **kwargs: Any) -> Any:
            if self.turns is not None and self.book is not None:
                await self.turns.await_turn(tool.name)
            return await wrapper(*args, **kwargs)

        return wrapper if tool.generator_kind else await_turn_and_call if tool.is_coroutine else wait_and_call

    def _wrap_function(self, tool: WrappedFunction) -> Callable[..., Any]:
        function, effect, name = tool.function, tool.effect, tool.name

        def stand_in(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < 0:  # before anything is held, since the trial may end here
                self.left = self.pace(tool.name) - 1
            book = self.book
            if book is None:
                return function(*args, **kwargs)
            call = CallRecord(tool, args, kwargs)
            with _Noted(book, call, self._numbering):
                if (reach := self.plan.find_candidates(name)) and (
                    attempt := self._make_attempt_if_hit(reach, book, call)
                ):
                    return attempt.return_or_raise(*run_synchronously(attempt.run_through_faults()))
                result = function(*args, **kwargs)
                call.note_result(result)
                # A result that says that the tool failed, or goes on working, is no effect yet.
                if effect and call.ok and call.done:
                    book.note_call_phase(call, "effect")
                return result

        return stand_in

    def _wrap_coroutine(self, tool: WrappedFunction) -> Callable[..., Any]:
        function, effect, name = tool.function, tool.effect, tool.name

        async def stand_in(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                self.left = self.pace(tool.name) - 1
            book = self.book
            if book is None:
                return await function(*args, **kwargs)
            call = CallRecord(tool, args, kwargs)
            with _Noted(book, call, self._numbering):
                if (reach := self.plan.find_candidates(name)) and (
                    attempt := self._make_attempt_if_hit(reach, book, call)
                ):
                    return attempt.return_or_raise(*await attempt.run_through_faults())
                result = await function(*args, **kwargs)
                call.note_result(result)
                # A service that notes the effect itself must not be doubled.
                if effect and call.ok and call.done and not (tool.served and tool.name in book.served):
                    book.note_call_phase(call, "effect")
                return result

        return stand_in

    def _wrap_generator(self, tool: WrappedFunction) -> Callable[..., Any]:
        start = self._wrap_function(tool)

        def stand_in(*args: Any, **kwargs: Any) -> Any:
            return (yield from _list_generator_items(start(*args, **kwargs)))

        return stand_in

    def _wrap_async_generator(self, tool: WrappedFunction) -> Callable[..., Any]:
        # In a coroutine, as `_wrap_coroutine` awaits what it wraps.
        async def make_generator(*args: Any, **kwargs: Any) -> Any:
            return tool.function(*args, **kwargs)

        start = self._wrap_coroutine(replace(tool, function=functools.wraps(tool.function)(make_generator)))

        async def stand_in(*args: Any, **kwargs: Any) -> Any:
            answer = await start(*args, **kwargs)
            # A fault may have put a list, or a single value, in the generator's place.
            if hasattr(answer, "__aiter__"):
                async for item in answer:
                    yield item
                return
            for item in _list_generator_items(answer):
                yield item

        return stand_in

    def _make_attempt_if_hit(self, reach: Candidates, book: TrialLog, call: CallRecord) -> _Attempt | None:
        """The attempt if an injection hits it, else None. Most attempts meet no fault and cost no more than this."""
        memory = self.memory
        with self._numbering:
            number, attempt, _ = call.place or call.assign_request_number(book.requests, call.began_s)
            occasion = memory.build_occasion(call.name, call.name, number, attempt, changes=call.tool.effect)
            # Only if a trigger asks for it, as most plans have none that does.
            if reach.needs_time:
                occasion.elapsed_s = self.clock.monotonic() - book.origin
            if reach.needs_arguments:
                occasion.arguments = call.get_logged_arguments()
            decisions = memory.decide_hits(reach, occasion)
        # Also without a hit, if a trigger may look back at what this call was answered.
        if decisions.hit or self.plan.needs_earlier_exchanges:
            return _Attempt(self, book, call, reach, decisions)
        call.rolled = decisions.asked
        return None


def _list_generator_items(answer: Any) -> Iterable[Any]:
    """The items of a generator's answer. One that a fault has put in its place is one item; None is none."""
    if answer is None:
        return ()
    return answer if isinstance(answer, Iterator | list | tuple) else (answer,)


@dataclass(frozen=True)
class Wrapping:
    """The way in which a tool's functions are led through a seam. `effect`: a call changes the world. `ignored`:
    parameters that are no arguments of a request. `errors`: the exceptions that its caller knows. `name`: the tool's
    name if it is not the one that its framework or its function has."""

    seam: FunctionSeam
    effect: bool
    ignored: frozenset[str] = frozenset()
    errors: NativeErrors = PYTHON
    name: str = ""

    def make_fake_function(
        self,
        name: str,
        real: Callable[..., Any],
        hidden: frozenset[str],
        *,
        errors: NativeErrors = PYTHON,
        returned: ReturnedFactory = Returned,
        served: bool = False,
    ) -> Callable[..., Any]:
        """The fake of a function. `real` does what it did before; `hidden` are the parameters that its framework
        fills in. `errors` hold unless others were asked for."""
        # Those of the user go first: the framework's are only what it usually raises.
        errors = errors if self.errors is PYTHON else self.errors
        hidden = hidden | self.ignored
        return self.seam.make_fake_function(
            WrappedFunction(self.name or name, real, self.effect, hidden, errors, returned, served)
        )


class _Attempt(Attempt):
    """One attempt that an injection hits. It suspends only if the function is async."""

    def __init__(
        self,
        seam: FunctionSeam,
        book: TrialLog,
        record: CallRecord,
        reach: Candidates,
        decisions: Sequence[Decision],
    ) -> None:
        assert record.place is not None
        self.book, self.made, self.tool = book, record, record.tool
        began_s = seam.clock.monotonic()
        elapsed_s = began_s - book.origin
        number, attempt, nth = record.place
        identity = make_request_id(book.trial.header, record.name, record.get_logged_arguments(), nth)
        super().__init__(
            Call(
                record.name,
                record.name,
                book.key,
                number,
                attempt,
                identity,
                record.content,
                answered_with=self.tool.make_typed_result,
                turn=book.requests.turn,
            ),
            seam.memory,
            reach,
            decisions,
            clock=seam.clock,
            began_s=began_s,
            deadline_s=seam.timeout_s,
            elapsed_s=elapsed_s,
            spent={"calls": book.calls - 1, "seconds": elapsed_s},
            note=book.note_event,
        )
        record.rolled = self.faults.rolled
        self._kill = seam.kill

    async def run_through_faults(self) -> tuple[Reply | None, Failure | None]:
        reply: Reply | None = None
        failure: Failure | None = None
        try:
            reply = await self.send_through_faults()
        except Failure as caught:
            failure = caught
        finally:
            self._note_finish(reply, failure)
        try:
            return reply, failure
        finally:
            failure = None  # it holds this frame by its traceback

    def return_or_raise(self, reply: Reply | None, failure: Failure | None) -> Any:
        """Gives the caller the result of `run_through_faults`. An exception is raised outside of any handler, so that
        the function's
        own one stays unchanged, and of the coroutine, which would make a RuntimeError of a StopIteration."""
        if failure is not None:
            if failure.kind == "died":
                self._kill(self.call)
            if failure.kind == "stopped":
                raise asyncio.CancelledError(f"the user stops the agent at {self.tool.name}")
            error = failure.native
            if error is None:
                name, errors = self.tool.name, self.tool.errors
                error = make_system_error(name, failure.kind, self.deadline_s) or errors.make_failure(
                    name, failure.kind
                )
                if self.tool.name not in TARGETS:  # what is done on the machine is known at the end
                    # Numbered by the calls so far, by which a failure of a tool within is told to be a fault's.
                    error = mark_as_fault(error, self.book.calls)
            try:
                raise error
            finally:
                del failure, error  # as above
        assert reply is not None
        if isinstance(reply, Returned):
            return reply.native_result
        if reply.status < 400:  # an answer that is not the function's: its text, or nothing
            return self.tool.errors.make_text_reply(reply.body.decode("utf-8", "replace"))
        refusal = self.tool.errors.refused(self.tool.name, reply.status, reply.error_words)
        if isinstance(refusal, Exception):
            raise mark_as_fault(refusal, self.book.calls)
        return refusal

    # The driver's methods for stories.

    async def pause(self, delay_s: float) -> None:
        if self.tool.is_coroutine:
            await self.clock.sleep_async(delay_s)
        else:
            self.clock.sleep(delay_s)

    def log_flow_event(self, event: Event) -> None:
        self.book.note_event(event)

    async def send(self, call: Call) -> Reply:
        self.sent = call
        args, kwargs, sent = self.made.args, self.made.kwargs, None
        if call.value is not self.call.value:
            # By name: a story knows arguments by their parameters.
            args, kwargs = (), self.tool.replace_arguments(args, kwargs, call.value)
            sent = to_jsonable(self.tool.bind_arguments(args, kwargs))
        try:
            result = self.tool.function(*args, **kwargs)
            if self.tool.is_coroutine:
                result = await result
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller gets it
            reraise_unless_foreign(error)
            # `from None`: the failure is the lab's form, and must not show in the user's traceback.
            raise Failure("raised", native=error) from None
        reply = self.tool.returned(result)
        served = self.tool.served and self.tool.name in self.book.served
        # As on the plain way above.
        if self.tool.effect and reply.ok and reply.done and not served:
            text = abridge_result(reply.value)
            reply_text = text if isinstance(text, Spelt) else render_brief(text, REPLY_MAX)
            self.book.note_event(
                self.made.make_effect_event({"status": 200, "body": reply_text, "headers": {}}, sent=sent)
            )
        return reply

    # The record of the finished attempt.

    def _note_finish(self, reply: Reply | None, failure: Failure | None) -> None:
        record, kind = self.made, failure.kind if failure else None
        self._memory.guard.end_attempt(self.call.target, self.call.request, self.call.attempt)
        if reply or failure or not (self.book.has_mark and self.book.over):  # else nobody has seen an end of it
            self.record_outcome(reply, failure)
        is_own = isinstance(reply, Returned)
        # A reply of the lab's own is right by its status.
        right = reply.ok if isinstance(reply, Returned) else reply is not None and reply.status < 400
        record.ok = right and not self.left
        record.done = getattr(reply, "done", True)
        record.status = None if reply is None or is_own else reply.status
        record.via = "function" if self.sent else "none"
        if reply is not None:
            record.reply = abridge_result(reply.value) if is_own else Spelt(decode_to_one_line(reply.body, REPLY_MAX))
        if failure is not None and failure.native is not None:
            record.note_error(failure.native)
        elif not record.ok:
            record.error = (
                kind or self.left or (CANCELLED if reply is None else quote_reserved_error(reply.error_words))
            )
