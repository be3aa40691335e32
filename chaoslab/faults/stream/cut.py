"""The stream ends too early, as if it had ended as it should."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaoslab.core.answers import AnswerFormat
from chaoslab.core.dialog import CHAT
from chaoslab.core.events import CANCELLED
from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import PacedQueue, Signal, Timed
from chaoslab.core.stream import DONE, is_json_line, parse_event_json

EVENTS = range(1, 9)
"""The events of which one number is drawn, that of those that pass before a fault of this family."""


@dataclass(frozen=True)
class Cut(Fault):
    """Ends the body cleanly after `after_events` events (0: drawn, 1 to 8). `ending`: "bare", or "done" for the last
    event of the format: `[DONE]`, `message_stop` of Anthropic, `response.completed` of OpenAI's responses, and a chunk
    with the finishReason STOP of Gemini.

    A client that does not look for that event takes a part for the whole. With it, only what is missing before it
    tells of the cut: the reason of the end, or the end of an item. `early_stop` leaves nothing out.
    """

    after_events: int = 0
    ending: Literal["bare", "done"] = "bare"
    layer = "stream"
    common = True
    corrupts = "reply"
    leaves = "part"
    needs = "a streamed reply with more events"
    drawn: ClassVar = {"after_events": EVENTS}
    example = '"cut", "api.openai.com", after_events=3, chance=0.1'
    source = "https://github.com/griffinwork40/agent-afk/pull/635"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        law = _Law(self.after_events, call.dialog.answers if self.ending == "done" else None)
        return reply.through(PacedQueue(law, capacity_bytes=0))

    def witnessed(self, observation: Observation) -> str | None:
        stream = observation.streamed
        is_done = self.ending == "done"
        if stream is None or stream.events != self.after_events + is_done:
            return None
        if stream.ended != "end" and not (
            is_done and stream.ended == CANCELLED
        ):  # a reader may stop after the last one
            return None
        if stream.done != (is_done and self._get_answer_format(observation).is_last_event(DONE)):
            return None
        closed = "the format's last one" if is_done and not stream.done else "[DONE]"
        return f"the answer ended after {stream.events} events, {'with' if is_done else 'without'} {closed}"

    @staticmethod
    def _get_answer_format(observation: Observation) -> AnswerFormat:
        return (CHAT if observation.sent is None else observation.sent.dialog).answers


class _Law:
    """Lets so many events pass, then ends the stream, with the format's last event if `answers` are given."""

    def __init__(self, after_events: int, answers: AnswerFormat | None) -> None:
        self._left, self._answers = after_events, answers
        self._said: list[Any] = []

    def __call__(self, timed: Timed, start: float) -> Iterable[Timed]:
        item, answers = timed.item, self._answers
        # The format's own end comes as it is: with another before it the stream would end twice.
        if isinstance(item, Signal) or self._left or (answers is not None and answers.is_last_event(item)):
            # Below 0 it is true again, so that all that follows passes.
            self._left -= 1
            if answers is not None and not isinstance(item, Signal):
                self._said.append(parse_event_json(item))
            return (Timed(start, item),)
        end = Timed(start, Signal.END)
        if answers is None:
            return (end,)
        try:
            if is_json_line(item):  # which ends in other ways
                raise LookupError
            return (Timed(start, answers.build_last_event(self._said)), end)
        except (LookupError, TypeError, AttributeError, ValueError):
            self._left = -1
            return (Timed(start, item),)  # it is of no such format, and goes on
