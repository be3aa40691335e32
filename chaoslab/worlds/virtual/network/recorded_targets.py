"""Fakes for targets that the lab cannot run again, a paid model or a real service: they give the replies of the
log."""

from __future__ import annotations

import itertools
import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import httpx

from chaoslab.base.clock import system
from chaoslab.base.identity import hash_value
from chaoslab.core.events import CallStarted, Event, Replied
from chaoslab.core.exchange import Failure, Reply
from chaoslab.record.log import BufferedEvent, MemoryLog
from chaoslab.seams.services.app import Wsgi
from chaoslab.wire.http1 import BODY_MAX
from chaoslab.wire.sending import NEVER_SENT, Address, Headers, SocketFactory, Transport
from chaoslab.worlds.virtual.network.network import NOBODY

# The fake's answer to a question that was never asked in the run. A replay looks for it, so that it does not count
# as the model's reply.
NO_REPLY = "the log holds no reply to this question"
# Thirty years: nobody waits for longer in a trial.
FOR_EVER_S = 1e9


class Recording:
    """The replies of one trial; `load_replies` replaces them by the next trial's."""

    def __init__(self) -> None:
        self._replies: dict[tuple[str, str], list[Replied]] = {}
        self._under_way: dict[str, dict[int, int]] = {}

    def load_replies(self, replies: Sequence[Replied]) -> None:
        self._replies, self._under_way = {}, {}
        # In the order of the run, which the log's lines need not have.
        for reply in sorted(replies, key=lambda reply: (reply.request, reply.attempt)):
            self._replies.setdefault((reply.target, reply.asked), []).append(reply)

    def mark_attempt_under_way(self, call: CallStarted) -> None:
        """Marks this attempt as under way, so that the next request is not confused with earlier attempts."""
        attempts = self._under_way.setdefault(call.target, {})
        # Put in anew, so that the latest attempt stands last.
        attempts.pop(call.request, None)
        attempts[call.request] = call.attempt

    def build_app(self, target: str) -> Wsgi:
        """A web application that answers as that target did."""

        def answer_request(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            reply = self._find_reply(target, _make_request_key(environ.get("HTTP_IDEMPOTENCY_KEY"), body))
            if reply is None:
                start_response(
                    "500 Internal Server Error", [("Content-Type", "application/json"), ("X-Should-Retry", "false")]
                )
                return [json.dumps({"error": {"message": NO_REPLY}}).encode()]
            if reply.failure == "too_large":
                start_response("200 as recorded", [])
                return [bytes(BODY_MAX + 1)]
            if reply.failure and not reply.status:
                return _fail_without_reply(reply.failure)
            text = reply.body.encode("utf-8", "replace")
            headers = [*reply.headers.items(), *([("Content-Type", reply.content_type)] if reply.content_type else [])]
            if reply.failure:  # a streamed answer that broke off
                start_response(f"{reply.status} as recorded", headers)
                return itertools.chain((text,), _fail_without_reply(reply.failure))
            start_response(f"{reply.status} as recorded", [*headers, ("Content-Length", str(len(text)))])
            return [text]

        return answer_request

    def find_failure(self, key: str | None, body: bytes) -> str:
        """The kind of failure that the request ends with; empty if it was answered. `key`: of its idempotency."""
        question = _make_request_key(key, body)
        replies = (self._find_reply(target, asked) for target, asked in self._replies if asked == question)
        reply = next(replies, None)
        return reply.failure if reply else ""

    def _find_reply(self, target: str, question: str) -> Replied | None:
        """The reply to this attempt. A reply that was lost on its way was not recorded; its fake will be lost
        again, so it is a later attempt's reply, or the last one."""
        replies = self._replies.get((target, question), [])
        requests = {reply.request for reply in replies}
        for request, attempt in reversed(self._under_way.get(target, {}).items()):
            if request in requests:
                return next(
                    (reply for reply in replies if (reply.request, reply.attempt) >= (request, attempt)), replies[-1]
                )
        return replies[0] if replies else None


def _make_request_key(key: str | None, body: bytes) -> str:
    # The lab's tools send their request's id as the key; a model's request is known by its body.
    return key or (hash_value(json.loads(body)) if body else "")


class RecordedSockets(SocketFactory):
    """Sockets to fakes, for which a request that never reached its target reaches none. A poisoned lane is a listener
    of its own, so its connections (`make_fresh_transport`) always come about."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def make_pooled_transport(self, tls: ssl.SSLContext) -> Transport:
        return _RecordedFailureTransport(super().make_pooled_transport(tls), self._recording)


class _RecordedFailureTransport:
    def __init__(self, sockets: Transport, recording: Recording) -> None:
        self._sockets, self._recording, self.aclose = sockets, recording, sockets.aclose

    async def send_request(self, request: httpx.Request, to: Address, headers: Headers, body: bytes) -> Reply:
        failure = self._recording.find_failure(request.headers.get("idempotency-key"), body)
        if failure in NEVER_SENT:
            raise Failure(failure)
        if failure == "refused":
            to = NOBODY
        return await self._sockets.send_request(request, to, headers, body)


class AttemptNotingLog(MemoryLog):
    """The seam's log; it also reports each attempt that begins to a recording."""

    def __init__(
        self, recording: Recording, buffer: list[BufferedEvent], *, origin: float, events: list[Event] | None = None
    ) -> None:
        super().__init__("info", buffer, origin=origin, events=events)
        self._recording = recording

    def write(self, event: Event, *, trial: str | None = None) -> None:
        if isinstance(event, CallStarted):
            self._recording.mark_attempt_under_way(event)
        super().write(event, trial=trial)


def _fail_without_reply(failure: str) -> Iterator[bytes]:
    """No reply: the caller waits in vain, or the connection ends."""
    if failure == "timed_out":
        system.sleep(FOR_EVER_S)
    raise Failure("closed" if failure == "timed_out" else failure)
    # Never reached: it makes the function a generator, so that it fails when it is read.
    yield b""
