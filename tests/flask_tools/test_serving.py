"""The services as a process: they take any nonsense politely, and end at once when they are told to."""

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from chaoslab.config.topology import Ports
from tests import warm
from tests.cli_parts import free_base
from tests.waiting import DEADLINE_S

BIG = 1_000_000
HUGE = 1_000_000_000
HEADER_MAX = 262_144


@contextlib.contextmanager
def services(logs: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], Ports]]:
    base = free_base()
    command = [
        warm.python(),
        "-m",
        "chaoslab",
        "tools",
        *words,
        "--base-port",
        str(base),
        "--logs",
        str(logs),
        "--lifeline",
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with process:
        try:
            assert _out(process).readline().startswith("ready: ")
            yield process, Ports(base)
        finally:
            process.kill()


def _out(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def talk(port: int, data: bytes) -> bytes:
    """All bytes that come back over a bare connection until the service closes it."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def peak_kb(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmHWM")))


def post(port: int, size: int, *, chunked: bool = False) -> tuple[int, Any]:
    """A body of that many bytes, sent to its end before the answer is read, as most clients do."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        block = b"x" * min(size, BIG)
        body = (block for _ in range(size // len(block)))
        headers = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(size)}
        connection.request("POST", "/api/chat.postMessage", body, headers, encode_chunked=chunked)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_is_refused_in_the_services_words_and_kept_nowhere(tmp_path: Path, chunked: bool) -> None:
    with services(tmp_path, "messaging") as (process, ports):
        port = ports.get_service_port("messaging")
        assert post(port, BIG, chunked=chunked)[0] == 413
        before = peak_kb(process.pid) if sys.platform == "linux" else 0
        status, said = post(port, HUGE // 5, chunked=chunked)
        assert (status, said["ok"], said["error"]) == (413, False, "request_too_large")
        assert sys.platform != "linux" or peak_kb(process.pid) - before < 20_000


def test_who_asks_before_sending_a_huge_body_is_refused_before(tmp_path: Path) -> None:
    with services(tmp_path, "messaging") as (_, ports):
        head = (
            f"POST /api/chat.postMessage HTTP/1.1\r\nHost: x\r\nContent-Length: {HUGE}\r\nExpect: 100-continue\r\n\r\n"
        )
        answer = talk(ports.get_service_port("messaging"), head.encode())
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert json.loads(answer.split(b"\r\n\r\n")[1])["error"] == "request_too_large"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX Y: 1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: ".ljust(HEADER_MAX, b"y"), 431),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
    ],
)
def test_what_is_not_http_is_answered_in_json(tmp_path: Path, data: bytes, status: int) -> None:
    with services(tmp_path, "calculator") as (_, ports):
        head, body = talk(ports.get_service_port("calculator"), data).split(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert b"Content-Type: application/json" in head
    assert json.loads(body)["error"].keys() == {"type", "message"}


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "lifeline"])
def test_it_ends_at_once_though_a_connection_is_open(tmp_path: Path, how: str) -> None:
    with services(tmp_path, "calculator", "calendar") as (process, ports):
        open_one = http.client.HTTPConnection("127.0.0.1", ports.get_service_port("calculator"), timeout=10)
        with contextlib.closing(open_one):
            open_one.request("GET", "/health")
            assert json.loads(open_one.getresponse().read())["status"] == "ok"
            if how == "lifeline":
                assert process.stdin is not None
                process.stdin.close()
            else:
                process.send_signal(signal.Signals[how])
            # Less than the 120 s after which waitress closes an idle connection by itself.
            assert process.wait(DEADLINE_S) == 0
        assert _out(process).read() == ""


def test_each_request_but_health_is_printed_on_request(tmp_path: Path) -> None:
    with services(tmp_path, "calculator", "--verbose") as (process, ports):
        for path, headers in (("/health", {}), ("/calculate", {}), ("/tools", {"X-Trial": "r.p1.r1"})):
            request = urllib.request.Request(f"http://127.0.0.1:{ports.get_service_port('calculator')}{path}")
            request.headers.update(headers)
            with contextlib.suppress(urllib.error.HTTPError):
                urllib.request.urlopen(request, timeout=10).close()
        process.terminate()
        assert _out(process).read() == "GET /calculate 405  no trial\nGET /tools 200  r.p1.r1\n"


@pytest.mark.parametrize("asked_to_close", [False, True])
def test_an_answer_without_a_body_keeps_its_connection(tmp_path: Path, asked_to_close: bool) -> None:
    """A toxic that swallows the answer would else be cut short by the service's own end."""
    with services(tmp_path, "calendar") as (_, ports):
        connection = http.client.HTTPConnection("127.0.0.1", ports.get_service_port("calendar"), timeout=10)
        with contextlib.closing(connection):
            connection.request("GET", "/calendar/v3/calendars/primary/events")
            event = json.loads(connection.getresponse().read())["items"][0]["id"]
            socket_used = connection.sock
            headers = {"Connection": "close"} if asked_to_close else {}
            connection.request("DELETE", f"/calendar/v3/calendars/primary/events/{event}", headers=headers)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (204, b"")
            assert (answer.getheader("Connection") == "close") == asked_to_close
            assert answer.getheader("Content-Length") is None
            connection.request("GET", "/health")
            assert connection.getresponse().status == 200
            assert (connection.sock is socket_used) != asked_to_close
