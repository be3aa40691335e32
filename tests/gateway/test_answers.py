"""Proxies and answers of the gateway, without a socket: which one is on the way, and what a client gets."""

import asyncio
import socket
import ssl
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from chaoslab.core.exchange import Failure
from chaoslab.seams.gateway._upstream import GatewayAnswer, OwnAnswer, Upstream, get_connect_address
from chaoslab.seams.gateway._upstream import _Protocol as Protocol
from chaoslab.seams.gateway.routes import GatewayRoute, find_proxy
from tests.told import in_a_loop

CRM = GatewayRoute("crm", "http", "crm.test", 80)
NEAR = GatewayRoute("crm", "http", "127.0.0.1", 9000, "/v1")


@pytest.mark.parametrize(
    ("environment", "far", "secure"),
    [
        ({}, "", ""), ({"http_proxy": "http://p:1"}, "http://p:1", ""), ({"HTTPS_PROXY": "p:1"}, "", "http://p:1"),
        ({"all_proxy": "p", "http_proxy": ""}, "http://p", "http://p"),
        ({"ALL_PROXY": "p", "http_proxy": "q"}, "http://q", "http://p"),
        ({"all_proxy": "p", "no_proxy": "crm.test"}, "", ""), ({"ALL_PROXY": "p", "no_proxy": "*"}, "", ""),
        ({"all_proxy": "p", "NO_PROXY": "other"}, "http://p", "http://p"),
        ({"HTTP_PROXY": "p", "http_proxy": ""}, "http://p", ""),
        ({"http_proxy": "p", "HTTP_PROXY": ""}, "http://p", ""),
    ],
)  # fmt: skip
def test_the_proxy_of_the_environment_is_on_the_way_to_what_is_not_here(
    environment: dict[str, str], far: str, secure: str
) -> None:
    assert find_proxy(CRM, environment) == far
    assert find_proxy(GatewayRoute("crm", "https", "crm.test", 443), environment) == secure
    assert find_proxy(NEAR, environment) == ""


def test_a_proxy_on_the_way_is_connected_to_at_its_port() -> None:
    found = [get_connect_address(CRM, urlsplit(way)) for way in ("http://ann:w@proxy:3128", "http://proxy", "")]
    assert found == [("proxy", 3128), ("proxy", 80), ("crm.test", 80)]


class Parted(GatewayAnswer):
    """An answer whose first part is there already, and whose others come; an exception breaks it off."""

    def __init__(self, ready: bytes, *coming: bytes | Failure | None) -> None:
        self.there, self.left = ready, list(coming)
        self.status, self.fields = 200, []

    def read_ready_part(self) -> bytes:
        there, self.there = self.there, b""
        return there

    async def read_next_part(self) -> bytes | None:
        part = self.left.pop(0)
        if isinstance(part, Failure):
            raise part
        return part


BROKE = Failure("reset")


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize(
    ("ready", "coming", "began", "told", "ends"),
    [
        (b"a", [b"b", None], b"a", [b"a", b"b", None], None), (b"", [b"b", None], None, None, None),
        (b"", [None], None, None, None), (b"", [BROKE], None, None, "reset"), (b"a", [BROKE], b"a", [b"a"], "reset"),
    ],
)  # fmt: skip
def test_an_answer_begins_with_what_is_there_or_waits_for_it(
    ready: bytes, coming: list[Any], began: bytes | None, told: list[Any] | None, ends: str | None, wait: bool
) -> None:
    async def story() -> None:
        heard, parts = list[Any](), list[bytes]()
        answer = Parted(ready, *coming)
        first = await answer.read_first_part(heard.append, wait=wait)
        assert first == (began if began is not None else b"b" if wait and coming[0] == b"b" else b"")
        failed = None
        try:
            while (part := await answer.read_part()) is not None:
                parts.append(part)
            assert await answer.read_part() is None if wait or ready else True
        except Failure as failure:
            failed = failure.kind
        assert failed == ends
        if told is not None:
            assert heard == told
        assert heard[0] == (None if wait and coming[0] is None and not ready else first)
        assert first + b"".join(parts) == ready + b"".join(part for part in coming if isinstance(part, bytes))

    if not wait and not ready and coming == [None]:
        return
    asyncio.run(story())


@in_a_loop
async def test_an_answer_of_the_gateways_own_is_whole_and_the_last_when_it_is_spelt() -> None:
    said = OwnAnswer(502, "no")
    assert (said.status, await said.read_part(), await said.read_part()) == (502, b'{"error": "no"}', None)
    said = OwnAnswer(200, {"a": 1})
    assert said.to_bytes() == (
        b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\nConnection: close\r\n\r\n{"a": 1}'
    )
    assert said.iterate_parts() is said
    assert await said.read_part() is None
    assert (said.clean, said.measured) == (True, True)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), 502, "is not found: Name or service not known"),
        (TimeoutError(), 504, "did not answer within 7 s"),
        (ConnectionRefusedError(111, "x"), 502, "gave no answer: Connection refused"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] x"), 502, "refuses TLS: "),
        (ConnectionResetError(104, "x"), 502, "gave no answer: Connection reset by peer"),
    ],
)  # fmt: skip
def test_a_service_that_cannot_be_asked_is_told_with_its_route(
    error: OSError, status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> Any:
        upstream = Upstream(CRM, 7.0, set())

        async def fails(*_: Any, **__: Any) -> Any:
            raise error

        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", fails)
        answer = await upstream.send_request("GET", "/", [], b"", None, length=0)
        assert upstream.protocol is None
        upstream.shut_down_sending()
        assert await upstream.finish_exchange(clean=True)
        return answer.status, await answer.read_part()

    found, body = asyncio.run(story())
    assert found == status
    assert body.decode().startswith(f'{{"error": "the upstream crm (http://crm.test) {words}')


@in_a_loop
async def test_one_timer_bounds_each_silence() -> None:
    loop = asyncio.get_running_loop()
    protocol = Protocol(loop)
    late = list[float]()
    protocol._on_read_timeout = lambda: late.append(loop.time())  # type: ignore[method-assign]
    protocol._reschedule_timeout()
    assert protocol._watch is None  # there is no limit
    protocol._read_timeout = 60.0
    protocol._reschedule_timeout()
    first = protocol._watch
    assert first is not None
    assert 59 < first.when() - loop.time() <= 60
    protocol._read_timeout = 90.0
    protocol._reschedule_timeout()
    assert protocol._watch is first
    protocol._check_silence()  # too early: it looks again when it is due
    assert protocol._watch is not first
    assert 89 < protocol._watch.when() - loop.time() <= 90
    protocol._drop_timeout()
    protocol._check_silence()
    assert (protocol._watch, late) == (None, [])
    protocol._due_s = loop.time() - 1
    protocol._check_silence()
    assert (len(late), protocol._watch) == (1, None)
    assert protocol.is_stale()  # it has no connection


@in_a_loop
async def test_a_kept_connection_over_tls_is_taken_for_open() -> None:
    protocol = Protocol(asyncio.get_running_loop())
    lines = socket.socketpair()
    for line in lines:
        line.setblocking(False)
    secure = {"ssl_object": object()}
    with lines[0], lines[1]:
        for extra in (secure, {"socket": lines[0]}):
            protocol.transport = SimpleNamespace(  # type: ignore[assignment]
                get_extra_info=extra.get, is_closing=lambda: False, close=lambda: None
            )
            assert not protocol.is_stale()
        lines[1].close()
        assert protocol.is_stale()
