"""All exchanges share one thread, and those that no fault can hit look like all others."""

import asyncio
import errno
import gc
import os
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from weakref import ref

import httpx
import pytest
from aiohttp import StreamReader

from chaoslab.core.events import CallFinished, CallStarted, Effect
from chaoslab.core.exchange import Failure
from chaoslab.record.log import LogLost
from chaoslab.seams.gateway._connection import Exchange
from chaoslab.seams.gateway._upstream import (
    ServiceAnswer,
    Upstream,
    build_request_head,
    describe_os_error,
    describe_tls_error,
    get_first_line,
)
from chaoslab.seams.gateway.engine import run_gateway
from chaoslab.seams.gateway.routes import GatewayRoute
from chaoslab.wire.http1 import CHUNKED
from tests.gateway.parts import history, shop, standing
from tests.seams.lab_parts import eventually
from tests.told import in_a_loop
from tests.waiting import DEADLINE_S

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GET = b"GET /crm/x HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /crm/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"


class Last(bytes):
    """An answer after which the service ends the connection."""


class Scripted:
    """A service that answers the requests of all connections in order with these bytes; None ends the connection."""

    def __init__(self, answers: Sequence[bytes | None]) -> None:
        self.answers = list(answers)
        self.asked: list[bytes] = []
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.route = f"crm=http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line:
            while data := line.recv(1 << 20):
                self.asked.append(data)
                answer = self.answers.pop(0)
                if answer is None:
                    return
                if answer:
                    line.sendall(answer)
                if isinstance(answer, Last):
                    return


@contextmanager
def scripted(logs: Path, *answers: bytes | None, timeout_s: float = 20.0) -> Iterator[tuple[Scripted, Any]]:
    """A service, and a connection to the gateway before it, over which one request was answered already."""
    service = Scripted([OK, *answers])
    with (
        service.listener,
        standing(logs, [service.route], timeout_s=timeout_s) as running,
        socket.create_connection(("127.0.0.1", int(running.address.rpartition(":")[2].rstrip("/"))), 20) as line,
    ):
        assert asked(line, GET).endswith(b"ok")
        yield service, line
        line.shutdown(socket.SHUT_RDWR)
        service.listener.shutdown(socket.SHUT_RDWR)


def asked(line: socket.socket, request: bytes, answers: int = 1) -> bytes:
    """The bytes of that many answers, each of which states its length, or those up to the end of the connection."""
    line.sendall(request)
    data = b""
    while data.count(b"\r\n\r\n") < answers or len(data) < _whole(data):
        part = line.recv(1 << 20)
        if not part:
            break
        data += part
    return data


def _whole(data: bytes) -> int:
    head, _, _ = data.rpartition(b"\r\n\r\n")
    length = head.lower().rpartition(b"content-length: ")[2].partition(b"\r\n")[0]
    return len(head) + 4 + int(length)


