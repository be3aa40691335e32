"""Answers of applications, of WSGI or made to look like it: whole, in parts as they come, or broken off."""

import io
import itertools
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.core.exchange import Failure
from chaoslab.seams.services.app import LEFT, RAW, Wsgi
from chaoslab.seams.services.line import Answered, Iterated

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


def build_environ(
    method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes, name: str
) -> dict[str, Any]:
    headers = list(headers)
    path, _, query = target.decode("latin-1").partition("?")
    host, _, port = name.rpartition(":")
    environ: dict[str, Any] = {
        **_FIXED, "REQUEST_METHOD": method, "PATH_INFO": _unquote_path(path), "QUERY_STRING": query,
        "SERVER_NAME": host, "SERVER_PORT": port, "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr, "CONTENT_LENGTH": str(len(body)), RAW: (target, headers),
    }  # fmt: skip
    for key, value in headers:
        field, text = _to_wsgi_name(key), value.decode("latin-1")
        once = field in environ and field.startswith("HTTP_")
        # Repeated headers are joined, as a real server's environment has them.
        environ[field] = f"{environ[field]}, {text}" if once else text
    return environ


@lru_cache(512)
def _to_wsgi_name(header: bytes) -> str:
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


FAILED = b"Internal Server Error"


def build_closing_text_headers(body: bytes) -> list[tuple[str, str]]:
    """The headers of an answer of the server's own."""
    return [("content-length", str(len(body))), ("content-type", "text/plain"), ("connection", "close")]


def log_app_error(target: bytes, name: str) -> None:
    """Logs the application's error, where a real server shows it."""
    logging.getLogger(__name__).exception("while serving %s at %s", target.decode("latin-1"), name)


class OpenedAnswer:
    """An application's answer that has begun: status and headers are there; 500 if it failed before."""

    def __init__(
        self,
        app: Wsgi,
        name: str,
        method: str,
        target: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes,
        *,
        https: bool = False,
        left: list[Callable[[], None]] | None = None,
    ) -> None:
        """`left`: the functions to call when the client hangs up."""
        self._target, self._name, self._stack = target, name, ExitStack()
        environ = build_environ(method, target, headers, body, name)
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
            reraise_unless_foreign(error)
            self._turn_into_error_500()

    async def read_all(self) -> Answered:
        """The whole answer; 500 if the rest of it fails."""
        try:
            body = self._first + b"".join(self._rest)
        except BaseException as error:  # noqa: BLE001 - the application's own
            reraise_unless_foreign(error)
            self._turn_into_error_500()
            body = self._first
        self.close()
        return self.status, self.fields, body

    def iterate_parts(self) -> Iterated:
        """The body as it comes. `take` raises a `Failure`, closed, if the application fails."""
        return Iterated(self._generate_parts())

    def _generate_parts(self) -> Iterator[bytes]:
        try:
            yield from filter(None, itertools.chain((self._first,), self._rest))
        except BaseException as error:  # noqa: BLE001 - the application's own
            reraise_unless_foreign(error)
            log_app_error(self._target, self._name)
            raise Failure("closed") from None
        finally:
            self.close()

    def close(self) -> None:
        """Tells the application that its answer is over. An error of that changes nothing any more."""
        try:
            self._stack.close()
        except BaseException as error:  # noqa: BLE001 - the application's own
            reraise_unless_foreign(error)
            log_app_error(self._target, self._name)

    def _turn_into_error_500(self) -> None:
        log_app_error(self._target, self._name)
        self.status, self.fields, self._first, self._rest = 500, build_closing_text_headers(FAILED), FAILED, iter(())
