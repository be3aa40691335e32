"""The stream says in its middle that the answer has failed, behind a status of success."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.core.answers import AnswerFormat
from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import PacedQueue, Signal, Timed
from chaoslab.core.stream import get_event_data, is_json_line, parse_event_json
from chaoslab.faults.stream.cut import EVENTS


@dataclass(frozen=True)
class ErrorEvent(Fault):
    """Ends the stream after `after_events` events (0: drawn, 1 to 8) with the provider's own event for an error.

    It is `{"error": …}` of OpenAI's chat completions, `error` of its responses, `overloaded_error` of Anthropic, and
    status UNAVAILABLE of Gemini. The status was 200 already, so a client that looks at that alone takes a part for the
    whole.
    """

    after_events: int = 0
    layer = "stream"
    leaves = "part"
    needs = "a streamed reply with more events"
    drawn: ClassVar = {"after_events": EVENTS}
    example = '"error_event", "api.anthropic.com", after_events=3'
    source = "https://docs.anthropic.com/en/docs/build-with-claude/streaming#error-events"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        return reply.through(_Failing(self.after_events, call.dialog.answers))

    def witnessed(self, observation: Observation) -> str | None:
        stream, changed = observation.streamed, observation.changed_reply
        pipe = changed.pipes[-1].pipe if changed is not None and changed.pipes else None
        message = isinstance(pipe, _Failing) and pipe.told
        if stream is None or not message or stream.events <= self.after_events:
            return None
        return f"an error came in the stream after {self.after_events} events"


class _Failing(PacedQueue):
    """Lets so many events pass, and says that the answer failed in the place of the next one. `told`: it has."""

    def __init__(self, after_events: int, answers: AnswerFormat) -> None:
        super().__init__(self._insert_error_event, capacity_bytes=0)
        self.told = False
        self._left, self._answers, self._said = after_events, answers, list[Any]()

    def _insert_error_event(self, timed: Timed, start: float) -> Iterable[Timed]:
        if isinstance(timed.item, Signal) or self._left:
            self._left -= 1
            if not isinstance(timed.item, Signal) and get_event_data(timed.item):
                self._said.append(parse_event_json(timed.item))
            return (Timed(start, timed.item),)
        self.told = True
        failing = self._answers.build_error_event(self._said)
        # A stream of lines has no names of events: only the data of this one.
        if is_json_line(timed.item):
            failing = get_event_data(failing) + b"\n"
        return (Timed(start, failing), Timed(start, Signal.END))