def test_one_connection_has_answers_to_head_between_others(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    with scripted(tmp_path, head, OK, head, head, OK) as (service, line):
        for method, end in (b"HEAD", b"\r\n\r\n"), (b"GET", b"ok"), (b"HEAD", b"\r\n\r\n"), (b"HEAD", b"\r\n\r\n"):
            line.sendall(GET.replace(b"GET", method))
            answer = b""
            while not answer.endswith(end):
                answer += line.recv(1000)
            assert answer.startswith(b"HTTP/1.1 200 OK")
        assert asked(line, POST).endswith(b"ok")
        assert service.connections == 1


def ends(logs: Path) -> list[tuple[Any, ...]]:
    return [(end.ok, end.status, end.error, end.via, end.reply) for _, end in history(logs).find_events(CallFinished)]


def traffic(logs: Path, server: Any) -> list[str]:
    """The lines of some requests."""
    server.asked = 0
    secret = {"Authorization": "Bearer sk-of-a-user"}
    with (
        standing(logs, [f"crm={server.url}"]) as running,
        httpx.Client(base_url=running.make_route_url("crm")) as client,
    ):
        client.get("/price/1")
        client.get("/price/1?page=2&key=query-of-a-user", headers=secret)
        client.get("/price/1")
        client.head("/price/ü")
        client.post("/refunds", json={"order": 17, "why": "“broken”\n"}, headers={"Idempotency-Key": "k1"})
        client.post("/refunds", json={"order": 17, "why": "“broken”\n"}, headers={"Idempotency-Key": "k1"})
        client.put("/refunds", content=b"\x00\xff not JSON")
        client.post("/refunds", data={"order": "17"})
        client.get("/stream")
        client.get("/once")
        client.get("/dies", headers={"x-stainless-retry-count": "0"})
        client.get("/dies", headers={"x-stainless-retry-count": "1"})
        client.get("/price/1")
    lines = (logs / "latest" / "info.log").read_text().splitlines()
    assert not any("of-a-user" in line for line in lines)
    return lines


MEASURED = {"t", "ts", "run", "duration_s", "first_byte_s", "last_byte_s", "now", "start_time", "end_time", "settings"}


def test_the_same_requests_write_the_same_lines(server: Any, tmp_path: Path) -> None:
    import json

    def told(logs: Path) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in traffic(logs, server)]
        assert [each["seq"] for each in found] == list(range(1, len(found) + 1))
        assert len({each["request_id"] for each in found if each.get("request_id")}) >= 10
        assert [each["client_retry"] for each in found if "client_retry" in each] == [1]
        for each in found:
            if "bytes" in each:  # the service's Date, and its echo of the gateway's own port
                each["reply"] = each["reply"][:30]
        shown = [{name: value for name, value in each.items() if name not in MEASURED} for each in found]
        for each in shown:  # an id holds the run's name
            each.pop("request_id", None) if each["kind"] != "effect" else None
        return shown

    assert told(tmp_path / "one") == told(tmp_path / "other")


@pytest.mark.parametrize("fault", [None, {"fault": "latency", "target": "crm", "delay_s": 0.01}])
def test_connections_have_no_thread(fault: dict[str, Any] | None, server: Any, tmp_path: Path) -> None:
    with standing(tmp_path, [f"crm={server.url}"], *([fault] if fault else [])) as running:
        clients = [httpx.Client(base_url=running.make_route_url("crm")) for _ in range(8)]
        assert {client.get("/price/1").status_code for client in clients} == {200}
        assert [each.name for each in threading.enumerate()].count("gateway") == 1
        for client in clients:
            client.close()


def test_a_request_in_pieces_and_two_at_once_are_answered_in_order(tmp_path: Path) -> None:
    with scripted(tmp_path, OK, OK, OK.replace(b"ok", b"no")) as (service, line):
        for piece in (POST[:9], POST[9:40], POST[40:-1]):
            line.sendall(piece)
        assert asked(line, POST[-1:]).endswith(b"ok")
        both = asked(line, GET + POST, 2)
        assert (both.count(b"200 OK"), both[-2:]) == (2, b"no")
    assert [each.split(b" ")[0] for each in service.asked] == [b"GET", b"POST", b"GET", b"POST"]
    assert service.asked[1].endswith(b"\r\n\r\n{}")
    assert service.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 2\r\n\r\nok",
    ],
    ids=["chunks", "hints", "closes", "events"],
)
def test_an_answer_of_another_form_passes_and_the_next_is_right(answer: bytes, tmp_path: Path) -> None:
    with scripted(tmp_path, answer, OK, OK) as (_, line):
        line.sendall(GET)
        data = b""
        while not data.endswith((b"ok", b"ok\r\n0\r\n\r\n")):
            data += line.recv(4096)
        assert data.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"close" not in data
        assert asked(line, GET).endswith(b"ok")
        assert asked(line, POST).endswith(b"ok")
    assert ends(tmp_path) == [(True, 200, None, "service", "ok")] * 4


@pytest.mark.parametrize("size", [200_000, 5_000_000])
def test_a_large_answer_passes_whole_to_a_client_that_reads_it_late(size: int, tmp_path: Path) -> None:
    large = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (size, b"x" * size)
    with scripted(tmp_path, large, OK) as (_, line):
        assert len(asked(line, GET)) > size
        assert asked(line, GET).endswith(b"ok")
    assert [end[:2] for end in ends(tmp_path)] == [(True, 200)] * 3


