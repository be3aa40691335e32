"""Stand-ins for targets that the lab cannot run again, a paid model or a real service: they give the replies of the
log."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from chaoslab.base.clock import system
from chaoslab.base.identity import digest
from chaoslab.core.events import CallStarted, Event, Replied
from chaoslab.record.log import BufferedEvent, MemoryLog
from chaoslab.seams.services.app import Wsgi
from chaoslab.worlds.virtual.network._app_answers import Broken

# The stand-in's answer to a question that was never asked in the run. A replay looks for it, so that it does not count
# as the model's reply.
NO_REPLY = "the log holds no reply to this question"
# Thirty years: nobody waits for longer in a trial.
FOR_EVER_S = 1e9


class Recording:
    """The replies of one trial; `begin` replaces them by the next trial's."""

    def __init__(self) -> None:
        self._replies: dict[tuple[str, str], list[Replied]] = {}
        self._under_way: dict[str, dict[int, int]] = {}

    def begin(self, replies: Sequence[Replied]) -> None:
        self._replies, self._under_way = {}, {}
        # In the order of the run, which the log's lines need not have.
        for reply in sorted(replies, key=lambda reply: (reply.request, reply.attempt)):
            self._replies.setdefault((reply.target, reply.asked), []).append(reply)

    def started(self, call: CallStarted) -> None:
        """Marks this attempt as under way, so that the next request is not confused with earlier attempts."""
        attempts = self._under_way.setdefault(call.target, {})
        # Put in anew, so that the latest attempt stands last.
        attempts.pop(call.request, None)
        attempts[call.request] = call.attempt

    def app(self, target: str) -> Wsgi:
        """A web application that answers as that target did."""

        def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            # The lab's tools send their request's id as the key; a model's request is known by its body.
            question = environ.get("HTTP_IDEMPOTENCY_KEY") or (digest(json.loads(body)) if body else "")
            reply = self._reply(target, question)
            if reply is None:
                start_response(
                    "500 Internal Server Error", [("Content-Type", "application/json"), ("X-Should-Retry", "false")]
                )
                return [json.dumps({"error": {"message": NO_REPLY}}).encode()]
            if reply.failure and not reply.status:
                return _break_off(reply.failure)
            text = reply.body.encode("utf-8", "replace")
            headers = [*reply.headers.items(), *([("Content-Type", reply.content_type)] if reply.content_type else [])]
            if reply.failure:  # a streamed answer that broke off
                start_response(f"{reply.status} as recorded", headers)
                return itertools.chain((text,), _break_off(reply.failure))
            start_response(f"{reply.status} as recorded", [*headers, ("Content-Length", str(len(text)))])
            return [text]

        return answer

    def _reply(self, target: str, question: str) -> Replied | None:
        """The reply to this attempt. A reply that was lost on its way was not recorded; its stand-in will be lost
        again, so it is a later attempt's reply, or the last one."""
        replies = self._replies.get((target, question), [])
        requests = {reply.request for reply in replies}
        for request, attempt in reversed(self._under_way.get(target, {}).items()):
            if request in requests:
                return next(
                    (reply for reply in replies if (reply.request, reply.attempt) >= (request, attempt)), replies[-1]
                )
        return replies[0] if replies else None


class Hearing(MemoryLog):
    """The seam's log; it also reports each attempt that begins to a recording."""

    def __init__(
        self, recording: Recording, buffer: list[BufferedEvent], *, origin: float, events: list[Event] | None = None
    ) -> None:
        super().__init__("info", buffer, origin=origin, events=events)
        self._recording = recording

    def write(self, event: Event, *, trial: str | None = None) -> None:
        if isinstance(event, CallStarted):
            self._recording.started(event)
        super().write(event, trial=trial)


def _break_off(failure: str) -> Iterator[bytes]:
    """No reply: the caller waits in vain, or the connection ends."""
    if failure == "timed_out":
        system.sleep(FOR_EVER_S)
    raise Broken("closed" if failure == "timed_out" else failure)
    # Never reached: it makes the function a generator, so that it fails when it is read.
    yield b""
