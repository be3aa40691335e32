"""A service on the virtual network answers as under waitress: the same bytes to both, the answers compared."""

import contextlib
import logging
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from waitress.server import create_server

import chaoslab as lab
from chaoslab.core.events import CallFinished
from chaoslab.worlds.virtual.network._sockets import VirtualSocket
from chaoslab.worlds.virtual.network.serving import serve_application
from chaoslab.worlds.virtual.world import World

SILENCE_S = 0.4
"""After which a connection on which nothing comes is taken to be kept."""
HEAD = b" HTTP/1.1\r\nHost: x\r\n"


class FailsLast:
    """The parts of an answer whose end fails."""

    def __iter__(self) -> Iterator[bytes]:
        return iter((b"ok",))

    def close(self) -> None:
        raise RuntimeError("it fails when all is said")


def service(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    plain = ("Content-Type", "text/plain")
    if path == "/fails":
        raise ValueError("it fails")
    if path == "/lost":
        raise ConnectionRefusedError("its database is gone")
    if path == "/exits":
        sys.exit("it has had enough")
    if path == "/fails-late":
        start_response("200 OK", [plain])
        return fails_late()
    if path == "/breaks-off":
        start_response("200 OK", [plain, ("Content-Length", "10")])
        return fails_late()
    if path == "/fails-empty":
        start_response("200 OK", [plain, ("Content-Length", "10")])
        return fails_late(b"")
    if path == "/silent":
        return [b"it never began"]
    if path == "/fails-last":
        start_response("200 OK", [plain, ("Content-Length", "2")])
        return FailsLast()
    if path == "/empty":
        start_response("204 No Content", [])
        return []
    if path == "/stream":
        start_response("200 OK", [plain])
        return iter([b"one,", b"two,", b"three"])
    if path == "/teapot":
        start_response("299 Mostly OK", [plain, ("Content-Length", "0"), ("X-Twice", "a"), ("X-Twice", "b")])
        return []
    if path == "/long":
        start_response("200 OK", [plain, ("Content-Length", "2")])
        return [b"abc"]
    if path == "/short":
        start_response("200 OK", [plain, ("Content-Length", "10")])
        return [b"abc"]
    said = "|".join(
        [environ["REQUEST_METHOD"], path, environ["QUERY_STRING"], environ.get("HTTP_X_ASKED", "-")]
    ).encode()
    said += b"|" + environ["wsgi.input"].read()
    start_response("200 OK", [plain, ("Content-Length", str(len(said)))])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [said]


def fails_late(first: bytes = b"one") -> Iterator[bytes]:
    yield first
    raise ValueError("too late to say so")


@dataclass(frozen=True)
class Answer:
    """One answer as a client reads it: what a body says that is the server's own word is left out."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def read(said: bytes, *, to_head: bool) -> list[Answer]:
    """The answers in a stream of bytes; one that is cut short ends in dots."""
    found = []
    while said:
        head, _, said = said.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = sorted((name.lower(), value) for name, _, value in (line.partition(": ") for line in lines))
        status, fields = int(first.split()[1]), dict(headers)
        if "transfer-encoding" in fields:
            body, said = _unchunked(said)
        else:
            size = 0 if to_head else int(fields.get("content-length", 0))
            body, said = said[:size] + (b"" if len(said) >= size else b"..."), said[size:]
        own = status >= 400
        shown = tuple((k, v.lower()) for k, v in headers if k != "date" and not (own and k.startswith("content-")))
        found.append(Answer(status, shown, b"" if own else body))
    return found


def _unchunked(said: bytes) -> tuple[bytes, bytes]:
    body = b""
    while match := re.match(rb"([0-9a-fA-F]+)\r\n", said):
        size = int(match[1], 16)
        body += said[match.end() :][:size]
        said = said[match.end() + size + 2 :]
        if not size:
            return body, said
    return body + b"...", b""


def ask(sock: Any, words: tuple[bytes, ...]) -> tuple[bytes, str]:
    """All that comes back, and whether the connection is kept then."""
    sock.settimeout(SILENCE_S)
    heard = b""
    for word in words:
        sock.sendall(word)
    try:
        while data := sock.recv(65536):
            heard += data
    except TimeoutError:
        return heard, "kept"
    except ConnectionResetError:
        pass
    finally:
        sock.close()
    return heard, "closed"


@pytest.fixture(scope="module")
def waitress() -> Iterator[int]:
    """The service under waitress; its port."""
    logging.getLogger("waitress").setLevel(logging.CRITICAL)
    server: Any = create_server(service, host="127.0.0.1", port=0, threads=4, ident=None)

    def run() -> None:
        with contextlib.suppress(OSError):
            server.run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield server.effective_port
    finally:
        server.pull_trigger()
        server.close()
        server.task_dispatcher.shutdown()
        thread.join(5)


def virtually(words: tuple[bytes, ...]) -> tuple[bytes, str]:
    world = World(1, now=datetime(2026, 6, 1, tzinfo=UTC))

    def first() -> tuple[bytes, str]:
        serve_application(world.network, "service", 80, service)
        sock = VirtualSocket()
        sock.connect((world.network.find_address("service"), 80))
        return ask(sock, words)

    return world.run_program(first)


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
ASKS = {
    "a GET": (b"GET /a%20b?q=%31&r" + HEAD + b"\r\n",),
    "a header said twice": (b"GET /" + HEAD + b"X-Asked: 1\r\nx-asked: 2\r\n\r\n",),
    "a HEAD": (b"HEAD /a" + HEAD + b"\r\n",),
    "a DELETE with a body": (b"DELETE /a" + HEAD + b"Content-Length: 2\r\n\r\nhi",),
    "a status of its own": (b"GET /teapot" + HEAD + b"\r\n",),
    "an answer in parts": (b"GET /stream" + HEAD + b"\r\n",),
    "an upload in chunks": (b"POST /a" + HEAD + CHUNKED, b"3\r\nabc\r\n2\r\nd", b"e\r\n0\r\n\r\n"),
    "an upload in pieces": (b"POST /a" + HEAD + b"Content-Le", b"ngth: 6\r\n\r\nab", b"cdef"),
    "asked first": (b"POST /a" + HEAD + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n",),
    "asked first, and sent": (b"POST /a" + HEAD + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n", b"abc"),
    "three at once": (
        b"GET /1" + HEAD + b"\r\nGET /2" + HEAD + b"\r\nPOST /3" + HEAD + b"Content-Length: 2\r\n\r\nhi",
    ),
    "one more after the last": (b"GET /1" + HEAD + b"Connection: close\r\n\r\nGET /2" + HEAD + b"\r\n",),
    "a handler that fails": (b"GET /fails" + HEAD + b"\r\n",),
    "a handler that cannot reach what it needs": (b"GET /lost" + HEAD + b"\r\n",),
    "a handler that fails in the middle": (b"GET /fails-late" + HEAD + b"\r\n",),
    "a handler that fails in the middle of what it promised": (b"GET /breaks-off" + HEAD + b"\r\n",),
    "a handler that fails behind an empty part": (b"GET /fails-empty" + HEAD + b"\r\n",),
    "a handler that fails when all is said": (b"GET /fails-last" + HEAD + b"\r\n",),
    "a handler that never begins": (b"GET /silent" + HEAD + b"\r\n",),
    "more than was promised": (b"GET /long" + HEAD + b"\r\n",),
    "less than was promised": (b"GET /short" + HEAD + b"\r\n",),
    "a header too long": (b"GET /" + HEAD + b"X: " + b"y" * 400_000 + b"\r\n\r\n",),
    "the last one": (b"GET /a" + HEAD + b"Connection: close\r\n\r\n",),
    "HTTP/1.0": (b"GET /a HTTP/1.0\r\n\r\n",),
    "no HTTP": (b"NONSENSE\r\n\r\n",),
}


@pytest.mark.parametrize("words", ASKS.values(), ids=ASKS)
def test_a_service_answers_as_under_waitress(waitress: int, words: tuple[bytes, ...]) -> None:
    to_head = words[0].startswith(b"HEAD")
    over_loopback, then = ask(socket.create_connection(("127.0.0.1", waitress), 5), words)
    heard, virtually_then = virtually(words)
    assert (read(heard, to_head=to_head), virtually_then) == (read(over_loopback, to_head=to_head), then)


def test_an_answer_without_a_body_keeps_its_connection() -> None:
    """As the lab's own services do (flask_tools/serving.py), unlike waitress.

    Its end would end a silence on the way there too early.
    """
    heard, then = virtually((b"GET /empty" + HEAD + b"\r\n",))
    assert (read(heard, to_head=False), then) == ([Answer(status=204, headers=(), body=b"")], "kept")


def test_an_application_that_exits_has_failed_and_the_run_goes_on() -> None:
    """Under waitress whoever asked would wait for ever."""
    heard, then = virtually((b"GET /exits" + HEAD + b"\r\n",))
    assert ([answer.status for answer in read(heard, to_head=False)], then) == ([500], "closed")


def test_two_answers_that_come_at_once_are_read_apart() -> None:
    def shop(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        body = b'{"n": %d}' % len(environ["PATH_INFO"])
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def agent(_: str) -> str:
        with socket.create_connection(("shop", 80)) as sock:
            sock.sendall(b"".join(b"GET %s HTTP/1.1\r\nHost: shop\r\n\r\n" % path for path in (b"/a", b"/bcd")))
            time.sleep(1)  # both are there
            return str(sock.recv(9999).count(b"200 OK"))

    trial = lab.run(agent, "go", services={"shop": shop})
    assert trial.answer == "2"
    assert [event.reply for _, event in trial.history.find_events(CallFinished)] == ['{"n": 2}', '{"n": 4}']