def test_a_client_that_takes_no_bytes_holds_up_nobody(tmp_path: Path) -> None:
    size = 100_000
    large = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (size, b"x" * size)
    with scripted(tmp_path, *[large] * 100, OK) as (service, line):
        line.sendall(GET * 100)  # and reads nothing
        eventually(lambda: len(service.asked) > 10)
        while len(service.asked) < 101:
            assert line.recv(1 << 20)
        with socket.create_connection(line.getpeername(), 20) as other:
            assert asked(other, GET).endswith(b"ok")


@pytest.mark.parametrize(
    ("request_", "answers", "status", "sent"), [(GET, [None, OK], b"200 OK", 3), (POST, [None, OK], b"502 Bad", 2)]
)
def test_a_service_that_breaks_off_is_asked_again_only_if_it_may_be(
    request_: bytes, answers: list[bytes | None], status: bytes, sent: int, tmp_path: Path
) -> None:
    with scripted(tmp_path, *answers) as (service, line):
        assert status in asked(line, request_)
        assert len(service.asked) == sent


def test_a_service_that_closes_after_each_answer_without_saying_so_is_asked_anew(tmp_path: Path) -> None:
    with scripted(tmp_path, *[Last(OK)] * 101) as (service, line):
        assert asked(line, GET)[-2:] == b"ok"
        assert asked(line, GET)[-2:] == b"ok"  # which tells that the service closes
        assert [asked(line, POST)[-2:] for _ in range(99)] == [b"ok"] * 99
        assert service.connections == 101


@pytest.mark.parametrize(
    "request_", [b"GET /crm/x HTTP/1.0\r\n\r\n", b"GET /crm/x HTTP/1.0\r\nHost: localhost\r\n\r\n"]
)
def test_an_old_client_is_answered_without_chunks(request_: bytes, tmp_path: Path) -> None:
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    with scripted(tmp_path, chunks) as (_, line):
        line.sendall(request_)
        assert b"".join(iter(lambda: line.recv(4096), b"")).endswith(b"\r\n\r\nok")


@pytest.mark.parametrize(
    "request_",
    [
        POST.replace(b"Length: 2", b"Length: 2, 2"),
        POST.replace(b"Length: 2", b"Length: 2\r\nContent-Length: 0"),
        POST.replace(b"Length: 2", b"Length: -3"),
        POST.replace(b"Length: 2", b"Length: " + b"9" * 5000),
        POST.replace(b"Length: 2\r\n\r\n{}", b"Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        POST.replace(b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        POST.replace(b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n-5\r\n"),
        POST.replace(b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: gzip\r\n\r\n"),
        POST.replace(b"Host: localhost", b"Host: localhost\r\nHost: localhost"),
        POST.replace(b"Host: localhost", b"Host: localhost\r\nX-A: b\r\n folded"),
        POST.replace(b"Host: localhost\r\n", b""),
        GET.replace(b"Host: localhost", b"Host 127.0.0.1"),
        GET.replace(b"Host: localhost", b"Host: localhost\r\nX-A: 1\nX-B: 2"),
        b"hello there\r\n\r\n\r\n",
    ],
)
def test_a_head_that_no_two_readers_need_read_alike_is_refused(request_: bytes, tmp_path: Path) -> None:
    with scripted(tmp_path, OK) as (service, line):
        assert asked(line, request_).startswith(b"HTTP/1.1 400 Bad Request")
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (b"", b"504 Gateway", b"did not answer within 1 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", b"504 Gateway", b"did not answer within 1 s"),
        (b"SSH-2.0-x\r\n\r\n", b"502 Bad", b"does not speak HTTP/1.1"),
    ],
    ids=["silent", "half a head", "no HTTP"],
)
def test_a_service_that_gives_no_answer_is_said(answer: bytes, status: bytes, words: bytes, tmp_path: Path) -> None:
    with scripted(tmp_path, answer, OK, timeout_s=1.0) as (_, line):
        said = asked(line, POST)
        assert (status in said, words in said) == (True, True)
        assert asked(line, GET).endswith(b"ok")
    assert [(ok, status) for ok, status, *_ in ends(tmp_path)] == [(True, 200), (False, int(status[:3])), (True, 200)]


