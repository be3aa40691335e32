"""One call of a function, kept small until its trial's log is read."""

from collections.abc import Hashable, Mapping, Sequence
from math import isfinite
from typing import Any

from chaoslab.base.boundary import is_foreign_error
from chaoslab.base.identity import Request, Requests, canonical, find_idempotency_key, make_request_id
from chaoslab.base.jsonable import ATOMS, BITS_MAX, UNCHANGING, describe_error, render_brief, to_jsonable
from chaoslab.core import events
from chaoslab.core.events import REPLY_MAX, Event
from chaoslab.seams.functions.native_errors import is_caused_by_fault
from chaoslab.seams.functions.wrapped import Returned, WrappedFunction


class Spelt(str):
    """A reply as text for the log."""

    __slots__ = ()


SILENCE = Spelt()
# The most entries of a dict that is kept as a copy.
FEW = 16
# `to_jsonable` changes larger numbers, so only these may stand as they are.
_NUMBER_MAX = 2**BITS_MAX
_NUMBER_MIN = -_NUMBER_MAX


def abridge_result(result: Any) -> Any:
    """A result as it is kept for the log: small immutable values as they are, all others as the start of their text."""
    if _is_small_immutable(result):
        return result
    # A copy: the caller may change a dict after it got it.
    if type(result) is dict and len(result) <= FEW and all(map(_is_small_immutable, result.values())):
        return result.copy()
    return Spelt(render_brief(result, REPLY_MAX))


def _is_jsonable_as_is(value: Any) -> bool:
    """True if `to_jsonable` would return the value itself. Most arguments are such, and this costs less."""
    # By the exact type: a subclass of int or str may print as it likes.
    kind = type(value)
    return kind in ATOMS or (kind is int and _NUMBER_MIN < value < _NUMBER_MAX) or (kind is float and isfinite(value))


def _are_text_or_int(values: Sequence[Any]) -> bool:
    """True if all are texts and whole numbers, and plain."""
    for value in values:
        kind = type(value)
        # No float: 1.0 would equal 1, which is another argument.
        if kind is not str and (kind is not int or not _NUMBER_MIN < value < _NUMBER_MAX):
            return False
    return True


