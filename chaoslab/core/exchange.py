"""An exchange: everything an agent does to the world is a `Call`, answered by a `Reply` or ended by a `Failure`.

A fault is a story about one exchange: a generator that does no I/O. It yields the `Call` to have it sent, a `Wait` to
let time pass, a `Note` to have an event logged, and returns the reply that the caller gets. `chain.py` nests several
stories into one. `TrialContext` is the trial around one call, as a story sees it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

from chaoslab.base.clock import system
from chaoslab.base.json_text import decode_json, encode_text, make_json_writer
from chaoslab.base.phrases import get_status_phrase
from chaoslab.base.values import fixed
from chaoslab.core.dialog import CHAT, Dialog
from chaoslab.core.events import AttemptRef, Event
from chaoslab.core.pipe import Pipe
from chaoslab.core.service_spec import ErrorReply
from chaoslab.core.stream import EVENT_STREAM, FRAMES, IN_LINES, BodyParts, Streamed, WatchedPipe

forever = math.inf
_spelt = make_json_writer()
OF_LENGTH = ("content-length", "content-encoding", "transfer-encoding")
"""The headers that say how a body is sent, which no other body has."""


def build_json_reply(value: Any) -> Reply:
    """A successful reply of JSON."""
    return Reply(
        200, {"Content-Type": "application/json"}, encode_text(json.dumps(value, ensure_ascii=False, default=str))
    )


@dataclass(frozen=True)
class Call:
    """One attempt of a request, as it leaves the seam.

    `value` is its meaning: a tool's arguments, or a chat request's JSON. `errors` are the target's own replies for a
    failure, by status. `dialog` tells where the messages are in a chat request. `answered_with` makes a
    successful reply of a value, in the target's own form, for a story that does not ask the target. `failed_with` makes
    the reply in which a tool says in these words that it failed, if its protocol has a form for that.
    """

    target: str
    tool: str
    trial: str
    request: int
    attempt: int
    request_id: str = ""
    value: Any = None
    errors: Mapping[int, ErrorReply] = field(default_factory=dict)
    dialog: Dialog = CHAT
    answered_with: Callable[[Any], Reply] = field(default=build_json_reply, repr=False, compare=False)
    turn: int = 1
    failed_with: Callable[[str], Reply] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def attempt_ref(self) -> AttemptRef:
        """The attempt's name in the log."""
        return AttemptRef(
            trial=self.trial,
            turn=self.turn,
            target=self.target,
            request=self.request,
            attempt=self.attempt,
            request_id=self.request_id,
        )

    def with_value(self, value: Any) -> Call:
        return replace(self, value=value)

    def build_refusal_reply(self, status: int, *, retry_after_s: float = 0.0) -> Reply:
        """The target's own reply for `status`; a plain JSON one if it has none. `retry_after_s`: the time to wait that
        it states; 0: the target's own, if any."""
        error_reply = self.errors.get(status) or ErrorReply(status, {"error": f"status {status}"})
        if retry_after_s:
            error_reply = error_reply.with_retry_after(retry_after_s)
        headers = {"Content-Type": "application/json", **error_reply.headers}
        return Reply(error_reply.status, headers, json.dumps(error_reply.body).encode())