@pytest.mark.parametrize("more", [b"!", b"\r\n\r\nmore", OK.replace(b"ok", b"no")])
@pytest.mark.parametrize("keeps", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
def test_what_a_service_sends_beyond_its_length_is_left(more: bytes, keeps: bytes, tmp_path: Path) -> None:
    said = OK.replace(b"Content", keeps + b"Content") + more
    with scripted(tmp_path, said, OK) as (_, line):
        assert asked(line, GET).endswith(b"\r\n\r\nok")
        if not keeps:
            assert asked(line, GET).endswith(b"\r\n\r\nok")
    assert {(ok, status) for ok, status, *_ in ends(tmp_path)} == {(True, 200)}


def test_an_answer_cut_in_its_body_reaches_the_client_cut(tmp_path: Path) -> None:
    with scripted(tmp_path, Last(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")) as (_, line):
        assert asked(line, GET).endswith(b"\r\n\r\nok")
    assert ends(tmp_path)[1][:3] == (False, 200, "closed")


def test_what_comes_with_the_head_of_another_protocol_passes(tmp_path: Path) -> None:
    switched = Last(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nwelcome")
    with scripted(tmp_path, switched) as (_, line):
        line.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
        found = b"".join(iter(lambda: line.recv(4096), b""))
    assert found.endswith(b"\r\n\r\nwelcome")


def test_a_service_that_breaks_off_an_upload_is_no_error_of_the_gateway(tmp_path: Path, caplog: Any) -> None:
    upload = b"POST /crm/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n" + b"x" * 30_000_000
    with scripted(tmp_path, Last(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")) as (_, line):
        assert asked(line, upload).startswith(b"HTTP/1.1 413 Too Large")
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []


def test_an_exchange_that_is_over_needs_no_collector(tmp_path: Path) -> None:
    gc.disable()
    try:
        with shop() as server, standing(tmp_path, [f"crm={server.url}"]) as running:
            server.go_on.clear()
            with httpx.stream("GET", f"{running.make_route_url('crm')}/stream") as reply:
                lines = reply.iter_lines()
                next(lines)
                (attempt,) = map(ref, running.shared.under_way)
                server.go_on.set()
                assert len([*lines]) > 8
        assert attempt() is None
    finally:
        gc.enable()


def test_a_head_is_told_from_the_one_before_it(tmp_path: Path) -> None:
    longer, other = GET.replace(b"/x", b"/xx"), GET.replace(b"\r\n\r\n", b"\r\nX-A: 1\r\n\r\n")
    requests = [POST, POST[:-2] + b"[]", GET, longer, other, GET, POST.replace(b": 2", b": 3") + b" "]
    said = [OK, OK[:-2] + b"no", OK.replace(b"200 OK", b"404 Not Found"), OK.replace(b": 2", b": 3") + b"!"]
    with scripted(tmp_path, *said, *said[:3]) as (service, line):
        answers = [asked(line, request) for request in requests]
    assert answers == [*said, *said[:3]]
    sent = [each.split(b"\r\n") for each in service.asked[1:]]
    assert [(lines[0].split(b" ")[1], lines[-1]) for lines in sent] == [
        (b"/x", b"{}"), (b"/x", b"[]"), (b"/x", b""), (b"/xx", b""), (b"/x", b""), (b"/x", b""), (b"/x", b"{} "),
    ]  # fmt: skip
    assert [b"X-A: 1" in lines for lines in sent] == [False] * 4 + [True, False, False]
    assert [event.arguments for _, event in history(tmp_path).find_events(CallStarted)][1:3] == [{}, {"body": []}]


def test_a_large_number_for_a_length_ends_its_own_connection_alone(tmp_path: Path) -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n"
    with scripted(tmp_path, endless, OK) as (_, line):
        assert b"502 Bad" in asked(line, GET)
        assert asked(line, GET).endswith(b"ok")


def test_a_list_of_tools_in_mcp_tells_which_have_no_effects(tmp_path: Path) -> None:
    def message(method: str) -> bytes:
        body = b'{"jsonrpc": "2.0", "id": 1, "method": "%s", "params": {"name": "price"}}' % method.encode()
        return POST[:-2].replace(b": 2", b": %d" % len(body)) + body

    tools = b'{"result": {"tools": [{"name": "price", "annotations": {"readOnlyHint": true}}]}}'
    listed = OK[:-2].replace(b": 2", b": %d" % len(tools)) + tools
    with scripted(tmp_path, OK, listed, OK) as (_, line):
        for method in ("tools/call", "tools/list", "tools/call"):
            asked(line, message(method))
    assert [event.effect for _, event in history(tmp_path).find_events(Effect)] == ["price"]


def test_a_client_that_asks_first_is_told_to_go_on(tmp_path: Path) -> None:
    head, body = POST.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")[:-2], POST[-2:]
    with shop() as server, standing(tmp_path, [f"crm={server.url}"]) as running:
        address = "127.0.0.1", int(running.address.rpartition(":")[2].rstrip("/"))
        with socket.create_connection(address, 20) as line:
            line.sendall(head)
            assert line.recv(1 << 10) == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert asked(line, body).startswith(b"HTTP/1.1 200")


def test_a_coding_that_would_be_lost_on_the_way_is_refused(tmp_path: Path) -> None:
    packed = GET.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")
    with scripted(tmp_path, OK, OK) as (service, line):
        said = asked(line, packed)
    assert said.startswith(b"HTTP/1.1 400 Bad Request")
    assert b"Transfer-Encoding" in said
    assert len(service.asked) == 1


def test_a_service_is_asked_for_nothing_that_is_not_in_the_log(tmp_path: Path) -> None:
    with scripted(tmp_path, b"") as (service, line):
        line.sendall(POST)
        eventually(lambda: len(service.asked) == 2)
        assert [event.tool for _, event in history(tmp_path).find_events(CallStarted)] == ["GET /x", "POST /x"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_service_is_asked_for_nothing_when_the_log_is_lost(tmp_path: Path) -> None:
    def lose() -> None:
        with scripted(tmp_path, OK) as (service, line):
            eventually(lambda: len(ends(tmp_path)) == 1)
            (tmp_path / "latest" / "info.log").unlink()
            for _ in range(2):  # the second time, the loop is over
                with socket.create_connection(address := line.getpeername(), 20) as other:
                    assert (address, asked(other, POST)) == (line.getpeername(), b"")
            assert len(service.asked) == 1

    with pytest.raises(LogLost):
        lose()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] no"), "[ssl: wrong version number] no"),
        (SimpleNamespace(reason="UNSUPPORTED_PROTOCOL"), "unsupported protocol"),
    ],
)
def test_what_openssl_says_is_told_in_plain_letters(error: Any, words: str) -> None:
    assert describe_tls_error(error) == words


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), os.strerror(errno.ECONNREFUSED)),
        (OSError(f"Multiple exceptions: [Errno {errno.ENETUNREACH}] a, [Errno 1] b"), os.strerror(errno.ENETUNREACH)),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (OSError(0, "odd"), "odd"),
        (OSError("odd"), "it closed the connection"),
        (ValueError("odd"), "it closed the connection"),
    ],
)
def test_the_reason_of_a_broken_connection_is_the_system_s(error: BaseException, words: str) -> None:
    assert describe_os_error(error) == words
    assert get_first_line("\n400, message:\n  Bad status line:\n\n  b'x'") == "400, message"


