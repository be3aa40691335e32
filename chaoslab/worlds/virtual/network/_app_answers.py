"""Answers of applications, of WSGI or made to look like it: whole, in parts as they come, or broken off."""

import io
import itertools
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from typing import Any, Protocol

from chaoslab.base.boundary import let_through
from chaoslab.core.exchange import Failure
from chaoslab.seams.services.app import LEFT, RAW, Wsgi
from chaoslab.seams.services.line import Iterated

# The heads of requests whose environments are kept: who asks again says mostly the same.
HEADS_MAX = 64
Started = tuple[str, list[tuple[str, str]]]
"""Status line and headers, as an application states them."""


class Answering:
    """A context with the status line, the headers and the parts of an application's answer. The first two are there
    once the first part is."""

    __slots__ = ("_app", "_environ", "_parts", "_started")

    def __init__(self, app: Wsgi, environ: dict[str, Any]) -> None:
        self._app, self._environ = app, environ
        self._started: list[Started] = []

    def _start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:  # noqa: ARG002
        # A second call, with `exc_info`, replaces the first as long as nothing was sent (PEP 3333).
        self._started[:] = [(status, headers)]

    def __enter__(self) -> tuple[list[Started], Iterable[bytes]]:
        self._parts = self._app(self._environ, self._start_response)
        return self._started, self._parts

    def __exit__(self, *_: object) -> None:
        close = getattr(self._parts, "close", None)
        if close is not None:
            # PEP 3333: the server calls `close` of what the application returned, also after an error.
            close()


_FIXED = {
    "SCRIPT_NAME": "", "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1", "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http", "wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False,
    # Says that the body ends by itself, so that werkzeug reads it without a length.
    "wsgi.input_terminated": True,
}  # fmt: skip


def environ_of(
    method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes, name: str
) -> dict[str, Any]:
    headers = list(headers)
    # A copy: applications write into their environment.
    environ = _environ(method, target, tuple(headers), name, len(body)).copy()
    environ["wsgi.input"], environ["wsgi.errors"] = io.BytesIO(body), sys.stderr
    environ[RAW] = target, headers
    return environ


@lru_cache(HEADS_MAX)
def _environ(
    method: str, target: bytes, headers: tuple[tuple[bytes, bytes], ...], name: str, size: int
) -> dict[str, Any]:
    """The part of an environment that follows from the head of a request, with the others' places."""
    path, _, query = target.decode("latin-1").partition("?")
    host, _, port = name.rpartition(":")
    environ: dict[str, Any] = {
        **_FIXED, "REQUEST_METHOD": method, "PATH_INFO": _unquote_path(path), "QUERY_STRING": query,
        "SERVER_NAME": host, "SERVER_PORT": port, "wsgi.input": None, "wsgi.errors": None,
        "CONTENT_LENGTH": str(size), RAW: None,
    }  # fmt: skip
    for key, value in headers:
        field, text = _field(key), value.decode("latin-1")
        once = field in environ and field.startswith("HTTP_")
        # Repeated headers are joined, as a real server's environment has them.
        environ[field] = f"{environ[field]}, {text}" if once else text
    return environ


@lru_cache(512)
def _field(header: bytes) -> str:
    """The header's name in WSGI."""
    name = header.decode().upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"


def _unquote_path(path: str) -> str:
    """The path's bytes, unquoted, as Latin-1, which WSGI requires."""
    if "%" not in path:
        return path
    # Here, since most paths have nothing quoted.
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(path).decode("latin-1")


class Broken(Exception):
    """An application's request to break the connection off instead of answering. `kind`: see `Failure`."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


FAILED = b"Internal Server Error"


def server_fields(body: bytes) -> list[tuple[str, str]]:
    """The headers of an answer of the server's own."""
    return [("content-length", str(len(body))), ("content-type", "text/plain"), ("connection", "close")]


def log_app_error(target: bytes, name: str) -> None:
    """Logs the application's error, where a real server shows it."""
    logging.getLogger(__name__).exception("while serving %s at %s", target.decode("latin-1"), name)


