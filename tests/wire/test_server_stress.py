"""The embedded server under far more than a lab asks of it: it answers all the time, and is afterwards what it was
before.

Each server is a process of its own, so that its files, its memory and its processor time are its alone.
"""

import asyncio
import contextlib
import json
import re
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.wire.server.process import raise_open_file_limit
from tests.wire.wire_parts import black_hole

# More than the 1,024 files that a process may open at first.
PROXIES = 2_000
IDLE = 1_200
REQUESTS = 6_000
SHARE = {"asyncio": 1, "uvloop": 2}  # the loop that is everywhere gets it all, the other one half
START_S = 20.0
STALL_S = 15.0  # a server that answers within milliseconds when well is stuck by then, however busy the machine
# The heap's fragments: up to 11 MB after idle connections, 4 MB after the proxies, of each of which 4 KB is a leak.
MEMORY_KB = 32_000
PROXIES_KB = 8_000
WATCHED = Path(__file__).with_name("watched_server.py")

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="files and memory are read from /proc")


@dataclass
class Embedded:
    """The server's API over one kept connection, and the share of the work that it gets."""

    share: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def api(self, method: str, path: str, body: Any = None) -> Any:
        """One request; whatever goes on beside it, it is answered before anybody would call that a stall."""
        async with asyncio.timeout(STALL_S):
            await self._send(method, path, body)
            return await self._answer()

    async def api_all(self, requests: list[tuple[str, str, Any]]) -> None:
        """Many requests, of which some are always on their way."""
        for begin in range(0, len(requests), 50):
            some = requests[begin : begin + 50]
            for request in some:
                await self._send(*request)
            async with asyncio.timeout(STALL_S):
                for _ in some:
                    await self._answer()

    async def _send(self, method: str, path: str, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.writer.write(f"{method} {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        await self.writer.drain()

    async def _answer(self) -> Any:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        chunked = "transfer-encoding: chunked" in head.lower()
        data = await (self._chunks() if chunked else self.reader.readexactly(int(length[1]) if length else 0))
        assert head.split()[1].startswith("2"), head + data.decode()
        return json.loads(data) if data else None

    async def _chunks(self) -> bytes:
        data = b""
        while size := int(await self.reader.readline(), 16):
            data += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()
        return data


@dataclass
class Process:
    """A server's process, which can be asked what it holds."""

    child: subprocess.Popen[str]
    port: int
    share: int

    def held(self) -> dict[str, int]:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write("held\n")
        self.child.stdin.flush()
        found: dict[str, int] = json.loads(self.child.stdout.readline())
        return found


@pytest.fixture(params=["asyncio", "uvloop"])
def process(request: pytest.FixtureRequest) -> Iterator[Process]:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    raise_open_file_limit()
    command = (sys.executable, str(WATCHED), request.param)
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            yield Process(child, int(child.stdout.readline()), SHARE[request.param])
        finally:
            child.kill()


def run(process: Process, story: Callable[[Embedded], Awaitable[None]], memory_kb: int = MEMORY_KB) -> None:
    """Plays the story, and then the server holds what it held before, and at most so much more memory."""

    async def main() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", process.port)
        try:
            server = Embedded(process.share, reader, writer)
            # Once through what is loaded late, so that it is no leak.
            await server.api("POST", "/proxies", proxy("first", "127.0.0.1:9"))
            await server.api("POST", "/proxies/first/toxics", {"type": "latency"})
            await server.api("DELETE", "/proxies/first")
            before = process.held()
            await story(server)
            assert await server.api("GET", "/proxies") == {}
            deadline = system.monotonic() + STALL_S
            most = before | {"memory_kb": before["memory_kb"] + memory_kb}
            while left := {key: value for key, value in process.held().items() if value > most[key]}:
                assert system.monotonic() < deadline, f"{before} before, and now still {left}"
                await asyncio.sleep(0.1)
        finally:
            writer.close()

    asyncio.run(main())


async def reaches(condition: Callable[[], bool], what: str) -> None:
    deadline = system.monotonic() + STALL_S
    while not condition():
        assert system.monotonic() < deadline, what
        await asyncio.sleep(0.01)


class Peer(asyncio.Protocol):
    """An end of a connection that answers each byte by the same, or only counts."""

    def __init__(self, opened: list[asyncio.Transport], *, echoes: bool) -> None:
        self.transport: asyncio.Transport | None = None
        self.got = 0
        self.lost = False
        self._opened = opened
        self._echoes = echoes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._opened.append(self.transport)

    def data_received(self, data: bytes) -> None:
        self.got += len(data)
        if self._echoes and self.transport is not None:
            self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.lost = True


@contextlib.asynccontextmanager
async def echoing() -> AsyncIterator[str]:
    """An upstream on loopback; its address."""
    opened: list[asyncio.Transport] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Peer(opened, echoes=True), "127.0.0.1", 0, backlog=1024)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for transport in opened:
            transport.abort()
        await asyncio.sleep(0)


async def dial(listen: str) -> Peer:
    host, _, port = listen.rpartition(":")
    _, peer = await asyncio.get_running_loop().create_connection(lambda: Peer([], echoes=False), host, int(port))
    return peer


async def asks(peer: Peer) -> None:
    """A byte there and back."""
    before = peer.got
    assert peer.transport is not None
    peer.transport.write(b".")
    await reaches(lambda: peer.got > before, "no echo")


def proxy(name: str, upstream: str) -> dict[str, str]:
    return {"name": name, "upstream": upstream, "listen": "127.0.0.1:0"}


def test_thousands_of_proxies_come_work_and_go(process: Process) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < PROXIES + 500:
        pytest.skip(f"{soft} open files are too few")

    async def story(server: Embedded) -> None:
        proxies = PROXIES // server.share
        async with echoing() as upstream:
            await server.api_all([("POST", "/proxies", proxy(f"p{n}", upstream)) for n in range(proxies)])
            found = await server.api("GET", "/proxies")
            assert len(found) == proxies
            for n in range(0, proxies, proxies // 50):
                peer = await dial(found[f"p{n}"]["listen"])
                await asks(peer)
                assert peer.transport is not None
                peer.transport.close()
            await server.api_all([("DELETE", f"/proxies/p{n}", None) for n in range(proxies)])
            with pytest.raises(ConnectionRefusedError):
                await dial(found["p0"]["listen"])

    run(process, story, PROXIES_KB)


def test_many_idle_connections_stay_open_and_cost_the_others_nothing(process: Process) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def story(server: Embedded) -> None:
        idle = min(
            IDLE // server.share, (soft - 500) // 2
        )  # both their ends are in this process, and in the server too
        async with echoing() as upstream:
            listen = (await server.api("POST", "/proxies", proxy("idle", upstream)))["listen"]
            peers: list[Peer] = []
            for begin in range(0, idle, 50):
                some = [await dial(listen) for _ in range(begin, min(begin + 50, idle))]
                await asyncio.gather(*(asks(peer) for peer in some))
                peers += some
            for peer in peers[:: idle // 50]:
                await asks(peer)
            await server.api("POST", "/proxies/idle/toxics", {"type": "latency", "attributes": {"latency": 1}})
            await asks(peers[-1])
            await server.api("DELETE", "/proxies/idle/toxics/latency_downstream")
            assert not any(peer.lost for peer in peers)
            gone, peers = peers[::2], peers[1::2]
            for peer in gone:
                assert peer.transport is not None
                peer.transport.close()
            await reaches(
                lambda: process.held()["ProxyConnection"] == len(peers), "the proxy keeps connections that are closed"
            )
            assert not any(peer.lost for peer in peers)
            await server.api("DELETE", "/proxies/idle")
            for peer in peers:
                await reaches(lambda peer=peer: peer.lost, "a connection outlived its proxy")  # type: ignore[misc]

    run(process, story)


def test_a_stalled_reader_holds_up_no_change_and_no_neighbour(process: Process) -> None:
    async def story(server: Embedded) -> None:
        async with echoing() as upstream:
            stalled_at = (await server.api("POST", "/proxies", proxy("stalled", upstream)))["listen"]
            healthy = await dial((await server.api("POST", "/proxies", proxy("healthy", upstream)))["listen"])
            stalled = await dial(stalled_at)
            assert stalled.transport is not None
            stalled.transport.pause_reading()
            stalled.transport.write(bytes(16_000_000))
            for n in range(100):
                dice = Dice("stalled", n)
                kind, attributes = dice.pick(KINDS)
                body = {"name": "t", "type": kind, "stream": dice.pick(STREAMS), "attributes": attributes}
                await server.api("POST", "/proxies/stalled/toxics", body)
                await asks(healthy)
                await server.api("PATCH", "/proxies/stalled/toxics/t", {"attributes": attributes})
                await server.api("DELETE", "/proxies/stalled/toxics/t")
            assert not healthy.lost
            stalled.transport.resume_reading()
            await reaches(lambda: stalled.got == 16_000_000, "what was held is lost")
            for name in ("stalled", "healthy"):
                await server.api("DELETE", f"/proxies/{name}")

    run(process, story)


STREAMS = ("upstream", "downstream")
KINDS: tuple[tuple[str, dict[str, int]], ...] = (
    ("latency", {"latency": 3, "jitter": 2}),
    ("slicer", {"average_size": 20, "size_variation": 10, "delay": 100}),
    ("bandwidth", {"rate": 2000}),
    ("slow_close", {"delay": 5}),
    ("noop", {}),
)
DEADLY: tuple[tuple[str, dict[str, int]], ...] = (
    ("timeout", {"timeout": 5}),
    ("reset_peer", {"timeout": 1}),
    ("limit_data", {"bytes": 2000}),
)


def test_a_black_hole_upstream_holds_up_no_healthy_one(process: Process) -> None:
    async def story(server: Embedded) -> None:
        async with echoing() as upstream:
            with black_hole() as hole:
                swallows = (await server.api("POST", "/proxies", proxy("hole", hole)))["listen"]
                listen = (await server.api("POST", "/proxies", proxy("healthy", upstream)))["listen"]
                swallowed = [await dial(swallows) for _ in range(200)]
                for _ in range(20):
                    peer = await dial(listen)
                    await asks(peer)
                    assert peer.transport is not None
                    peer.transport.close()
                await server.api("POST", "/proxies/hole/toxics", {"type": "latency", "attributes": {"latency": 9}})
                assert not any(peer.lost for peer in swallowed)
                await server.api("DELETE", "/proxies/hole")
                await reaches(lambda: all(peer.lost for peer in swallowed), "still dialling for nobody")
                await server.api("DELETE", "/proxies/healthy")

    run(process, story)


def test_thousands_of_requests_while_toxics_come_and_go(process: Process) -> None:
    """Nothing is lost or mixed up, and no request waits for ever, on connections that no deadly toxic has hit."""

    async def story(server: Embedded) -> None:
        async with echoing() as upstream:
            listen = (await server.api("POST", "/proxies", proxy("kept", upstream)))["listen"]
            broken = (await server.api("POST", "/proxies", proxy("broken", upstream)))["listen"]
            requests = REQUESTS // server.share
            over = asyncio.Event()
            toggling = asyncio.create_task(toggle(server, over))
            killing = asyncio.create_task(dial_and_be_killed(broken, over))
            answered = await asyncio.gather(*(converse(listen, n, requests // 20) for n in range(20)))
            over.set()
            changes, dialled = await asyncio.gather(toggling, killing)
            assert sum(answered) == requests
            assert min(changes, dialled) >= requests // 1000
            for name in ("kept", "broken"):
                await server.api("DELETE", f"/proxies/{name}")

    run(process, story)


async def converse(listen: str, number: int, requests: int) -> int:
    """Requests of 16 bytes, 10 on their way at a time; each answer is the request's own."""
    host, _, port = listen.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for begin in range(0, requests, 10):
        some = b"".join(b"%5d:%9d\n" % (number, n) for n in range(begin, min(begin + 10, requests)))
        writer.write(some)
        async with asyncio.timeout(STALL_S):
            assert await reader.readexactly(len(some)) == some
    writer.close()
    await writer.wait_closed()
    return requests


async def toggle(server: Embedded, over: asyncio.Event) -> int:
    """Toxics come, change and go at random, harmless ones where the requests are and deadly ones beside; how often."""
    count = 0
    present: dict[str, set[str]] = {"kept": set(), "broken": set()}
    while not over.is_set():
        dice = Dice("toggle", count)
        place = dice.pick(tuple(present))
        kind, attributes = dice.pick(KINDS if place == "kept" else KINDS + DEADLY)
        name = f"{kind}{dice.pick((1, 2))}"
        toxics = f"/proxies/{place}/toxics"
        if name not in present[place]:
            body = {"name": name, "type": kind, "stream": dice.pick(STREAMS), "attributes": attributes}
            await server.api("POST", toxics, body | {"toxicity": dice.pick((0.5, 1.0))})
            present[place].add(name)
        elif dice.draw_bool(0.3):
            await server.api("PATCH", f"{toxics}/{name}", {"toxicity": dice.pick((0.0, 0.5, 1.0))})
        else:
            await server.api("DELETE", f"{toxics}/{name}")
            present[place].discard(name)
        count += 1
        await asyncio.sleep(0.002)
    return count


async def dial_and_be_killed(listen: str, over: asyncio.Event) -> int:
    """Short connections, one after the other, that end as it comes; how many."""
    count = 0
    host, _, port = listen.rpartition(":")
    while not over.is_set():
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
        except ConnectionResetError:  # killed before it had heard that it was connected
            count += 1
            continue
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            writer.write(bytes(3000))
            async with asyncio.timeout(0.2):
                await reader.readexactly(3000)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        count += 1
    return count
