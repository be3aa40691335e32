"""The HTTP clients that agents use, unedited, over the virtual network: each gets what it would in life."""

import asyncio
import http.client
import io
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, cast

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.network._sockets import Poll, select
from chaoslab.worlds.virtual.network.network import TRIP_S, NetworkEnd
from chaoslab.worlds.virtual.network.serving import serve_application
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World
from tests.worlds.virtual.machine_parts import a_world, answers, now, since
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

BIG = b"x" * 2_000_000
Fetch = Callable[[str, bytes | None], bytes]


class _Rude:
    """Begins an answer and breaks the connection off a second later; with `silent`, says nothing at all."""

    def __init__(self, end: NetworkEnd, *, silent: bool) -> None:
        self._end, self._silent = end, silent
        end.receiver = self

    @classmethod
    def begin(cls, end: NetworkEnd) -> None:
        cls(end, silent=False)

    @classmethod
    def be_silent(cls, end: NetworkEnd) -> None:
        cls(end, silent=True)

    def handle_arrival(self) -> None:
        if self._end.receive_bytes() and not self._silent:
            self._end.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
            self._end.machine.schedule_after(1, self._end.reset)

    def handle_reset(self, error: OSError) -> None:
        pass

    def handle_write_room(self) -> None:
        pass


def _world() -> World:
    world = a_world({"tools": answers})
    serve_application(world.network, "tools", 443, answers)
    for port in (80, 443):
        world.network.listen("rude", port, _Rude.begin)
        world.network.listen("silent", port, _Rude.be_silent)
    return world


def _seen(outcome: Any) -> Any:
    if isinstance(outcome, bytes):
        return outcome.decode() if len(outcome) < 50 else len(outcome)
    return outcome


def _errors(error: BaseException) -> str:
    return type(error).__name__


def _all(fetch: Fetch) -> list[Any]:
    """Every kind of call, and how long each took."""
    seen: list[Any] = []
    for url, body in CALLS:
        begun = time.monotonic()
        try:
            outcome: Any = fetch(url, body)
        except Exception as error:  # noqa: BLE001 - which one it is, is the point
            outcome = _errors(error)
        seen.append((_seen(outcome), round(time.monotonic() - begun, 2)))
    return seen


CALLS: list[tuple[str, bytes | None]] = [
    ("http://tools/", None),
    ("http://tools/slow", None),
    ("http://tools/close", None),
    ("http://tools/", None),
    ("http://tools/echo", BIG),
    ("http://localhost:9/", None),
    ("http://rude/", None),
    ("http://silent/", None),
    ("http://tools/", None),
]
SECURE = [(url.replace("http://", "https://"), body) for url, body in CALLS]