Answered = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and the whole body."""


class AnswerListener(Protocol):
    """The caller's side of an answer that comes in parts, called in the application's thread."""

    def streams(self, status: int, fields: list[tuple[str, str]]) -> bool:
        """Tells, before the first part, if the body is to be passed on in parts."""

    def part(self, piece: bytes) -> bool:
        """Takes a part; False if nobody reads any more."""


def answer_request(
    listener: AnswerListener,
    app: Wsgi,
    method: str,
    target: bytes,
    headers: Iterable[tuple[bytes, bytes]],
    body: bytes,
    name: str,
) -> Answered | None:
    """The application's answer to a request; 500 if it fails. None if it went to the listener in parts. Raises Broken:
    it breaks off without an answer, or in the middle of one that comes in parts."""
    reply: Answered | None = None
    streamed = False
    try:
        with Answering(app, environ_of(method, target, headers, body, name)) as (started, parts):
            rest = iter(parts)
            # The first part is asked for before the head: an application may state its head with it.
            first = next(rest, b"")
            status, fields = started[0]
            streamed = listener.streams(int(status[:3]), fields)
            if streamed:
                for piece in itertools.chain((first,), rest):
                    if piece and not listener.part(piece):
                        # Nobody reads any more, so the rest is not made. Its `close` is called on the way out.
                        return None
            else:
                reply = int(status[:3]), fields, first + b"".join(rest)
    except Broken:
        raise
    except BaseException as error:  # noqa: BLE001 - also errors after the whole answer, which do not change it
        let_through(error)
        # Where a real server writes it; the client gets a 500 and no words of the application's.
        log_app_error(target, name)
        # Its head is out, so a 500 is too late.
        if streamed:
            raise Broken("closed") from None
    return None if streamed else reply or (500, server_fields(FAILED), FAILED)


class OpenedAnswer:
    """An application's answer that has begun: status and headers are there; 500 if it failed before."""

    def __init__(
        self, app: Wsgi, name: str, method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes,
        *, https: bool = False, left: list[Callable[[], None]] | None = None,
    ) -> None:  # fmt: skip
        """`left`: the functions to call when the client hangs up."""
        self._target, self._name, self._stack = target, name, ExitStack()
        environ = environ_of(method, target, headers, body, name)
        environ["wsgi.url_scheme"] = "https" if https else "http"
        if left is not None:
            environ[LEFT] = left
        try:
            started, parts = self._stack.enter_context(Answering(app, environ))
            self._rest = iter(parts)
            self._first = next(self._rest, b"")
            status, self.fields = started[0]
            self.status = int(status[:3])
        except BaseException as error:  # noqa: BLE001 - the application's own
            let_through(error)
            self._fail()

    async def whole(self) -> Answered:
        """The whole answer; 500 if the rest of it fails."""
        try:
            body = self._first + b"".join(self._rest)
        except BaseException as error:  # noqa: BLE001 - the application's own
            let_through(error)
            self._fail()
            body = self._first
        self.close()
        return self.status, self.fields, body

    def parts(self) -> Iterated:
        """The body as it comes. `take` raises a `Failure`, closed, if the application fails."""
        return Iterated(self._parts())

    def _parts(self) -> Iterator[bytes]:
        try:
            yield from filter(None, itertools.chain((self._first,), self._rest))
        except BaseException as error:  # noqa: BLE001 - the application's own
            let_through(error)
            log_app_error(self._target, self._name)
            raise Failure("closed") from None
        finally:
            self.close()

    def close(self) -> None:
        """Tells the application that its answer is over. An error of that changes nothing any more."""
        try:
            self._stack.close()
        except BaseException as error:  # noqa: BLE001 - the application's own
            let_through(error)
            log_app_error(self._target, self._name)

    def _fail(self) -> None:
        log_app_error(self._target, self._name)
        self.status, self.fields, self._first, self._rest = 500, server_fields(FAILED), FAILED, iter(())