@pytest.mark.parametrize(
    ("method", "fields", "length", "sent"),
    [
        ("GET", [("Accept", "*/*"), ("host", "gateway")], 0, "Accept: */*"),
        ("GET", [("Content-Length", "9")], 2, "Content-Length: 2"), ("DELETE", [], 2, "Content-Length: 2"),
        ("POST", [], 0, "Content-Length: 0"),
        ("POST", [("Transfer-Encoding", "chunked"), ("Expect", "100-continue")], CHUNKED, "Transfer-Encoding: chunked"),
        ("GET", [("Connection", "close, X-Hop"), ("x-hop", "1"), ("X-End", "2"), ("Keep-Alive", "5")], 0, "X-End: 2"),
        ("GET", [("Connection", "Upgrade"), ("Upgrade", "websocket")], 0, "Connection: Upgrade\r\nUpgrade: websocket"),
        ("GET", [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "A"), ("A", "1")], 0,
         "A: 1"),
    ],
)  # fmt: skip
def test_a_service_gets_its_own_host_one_length_and_no_field_of_the_hop(
    method: str, fields: list[tuple[str, str]], length: int, sent: str
) -> None:
    head = build_request_head(
        GatewayRoute("crm", "http", "crm.test", 8080, "/api"), method, "/x", fields, length
    ).decode()
    assert head == f"{method} /api/x HTTP/1.1\r\nHost: crm.test:8080\r\n{sent}\r\n\r\n"


