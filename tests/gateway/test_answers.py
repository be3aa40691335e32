"""Routes, proxies and answers of the gateway, without a socket: what is read of an address, and what a client gets."""

from __future__ import annotations

import asyncio
import socket
import ssl
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from chaoslab.core.exchange import Failure
from chaoslab.seams.gateway.routes import Route, is_host, proxy_for, route, routes
from chaoslab.seams.gateway.upstream import Answer, Said, Upstream, by_way_of, credentials
from chaoslab.seams.gateway.upstream import _Protocol as Protocol

CRM = Route("crm", "http", "crm.test", 80)
NEAR = Route("crm", "http", "127.0.0.1", 9000, "/v1")


@pytest.mark.parametrize(
    ("text", "hosts", "found"),
    [
        ("crm=http://127.0.0.1:9000/v1/", False, NEAR), ("crm=http://crm.test", False, CRM),
        ("crm=https://[::1]:8/a", False, Route("crm", "https", "::1", 8, "/a")),
        ("api.openai.com", True, Route("api.openai.com", "https", "api.openai.com", 443)),
        ("crm:65535", True, Route("crm:65535", "http", "crm", 65535)),
        ("crm:443", True, Route("crm:443", "https", "crm", 443)),
        ("crm:8080=http://crm.test", True, Route("crm:8080", "http", "crm.test", 80)),
        ("crm:0", True, "should have a port from 1 to 65535"),
        ("crm:65536", True, "should have a port from 1 to 65535"),
        ("crm:65536=http://a", True, "should have a port from 1 to 65535"),
        ("crm", False, "has no URL: "), ("http://crm", False, "has no name: "),
        ("crm.test", False, "a host alone needs the proxy"),
        ("crm.test=http://a", False, "9000; a host needs the proxy"),
        ("CRM=http://a", False, "has a wrong name"), ("crm=ftp://a", False, "it should begin with http:// or https://"),
        ("crm=http://a:99999", False, "its port should be from 0 to 65535"),
        ("crm=http://", False, "a scheme, a host and a path"),
        ("crm=http://a?b=1", False, "a scheme, a host and a path"),
        ("crm=http://a#b", False, "a scheme, a host and a path"),
        ("crm=http://u:secret-word@a", False, "a scheme, a host and a path"),
    ],
)  # fmt: skip
def test_a_route_is_a_name_and_an_address(text: str, hosts: bool, found: Route | str) -> None:
    if isinstance(found, Route):
        assert route(text, hosts=hosts) == found
        return
    with pytest.raises(ValueError, match=r"^the ") as error:
        route(text, hosts=hosts)
    assert found in str(error.value)
    assert "secret-word" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "host"),
    [("api.openai.com", True), ("localhost", True), ("crm:8080", True), ("crm", False), ("-a.b", False),
    ("a.b:123456", False)],
)  # fmt: skip
def test_a_name_with_a_dot_or_a_port_is_a_host(name: str, host: bool) -> None:
    assert is_host(name) is host


def test_routes_have_names_of_their_own_and_one_is_needed_without_the_proxy() -> None:
    assert list(routes(["a=http://x", "b=http://x"])) == ["a", "b"]
    assert routes([], hosts=True) == {}
    for wrong in ([], ["a=http://x", "a=http://y"]):
        with pytest.raises(ValueError, match=r"no route is given|two routes are called a"):
            routes(wrong)
    assert (CRM.url, NEAR.url, CRM.near, NEAR.near) == ("http://crm.test", "http://127.0.0.1:9000/v1", False, True)
    assert Route("x", "https", "::1", 443).url == "https://[::1]"