@dataclass(frozen=True)
class Reply:
    """A reply. `value` is its meaning: the JSON of its body, or None. It is whole as a rule. A streamed one has an
    empty `body`; its parts come from `stream` and go through `pipes`, the one nearest to the target first."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    stream: BodyParts | None = None
    pipes: tuple[WatchedPipe, ...] = ()
    of_function: ClassVar[bool] = False
    """True of a function's result, which has no status."""
    enveloped: ClassVar[bool] = False
    """True if the value is a part of a message whose other parts the protocol needs."""

    def through(self, pipe: Pipe, *, holds: bool = False) -> Reply:
        """The same reply with its events through one pipe more; a whole reply as it is. `holds`: see `WatchedPipe`."""
        return self if self.stream is None else replace(self, pipes=(*self.pipes, WatchedPipe(pipe, holds=holds)))

    def with_preceding_line(self, line: str) -> Reply:  # noqa: ARG002 - most replies are no lines of a stream of messages
        """The same reply behind this line, where replies are lines among others; else this one."""
        return self

    def find_added_pipes(self, inner: Reply) -> tuple[WatchedPipe, ...] | None:
        """The pipes that this reply has beyond those of `inner`; None if it differs from it in anything else."""
        if self.stream is None or replace(self, pipes=inner.pipes) != inner:
            return None
        inner_count = len(inner.pipes)
        return self.pipes[inner_count:] if self.pipes[:inner_count] == inner.pipes else None

    @cached_property
    def value(self) -> Any:
        try:
            return decode_json(self.body)
        except (ValueError, RecursionError):  # brackets by the thousand
            pass
        try:
            return (
                [decode_json(line) for line in self.body.splitlines() if line.strip()] if self.has_json_lines else None
            )
        except (ValueError, RecursionError):
            return None

    @property
    def has_json_lines(self) -> bool:
        """True if each line of the body is JSON (NDJSON). The value is the list of theirs if there are several."""
        return any(k.lower() == "content-type" and v.lower().startswith(IN_LINES) for k, v in self.headers.items())

    def encode_value(self, value: Any) -> str:
        """A value as this reply's body has it."""
        if isinstance(value, list) and self.has_json_lines:
            return "".join(f"{_spelt(entry)}\n" for entry in value)
        return _spelt(value)

    @property
    def unreadable(self) -> bool:
        """True if there is a body that is neither JSON nor a stream of events."""
        if self.value is not None or self.body.strip() in (b"", b"null"):
            return False
        return not any(
            k.lower() == "content-type" and v.startswith((EVENT_STREAM, FRAMES)) for k, v in self.headers.items()
        )

    @property
    def error_words(self) -> str:
        """An error reply in words: the target's own, else the status's phrase."""
        message = self.value.get("error") if isinstance(self.value, dict) else None
        if isinstance(message, str) and message != f"status {self.status}":
            return message
        return get_status_phrase(self.status, f"status {self.status}")

    def with_value(self, value: Any) -> Reply:
        body = encode_text(self.encode_value(value))
        # Both were those of the other body.
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("content-length", "content-encoding")}
        return Reply(self.status, headers, body)

    def with_fitted_value(self, value: Any) -> Reply:
        """The reply with another value, in the form that its target promises. Itself if that leaves nothing changed."""
        return self.with_value(value)

    @property
    def json_text(self) -> str:
        """The reply's JSON, of a message all of it."""
        return self.encode_value(self.value)

    def with_text(self, text: str) -> Reply:
        """The reply with this text in the place of its JSON."""
        headers = {name: value for name, value in self.headers.items() if name.lower() not in OF_LENGTH}
        return Reply(self.status, headers, encode_text(text))

    def same_as(self, other: Reply | None) -> bool:
        return (
            other is not None
            and self.status == other.status
            and self.body == other.body
            and self.stream is other.stream
            and other.pipes[: len(self.pipes)] == self.pipes
        )


