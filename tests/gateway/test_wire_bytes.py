"""Faults of bytes at a gateway: over real sockets the bytes arrive as the fault's page says."""

import itertools
import socket
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from chaoslab.core.events import CallFinished, FaultWitnessed
from tests.gateway.parts import history, on_loopback, standing

TEXT = "Das Café, 北京 🌍. ".encode() * 12
KINDS = {
    "/whole": ("application/json", [TEXT], True),
    "/events": ("text/event-stream", [b"data: " + TEXT + b"\n\n"], False),
    "/lines": ("application/x-ndjson", [b'"' + TEXT + b'"\n'], False),
}


def service(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    kind, parts, measured = KINDS[environ["PATH_INFO"]]
    fields = [("Content-Type", kind), ("Date", "Thu, 01 Jan 1970 00:00:00 GMT"), ("Server", "test")]
    length = [("Content-Length", str(sum(map(len, parts))))] if measured else []
    start_response("200 OK", fields + length)
    return parts if measured else iter(parts)


def taken(address: str, path: str, version: str = "1.1") -> tuple[list[tuple[float, bytes]], float]:
    """The pieces that a client takes, with the seconds since its request, and the moment of the end."""
    host, _, port = address.removeprefix("http://").partition(":")
    began_s, pieces = monotonic(), []
    with socket.create_connection((host, int(port)), timeout=20) as line:
        line.sendall(f"GET /s{path} HTTP/{version}\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
        while piece := line.recv(65536):
            pieces.append((monotonic() - began_s, piece))
    return pieces, monotonic() - began_s


def met(tmp_path: Path, path: str, fault: str, **given: Any) -> tuple[bytes, list[tuple[float, bytes]], float]:
    """The whole answer, and the pieces of one that meets the fault and their end."""
    hits = {"fault": fault, "target": "s", "calls": [2], **given}
    with on_loopback(service) as url, standing(tmp_path, [f"s={url}"], hits) as there:
        # Another request than the first, so that the second is no attempt at the first.
        whole = b"".join(piece for _, piece in taken(there.address, f"{path}?first=1")[0])
        pieces, ended_s = taken(there.address, path)
    assert [event.fault for _, event in history(tmp_path).find_events(FaultWitnessed)] == [fault]
    return whole, pieces, ended_s


@pytest.mark.parametrize("path", KINDS)
def test_a_slicer_sends_pieces_of_which_some_end_within_a_character(path: str, tmp_path: Path) -> None:
    def comes_apart(logs: Path) -> bool:
        """False: a busy machine took pieces together."""
        whole, pieces, ended_s = met(logs, path, "slicer", average_bytes=20, variation_bytes=0, pause_s=0.02)
        assert b"".join(piece for _, piece in pieces) == whole
        assert ended_s >= len(whole) / 20 * 0.02
        head = len(whole) - len(whole.partition(b"\r\n\r\n")[2])
        ends = list(itertools.accumulate(len(piece) for _, piece in pieces))[:-1]
        return len(pieces) > 10 and any(end > head and whole[end] & 0xC0 == 0x80 for end in ends)

    assert any(comes_apart(tmp_path / str(n)) for n in range(30))


@pytest.mark.parametrize("path", KINDS)
def test_a_slow_line_trickles(path: str, tmp_path: Path) -> None:
    def trickles(logs: Path) -> bool:
        """False: a busy machine took what had come together."""
        whole, pieces, _ = met(logs, path, "bandwidth", rate_kb_s=1)
        assert b"".join(piece for _, piece in pieces) == whole
        came = 0
        for at_s, piece in pieces:
            came += len(piece)
            assert came / 1000 <= at_s + 0.002
        return len(pieces) > 2

    assert any(trickles(tmp_path / str(n)) for n in range(30))


@pytest.mark.parametrize("path", KINDS)
@pytest.mark.parametrize(("fault", "delay_s"), [("limit_data", 0.0), ("slow_close", 0.3)])
def test_exactly_so_many_bytes_come_and_then_the_end(fault: str, delay_s: float, path: str, tmp_path: Path) -> None:
    given = {"delay_s": delay_s} if delay_s else {}
    whole, pieces, ended_s = met(tmp_path, path, fault, bytes=200, **given)
    assert b"".join(piece for _, piece in pieces) == whole[:200]
    assert ended_s >= delay_s
    (_, _), (_, last) = history(tmp_path).find_events(CallFinished)
    assert (last.bytes, last.ok, last.error) == (200, False, "closed")


def test_where_no_length_tells_of_the_end_the_end_is_late_too(tmp_path: Path) -> None:
    late = {"fault": "slow_close", "target": "s", "delay_s": 0.3, "bytes": 10**6}
    with on_loopback(service) as url, standing(tmp_path, [f"s={url}"], late) as there:
        pieces, ended_s = taken(there.address, "/events", "1.0")
    assert b"".join(piece for _, piece in pieces).endswith(TEXT + b"\n\n")
    assert ended_s >= 0.3  # not from the last piece on, which a busy machine may take late


def test_the_log_has_as_much_of_the_body_as_came(tmp_path: Path) -> None:
    whole, _, _ = met(tmp_path, "/lines", "limit_data", bytes=300)
    (_, _), (_, last) = history(tmp_path).find_events(CallFinished)
    chunk = whole[:300].partition(b"\r\n\r\n")[2].partition(b"\r\n")[2]
    assert len(chunk) > 100
    assert (last.status, last.reply) == (200, chunk.decode("utf-8", "replace"))
