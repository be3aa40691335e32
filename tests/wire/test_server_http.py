"""A client's connection of the API, told by hand what comes: its answers, its refusals and its end,
without a socket. And the listening socket, and lanes that are over."""

import asyncio
import errno
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaoslab.base.dice import Dice
from chaoslab.wire import lane_names
from chaoslab.wire.proxies import ToxiproxyError
from chaoslab.wire.server import _http as http
from chaoslab.wire.server import _listener as listener
from chaoslab.wire.server._catalog import Catalog
from chaoslab.wire.server._http import Connection
from chaoslab.wire.server._listener import Dials, Listener, split_address
from chaoslab.wire.server.rest import RestRequest, RestResponse
from chaoslab.wire.toxiproxy_package import ToxiproxyServer
from tests.told import in_a_loop

GET = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"


class Wire:
    """A transport that notes what it is told."""

    def __init__(self) -> None:
        self.written, self.told = b"", list[str]()

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return bool({"close", "abort"} & set(self.told))

    def __getattr__(self, name: str) -> Any:
        return lambda: self.told.append(name)


class Line:
    """A connection whose requests are answered by `answer`, by default with their target."""

    def __init__(self, answer: Callable[[RestRequest], Any] | None = None) -> None:
        self.asked = list[RestRequest]()
        self.wire = Wire()
        self.all: set[Connection] = set()
        self.http = Connection(self._answer, self.all)
        self.answer = answer
        self.http.connection_made(cast(asyncio.Transport, self.wire))

    async def _answer(self, request: RestRequest) -> RestResponse:
        self.asked.append(request)
        if self.answer is None:
            return RestResponse(200, request.target.encode())
        response: RestResponse = await self.answer(request)
        return response

    @property
    def statuses(self) -> list[int]:
        return [int(part[:3]) for part in self.wire.written.decode().split("HTTP/1.1 ")[1:]]


async def turns(count: int = 6) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@in_a_loop
async def test_requests_that_came_together_are_answered_in_order() -> None:
    line = Line()
    line.http.data_received(b"".join(GET.replace(b"version", b"%d" % number) for number in range(20)))
    await turns(60)
    assert [request.target for request in line.asked] == [f"/{number}" for number in range(20)]
    assert line.statuses == [200] * 20
    line.http.eof_received()
    assert line.wire.told[-1] == "close"
    assert line.all == {line.http}
    line.http.connection_lost(None)
    assert line.all == set()


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        (b"", []), (GET, [200]), (GET[:-2], [400]), (GET + GET[:20], [200, 400]),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}", [400]), (GET.replace(b"1.1", b"1.0"), [200]),
        (b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", [100, 400]),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}" + GET, [200, 200]),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + bytes(100_000), [431]), (b"GET / HTTP/1.1\r\n\r\n", [400]),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", [501]),
    ],
)  # fmt: skip
@in_a_loop
async def test_a_client_that_ends_its_stream_has_its_answers_and_is_left(*, sent: bytes, statuses: list[int]) -> None:
    line = Line()
    line.http.data_received(sent) if sent else None
    await turns(9)
    line.http.eof_received()
    await turns()
    assert line.statuses == statuses
    assert line.wire.told[-1] == "close"


def test_a_refusal_is_written_once_and_the_rest_is_dropped_up_to_a_limit_or_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "DRAIN_BYTES_MAX", 100)

    async def story(ends: str) -> None:
        line = Line()
        line.http.data_received(b"\x00\r\n\r\n" + GET)
        assert (line.statuses, line.wire.told, line.asked) == ([400], ["write_eof"], [])
        line.http.data_received(GET + bytes(100 - len(GET)))
        assert (line.statuses, line.wire.told) == ([400], ["write_eof"])
        if ends == "more":
            line.http.data_received(b"x")
        elif ends == "eof":
            line.http.eof_received()
        elif ends == "time":
            while len(line.wire.told) == 1:
                await asyncio.sleep(0)
        else:
            line.http.connection_lost(None)
            await turns()
        assert line.wire.told == ["write_eof", *([] if ends == "lost" else ["close"])]

    for ends in ("more", "eof", "time", "lost"):
        monkeypatch.setattr(http, "DRAIN_S", 0.0 if ends in ("time", "lost") else 60.0)
        asyncio.run(story(ends))


@in_a_loop
async def test_an_answer_that_must_wait_holds_up_those_behind_it_and_a_bug_ends_the_connection() -> None:
    gate = asyncio.Event()

    async def later(request: RestRequest) -> RestResponse:
        await gate.wait()
        if request.target == "/bug":
            raise ZeroDivisionError
        return RestResponse(200, b"late")

    line = Line(later)
    line.http.data_received(GET + GET)
    await turns()
    assert (len(line.asked), line.statuses, line.wire.told) == (1, [], ["pause_reading"])
    gate.set()
    await turns()
    assert (len(line.asked), line.statuses) == (2, [200, 200])
    assert line.wire.told == ["pause_reading", "resume_reading"] * 2
    failed = list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context["exception"]))
    line.http.data_received(GET.replace(b"/version", b"/bug"))
    await turns()
    assert line.wire.told[-1] == "abort"
    gate.clear()
    waits, gone = Line(later), Line(later)
    for each in (waits, gone):
        each.http.data_received(GET)
        await turns()
    waits.http.abort()
    gone.wire.told.append("close")
    gate.set()
    await turns()
    assert (waits.statuses, waits.wire.told) == ([], ["pause_reading", "abort", "abort"])
    assert (gone.statuses, gone.wire.told) == ([], ["pause_reading", "close"])
    del line
    import gc

    gc.collect()
    assert [type(each) for each in failed] == [ZeroDivisionError]


# The listening socket.


