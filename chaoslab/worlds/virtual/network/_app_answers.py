"""Answers of applications, of WSGI or made to look like it: in parts as they come, or broken off."""

import io
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.core.exchange import Failure
from chaoslab.seams.services.app import LEFT, RAW, Wsgi
from chaoslab.seams.services.line import Iterated

Started = tuple[str, list[tuple[str, str]]]
"""Status line and headers, as an application states them."""


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


def _fail(error: BaseException) -> Iterator[bytes]:
    """The parts of a body that fails before the first."""
    yield from ()
    raise error


class OpenedAnswer:
    """An application's answer that has begun: status and headers are there; 500 if it failed before. Raises Failure:
    that of a recorded target."""

    def __init__(
        self,
        app: Wsgi,
        name: str,
        method: str,
        target: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes,
        *,
        https: bool,
        left: list[Callable[[], None]],
        is_client_gone: Callable[[], bool],
    ) -> None:
        """`left`: the functions to call when the client hangs up."""
        self._target, self._name, self._is_client_gone = target, name, is_client_gone
        self._started: list[Started] = []
        self._answer: Any = None
        environ = build_environ(method, target, headers, body, name)
        environ["wsgi.url_scheme"] = "https" if https else "http"
        environ[LEFT] = left
        try:
            self._answer = app(environ, self._start_response)
            self._rest: Iterator[bytes] = filter(None, self._answer)
            # PEP 3333: the head goes out with the first part that is not empty. Until then a failure is a 500.
            self._first = self._read_first_part()
            status, self.fields = self._started[0]
            self.status = int(status[:3])
        except Failure:  # of a recorded target, whose client meets that
            raise
        except BaseException as error:  # noqa: BLE001 - the application's own
            reraise_unless_foreign(error)
            self._log_error()
            self.status, self.fields = 500, build_closing_text_headers(FAILED)
            self._first, self._rest = FAILED, iter(())

    def _read_first_part(self) -> bytes:
        try:
            return next(self._rest, b"")
        except BaseException as error:
            reraise_unless_foreign(error)
            # uvicorn sends the head of an ASGI application when it is stated, so what fails behind it is a break.
            if not getattr(self._answer, "has_sent_head", False):
                raise
            self._rest = _fail(error)
            return b""

    def _start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:  # noqa: ARG002
        # A second call, with `exc_info`, replaces the first as long as nothing was sent (PEP 3333).
        self._started[:] = [(status, headers)]

    def iterate_parts(self) -> Iterated:
        return Iterated(self.generate_parts())

    def generate_parts(self) -> Iterator[bytes]:
        """The parts of the body as they come. Raises Failure: closed, since the application failed, or that of a
        recorded target."""
        try:
            yield self._first
            yield from self._rest
            # In here, since servers do not end an answer whose `close` fails.
            self._call_close()
        except Failure:  # as above
            raise
        except BaseException as error:  # noqa: BLE001 - the application's own
            reraise_unless_foreign(error)
            self._log_error()
            raise Failure("closed") from None
        finally:
            self.close()

    def close(self) -> None:
        """Tells the application that its answer is over, though it was not read to its end. An error of that changes
        nothing any more."""
        try:
            self._call_close()
        except BaseException as error:  # noqa: BLE001 - the application's own
            reraise_unless_foreign(error)
            self._log_error()

    def _call_close(self) -> None:
        # PEP 3333: the server calls `close` of what the application returned, also after an error.
        answer, self._answer = self._answer, None
        if (close := getattr(answer, "close", None)) is not None:
            close()

    def _log_error(self) -> None:
        # An application may fail because its client has gone, which is no error of its own.
        if not self._is_client_gone():
            log_app_error(self._target, self._name)
