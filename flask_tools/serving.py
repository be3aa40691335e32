"""A service on a port, by waitress. Requests that never reach the application are refused in the service's own format
too. A body that is too large is read and thrown away, so that its sender listens when the refusal comes."""

from __future__ import annotations

import logging
from typing import Any

from flask import Flask, Response, request
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import create_server
from waitress.task import ErrorTask, WSGITask
from waitress.utilities import RequestEntityTooLarge

from chaoslab.flask_tools.app import BODY_MAX, TOO_LARGE, spell_body
from chaoslab.flask_tools.service_module import ServiceModule

THREADS = 8


def open_server(app: Flask, desk: ServiceModule, *, host: str, port: int) -> Any:
    """A waitress server of the service's application, which holds the port and answers once its `run` is called.
    Raises OSError, OverflowError: the port is not available."""
    logging.getLogger("waitress").setLevel(logging.ERROR)
    server: Any = create_server(
        app, host=host, port=port, threads=THREADS, ident=None, max_request_body_size=BODY_MAX + 1
    )
    # waitress has no setting for its classes of channels, parsers and tasks.
    server.channel_class = _Channel
    server.refuse = lambda status, message: spell_body(desk.make_error_body(status, message))
    return server


def print_request(response: Response) -> Response:
    """Prints one line per request for `docker compose logs`, but not for health checks."""
    if request.path != "/health":
        again = " (again)" if "Idempotency-Replayed" in response.headers else ""
        trial = request.headers.get("X-Trial") or "no trial"
        print(f"{request.method} {request.path} {response.status_code}{again}  {trial}"[:300], flush=True)
    return response


class _DiscardingBuffer:
    """A buffer that discards the rest of a chunked body."""

    def append(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass


class _Parser(HTTPRequestParser):
    """A parser that refuses like waitress, but after the body has been sent, unless its sender asked first (Expect:
    100-continue)."""

    unwanted_bytes = 0
    unwanted_chunks: Any = None

    def received(self, data: bytes) -> int:
        if self.unwanted_bytes:
            thrown = min(len(data), self.unwanted_bytes)
            self.unwanted_bytes -= thrown
            self.completed = not self.unwanted_bytes
            return thrown
        if self.unwanted_chunks is not None:
            thrown = self.unwanted_chunks.received(data)
            # Chunk headers and trailers have no bound of their own in waitress.
            endless = len(self.unwanted_chunks.control_line) > BODY_MAX or len(self.unwanted_chunks.trailer) > BODY_MAX
            self.completed = bool(self.unwanted_chunks.completed or self.unwanted_chunks.error or endless)
            return int(thrown)
        taken = int(super().received(data))
        # Its sender waits for leave to send a body, so none will come.
        if self.error is not None and self.expect_continue:
            self.expect_continue = False
        elif isinstance(self.error, RequestEntityTooLarge):
            self._discard_body()
        return taken

    def _discard_body(self) -> None:
        receiver: Any = self.body_rcv
        if not self.chunked:
            self.unwanted_bytes = self.content_length
        elif not receiver.completed:
            # What was kept of the body is given up now.
            receiver.getbuf().close()
            receiver.buf = _DiscardingBuffer()
            self.unwanted_chunks = receiver
        self.completed = not self.unwanted_bytes and self.unwanted_chunks is None


class _Refusal(ErrorTask):
    def execute(self) -> None:
        request: Any = self.request
        server: Any = self.channel.server
        self.status = f"{request.error.code} {request.error.reason}"
        large = isinstance(request.error, RequestEntityTooLarge)
        message = TOO_LARGE if large else f"{request.error.reason}: {request.error.body}"
        body = server.refuse(request.error.code, message).encode()
        self.response_headers = [("Content-Type", "application/json")]
        # A connection whose request was refused may be out of step.
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Task(WSGITask):
    def set_close_on_finish(self) -> None:
        """Keeps the connection after an answer without a body (204), as services do elsewhere; waitress would close it.
        So a toxic that swallows the answer lasts as long as planned, and the service does not cut it short."""
        request: Any = self.request
        if self.has_body or self.version != "1.1" or request.headers.get("CONNECTION", "").lower() == "close":
            super().set_close_on_finish()


class _Channel(HTTPChannel):
    parser_class = _Parser
    task_class = _Task
    error_task_class = _Refusal
