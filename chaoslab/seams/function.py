"""The seam of Python functions: a call is an exchange, its result the reply, its exception the failure.

The stand-in of a function runs all of the plan's stories, those of the wire too, since there is no wire here. Where no
injection can hit, it only notes the call. Faults of the wire become Python's own exceptions. An exception of the
function itself passes unchanged.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from threading import Lock
from typing import Any

from chaoslab.base.clock import Clock, system
from chaoslab.base.identity import IDEMPOTENCY_KEY, Request, Requests, canonical, request_id
from chaoslab.base.jsonable import ATOMS, BITS_MAX, UNCHANGING, brief, describe_error, line_of, to_jsonable
from chaoslab.core import events
from chaoslab.core.attempt import Attempt
from chaoslab.core.chain import at_once
from chaoslab.core.events import REPLY_MAX, Event
from chaoslab.core.exchange import Call, Failure, Reply
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import Candidates, Decision, Plan
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.native_errors import PYTHON, NativeErrors

CALLS_MAX = 10_000
"""The most calls in a row, by default, that an agent may make while no virtual time passes."""
UNPACED = sys.maxsize


class Returned(Reply):
    """A function's result as a reply. Its value is the result itself, of any type.

    `ok`: the function did its work.
    """

    ok = True
    of_function = True

    def __init__(self, result: Any) -> None:
        self.__dict__.update(status=200, headers={}, body=b"", stream=None, pipes=(), value=result)

    def with_value(self, value: Any) -> Reply:
        return Returned(value)

    @classmethod
    def made_of(cls, value: Any) -> Returned:
        """The result that the function would give for a value of the lab's own."""
        return cls(value)

    def same_as(self, other: Reply | None) -> bool:
        return isinstance(other, Returned) and (other.value is self.value or bool(other.value == self.value))

    @property
    def native(self) -> Any:
        """The result as the function's caller gets it."""
        return self.value


@dataclass(frozen=True)
class WrappedFunction:
    """One function of the agent's. `effect`: a call of it changes the world. `hidden`: the parameters that are not
    arguments of the request. `errors`: the exceptions by which its caller learns of a fault. `returned`: the form of
    its results. `served`: a service does its work, which may note the effect itself (`TrialLog.served`)."""

    name: str
    function: Callable[..., Any]
    effect: bool
    hidden: frozenset[str] = frozenset()
    errors: NativeErrors = PYTHON
    returned: type[Returned] = Returned
    served: bool = False
    names: tuple[str, ...] = field(init=False)
    """The parameters' names if all are plain, which saves binding; else empty."""

    def __post_init__(self) -> None:
        names: tuple[str, ...] = ()
        if self._signature is not None:
            parameters = self._signature.parameters.values()
            if all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
                names = tuple(p.name for p in parameters)
        object.__setattr__(self, "names", names)

    @functools.cached_property
    def of_coroutine(self) -> bool:
        call = getattr(self.function, "__call__", None)  # noqa: B004 - an object's own, which may be async
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    @functools.cached_property
    def generates(self) -> str:
        """ "sync" or "async" if it is a generator, else empty."""
        function = inspect.unwrap(getattr(self.function, "__func__", self.function))
        return "async" if inspect.isasyncgenfunction(function) else "sync" * inspect.isgeneratorfunction(function)

    def answered_with(self, value: Any) -> Returned:
        """A result that a story makes, in the type that the function is annotated to return, where that is plain."""
        noted = self._signature.return_annotation if self._signature is not None else None
        name = noted if isinstance(noted, str) else getattr(noted, "__name__", "")
        match name:
            case "str" if not isinstance(value, str):
                value = json.dumps(value, ensure_ascii=False, default=str)
            case "bool" if not isinstance(value, bool):
                value = True
            case "None" | "NoneType":
                value = None
        return self.returned.made_of(value)

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.function)
        except (TypeError, ValueError):  # some functions written in C
            return None

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by parameter name, with defaults; by position if the call does not fit the signature."""
        if not kwargs and len(args) == len(self.names) and not self.hidden:
            return dict(zip(self.names, args, strict=True))
        return {name: value for name, value in self._given(args, kwargs).items() if name not in self.hidden}

    def passed_along(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the hidden parameters, by name."""
        if not self.hidden:
            return {}
        return {name: value for name, value in self._given(args, kwargs).items() if name in self.hidden}

    def _given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """All values of a call, by name."""
        try:
            if self._signature is None:
                raise TypeError
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            return {**{f"argument {n}": value for n, value in enumerate(args, 1)}, **kwargs}
        bound.apply_defaults()
        found: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self._signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                found |= value
            elif kind is not inspect.Parameter.VAR_POSITIONAL or value:
                found[name] = value
        return found


