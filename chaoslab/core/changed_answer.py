"""The base of the faults that change what a model says. A streamed answer is held back to its end, up to 4 MiB, and
told in events of its format. Meanwhile the reader gets empty events, so that its timeout stays one of the model. A
longer answer passes unchanged."""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from chaoslab.core.answers import AnswerContent, AnswerFormat
from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import PacedQueue, Signal, Timed
from chaoslab.core.stream import EMPTY, encode_event, get_event_data, is_done_marker, parse_event_json

HELD_MAX = 4 * 1024 * 1024
"""The most bytes of a streamed answer that are held back. A longer one passes unchanged."""
EMPTY_S = 1.0
"""The seconds after which the reader of an answer that is held back gets an empty event, since its timeout is for a
model that says nothing."""


class ChangedAnswer(Fault):
    """A fault that changes a model's answer, whole or streamed, in the format of its API. An error and what is no
    answer of a model pass unchanged, and so does an answer in which there is nothing to change.

    A streamed answer is held back until it has ended, and then comes at once; until then its reader gets an empty event
    each second. A fault of the layer stream changes only
    streamed ones.
    """

    layer = "meaning"
    of_model = True
    corrupts = "reply"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        """The content that the model is made to have said; the same object if there is nothing to change."""
        raise NotImplementedError

    def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002 - it needs nothing of the trial
        reply: Reply = yield call
        if reply.status >= 300:
            return reply
        answers = call.dialog.answers
        if reply.stream is not None:
            return reply.through(_RewrittenStream(answers, self.change_content), holds=True)
        value: Any = reply.value
        content = answers.extract_content(value) if self.layer != "stream" else None
        if content is None:
            return reply
        now = self.change_content(content)
        return reply if now is content else reply.with_value(answers.replace_content(value, now))

    def witnessed(self, observation: Observation) -> str | None:
        changed, streamed = observation.changed_reply, observation.streamed
        if changed is None:
            return None
        if changed.stream is None:
            is_met = observation.reply is not None and observation.reply.same_as(changed)
        else:  # a reader may hang up after the last event
            pipe = changed.pipes[-1].pipe
            is_met = (
                isinstance(pipe, _RewrittenStream)
                and streamed is not None
                and pipe.told == (streamed.events, streamed.size)
            )
        return "an answer that the model did not give reached the caller" if is_met else None


class _RewrittenStream(PacedQueue):
    """Holds a streamed answer back until it has ended, and tells it with another content. `told`: the number and the
    bytes of all events of the changed answer, None before it is told."""

    def __init__(self, answers: AnswerFormat, changed: Callable[[AnswerContent], AnswerContent]) -> None:
        super().__init__(self._hold_or_release_item, capacity_bytes=0)
        self.told: tuple[int, int] | None = None
        self._answers, self._changed = answers, changed
        self._kept: list[bytes] | None = []
        self._size = self._empty = 0
        self._quiet_since = -inf

    def _hold_or_release_item(self, timed: Timed, start: float) -> Iterable[Timed]:
        if self._kept is None:
            return (Timed(start, timed.item),)
        if isinstance(timed.item, Signal):
            events = self._rewrite_events(self._kept) if timed.item is Signal.END else self._kept
            return (*(Timed(start, event) for event in events), Timed(start, timed.item))
        self._kept.append(timed.item)
        self._size += len(timed.item)
        if self._size <= HELD_MAX:
            return self._emit_keepalive(start)
        passing, self._kept = self._kept, None
        return [Timed(start, event) for event in passing]

    def _rewrite_events(self, events_kept: list[bytes]) -> list[bytes]:
        """The events to let out for those that came."""
        events = [parse_event_json(event) for event in events_kept if get_event_data(event)]
        try:
            content = self._answers.extract_stream_content(events)
        except (LookupError, TypeError, AttributeError, ValueError):
            return events_kept  # it is in another form, and its reader gets it as it is
        if content is None or (now := self._changed(content)) is content:
            return events_kept
        # [DONE] is no JSON, so it is not among the events that are told anew.
        new_events = [
            *map(encode_event, self._answers.rewrite_events(events, now)),
            *filter(is_done_marker, events_kept),
        ]
        self.told = self._empty + len(new_events), self._empty * len(EMPTY) + sum(map(len, new_events))
        return new_events

    def _emit_keepalive(self, start: float) -> Iterable[Timed]:
        if start < self._quiet_since + EMPTY_S:
            return ()
        # The first event only starts the count: until then the model itself was silent.
        begins, self._quiet_since = self._quiet_since == -inf, start
        if begins:
            return ()
        self._empty += 1
        return (Timed(start, EMPTY),)
