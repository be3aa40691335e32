"""The parts of a streamed tool call have the wrong index, or come among those of another."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import PacedQueue, Signal, Timed
from chaoslab.core.stream import encode_event, parse_event_json

How = Literal["missing", "repeated", "interleaved"]
HELD_MAX = 4096
"""The most events that are held back to be interleaved."""


@dataclass(frozen=True)
class CallIndex(Fault):
    """Changes the `index` by which the parts of tool calls are put together, in streams of OpenAI's chat completions.

    `how` "missing": they have none. "repeated": that of the first call, for all. "interleaved": the parts of several
    calls come in turns, each with its right index, which a client has to take. The first two are what other servers of
    this format send. The last two need two calls in one answer.
    """

    how: How = "missing"
    layer = "stream"
    of_model = True
    corrupts = "reply"
    leaves = "value"
    needs = "tool calls in a stream of OpenAI's chat completions"
    example = '"call_index", "api.openai.com", how="interleaved"'
    source = "https://github.com/openai/openai-python/pull/3246"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        return reply.through(_Indexing(self.how), holds=self.how == "interleaved")

    def witnessed(self, observation: Observation) -> str | None:
        stream, changed = observation.streamed, observation.changed_reply
        pipe = changed.pipes[-1].pipe if changed is not None and changed.pipes else None
        position = pipe.place if isinstance(pipe, _Indexing) else None
        if stream is None or position is None or stream.events < position:
            return None
        return f"the parts of tool calls came with their index {self.how}"


class _Indexing(PacedQueue):
    """Changes the indices. `place`: the number of the first event that another index or order shows in; None before."""

    def __init__(self, manner: How) -> None:
        super().__init__(self._reindex_event, capacity_bytes=0)
        self.place: int | None = None
        self._how, self._out = manner, 0
        self._held: list[tuple[Any, bytes]] = []

    def _reindex_event(self, timed: Timed, start: float) -> Iterable[Timed]:
        event = timed.item
        value = None if isinstance(event, Signal) else parse_event_json(event)
        parts = [call_part for call_part in _find_call_parts(value) if isinstance(call_part.get("index"), int)]
        # Held in memory until something else comes, so there is a bound: a stream may have no end.
        if self._how == "interleaved" and parts and len(self._held) < HELD_MAX and not isinstance(event, Signal):
            self._held.append((parts[0]["index"], event))
            return
        for held_event in self._release_held_events():
            self._out += 1
            yield Timed(start, held_event)
        if not isinstance(event, Signal):
            self._out += 1
            if self._how == "repeated":
                event = self._set_call_index(
                    value, [call_part for call_part in parts if call_part["index"]], event, index=0
                )
            elif self._how == "missing":
                event = self._set_call_index(value, parts, event)
        yield Timed(start, event)

    def _set_call_index(self, value: Any, parts: list[Any], event: bytes, **index: int) -> bytes:
        """The event with these parts' index changed, or gone."""
        for call_part in parts:
            del call_part["index"]
            call_part.update(index)
        if not parts:
            return event
        self.place = self.place or self._out
        return encode_event(value)

    def _release_held_events(self) -> list[bytes]:
        """The events that were held back, in turns."""
        events_held, self._held = self._held, []
        calls: dict[Any, list[bytes]] = {}
        for index, event in events_held:
            calls.setdefault(index, []).append(event)
        ordered = [event for turn in zip_longest(*calls.values()) for event in turn if event is not None]
        original = [event for _, event in events_held]
        if ordered != original and self.place is None:
            self.place = self._out + next(
                n for n, pair in enumerate(zip(ordered, original, strict=True), 1) if pair[0] != pair[1]
            )
        return ordered


def _find_call_parts(value: Any) -> list[dict[str, Any]]:
    """The parts of tool calls in an event."""
    choices = value.get("choices") if isinstance(value, Mapping) else None
    call_parts: list[dict[str, Any]] = []
    for choice in choices if isinstance(choices, list) else ():
        delta = choice.get("delta") if isinstance(choice, Mapping) else None
        calls = delta.get("tool_calls") if isinstance(delta, Mapping) else None
        call_parts += (
            [call_part for call_part in calls if isinstance(call_part, dict)] if isinstance(calls, list) else []
        )
    return call_parts
