"""A call of a WSGI application, as PEP 3333 says: its environment, and its answer as a context."""

import io
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from chaoslab.seams.services.app import RAW, Wsgi

HEADS_MAX = 64
"""The heads of requests whose environments are kept: who asks again says mostly the same."""
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
        self._started[:] = [(status, headers)]

    def __enter__(self) -> tuple[list[Started], Iterable[bytes]]:
        self._parts = self._app(self._environ, self._start_response)
        return self._started, self._parts

    def __exit__(self, *_: object) -> None:
        close = getattr(self._parts, "close", None)
        if close is not None:
            close()


_FIXED = {
    "SCRIPT_NAME": "", "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1", "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http", "wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False,
    "wsgi.input_terminated": True,
}  # fmt: skip


def environ_of(
    method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes, name: str
) -> dict[str, Any]:
    headers = list(headers)
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
        **_FIXED, "REQUEST_METHOD": method, "PATH_INFO": _unquoted(path), "QUERY_STRING": query,
        "SERVER_NAME": host, "SERVER_PORT": port, "wsgi.input": None, "wsgi.errors": None,
        "CONTENT_LENGTH": str(size), RAW: None,
    }  # fmt: skip
    for key, value in headers:
        field, text = _field(key), value.decode("latin-1")
        once = field in environ and field.startswith("HTTP_")
        environ[field] = f"{environ[field]}, {text}" if once else text
    return environ


@lru_cache(512)
def _field(header: bytes) -> str:
    """The header's name in WSGI."""
    name = header.decode().upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"


def _unquoted(path: str) -> str:
    """The path's bytes, unquoted, as Latin-1, which WSGI requires."""
    if "%" not in path:
        return path
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(path).decode("latin-1")
