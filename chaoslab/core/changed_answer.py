"""The base of the faults that change what a model says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from chaoslab.core.answers import Answers, Said
from chaoslab.core.context import TrialContext
from chaoslab.core.exchange import Call, Flow, Observation, Reply
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import Line, Signal, Timed
from chaoslab.core.stream import data_of, is_done, json_of, spelt_event

HELD_MAX = 4 * 1024 * 1024
"""The most bytes of a streamed answer that are held back. A longer one passes unchanged."""


class ChangedAnswer(Fault):
    """A fault that changes a model's answer, whole or streamed, in the format of its API. An error and what is no
    answer of a model pass unchanged, and so does an answer in which there is nothing to change.

    A streamed answer is held back until it has ended, and then comes at once. A fault of the layer stream changes only
    streamed ones.
    """

    layer = "meaning"
    of_model = True
    corrupts = "reply"

    def changed(self, said: Said) -> Said:
        """The content that the model is made to have said; the same object if there is nothing to change."""
        raise NotImplementedError

    def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002 - it needs nothing of the trial
        reply: Reply = yield call
        if reply.status >= 300:
            return reply
        answers = call.dialog.answers
        if reply.stream is not None:
            return reply.through(Line(_Retelling(answers, self.changed), room_bytes=0), holds=True)
        value: Any = reply.value
        said = answers.said(value) if self.layer != "stream" else None
        if said is None:
            return reply
        now = self.changed(said)
        return reply if now is said else reply.with_value(answers.with_said(value, now))

    def witnessed(self, seen: Observation) -> str | None:
        changed, streamed = seen.changed_reply, seen.streamed
        if changed is None:
            return None
        if changed.stream is None:
            met = seen.reply is not None and seen.reply.same_as(changed)
        else:  # a reader may hang up after the last event
            told = changed.pipes[-1]
            met = streamed is not None and (streamed.events, streamed.size) == (told.events, told.size)
        return "an answer that the model did not give reached the caller" if met else None


class _Retelling:
    """Holds a streamed answer back until it has ended, and tells it with another content."""

    def __init__(self, answers: Answers, changed: Callable[[Said], Said]) -> None:
        self._answers, self._changed = answers, changed
        self._held: list[bytes] | None = []
        self._size = 0

    def __call__(self, timed: Timed, start: float) -> Iterable[Timed]:
        if self._held is None:
            return (Timed(start, timed.item),)
        if isinstance(timed.item, Signal):
            told = self._told(self._held) if timed.item is Signal.END else self._held
            return (*(Timed(start, event) for event in told), Timed(start, timed.item))
        self._held.append(timed.item)
        self._size += len(timed.item)
        if self._size <= HELD_MAX:
            return ()
        passing, self._held = self._held, None
        return [Timed(start, event) for event in passing]

    def _told(self, held: list[bytes]) -> list[bytes]:
        """The events to let out for those that came."""
        events = [json_of(event) for event in held if data_of(event)]
        try:
            said = self._answers.heard(events)
            if said is None or (now := self._changed(said)) is said:
                return held
            return [*map(spelt_event, self._answers.retold(events, now)), *filter(is_done, held)]
        except (LookupError, TypeError, AttributeError, ValueError):
            return held  # it is in another form, and its reader gets it as it is