class Spelt(str):
    """A reply as text for the log."""

    __slots__ = ()


SILENCE = Spelt()
FEW = 16
"""The most entries of a dict that is kept as a copy."""
_NUMBER_MAX = 2**BITS_MAX
_NUMBER_MIN = -_NUMBER_MAX


def kept(result: Any) -> Any:
    """A result as it is kept for the log: small immutable values as they are, all others as the start of their text."""
    if _is_small(result):
        return result
    if type(result) is dict and len(result) <= FEW and all(map(_is_small, result.values())):
        return result.copy()
    return Spelt(brief(result, REPLY_MAX))


def _is_plain(value: Any) -> bool:
    """True if `to_jsonable` would return the value itself. Most arguments are such, and this costs less."""
    kind = type(value)
    return kind in ATOMS or (kind is int and _NUMBER_MIN < value < _NUMBER_MAX) or (kind is float and isfinite(value))


def _are_keys(values: Sequence[Any]) -> bool:
    """True if all are texts and whole numbers, and plain."""
    for value in values:
        kind = type(value)
        if kind is not str and (kind is not int or not _NUMBER_MIN < value < _NUMBER_MAX):
            return False
    return True


def _is_small(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return len(value) <= REPLY_MAX
    return kind in UNCHANGING and (kind is not int or _NUMBER_MIN < value < _NUMBER_MAX)


class CallRecord:
    """One call of a function. Its parts become events when the trial's log is read."""

    __slots__ = (
        "args",
        "began_t",
        "content",
        "error",
        "id",
        "kwargs",
        "late",
        "name",
        "names",
        "ok",
        "place",
        "reply",
        "request",
        "rolled",
        "status",
        "tool",
        "turn",
        "via",
    )

    def __init__(self, tool: WrappedFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.tool, self.name, self.args, self.kwargs = tool, tool.name, args, kwargs
        self.names = tool.names
        self.content: dict[str, Any] | None = None
        self.request: Request | None = None
        self.place: tuple[int, int, int] | None = None
        """(request number, attempt, repetition), or None before the call is numbered."""
        self.ok, self.late, self.via = True, False, "function"
        self.error: str | None = None
        self.status: int | None = None
        self.rolled: Sequence[str] = ()
        self.reply: Any = SILENCE
        """The caller's reply, as `kept` returns it."""
        if not UNCHANGING.issuperset(map(type, args)) or (
            kwargs and not UNCHANGING.issuperset(map(type, kwargs.values()))
        ):
            self.content = to_jsonable(tool.arguments(args, kwargs))

    def arguments(self) -> dict[str, Any]:
        """The arguments as the log shows them."""
        if self.content is None:
            if self.request is not None and self.request.intent[1] is self.args:  # `_spelt` has looked at them
                self.content = dict(zip(self.names, self.args))  # noqa: B905 - and saying so costs a tenth of it
                return self.content
            self.content = self.tool.arguments(self.args, self.kwargs)
            if not all(map(_is_plain, self.content.values())):  # a default may be anything
                self.content = to_jsonable(self.content)
        return self.content

    def asked(self, requests: Requests) -> tuple[int, int, int]:
        """Numbers the call and returns its place."""
        self.request = request = requests.numbered(self.name, (self.name, self._spelt()))
        self.place = place = request.number, request.next_attempt(), request.nth
        return place

    def _spelt(self) -> Hashable:
        """An equal value for the same arguments alone: texts and whole numbers themselves, which costs less than
        JSON; JSON of all others, since 1, 1.0 and True are equal."""
        names = self.names
        in_order = self.content is None and len(self.args) == len(names) and not self.kwargs and not self.tool.hidden
        if in_order and _are_keys(self.args):
            return self.args
        content = self.arguments()
        values = tuple(content.values())
        return values if tuple(content) == names and _are_keys(values) else canonical(content)

    def answered(self, requests: Requests) -> None:
        assert self.request is not None
        requests.answered(self.request)

    def event(self, part: str, requests: Requests, t: float) -> Event:
        match part:
            case "begin":
                return self._begin(requests, t)
            case "effect":
                return self._effect()
            case _:
                return self._end(requests, t)

    def _begin(self, requests: Requests, t: float) -> Event:
        self.began_t, self.late, self.turn = t, self.place is None, requests.turn
        number, attempt, nth = self.place or self.asked(requests)
        header = requests.trial.header
        self.id = request_id(header, self.name, self.arguments(), nth)
        return events.CallStarted(at=self._at(requests, number, attempt), tool=self.name, arguments=self.content)

    def _at(self, requests: Requests, number: int, attempt: int) -> events.AttemptRef:
        return events.AttemptRef(
            trial=requests.trial.key,
            turn=self.turn,
            target=self.name,
            request=number,
            attempt=attempt,
            request_id=self.id,
        )

    def _effect(self) -> Event:
        content = self.arguments()
        return events.Effect(
            target=self.name,
            tool=self.name,
            request_id=str(content.get(IDEMPOTENCY_KEY) or ""),
            effect=self.name,
            content=content,
            reply={},
            fingerprint="",
        )

    def _end(self, requests: Requests, t: float) -> Event:
        if self.ok and self.late:
            self.answered(requests)
        assert self.place is not None  # `_begin` came before
        number, attempt, _ = self.place
        return events.CallFinished(
            at=self._at(requests, number, attempt),
            tool=self.name,
            ok=self.ok,
            duration_s=round(t - self.began_t, 6),
            status=self.status,
            error=self.error,
            via=self.via,
            rolled=list(self.rolled),
            reply=self.reply if type(self.reply) is Spelt else brief(self.reply, REPLY_MAX),
        )

    def replied(self, result: Any) -> None:
        """Keeps the function's own result."""
        if self.tool.returned is Returned:
            self.reply = kept(result)
            return
        reply = self.tool.returned(result)
        self.reply, self.ok = kept(reply.value), reply.ok
        self.error = None if reply.ok else reply.error_words

    def raised(self, error: BaseException) -> None:
        self.ok = False
        self.error = describe_error(error)[:200] if isinstance(error, Exception) else "cancelled"

    def __getstate__(self) -> tuple[Any, ...]:
        """The parts that the log needs. The function does not go to another process."""
        return (
            self.name,
            self.names,
            self.arguments(),
            self.place,
            self.ok,
            self.via,
            self.error,
            self.status,
            self.rolled,
            self.reply,
        )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        (
            self.name,
            self.names,
            self.content,
            self.place,
            self.ok,
            self.via,
            self.error,
            self.status,
            self.rolled,
            self.reply,
        ) = state
        self.request = None


class _Noted:
    """A context that notes a call's begin and end. A class costs less than a generator."""

    __slots__ = ("book", "made", "numbering")

    def __init__(self, book: TrialLog, made: CallRecord, numbering: Lock) -> None:
        self.book, self.made, self.numbering = book, made, numbering

    def __enter__(self) -> None:
        self.book.calls += 1
        self.book.note_part(self.made, "begin")

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        book, made = self.book, self.made
        if error is not None and made.ok:
            made.raised(error)
        if made.ok and made.request is not None:
            with self.numbering:
                made.answered(book.requests)
        book.note_part(made, "end")


class FunctionSeam:
    """Makes the stand-ins of functions. `timeout_s` limits the wait that a fault may cause in one attempt. The
    function's own work has no limit, as without the lab.

    `book` takes the calls; while it is None a stand-in only calls its function. `pace` is called with a function's name
    before a call when no call is `left`. It returns the number of calls until it is called again, or ends the trial.
    """

    def __init__(self, plan: Plan, *, timeout_s: float, clock: Clock = system) -> None:
        self.plan, self.timeout_s, self.clock = plan, timeout_s, clock
        self.book: TrialLog | None = None
        self.memory = TrialMemory(plan, "")
        self.pace: Callable[[str], int] = lambda _: UNPACED
        self.left = 0
        # A trial's threads may call at once. No thread waits while it holds this, so no world need know of it.
        self._numbering = Lock()

    def begin(self, book: TrialLog) -> None:
        """Begins a trial, whose calls go into this log."""
        self.book, self.memory = book, TrialMemory(self.plan, book.key)

    def stand_in(self, tool: WrappedFunction) -> Callable[..., Any]:
        """Returns a wrapper with the function's signature; async if the function is."""
        reach = self.plan.candidates(tool.name)
        make = {"sync": self._of_generator, "async": self._of_async_generator}.get(tool.generates)
        if make is None:
            make = self._of_coroutine if tool.of_coroutine else self._of_function
        return functools.wraps(tool.function)(make(tool, reach))

    def _of_function(self, tool: WrappedFunction, reach: Candidates) -> Callable[..., Any]:
        function, effect = tool.function, tool.effect

        def stand_in(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < 0:  # before anything is held, since the trial may end here
                self.left = self.pace(tool.name) - 1
            book = self.book
            if book is None:
                return function(*args, **kwargs)
            made = CallRecord(tool, args, kwargs)
            with _Noted(book, made, self._numbering):
                if reach and (attempt := self._met(reach, book, made)):
                    return at_once(attempt.run())
                result = function(*args, **kwargs)
                made.replied(result)
                if effect and made.ok:
                    book.note_part(made, "effect")
                return result

        return stand_in

    def _of_coroutine(self, tool: WrappedFunction, reach: Candidates) -> Callable[..., Any]:
        function, effect = tool.function, tool.effect

        async def stand_in(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                self.left = self.pace(tool.name) - 1
            book = self.book
            if book is None:
                return await function(*args, **kwargs)
            made = CallRecord(tool, args, kwargs)
            with _Noted(book, made, self._numbering):
                if reach and (attempt := self._met(reach, book, made)):
                    return await attempt.run()
                result = await function(*args, **kwargs)
                made.replied(result)
                if effect and made.ok and not (tool.served and tool.name in book.served):
                    book.note_part(made, "effect")
                return result

        return stand_in

    def _of_generator(self, tool: WrappedFunction, reach: Candidates) -> Callable[..., Any]:
        begun = self._of_function(tool, reach)

        def stand_in(*args: Any, **kwargs: Any) -> Any:
            return (yield from _items(begun(*args, **kwargs)))

        return stand_in

    def _of_async_generator(self, tool: WrappedFunction, reach: Candidates) -> Callable[..., Any]:
        async def made(*args: Any, **kwargs: Any) -> Any:
            return tool.function(*args, **kwargs)

        begun = self._of_coroutine(replace(tool, function=functools.wraps(tool.function)(made)), reach)

        async def stand_in(*args: Any, **kwargs: Any) -> Any:
            given = await begun(*args, **kwargs)
            if hasattr(given, "__aiter__"):
                async for item in given:
                    yield item
                return
            for item in _items(given):
                yield item

        return stand_in

    def _met(self, reach: Candidates, book: TrialLog, made: CallRecord) -> _Attempt | None:
        """The attempt if an injection hits it, else None. Most attempts meet no fault and cost no more than this."""
        memory = self.memory
        with self._numbering:
            number, attempt, _ = made.place or made.asked(book.requests)
            occasion = memory.occasion_anew(made.name, number, attempt)
            if reach.timed:
                occasion.elapsed_s = self.clock.monotonic() - book.origin
            if reach.reads:
                occasion.arguments = made.arguments()
            decisions = memory.decide(reach, occasion)
        if decisions.hit or self.plan.looks_back:
            return _Attempt(self, book, made, reach, decisions)
        made.rolled = decisions.asked
        return None


def _items(given: Any) -> Iterable[Any]:
    """The items of a generator's answer. One that a fault has put in its place is one item; None is none."""
    if given is None:
        return ()
    return given if isinstance(given, Iterator | list | tuple) else (given,)


@dataclass(frozen=True)
class Wrapping:
    """The way in which a tool's functions are led through a seam. `effect`: a call changes the world. `ignored`:
    parameters that are no arguments of a request. `errors`: the exceptions that its caller knows."""

    seam: FunctionSeam
    effect: bool
    ignored: frozenset[str] = frozenset()
    errors: NativeErrors = PYTHON

    def stand_in(
        self,
        name: str,
        real: Callable[..., Any],
        hidden: frozenset[str],
        *,
        errors: NativeErrors = PYTHON,
        returned: type[Returned] = Returned,
        served: bool = False,
    ) -> Callable[..., Any]:
        """The stand-in of a function. `real` does what it did before; `hidden` are the parameters that its framework
        fills in. `errors` hold unless others were asked for."""
        errors = errors if self.errors is PYTHON else self.errors
        hidden = hidden | self.ignored
        return self.seam.stand_in(WrappedFunction(name, real, self.effect, hidden, errors, returned, served))


class _Attempt(Attempt):
    """One attempt that an injection hits. It suspends only if the function is async."""

    def __init__(
        self,
        seam: FunctionSeam,
        book: TrialLog,
        made: CallRecord,
        reach: Candidates,
        decisions: Sequence[Decision],
    ) -> None:
        assert made.place is not None
        self.book, self.made, self.tool = book, made, made.tool
        began_s = seam.clock.monotonic()
        elapsed_s = began_s - book.origin
        number, attempt, nth = made.place
        identity = request_id(book.trial.header, made.name, made.arguments(), nth)
        super().__init__(
            Call(
                made.name,
                made.name,
                book.key,
                number,
                attempt,
                identity,
                made.content,
                answered_with=self.tool.answered_with,
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
            note=book.note,
        )
        made.rolled = self.faults.rolled

    async def run(self) -> Any:
        reply: Reply | None = None
        failure: Failure | None = None
        try:
            reply = await self.told()
        except Failure as caught:
            failure = caught
        finally:
            self._finished(reply, failure)
        if failure is not None:
            raise self._native(failure)
        assert reply is not None
        if isinstance(reply, Returned):
            return reply.native
        if reply.status < 400:  # an answer that is not the function's: its text, or nothing
            return self.tool.errors.text(reply.body.decode("utf-8", "replace"))
        given = self.tool.errors.refused(self.tool.name, reply.status, reply.error_words)
        if isinstance(given, Exception):
            raise given
        return given

    def _native(self, failure: Failure) -> Exception:
        """The exception for the caller. It is raised outside of any handler, so the function's own one stays
        unchanged."""
        if failure.native is not None:
            return failure.native
        return self.tool.errors.failed(self.tool.name, failure.kind)

    # The driver's methods for stories.

    async def pause(self, delay_s: float) -> None:
        if self.tool.of_coroutine:
            await self.clock.asleep(delay_s)
        else:
            self.clock.sleep(delay_s)

    def note(self, event: Event) -> None:
        self.book.note(event)

    async def send(self, call: Call) -> Reply:
        self.sent = call
        args, kwargs = self.made.args, self.made.kwargs
        if call.value is not self.call.value:
            args, kwargs = (), {**self.tool.passed_along(args, kwargs), **call.value}
        try:
            result = self.tool.function(*args, **kwargs)
            if self.tool.of_coroutine:
                result = await result
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
            raise Failure("raised", native=error) from None
        reply = self.tool.returned(result)
        if self.tool.effect and reply.ok and not (self.tool.served and self.tool.name in self.book.served):
            self.book.note_part(self.made, "effect")
        return reply

    # The record of the finished attempt.

    def _finished(self, reply: Reply | None, failure: Failure | None) -> None:
        made, kind = self.made, failure.kind if failure else None
        if reply is None and failure is None and self.waits and (took_s := self.took_s) > 0:
            self.deadline_s = took_s  # its caller gave up while a fault let it wait
            self.observed(None, Failure("timed_out"))
        else:
            self.observed(reply, failure)
        own = isinstance(reply, Returned)
        made.ok = reply.ok if isinstance(reply, Returned) else reply is not None and reply.status < 400
        made.status = None if reply is None or own else reply.status
        made.via = "function" if self.sent else "none"
        if reply is not None:
            made.reply = kept(reply.value) if own else Spelt(line_of(reply.body, REPLY_MAX))
        if failure is not None and failure.native is not None:
            made.raised(failure.native)
        elif not made.ok:
            made.error = kind or (reply.error_words if reply is not None else "cancelled")