def _is_small_immutable(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return len(value) <= REPLY_MAX
    return kind in UNCHANGING and (kind is not int or _NUMBER_MIN < value < _NUMBER_MAX)


class CallRecord:
    """One call of a function. Its parts become events when the trial's log is read."""

    __slots__ = (
        "args",
        "at",
        "began_s",
        "began_t",
        "broken_within",
        "content",
        "cut",
        "done",
        "error",
        "keyed",
        "kwargs",
        "late",
        "name",
        "names",
        "nth",
        "ok",
        "place",
        "protocol",
        "reply",
        "request",
        "rolled",
        "status",
        "tool",
        "via",
    )

    def __init__(self, tool: WrappedFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.tool, self.name, self.args, self.kwargs = tool, tool.name, args, kwargs
        self.names, self.keyed, self.protocol = tool.names, tool.keyed, tool.returned.protocol
        self.content: dict[str, Any] | None = None
        self.request: Request | None = None
        self.place: tuple[int, int, int] | None = None
        """(request number, attempt, repetition), or None before the call is numbered."""
        self.ok, self.late, self.via, self.broken_within = True, False, "function", False
        self.done = True
        self.cut = False
        """Its agent was killed meanwhile, which has ended it."""
        self.began_s, self.nth = 0.0, 0
        self.error: str | None = None
        self.status: int | None = None
        self.rolled: Sequence[str] = ()
        self.reply: Any = SILENCE
        """The caller's reply, as `abridge_result` returns it."""
        # An argument that may change is written down now; all others when the log is read.
        if not UNCHANGING.issuperset(map(type, args)) or (
            kwargs and not UNCHANGING.issuperset(map(type, kwargs.values()))
        ):
            self.content = to_jsonable(tool.bind_arguments(args, kwargs))

    def get_logged_arguments(self) -> dict[str, Any]:
        """The arguments as the log shows them."""
        if self.content is None:
            # `_make_argument_key` has looked at them
            if self.request is not None and self.request.intent[1] is self.args:
                self.content = dict(zip(self.names, self.args))  # noqa: B905 - and saying so costs a tenth of it
                return self.content
            self.content = self.tool.bind_arguments(self.args, self.kwargs)
            if not all(map(_is_jsonable_as_is, self.content.values())):  # a default may be anything
                self.content = to_jsonable(self.content)
        return self.content

    def assign_request_number(self, requests: Requests, now_s: float) -> tuple[int, int, int]:
        """Numbers the call and returns its place."""
        self.request = request = requests.find_or_create_by_intent(
            self.name, (self.name, self._make_argument_key()), None, now_s
        )
        self.place = place = request.number, request.begin_attempt(now_s), request.nth
        return place

    def _make_argument_key(self) -> Hashable:
        """An equal value for the same arguments alone: texts and whole numbers themselves, which costs less than
        JSON; JSON of all others, since 1, 1.0 and True are equal."""
        names = self.names
        in_order = self.content is None and len(self.args) == len(names) and not self.kwargs and not self.tool.hidden
        if in_order and _are_text_or_int(self.args):
            return self.args
        content = self.get_logged_arguments()
        values = tuple(content.values())
        return values if tuple(content) == names and _are_text_or_int(values) else canonical(content)

    def end_attempt(self, requests: Requests) -> None:
        """Ends the attempt; of a call that is not numbered yet, when it is."""
        if self.request is not None:
            self.request.end_attempt()
            if self.ok and self.done:
                requests.mark_answered(self.request)

    def make_phase_event(self, stage: str, requests: Requests, t: float) -> Event:
        match stage:
            case "begin":
                return self._make_started_event(requests, t)
            case "effect":
                return self.make_effect_event()
            case _:
                return self._make_finished_event(requests, t)

    def _make_started_event(self, requests: Requests, t: float) -> Event:
        self.began_t, self.late = t, self.place is None
        number, attempt, nth = self.place or self.assign_request_number(requests, t)
        header = requests.trial.header
        self.at = events.AttemptRef(
            trial=requests.trial.key,
            turn=requests.turn,
            target=self.name,
            request=number,
            attempt=attempt,
            request_id=make_request_id(header, self.name, self.get_logged_arguments(), nth),
        )
        return events.CallStarted(at=self.at, tool=self.name, arguments=self.content, protocol=self.protocol)

    def make_effect_event(self, reply: Mapping[str, Any] | None = None, *, sent: dict[str, Any] | None = None) -> Event:
        """The effect of the call. `reply`: the function's own, as far as a log keeps it, if a fault may take it.
        `sent`: the arguments that it got, if a fault has changed them."""
        content = self.get_logged_arguments() if sent is None else sent
        id_ = make_request_id("", self.name, content, 0) if self.keyed else ""
        number, attempt, _ = self.place or (None, None, None)
        return events.Effect(
            target=self.name,
            tool=self.name,
            request_id=find_idempotency_key(content) or id_,
            effect=self.name,
            content=content,
            reply=dict(reply or {}),
            fingerprint="",
            request=number,
            attempt=attempt,
        )

    def _make_finished_event(self, requests: Requests, t: float) -> Event:
        if self.late:
            self.end_attempt(requests)
        return events.CallFinished(
            at=self.at,  # `_make_started_event` came before
            tool=self.name,
            ok=self.ok,
            duration_s=round(t - self.began_t, 6),
            status=self.status,
            error=self.error,
            via=self.via,
            rolled=list(self.rolled),
            reply=self.reply if type(self.reply) is Spelt else render_brief(self.reply, REPLY_MAX),
            broken_within=self.broken_within or None,
        )

    def note_result(self, result: Any) -> None:
        """Keeps the function's own result."""
        if self.tool.returned is Returned:
            self.reply = abridge_result(result)
            return
        reply = self.tool.returned(result)
        self.reply, self.ok, self.done = abridge_result(reply.value), reply.ok, reply.done
        self.error = None if reply.ok else events.quote_reserved_error(reply.error_words)

    def note_error(self, error: BaseException) -> None:
        self.ok, self.broken_within = False, self.tool.effect and is_caused_by_fault(error, self.nth)
        # An end that the lab made (a trial's end) is no failure of the function's.
        self.error = describe_error(error)[:200] if is_foreign_error(error) else events.CANCELLED

    def __getstate__(self) -> tuple[Any, ...]:
        # A function can seldom be pickled, and a record goes to the process that judges.
        """The parts that the log needs. The function does not go to another process."""
        return (
            self.name,
            self.names,
            self.keyed,
            self.protocol,
            self.get_logged_arguments(),
            self.place,
            self.ok,
            self.done,
            self.via,
            self.error,
            self.status,
            self.rolled,
            self.reply,
            self.broken_within,
        )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        (
            self.name,
            self.names,
            self.keyed,
            self.protocol,
            self.content,
            self.place,
            self.ok,
            self.done,
            self.via,
            self.error,
            self.status,
            self.rolled,
            self.reply,
            self.broken_within,
        ) = state
        self.request = None
