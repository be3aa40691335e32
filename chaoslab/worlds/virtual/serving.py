"""WSGI applications on the virtual network: HTTP/1.1 with connections that are kept, each request in a thread of its own."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

import h11

from chaoslab.worlds.virtual.machine import Machine
from chaoslab.worlds.virtual.network import End, Network

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
BODY_MAX = 64 * 1024 * 1024


def serve(network: Network, host: str, port: int, app: Wsgi) -> None:
    """The application, at that place."""
    address = network.listen(host, port, lambda end: _Connection(network.machine, app, end, f"{host}:{port}").arrived())
    network.apps[address] = app


class _Connection:
    """The server's side of one connection; requests are answered one after the other."""

    def __init__(self, machine: Machine, app: Wsgi, end: End, name: str) -> None:
        self._machine, self._app, self._end, self._name = machine, app, end, name
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=256 * 1024)
        self._request: h11.Request | None = None
        self._body: list[bytes] = []
        self._at_work = False
        end.receiver = self

    def arrived(self) -> None:
        end, http = self._end, self._http
        try:
            while data := end.take():
                http.receive_data(data)
            if end.ended:
                http.receive_data(b"")
            if not self._at_work:
                self._read()
        except h11.RemoteProtocolError as error:
            self._refuse(error)
        except OSError:
            self._end.close()

    def broke(self, error: OSError) -> None:  # noqa: ARG002 - nobody is left to tell
        self._end.close()

    def drained(self) -> None:
        pass

    def _read(self) -> None:
        http = self._http
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return
            if isinstance(event, h11.Request):
                self._request, self._body = event, []
            elif isinstance(event, h11.Data):
                self._body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._at_work = True
                self._machine.start(self._answer, name=f"{self._name} at work")
                return
            elif isinstance(event, h11.ConnectionClosed):
                self._end.close()
                return

    def _answer(self) -> None:
        assert self._request is not None
        request = self._request
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:  # noqa: ARG001
            started[:] = [(status, headers)]

        parts = self._app(
            _environ(request.method, request.target, request.headers, b"".join(self._body), self._name), start_response
        )
        try:
            self._send(started, iter(parts), bodiless=request.method == b"HEAD")
        except OSError:  # whoever asked is gone
            self._end.close()
            return
        finally:
            getattr(parts, "close", lambda: None)()
        self._at_work = False
        if self._http.our_state is h11.MUST_CLOSE:
            self._end.close()
        else:
            self._http.start_next_cycle()
            self.arrived()

    def _send(self, started: list[Any], parts: Any, *, bodiless: bool) -> None:
        """The whole answer at once when its length is stated; else each part as it comes."""
        http = self._http
        first = next(parts, b"")
        status, headers = started[0]
        code = int(status[:3])
        fields = [(name.lower(), value) for name, value in headers]
        sized = any(name == "content-length" for name, _ in fields) or code in (204, 304)
        out = http.send(
            h11.Response(status_code=code, headers=fields, reason=HTTPStatus(code).phrase if code in _CODES else "")
        )
        assert out is not None
        if sized:
            if not bodiless:
                out += http.send(h11.Data(data=first + b"".join(parts))) or b""
            self._end.write(out + (http.send(h11.EndOfMessage()) or b""))
            return
        self._end.write(out)
        for part in (first, *([] if bodiless else parts)):
            if part and not bodiless:
                self._end.write(http.send(h11.Data(data=part)) or b"")
        self._end.write(http.send(h11.EndOfMessage()) or b"")

    def _refuse(self, error: h11.RemoteProtocolError) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            status = int(error.error_status_hint)
            headers = [("content-length", "0"), ("connection", "close")]
            out = self._http.send(h11.Response(status_code=status, headers=headers)) or b""
            self._end.write(out + (self._http.send(h11.EndOfMessage()) or b""))
        self._end.close()


_CODES = {status.value for status in HTTPStatus}


def answered(
    app: Wsgi, method: bytes, target: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes, name: str
) -> tuple[int, list[tuple[str, str]], bytes]:
    """What an application makes of a request: status, headers and the whole body."""
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, fields: list[tuple[str, str]], exc_info: Any = None) -> None:  # noqa: ARG001
        started[:] = [(status, fields)]

    parts = app(_environ(method, target, headers, body, name), start_response)
    try:
        content = b"".join(parts)
    finally:
        getattr(parts, "close", lambda: None)()
    status, fields = started[0]
    return int(status[:3]), fields, content


_FIXED = {
    "SCRIPT_NAME": "", "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1", "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http", "wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False,
    "wsgi.input_terminated": True,
}  # fmt: skip


def _environ(
    method: bytes, target: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes, name: str
) -> dict[str, Any]:
    path, _, query = target.decode("latin-1").partition("?")
    host, _, port = name.rpartition(":")
    environ: dict[str, Any] = {
        **_FIXED, "REQUEST_METHOD": method.decode(), "PATH_INFO": _unquoted(path), "QUERY_STRING": query,
        "SERVER_NAME": host, "SERVER_PORT": port, "wsgi.input": io.BytesIO(body), "wsgi.errors": sys.stderr,
        "CONTENT_LENGTH": str(len(body)),
    }  # fmt: skip
    for key, value in headers:
        field = key.decode().upper().replace("-", "_")
        if field in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            environ[field] = value.decode("latin-1")
            continue
        field = f"HTTP_{field}"
        text = value.decode("latin-1")
        environ[field] = f"{environ[field]},{text}" if field in environ else text
    return environ


def _unquoted(path: str) -> str:
    """WSGI wants the path's bytes, unquoted, as Latin-1."""
    if "%" not in path:
        return path
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(path).decode("latin-1")
