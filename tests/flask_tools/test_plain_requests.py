"""A plain request is answered as Flask answers it, byte by byte; all others are Flask's."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

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


def _both(logs: Path, monkeypatch: pytest.MonkeyPatch, name: str, *asked: Any, times: int = 1) -> tuple[Said, int]:
    """The last answer, which is Flask's own too, and the number of requests that Flask saw."""
    found: list[Said] = []
    seen = 0
    real = Flask.wsgi_app

    def counted(self: Flask, environ: Any, start_response: Any) -> Any:
        nonlocal seen
        seen += 1
        return real(self, environ, start_response)

    monkeypatch.setattr(Flask, "wsgi_app", counted)
    for folder in (logs / "plain", logs / "flask"):
        folder.mkdir()
        monkeypatch.chdir(folder)  # an error may name the folder of the logs
        Run.create(Path("logs"), now=NOW, name=RUN).folder.rename(f"logs/{RUN}")
        app = create_app(name, logs=Path("logs"), now=NOW)
        wsgi = app.wsgi_app if folder.name == "plain" else real.__get__(app)
        method, path, query, body, more = asked
        headers = {"HTTP_X_TRIAL": f"{RUN}.p1.r1", **more}
        said = [_asked(wsgi, method, path, query, body, headers) for _ in range(times)]
        found.append(said[-1])
        app.extensions["ledger"].close()
    assert found[0] == found[1]
    return found[0], seen


EVENT = (
    b'{"summary": "Lunch", "start": {"dateTime": "2026-06-02T12:00:00Z"}, "end": {"dateTime": "2026-06-02T13:00:00Z"}}'
)
KEY = {"HTTP_IDEMPOTENCY_KEY": "k"}
PLAIN = {
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
}


@pytest.mark.parametrize("case", PLAIN)
@pytest.mark.parametrize("times", [1, 2])
def test_a_plain_request_is_answered_as_flask_answers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, times: int
) -> None:
    name, *asked, status = PLAIN[case]
    (line, headers, _), seen = _both(tmp_path, monkeypatch, name, *asked, times=times)
    assert line.startswith(status)
    assert seen == 0
    assert (("Idempotency-Replayed", "true") in headers) is (times == 2 and asked[-1] is KEY)


ODD = {
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


@pytest.mark.parametrize("case", ODD)
def test_any_other_request_is_flasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    name, *asked, status = ODD[case]
    (line, _, _), seen = _both(tmp_path, monkeypatch, name, *asked)
    assert line.startswith(status)
    assert seen == 1


def test_flask_sees_all_when_it_has_more_to_do(tmp_path: Path) -> None:
    app = create_app("search", logs=tmp_path, now=NOW)
    paths: list[str] = []

    def note(response: Any) -> Any:
        from flask import request

        paths.append(request.path)
        return response

    app.after_request(note)
    _asked(app.wsgi_app, "GET", "/search.json", "q=a", b"", {})
    assert paths == ["/search.json"]
    app.extensions["ledger"].close()


def test_a_service_that_crashes_says_so_in_its_own_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chaoslab.flask_tools import app as services

    def broken(*_: Any) -> Any:
        raise KeyError("nothing there")

    monkeypatch.setattr(services, "_body", broken)
    (line, _, _), seen = _both(tmp_path, monkeypatch, "search", "GET", "/search.json", "q=a", b"", {})
    assert line == "500 INTERNAL SERVER ERROR"
    assert seen == 0
    for log in (f"plain/logs/{RUN}/search.log", f"flask/logs/{RUN}/search.log"):
        assert "search failed at GET /search.json: KeyError: 'nothing there'" in (tmp_path / log).read_text()


def test_a_service_loads_flask_at_the_first_request_that_is_not_plain(tmp_path: Path) -> None:
    program = f"""
import io, sys
from pathlib import Path
from chaoslab.flask_tools.app import ServiceApp, ServiceModule
from chaoslab.flask_tools.ledger import Folders

def asked(app, method, path):
    app({{"REQUEST_METHOD": method, "PATH_INFO": path, "SERVER_NAME": "x", "SERVER_PORT": "80",
         "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(), "wsgi.errors": sys.stderr}}, lambda *_: None)
    return "flask" in sys.modules

for name in ("search", "calendar"):
    app = ServiceApp(ServiceModule.load(name), Folders(Path({str(tmp_path)!r}), {NOW!r}))
    app.tell = lambda *told: print(*told)
    app.ready()
    print(asked(app, "GET", "/health"), asked(app, "GET", "/search.json"), asked(app, "DELETE", "/nowhere"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "GET /health 200 False None",
        "GET /search.json 400 False None",
        "DELETE /nowhere 404 False None",
        "False False True",
        "GET /health 200 False None",
        "GET /search.json 404 False None",
        "DELETE /nowhere 404 False None",
        "True True True",
    ]
