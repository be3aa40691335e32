"""Requests of every kind over WSGI, right and odd ones: the status, and JSON in the service's own format."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from chaoslab.flask_tools.app import BODY_MAX, create_app
from chaoslab.record.runs import Run
from tests.flask_tools.service_parts import EVENTS, NOW

RUN = "20260601-090000"
Said = tuple[str, list[tuple[str, str]], bytes]


def _asked(wsgi: Any, method: str, path: str, query: str, body: bytes, more: dict[str, Any]) -> Said:
    said: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:  # noqa: ARG001
        said[:] = status, headers

    environ = {
        "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "SCRIPT_NAME": "", "SERVER_NAME": "x",
        "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(), "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": "application/json", **more,
    }  # fmt: skip
    parts = wsgi({name: value for name, value in environ.items() if value is not None}, start_response)
    sent = b"".join(parts)
    getattr(parts, "close", lambda: None)()
    return said[0], said[1], sent


def _last(logs: Path, name: str, *asked: Any, times: int = 1) -> Said:
    """The last of so many answers to the same request."""
    Run.create(logs, now=NOW, name=RUN).folder.rename(logs / RUN)
    app = create_app(name, logs=logs, now=NOW)
    method, path, query, body, more = asked
    headers = {"HTTP_X_TRIAL": f"{RUN}.p1.r1", **more}
    said = [_asked(app, method, path, query, body, headers) for _ in range(times)]
    app.extensions["ledger"].close()
    return said[-1]


EVENT = (
    b'{"summary": "Lunch", "start": {"dateTime": "2026-06-02T12:00:00Z"}, "end": {"dateTime": "2026-06-02T13:00:00Z"}}'
)
KEY = {"HTTP_IDEMPOTENCY_KEY": "k"}
REQUESTS = {
    "a search": ("search", "GET", "/search.json", "engine=google&q=web&num=2", b"", {}, "200 OK"),
    "a field said twice": ("search", "GET", "/search.json", "q=rome&q=web", b"", {}, "200 OK"),
    "quoted fields": ("weather", "GET", "/data/2.5/weather", "q=M%C3%BCnchen&units=metric&x=", b"", {}, "200 OK"),
    "bytes that are no text": ("weather", "GET", "/data/2.5/weather", "q=%FF", b"", {}, "404 NOT FOUND"),
    "a sum": ("calculator", "POST", "/calculate", "", b'{"expression": "1 + 2"}', KEY, "200 OK"),
    "no JSON": ("calculator", "POST", "/calculate", "", b"{", {}, "400 BAD REQUEST"),
    "half a surrogate pair": ("messaging", "POST", "/api/chat.postMessage", "", b'{"text": "\\ud800"}', {}, "400 BAD"),
    "a strange trial": ("search", "GET", "/search.json", "q=a", b"", {"HTTP_X_TRIAL": "x"}, "400 BAD REQUEST"),
    "an unknown run": ("search", "GET", "/search.json", "q=a", b"", {"HTTP_X_TRIAL": "x.p1.r1"}, "400 BAD REQUEST"),
    "a key that is too long": ("search", "GET", "/search.json", "q=a", b"", {"HTTP_IDEMPOTENCY_KEY": "k" * 201}, "400"),
    "an event": ("calendar", "POST", EVENTS, "", EVENT, KEY, "200 OK"),
    "its health": ("search", "GET", "/health", "", b"", {}, "200 OK"),
    "its tools": ("calendar", "GET", "/tools", "", b"", {}, "200 OK"),
    "no length of no body": ("search", "GET", "/search.json", "q=a", b"", {"CONTENT_LENGTH": None}, "200 OK"),
    "events": ("calendar", "GET", EVENTS, "timeMin=2026-06-01T00:00:00Z", b"", {}, "200 OK"),
    "another method": ("search", "POST", "/search.json", "q=a", b"", {}, "405 METHOD NOT ALLOWED"),
    "only the head": ("search", "HEAD", "/search.json", "q=a", b"", {}, "200 OK"),
    "another path": ("search", "GET", "/search.jso", "q=a", b"", {}, "404 NOT FOUND"),
    "two slashes": ("search", "GET", "//search.json", "q=a", b"", {}, "200 OK"),
    "a part of a path": ("calendar", "GET", f"{EVENTS}/x", "", b"", {}, "404 NOT FOUND"),
    "below a prefix": ("search", "GET", "/search.json", "q=a", b"", {"SCRIPT_NAME": "/a"}, "200 OK"),
    "too large": ("calculator", "POST", "/calculate", "", b" " * (BODY_MAX + 1), {}, "413 REQUEST ENTITY TOO LARGE"),
    "no length": ("calculator", "POST", "/calculate", "", b"{}", {"CONTENT_LENGTH": ""}, "400 BAD REQUEST"),
    "a strange length": ("calculator", "POST", "/calculate", "", b"{}", {"CONTENT_LENGTH": "-2"}, "400 BAD REQUEST"),
    "a client that has gone": ("calculator", "POST", "/calculate", "", b"{}", {"CONTENT_LENGTH": "9"}, "400 BAD"),
    "a socket for the web": (
        "search", "GET", "/search.json", "q=a", b"", {"HTTP_UPGRADE": "websocket", "HTTP_CONNECTION": "upgrade"}, "400",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REQUESTS)
@pytest.mark.parametrize("times", [1, 2])
def test_a_request_is_answered_and_a_repeated_one_from_the_ledger(tmp_path: Path, case: str, times: int) -> None:
    name, *asked, status = REQUESTS[case]
    line, headers, body = _last(tmp_path, name, *asked, times=times)
    assert line.startswith(status)
    assert asked[0] == "HEAD" or isinstance(json.loads(body), dict)
    assert ("Content-Type", "application/json") in headers
    assert (("Idempotency-Replayed", "true") in headers) is (times == 2 and asked[-1] is KEY)


def test_a_service_that_crashes_says_so_in_its_own_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chaoslab.flask_tools import app as services

    def broken(*_: Any) -> Any:
        raise KeyError("nothing there")

    monkeypatch.setattr(services, "_parse_body", broken)
    line, _, _ = _last(tmp_path, "search", "GET", "/search.json", "q=a", b"", {})
    assert line == "500 INTERNAL SERVER ERROR"
    log = (tmp_path / RUN / "search.log").read_text()
    assert "search failed at GET /search.json: KeyError: 'nothing there'" in log