@pytest.mark.parametrize(
    ("fields", "fed", "broke", "ready", "parts"),
    [
        ([(b"Content-Length", b"9")], b"abc", None, b"abc", []),
        ([(b"Content-Length", b"9")], b"abc", ConnectionResetError(), b"", [b"abc", "reset"]),
        ([(b"Transfer-Encoding", b"chunked")], b"abc", None, b"", [b"abc", b"abc"]),
    ],
    ids=["measured", "broken off", "chunked"],
)
@in_a_loop
async def test_a_part_of_an_answer_is_there_at_once_unless_it_broke_off_or_comes_in_chunks(
    *, fields: list[tuple[bytes, bytes]], fed: bytes, broke: Exception | None, ready: bytes, parts: list[Any]
) -> None:
    loop = asyncio.get_running_loop()
    protocol: Any = SimpleNamespace(lost=broke, _reading_paused=False, resume_reading=lambda: None)
    payload = StreamReader(protocol, 99, loop=loop)
    chunked = fields[0][1] == b"chunked"
    for _ in range(1 + chunked):
        if chunked:
            payload.begin_http_chunk_receiving()
        payload.feed_data(fed)
        if chunked:
            payload.end_http_chunk_receiving()
    if broke is not None:
        payload.set_exception(broke)
    message: Any = SimpleNamespace(code=200, reason="OK", raw_headers=fields, chunked=chunked)
    answer = ServiceAnswer(cast(Any, None), protocol, message, payload)
    assert answer.read_ready_part() == ready
    found: list[Any] = []
    while len(found) < len(parts):
        try:
            found.append(await answer.read_next_part())
        except Failure as failure:
            found.append(failure.kind)
    assert found == parts


def exchange(gateway: Any = None, line: Any = None, *, version: tuple[int, int] = (1, 1), keeps: bool = True) -> Any:
    request = SimpleNamespace(version=version, keep_alive=keeps)
    rewriting = SimpleNamespace(rewrite_headers=lambda fields: fields)
    return Exchange(*cast(Any, (gateway, line, request, None, rewriting, 0)))


CHUNKED_FIELD, CLOSED_FIELD = b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"
SWITCHES = [("Connection", "Upgrade"), ("Upgrade", "x")]


@pytest.mark.parametrize(
    ("given", "status", "more", "head", "body", "stays"),
    [
        ([("Content-Length", "2")], 200, {}, b"Content-Length: 2\r\n", b"ok", True),
        ([], 200, {}, CHUNKED_FIELD, b"2\r\nok\r\n0\r\n\r\n", True),
        ([("Connection", "close")], 200, {}, CHUNKED_FIELD + CLOSED_FIELD, b"2\r\nok\r\n0\r\n\r\n", False),
        ([("Content-Length", "2")], 200, {"keeps": False}, b"Content-Length: 2\r\n" + CLOSED_FIELD, b"ok", False),
        ([], 200, {"version": (1, 0)}, CLOSED_FIELD, b"ok", False),
        ([], 204, {}, b"", b"", True),
        ([("Keep-Alive", "5"), ("X-A", "1")], 204, {}, b"X-A: 1\r\n", b"", True),
        (SWITCHES, 101, {}, b"Connection: Upgrade\r\nUpgrade: x\r\n", b"ok", False),
    ],
)  # fmt: skip
@in_a_loop
async def test_an_answer_has_the_fields_of_its_own_hop_and_each_once(
    *, given: list[tuple[str, str]], status: int, more: dict[str, Any], head: bytes, body: bytes, stays: bool
) -> None:
    written: list[bytes] = []
    one = exchange(**more)
    one._attempt = SimpleNamespace(request=SimpleNamespace(method="GET"), began_s=0.0)

    async def write(data: bytes, _: bytes) -> None:
        written.append(data)

    async def take() -> None:
        return None

    one._send_to_client = write
    assert (
        await one._send_answer(status, given, "OK", b"" if status == 204 else b"ok", SimpleNamespace(read_part=take))
        is stays
    )
    assert b"".join(written) == b"HTTP/1.1 %d OK\r\n%b\r\n%b" % (status, head, body)