@pytest.mark.parametrize(
    ("environment", "far", "secure"),
    [
        ({}, "", ""), ({"http_proxy": "http://p:1"}, "http://p:1", ""), ({"HTTPS_PROXY": "p:1"}, "", "http://p:1"),
        ({"all_proxy": "p", "http_proxy": ""}, "http://p", "http://p"),
        ({"ALL_PROXY": "p", "http_proxy": "q"}, "http://q", "http://p"),
        ({"all_proxy": "p", "no_proxy": "crm.test"}, "", ""),
        ({"all_proxy": "p", "NO_PROXY": "other"}, "http://p", "http://p"),
        ({"HTTP_PROXY": "p", "http_proxy": ""}, "http://p", ""),
        ({"http_proxy": "p", "HTTP_PROXY": ""}, "http://p", ""),
    ],
)  # fmt: skip
def test_the_proxy_of_the_environment_is_on_the_way_to_what_is_not_here(
    environment: dict[str, str], far: str, secure: str
) -> None:
    assert proxy_for(CRM, environment) == far
    assert proxy_for(Route("crm", "https", "crm.test", 443), environment) == secure
    assert proxy_for(NEAR, environment) == ""


def test_a_proxy_has_a_port_and_the_name_and_word_of_its_address() -> None:
    with_word = urlsplit("http://ann%40x:w%3Ad@proxy:3128")
    assert credentials(with_word) == [("Proxy-Authorization", "Basic YW5uQHg6dzpk")]
    assert credentials(urlsplit("http://ann@proxy")) == [("Proxy-Authorization", "Basic YW5uOg==")]
    assert credentials(urlsplit("http://proxy")) == []
    assert by_way_of(CRM, with_word) == ("proxy", 3128)
    assert by_way_of(CRM, urlsplit("http://proxy")) == ("proxy", 80)
    assert by_way_of(CRM, urlsplit("")) == ("crm.test", 80)


class Parted(Answer):
    """An answer whose first part is there already, and whose others come; an exception breaks it off."""

    def __init__(self, ready: bytes, *coming: bytes | Failure | None) -> None:
        self.there, self.left = ready, list(coming)
        self.status, self.fields = 200, []

    def ready(self) -> bytes:
        there, self.there = self.there, b""
        return there

    async def coming(self) -> bytes | None:
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
        first = await answer.begin(heard.append, wait=wait)
        assert first == (began if began is not None else b"b" if wait and coming[0] == b"b" else b"")
        failed = None
        try:
            while (part := await answer.take()) is not None:
                parts.append(part)
            assert await answer.take() is None if wait or ready else True
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


def test_an_answer_of_the_gateways_own_is_whole_and_the_last_when_it_is_spelt() -> None:
    async def story() -> None:
        said = Said(502, "no")
        assert await said.whole() == (502, said.fields, b'{"error": "no"}')
        said = Said(200, {"a": 1})
        assert said.spelt() == (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\nConnection: close\r\n\r\n"
            b'{"a": 1}'
        )
        assert said.parts() is said
        assert await said.take() is None
        assert (said.clean, said.measured) == (True, True)

    asyncio.run(story())


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
        answer = await upstream.ask("GET", "/", [], b"", None, length=0)
        assert upstream.protocol is None
        upstream.leave()
        assert await upstream.done(clean=True)
        return await answer.whole()

    found, _, body = asyncio.run(story())
    assert found == status
    assert body.decode().startswith(f'{{"error": "the upstream crm (http://crm.test) {words}')


def test_one_timer_bounds_each_silence() -> None:
    async def story() -> None:
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
        protocol._looked()  # too early: it looks again when it is due
        assert protocol._watch is not first
        assert 89 < protocol._watch.when() - loop.time() <= 90
        protocol._drop_timeout()
        protocol._looked()
        assert (protocol._watch, late) == (None, [])
        protocol._due_s = loop.time() - 1
        protocol._looked()
        assert (len(late), protocol._watch) == (1, None)
        assert protocol.over()  # it has no connection

    asyncio.run(story())


def test_a_kept_connection_over_tls_is_taken_for_open() -> None:
    async def story() -> None:
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
                assert not protocol.over()
            lines[1].close()
            assert protocol.over()

    asyncio.run(story())