class Failure(Exception):
    """The exchange ended without a reply. `kind`: timed_out, dns (no such name), refused, untrusted (its certificate),
    reset, closed, garbled, too_large, died (its caller's process did), stopped (its caller was, by the user),
    disk_full, denied, expired (a command did not end in time) or exited with a code, as in "exited 1"."""

    def __init__(self, kind: str, *, native: BaseException | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.native = native


@dataclass(frozen=True)
class Wait:
    """A step that lets time pass. `forever` ends at the attempt's deadline, with a `Failure` thrown into the story.
    `counts`: it changes the exchange, so that the story is injected."""

    delay_s: float
    counts: bool = True


@dataclass(frozen=True)
class Ahead:
    """A step that moves the target's wall clock ahead by so many seconds more. It is sent the time that the clock told
    last while it was moved, in ISO 8601; empty if nobody asked."""

    by_s: float


@dataclass(frozen=True)
class UserActs:
    """A step in which whoever asks the agent does something: the same words "again" when they were answered, or
    "at_once"; the words of the "next" turn at once; or a "stop" of the agent, with `say` or the same words after it;
    or the agent is to "die" when it has answered. It is sent True if that was done, which is so once a turn."""

    deed: Literal["again", "at_once", "next", "stop", "die"]
    say: str = ""


@dataclass(frozen=True)
class Note:
    """A step that logs an event."""

    event: Event


Step = Call | Wait | Ahead | UserActs | Note
Flow = Generator[Step, Reply, Reply]
"""A story's generator. It is sent the reply to a `Call`; the value of a `Wait` or a `Note` has no meaning."""


@dataclass(frozen=True)
class Toxic:
    """One toxic on a connection, in the lab's units (seconds, bytes); wire/ turns them into Toxiproxy's."""

    type: str
    stream: str
    params: Mapping[str, float] = field(default_factory=dict)


@fixed(frozen=True)
class Observation:
    """The caller's view of one attempt. `error` is a Failure's kind or None.

    The last six are set only where the seam runs stories. `sent` is the call that left, `reply` the reply that the
    caller got. `changed_call` and `changed_reply` are those that the fault's own story made. `streamed` is the reader's
    view of a streamed reply. `told`: the time that the target's clock told while the fault's own story had moved it.
    """

    duration_s: float
    deadline_s: float
    error: str | None = None
    status: int | None = None
    bytes: int = 0
    sent: Call | None = None
    reply: Reply | None = None
    changed_call: Call | None = None
    changed_reply: Reply | None = None
    streamed: Streamed | None = None
    told: str = ""

    @property
    def changed_reply_if_received(self) -> Reply | None:
        """The reply that the fault's own story made, if the caller got it as it was."""
        return self.reply if self.reply is not None and self.reply.same_as(self.changed_reply) else None

    @property
    def body_byte_count(self) -> int:
        """The bytes of the answer, of a streamed one without the frames of its parts."""
        return self.bytes if self.streamed is None else self.streamed.size

    @property
    def service_bytes_min(self) -> int:
        """The bytes of the answer that are the service's own: whoever sends it may have added to the head."""
        if self.streamed is not None or self.reply is None:
            return self.body_byte_count
        return min(self.bytes, len(self.reply.body))


@dataclass(frozen=True)
class Arrival:
    """An answer's bytes, head and framing too, as its client got them.

    `whole`: all of them, as they come without a fault, in so many `parts` of the body; `pieces`: those that came, each
    with the seconds since the request. `ended_s`, `error`: the moment and the kind of the end; None for a connection
    that was closed.
    """

    whole: bytes
    parts: int
    pieces: Sequence[tuple[float, bytes]]
    ended_s: float
    error: str | None = None

    @property
    def piece_gaps_s(self) -> list[float]:
        """The seconds before each piece."""
        times = [0.0, *(at_s for at_s, _ in self.pieces)]
        return [round(now_s - before_s, 6) for before_s, now_s in pairwise(times)]

    def describe_difference(self, size: int | None = None) -> str:
        """The difference, in words, from the whole answer, or its first bytes; empty if there is none."""
        got, due = b"".join(piece for _, piece in self.pieces), self.whole[:size]
        return "" if got == due else f"{len(got)} bytes came that are not the {len(due)} due"


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """One earlier attempt of the trial, as its caller saw it. `failed`: the kind of its failure if there was no
    reply. `true`: no fault had changed the call or the reply."""

    call: Call
    reply: Reply | None
    failed: str | None
    began_s: float
    ended_s: float
    true: bool = True


@dataclass(frozen=True, slots=True)
class TrialContext:
    """The trial around one call. It is rebuilt when a trial is run again, and nothing of it outlives the trial.

    `turn`: the turn of the conversation, from 1. `elapsed_s`: seconds since the trial began. `spent`: the use before
    this call (tokens, cost_usd, calls, seconds). `memory`: the injection's own, empty at its first call and kept until
    the trial ends. `earlier`: the trial's attempts that are over, oldest first, for faults that look back
    (`Fault.needs_earlier_exchanges`).
    """

    trial: str = ""
    turn: int = 1
    elapsed_s: float = 0.0
    spent: Mapping[str, float] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    earlier: Sequence[PastAttempt] = ()

    def utc(self) -> datetime:
        """The moment by the clock of the world."""
        return system.utc()