@pytest.fixture(params=[CALLS, SECURE], ids=["http", "https"])
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has every client speak http, then https."""
    monkeypatch.setattr(sys.modules[__name__], "CALLS", request.param)


def _expected(*, slow: str, refused: str, reset: str, silent: str | None = None) -> list[Any]:
    return [
        ("ok", 0.0),
        (slow, 3.0),
        ("ok", 0.0),
        ("ok", 0.0),
        (len(BIG), 0.0),
        (refused, 0.0),
        (reset, 1.0),
        (silent or slow, 3.0),
        ("ok", 0.0),
    ]


def _httpx(module: Any) -> list[Any]:
    with module.Client(timeout=3) as client:
        return _all(lambda url, body: client.request("POST" if body else "GET", url, content=body).content)


def _requests() -> list[Any]:
    with requests.Session() as session:
        return _all(lambda url, body: session.request("POST" if body else "GET", url, data=body, timeout=3).content)


def _urllib3() -> list[Any]:
    pool = urllib3.PoolManager(timeout=3, retries=False)
    return _all(lambda url, body: pool.request("POST" if body else "GET", url, body=body).data)


def _urllib() -> list[Any]:
    def fetch(url: str, body: bytes | None) -> bytes:
        with urllib.request.urlopen(url, data=body, timeout=3) as reply:
            return bytes(reply.read())

    return _all(fetch)


def _http_client() -> list[Any]:
    def fetch(url: str, body: bytes | None) -> bytes:
        place, _, path = url.partition("//")[2].partition("/")
        secure = url.startswith("https")
        connection = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(place, timeout=3)
        connection.request("POST" if body else "GET", f"/{path}", body=body)
        return connection.getresponse().read()

    return _all(fetch)


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        (lambda: _httpx(httpx), _expected(slow="ReadTimeout", refused="ConnectError", reset="ReadError")),
        (lambda: _httpx(httpx2), _expected(slow="ReadTimeout", refused="ConnectError", reset="ReadError")),
        (_requests, _expected(slow="ReadTimeout", refused="ConnectionError", reset="ChunkedEncodingError")),
        (_urllib3, _expected(slow="ReadTimeoutError", refused="NewConnectionError", reset="ProtocolError")),
        (_urllib, _expected(slow="TimeoutError", refused="URLError", reset="ConnectionResetError")),
        (_http_client, _expected(slow="TimeoutError", refused="ConnectionRefusedError", reset="ConnectionResetError")),
    ],
    ids=["httpx", "httpx2", "requests", "urllib3", "urllib", "http.client"],
)
@pytest.mark.usefixtures("calls")
def test_a_blocking_client(story: Callable[[], list[Any]], expected: list[Any]) -> None:
    with Patches():
        assert _world().run_program(story) == expected
        assert _world().run_program(story) == expected


async def _all_async(fetch: Callable[[str, bytes | None], Awaitable[bytes]]) -> list[Any]:
    seen: list[Any] = []
    for url, body in CALLS:
        begun = time.monotonic()
        try:
            outcome: Any = await fetch(url, body)
        except Exception as error:  # noqa: BLE001 - which one it is, is the point
            outcome = _errors(error)
        seen.append((_seen(outcome), round(time.monotonic() - begun, 2)))
    return seen


async def _httpx_async(module: Any) -> list[Any]:
    async with module.AsyncClient(timeout=3) as client:

        async def fetch(url: str, body: bytes | None) -> bytes:
            return bytes((await client.request("POST" if body else "GET", url, content=body)).content)

        return await _all_async(fetch)


async def _aiohttp() -> list[Any]:
    limits = aiohttp.ClientTimeout(connect=3, sock_read=3)
    async with aiohttp.ClientSession(timeout=limits) as client:

        async def fetch(url: str, body: bytes | None) -> bytes:
            async with client.request("POST" if body else "GET", url, data=body and io.BytesIO(body)) as reply:
                return await reply.read()

        return await _all_async(fetch)


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        (lambda: _httpx_async(httpx), _expected(slow="ReadTimeout", refused="ConnectError", reset="ReadError")),
        (lambda: _httpx_async(httpx2), _expected(slow="ReadTimeout", refused="ConnectError", reset="ReadError")),
        (_aiohttp, _expected(slow="SocketTimeoutError", refused="ClientConnectorError", reset="ClientPayloadError")),
    ],
    ids=["httpx", "httpx2", "aiohttp"],
)
@pytest.mark.usefixtures("calls")
def test_an_asyncio_client(story: Callable[[], Any], expected: list[Any]) -> None:
    with Patches():
        assert _world().run_program_async(story) == expected
        assert _world().run_program(lambda: asyncio.run(story())) == expected


def test_a_connection_is_kept_and_the_next_call_needs_none() -> None:
    """A fresh one costs two trips more."""

    def story() -> list[int]:
        took = []
        with requests.Session() as session, httpx.Client() as client:
            for get in (session.get, session.get, client.get, client.get):
                begun = time.monotonic()
                get("http://tools/")
                took.append(round((time.monotonic() - begun) / TRIP_S))
        return took

    with Patches():
        assert _world().run_program(story) == [4, 2, 4, 2]


def test_a_kept_connection_that_the_other_side_has_closed_is_not_used_again() -> None:
    ends: list[NetworkEnd] = []

    def story() -> list[int]:
        world = _world_of_here()
        accept = world.network._listeners[world.network.find_address("tools") or "", 80]

        def noted(end: NetworkEnd) -> None:
            ends.append(end)
            accept(end)

        world.network.stop_listening("tools", 80)
        world.network.listen("tools", 80, noted)
        codes: list[Any] = []
        with requests.Session() as session, httpx.Client() as client, urllib3.PoolManager(retries=False) as pool:
            for get in (session.get, client.get, lambda url: pool.request("GET", url)):
                codes.append(get("http://tools/"))
                time.sleep(1)
                ends[-1].close()
                time.sleep(1)
                codes.append(get("http://tools/"))
        return [getattr(reply, "status_code", None) or reply.status for reply in codes]

    with Patches():
        assert _world().run_program(story) == [200] * 6
    assert len(ends) == 6


def _world_of_here() -> World:
    from chaoslab.worlds.virtual.machine.context import get_world

    return cast(World, get_world())


def test_a_streamed_answer_arrives_line_by_line() -> None:
    def story() -> list[Any]:
        with httpx.Client() as client, client.stream("GET", "http://tools/events") as reply:
            first = [(line, now()) for line in reply.iter_lines() if line]
        with requests.get("http://tools/events", stream=True, timeout=9) as other:
            second = [(line.decode(), now()) for line in other.iter_lines() if line]
        return first + second

    with Patches():
        assert _world().run_program(story) == [(f"data: {n % 3}", n + 1.0) for n in range(6)]


def test_a_streamed_answer_arrives_line_by_line_in_asyncio_too() -> None:
    async def story() -> list[Any]:
        async with httpx.AsyncClient() as client, client.stream("GET", "http://tools/events") as reply:
            seen = [(line, now()) async for line in reply.aiter_lines() if line]
        async with aiohttp.ClientSession() as session, session.get("http://tools/events") as other:
            return seen + [(line.decode().strip(), now()) async for line in other.content if line.strip()]

    with Patches():
        assert _world().run_program_async(story) == [(f"data: {n % 3}", n + 1.0) for n in range(6)]


def test_a_body_that_is_made_on_the_way_is_sent_in_chunks() -> None:
    def parts() -> Iterator[bytes]:
        for n in range(3):
            time.sleep(1)
            yield str(n).encode()

    async def parts_async() -> AsyncIterator[bytes]:
        for n in range(3):
            await asyncio.sleep(1)
            yield str(n).encode()

    async def story_async() -> bytes:
        async with httpx.AsyncClient() as client:
            return (await client.post("http://tools/echo", content=parts_async())).content

    def story() -> list[Any]:
        return [httpx.post("http://tools/echo", content=parts()).content,
                requests.post("http://tools/echo", data=parts(), timeout=9).content, asyncio.run(story_async()),
                now()]  # fmt: skip

    with Patches():
        assert _world().run_program(story) == [b"012", b"012", b"012", 9.0]


def test_connecting_takes_time_and_can_time_out() -> None:
    def story() -> list[str]:
        seen = []
        for call in (
            lambda: httpx.get("http://tools/", timeout=httpx.Timeout(5, connect=TRIP_S)),
            lambda: requests.get("http://tools/", timeout=(TRIP_S, 5)),
            lambda: socket.create_connection(("tools", 80), timeout=TRIP_S),
        ):
            with pytest.raises((OSError, httpx.TimeoutException)) as caught:
                call()
            seen.append(type(caught.value).__name__)
        return seen

    with Patches():
        assert _world().run_program(story) == ["ConnectTimeout", "ConnectTimeout", "TimeoutError"]


def test_a_timeout_that_is_set_for_all_sockets_is_the_worlds_own() -> None:
    def story() -> list[Any]:
        seen: list[Any] = [socket.getdefaulttimeout()]
        with pytest.raises(ValueError, match="out of range"):
            socket.setdefaulttimeout(-1)
        socket.setdefaulttimeout(2)
        with pytest.raises(TimeoutError):
            urllib.request.urlopen("http://silent/")
        seen += [socket.getdefaulttimeout(), socket.socket().gettimeout(), now()]
        socket.setdefaulttimeout(None)
        return [*seen, socket.socket().gettimeout()]

    of_the_process = socket.getdefaulttimeout()
    try:
        with Patches():
            socket.setdefaulttimeout(77.0)
            assert [_world().run_program(story) for _ in range(2)] == [[None, 2.0, 2.0, 2.0, None]] * 2
        assert socket.getdefaulttimeout() == 77.0
    finally:
        socket.setdefaulttimeout(of_the_process)


def test_retries_of_urllib3_back_off_in_virtual_time() -> None:
    def story() -> float:
        pool = urllib3.PoolManager(timeout=3, retries=urllib3.Retry(2, backoff_factor=1))
        with pytest.raises(urllib3.exceptions.MaxRetryError):
            pool.request("GET", "http://silent/")
        return now()

    with Patches():
        assert _world().run_program(story) == 3 + 0 + 3 + 2 + 3


def test_selecting_and_polling_wait_for_what_comes() -> None:
    def story() -> list[Any]:
        sock = socket.create_connection(("tools", 80))
        poll, seen = Poll(), list[Any]()
        poll.register(sock, 4)
        assert poll.poll() == [(sock.fileno(), 4)]
        poll.modify(sock, 1)
        seen.append((poll.poll(2000), select([sock], [], [], 1), now()))
        with pytest.raises(ValueError, match=r"^file descriptor cannot be a negative integer \(-1\)$"):
            select([-1], [], [], 0)
        sock.sendall(b"GET /slow HTTP/1.1\r\nHost: tools\r\n\r\n")
        seen.append((len(poll.poll()), select([sock], [sock], [], None) == ([sock], [sock], []), now()))
        poll.unregister(sock)
        assert poll.poll(0) == []
        sock.setblocking(False)
        sock.recv(1000)
        with pytest.raises(BlockingIOError):
            sock.recv(1000)
        sock.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            sock.recv(1)
        return seen

    with Patches():
        assert _world().run_program(story) == [([], ([], [], []), 3.0), (1, True, 8.0)]


@pytest.mark.parametrize(
    ("story", "said"),
    [
        (lambda: requests.get("http://example.org/", timeout=1), "the host example.org"),
        (lambda: httpx.get("http://192.0.2.1/"), "a connection to 192.0.2.1:80"),
        (lambda: socket.gethostbyname("example.org"), "the host example.org"),
        (lambda: socket.gethostbyaddr("example.org"), "the host example.org"),
        (lambda: socket.create_connection(("tools", 80)).recv(1, socket.MSG_PEEK), "MSG_PEEK on a socket"),
        (lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM), "a socket that is not a TCP client's"),
        (lambda: socket.socket(socket.AF_UNIX), "a socket that is not a TCP client's"),
        (lambda: socket.socketpair(), "socketpair"),
        (lambda: socket.create_server(("127.0.0.1", 8000)), "a socket that listens"),
        (lambda: asyncio.run(_unknown_host()), "the host example.org"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_would_leave_the_world_is_refused_in_one_line_that_names_the_caller(
    story: Callable[[], Any], said: str
) -> None:
    with Patches(), pytest.raises(Unsupported) as caught:
        _world().run_program(story)
    line = str(caught.value)
    assert line.startswith(said)
    assert "(in test_clients.py, line" in line
    assert "\n" not in line


async def _unknown_host() -> None:
    async with aiohttp.ClientSession() as session:
        await session.get("http://example.org/")


def test_the_machines_own_name_is_not_told() -> None:
    with Patches():
        assert _world().run_program(socket.gethostname) == "localhost"
        assert _world().run_program(socket.getfqdn) == "localhost"


def test_time_passes_with_every_call() -> None:
    world = _world()
    with Patches():
        world.run_program(lambda: [requests.get("http://tools/", timeout=1) for _ in range(100)])
    assert since(world.machine.now) == round(100 * 4 * TRIP_S, 2)