@pytest.mark.parametrize(
    ("ends", "how", "waits"),
    [
        ("", "timed_out", [7.0]),
        ("end_exchange_as_hang_up", "timed_out", []),
        ("handle_disconnect", "timed_out", []),
        ("", "reset", []),
    ],
)
@in_a_loop
async def test_a_client_waits_once_for_an_answer_that_never_comes(*, ends: str, how: str, waits: list[float]) -> None:
    told: list[Any] = []
    seam = SimpleNamespace(timeout_s=7.0)
    gateway = SimpleNamespace(seam=seam, handle_exchange_end=lambda attempt, seen: told.append((attempt, seen.error)))
    done = SimpleNamespace(force_close=lambda: told.append("closed"), reset_connection=lambda: told.append("reset"))
    one = exchange(gateway, SimpleNamespace(transport=object(), left=False, **vars(done)))
    waited: list[float] = []

    async def answered(_: Any) -> bool:
        if ends:
            getattr(one, ends)()
        told.clear()
        raise Failure(how)

    async def wait(delay_s: float) -> bool:
        waited.append(delay_s)
        return False

    one._answer_request, one.wait_unless_client_left = answered, wait
    assert not await one.serve_attempt("attempt")
    assert waited == waits
    seen, closed = {"timed_out": ("left", "closed")}.get(how, (how, how))
    assert told == [("attempt", seen), closed]


def test_a_gateway_that_has_ended_does_no_more() -> None:
    begun, over = threading.Event(), list[int]()

    async def beside() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(1000):
                with suppress(asyncio.CancelledError):  # it is asked twice
                    await asyncio.sleep(0)
            over.append(threading.get_ident())

    with run_gateway(cast(Any, None), {}, beside):
        assert begun.wait(DEADLINE_S)
    assert len(over) == 1
    assert threading.get_ident() not in over


@pytest.mark.parametrize(
    ("closes", "over", "idle_s", "kept", "hasty"),
    [
        (False, False, 0.0, True, set()),
        (True, False, 0.0, False, {"crm"}),
        (False, True, 0.0, False, {"crm"}),
        (False, True, 3600.0, False, set()),
    ],
)
@in_a_loop
async def test_a_kept_connection_that_is_over_is_made_anew(
    *, closes: bool, over: bool, idle_s: float, kept: bool, hasty: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, noted, closed = asyncio.get_running_loop(), set[str](), list[str]()
    old, new = (
        SimpleNamespace(should_close=closes, is_stale=lambda: over, close=lambda name=name: closed.append(name))
        for name in ("old", "new")
    )

    async def dials(_: Any, **given: Any) -> Any:
        assert given == {"host": "10.0.0.1", "port": 80}
        return None, new

    monkeypatch.setattr(loop, "create_connection", dials)
    upstream = Upstream(GatewayRoute("crm", "http", "10.0.0.1", 80), 1.0, noted)
    upstream.protocol, upstream._idle_s = cast(Any, old), loop.time() - idle_s
    assert await upstream._ensure_connection() is kept
    assert (upstream.protocol is (old if kept else new), closed, noted) == (True, [] if kept else ["old"], hasty)


def test_a_connection_that_is_taken_as_it_ends_is_closed(tmp_path: Path) -> None:
    """One that is left open is told of when it is collected, which fails the test."""
    for turn in range(8):
        known, clients = threading.Event(), list[socket.socket]()

        def knock(port: int, known: threading.Event = known, clients: list[socket.socket] = clients) -> None:
            with suppress(OSError):  # from the end on nobody is there
                for _ in range(400):
                    clients.append(socket.create_connection(("127.0.0.1", port)))
                    known.set()

        with standing(tmp_path / str(turn), ["crm=http://127.0.0.1:9"]) as running:
            thread = threading.Thread(target=knock, args=(int(running.address.rpartition(":")[2].rstrip("/")),))
            thread.start()
            known.wait()
        thread.join()
        for client in clients:
            client.close()
        gc.collect()