class Ear:
    """A listening socket whose next connections are these, or fail so."""

    def __init__(self, *comes: int | socket.socket) -> None:
        self.comes = list(comes)

    def fileno(self) -> int:
        return 0

    def close(self) -> None: ...

    def accept(self) -> tuple[Any, Any]:
        come = self.comes.pop(0) if self.comes else errno.EAGAIN
        if isinstance(come, int):
            raise OSError(come, "no") if come != errno.EAGAIN else BlockingIOError(come, "no")
        return come, None


@pytest.mark.parametrize("error", [errno.EAGAIN, errno.ECONNABORTED, errno.EMFILE, errno.ENOBUFS, errno.EPERM])
@in_a_loop
async def test_a_listener_waits_while_the_system_is_short_of_something(
    *, error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Listener, "_warned", False)
    told = list[str]()
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "add_reader", lambda *_: told.append("on"))
    monkeypatch.setattr(loop, "remove_reader", lambda *_: told.append("off"))
    monkeypatch.setattr(listener, "PAUSE_S", 0.0)
    one = Listener(cast(Any, Ear(error, error)), asyncio.Protocol)
    monkeypatch.setattr(one, "_is_file_limit_near", lambda: False)
    if error == errno.EPERM:
        with pytest.raises(OSError, match="no"):
            one._accept_connections()
        return
    one._accept_connections()
    short = error in (errno.EMFILE, errno.ENOBUFS)
    assert told == (["on", "off"] if short else ["on"])
    while short and len(told) < 3:
        await asyncio.sleep(0)
    assert told == (["on", "off", "on"] if short else ["on"])
    if short:  # one that is closed while it waits hears no more
        one._accept_connections()
        one.close()
        await turns()
        assert told == ["on", "off", "on", "off", "off"]


@in_a_loop
async def test_a_connection_that_is_accepted_sends_small_pieces_at_once() -> None:
    class Told(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            no_delay.set_result(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    no_delay = asyncio.get_running_loop().create_future()
    (ear,) = await listener.open_sockets("127.0.0.1", 0)
    one = Listener(ear, Told)
    with socket.create_connection(one.getsockname()):
        assert await no_delay
    one.close()


@pytest.mark.parametrize(
    ("most", "next_file", "dials", "short"),
    [
        (1024, 991, 0, False), (1024, 992, 0, True), (1024, 981, 10, False), (1024, 982, 10, True),
        (40, 29, 0, False), (40, 30, 0, True), (-1, 10**6, 0, False), (1024, None, 0, True),
    ],
)  # fmt: skip
@in_a_loop
async def test_some_files_are_left_to_the_api(
    *, most: int, next_file: int | None, dials: int, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    def dup(_: int) -> int:
        if next_file is None:
            raise OSError(errno.EMFILE, "no")
        return next_file

    monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", lambda *_: None)
    counted = Dials()
    counted.count = dials
    one = Listener(cast(Any, Ear()), asyncio.Protocol, dials=counted)
    with monkeypatch.context() as patched:
        patched.setattr(resource, "getrlimit", lambda _: (most, most))
        patched.setattr(listener, "os", SimpleNamespace(dup=dup, close=lambda _: None))
        assert one._is_file_limit_near() is short


@in_a_loop
async def test_a_lane_that_is_over_is_deleted_once_though_another_client_was_first() -> None:
    catalog = Catalog(Dice(1))
    for name in ("lane.s.r.1.99", "lane.s.r.2.99", "weather", "lane.s.r.3.101"):
        await catalog.create_proxy(b'{"name": "%b", "upstream": "a:1", "enabled": false}' % name.encode())
    real = catalog.delete_proxy

    async def delete(name: str) -> None:
        if name == "lane.s.r.1.99":
            await real(name)
        await real(name)

    catalog.delete_proxy = delete  # type: ignore[method-assign]
    await catalog.delete_expired_lanes(100.0)
    assert list(catalog.to_json()) == ["lane.s.r.3.101", "weather"]


def test_all_lanes_are_deleted_and_no_other_proxy() -> None:
    held = ["lane.search.run.1.99", "weather", "lane.search.run.2.100", "lane.x", "lane.s.r.3.999"]

    class Proxies:
        def __init__(self, status: int | None) -> None:
            self.status, self.gone = status, list[str]()

        def proxies(self) -> list[str]:
            return held

        def destroy(self, name: str) -> None:
            self.gone.append(name)
            if self.status is not None:
                raise ToxiproxyError("no", status=self.status)

    for status in (None, 404):  # the latter: its call was over meanwhile
        there = Proxies(status)
        assert lane_names.delete_all_lanes(cast(ToxiproxyServer, there)) == 3
        assert there.gone == [held[0], held[2], held[4]]
    for status in (403, 405, 500):
        with pytest.raises(ToxiproxyError):
            lane_names.delete_all_lanes(cast(ToxiproxyServer, Proxies(status)))
    assert [lane_names.is_lane_expired(name, 100.0) for name in held] == [True, False, False, False, False]
    assert lane_names.is_lane_expired(lane_names.make_lane_name("a.b", "run", 7, 99), 100.0)


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("a:80", ("a", 80)), (":0", ("", 0)), ("a:65535", ("a", 65535)), ("[::1]:80", ("::1", 80)),
        ("a:65536", None), ("a:-1", None), ("a:", None), ("a:http", None), ("a", None), ("a:b:80", None),
        ("::1:80", None), ("a:٣", None), ("a:1_0", None),
    ],
)  # fmt: skip
def test_an_address_is_a_host_and_a_port(address: str, parts: tuple[str, int] | None) -> None:
    if parts is None:
        with pytest.raises(ValueError, match=f"address {address}: "):
            split_address(address)
    else:
        assert split_address(address) == parts
