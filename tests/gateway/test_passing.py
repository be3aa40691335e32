"""A body that no fault can hit is passed on as it comes."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chaoslab.core.events import CallFinished, CallStarted, Effect
from tests.gateway.parts import history, standing
from tests.waiting import HUNG_S

FAULT = {"fault": "server_error", "target": "other"}


@contextmanager
def both_ends(logs: Path, kind: str, *, length: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A program's connection to the gateway, which has sent a head and "first", and the service's end."""
    with socket.create_server(("127.0.0.1", 0)) as service:
        at = f"http://127.0.0.1:{service.getsockname()[1]}"
        with standing(logs, [f"crm={at}", f"other={at}"], FAULT) as running:
            gateway = urlsplit(running.address)
            head = f"POST /crm/x HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}{length}\r\n"
            with socket.create_connection((gateway.hostname or "", gateway.port or 0), HUNG_S) as program:
                program.sendall(head.encode())
                program.sendall(b"5\r\nfirst\r\n" if "chunked" in length else b"first")
                line, _ = service.accept()
                with line:
                    line.settimeout(HUNG_S)
                    yield program, line


def read(line: socket.socket, until: bytes) -> bytes:
    got = b""
    while not got.endswith(until):
        part = line.recv(4096)
        assert part, got
        got += part
    return got


@pytest.mark.parametrize("kind", ["", "Content-Type: application/x-ndjson\r\n"])
@pytest.mark.parametrize("length", ["Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n"])
def test_both_sides_speak_at_once(kind: str, length: str, tmp_path: Path) -> None:
    with both_ends(tmp_path, kind, length=length) as (program, line):
        read(line, b"first" if "9" in length else b"first\r\n")
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhi")
        assert read(program, b"hi").startswith(b"HTTP/1.1 200 OK")
        program.sendall(b"last" if "9" in length else b"4\r\nlast\r\n0\r\n\r\n")
        read(line, b"last" if "9" in length else b"0\r\n\r\n")
        line.sendall(b"!!")
        read(program, b"!!")
    assert [event.status for _, event in history(tmp_path).find_events(CallFinished)] == [200]


def test_an_early_refusal_of_a_slow_upload_arrives(tmp_path: Path) -> None:
    with both_ends(tmp_path, "", length="Content-Length: 9000000\r\n") as (program, line):
        read(line, b"first")
        line.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        line.shutdown(socket.SHUT_WR)
        assert read(program, b"no").startswith(b"HTTP/1.1 401 Unauthorized")
    assert [event.status for _, event in history(tmp_path).find_events(CallFinished)] == [401]


def test_a_body_that_was_passed_on_is_noted_whole(tmp_path: Path) -> None:
    with both_ends(tmp_path, "Content-Type: text/plain\r\n", length="Content-Length: 9\r\n") as (program, line):
        read(line, b"first")
        program.sendall(b"last")
        read(line, b"last")
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        read(program, b"ok")
    found = history(tmp_path)
    assert [event.arguments for _, event in found.find_events(CallStarted)] == [{"body": "firstlast"}]
    assert [event.effect for _, event in found.find_events(Effect)] == ["POST /x"]


def test_an_upload_that_goes_wrong_is_answered_in_a_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with both_ends(tmp_path, "", length="Transfer-Encoding: chunked\r\n") as (program, line):
        read(line, b"first\r\n")
        program.sendall(b"zz\r\n")
        said = read(program, b"}")
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.endswith(b'{"error": "this is no HTTP/1.1: Invalid character in chunk size"}')
    assert caplog.text == ""


def test_an_upload_that_breaks_off_breaks_off_at_its_service_too(tmp_path: Path) -> None:
    with both_ends(tmp_path, "", length="Content-Length: 9\r\n") as (program, line):
        read(line, b"first")
        program.close()
        assert line.recv(4096) == b""
    assert list(history(tmp_path).find_events(CallStarted)) == []
