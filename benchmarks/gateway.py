"""Measures the gateway: CPU a request with and without a fault, added time, first event, large bodies, idle WebSockets.

Run as `python benchmarks/gateway.py [REQUESTS]`. A service in this process answers; the gateway, and the real Toxiproxy
where it is on PATH, are processes of their own, whose CPU is read from the system. Direct requests and those through
the gateway take turns, with the medians compared. A bare reverse proxy of aiohttp's stands beside the gateway: what it
costs here is no work of the lab's. Exits 1 when a goal is missed by half.
"""

import asyncio
import contextlib
import json
import shutil
import socket
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence

from aiohttp import ClientSession, DummyCookieJar, web
from toxiproxy import cpu_s, free_port, memory_kb, process, side  # type: ignore[attr-defined]

from chaoslab.base.clock import system

REQUESTS = 6000
ROUNDS = 15
LARGE, LARGE_TIMES = 2 * 1024 * 1024, 300
SOCKETS = 1000
GOALS = {
    "CPU of a plain request, µs": 200.0,
    "CPU of a faulted request, µs": 300.0,
    "added at the median, ms": 1.0,
    "first event later by, ms": 2.0,
    "CPU of 2 MB bodies, × Toxiproxy's": 1.0,
    "1,000 idle WebSockets, MB": 100.0,
}
OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"price": 30}'
BLOB = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % LARGE
EVENTS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'10\r\ndata: {"n": 0}\n\n\r\n0\r\n\r\n'
)
UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


class Service(asyncio.Protocol):
    """Answers by the path: /large takes and gives 2 MB, /events a stream, /chat is a WebSocket, all else is JSON."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.line, self.held, self.missing = transport, b"", 0

    def data_received(self, data: bytes) -> None:
        if self.missing:
            self.missing -= len(data)
            if self.missing <= 0:
                self.line.write(BLOB + b"x" * LARGE)
            return
        self.held += data
        while b"\r\n\r\n" in self.held:
            head, _, self.held = self.held.partition(b"\r\n\r\n")
            path = head.split(b" ")[1]
            if path == b"/large":
                self.missing, held, self.held = LARGE - len(self.held), self.held, b""
                if not self.missing:
                    self.missing = len(held)
                    self.data_received(held)
                return
            self.line.write(EVENTS if path == b"/events" else UPGRADED if path == b"/chat" else OK)


@contextlib.contextmanager
def service() -> Iterator[int]:
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(Service, "127.0.0.1", 0, backlog=1024))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield server.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


@contextlib.contextmanager
def gateway(upstream: int) -> Iterator[tuple[int, int]]:
    """The port and the process id of a gateway with a route that no fault hits, and one where each request is hit."""
    port, fault = free_port(), json.dumps({"fault": "wrong_value", "target": "hit"})
    with tempfile.TemporaryDirectory() as logs:
        routes = [word for name in ("web", "hit") for word in ("--route", f"{name}=http://127.0.0.1:{upstream}")]
        command = (sys.executable, "-m", "chaoslab", "gateway", "--port", str(port), "--logs", logs, *routes)
        with process((*command, "--fault", fault), port) as pid:
            yield port, pid


async def bare(port: int, upstream: int) -> None:
    """The least that a reverse proxy of aiohttp's does."""
    async with ClientSession(auto_decompress=False, cookie_jar=DummyCookieJar()) as session:

        async def answer(asked: web.BaseRequest) -> web.StreamResponse:
            address, body = f"http://127.0.0.1:{upstream}{asked.path_qs}", await asked.read()
            async with session.request(asked.method, address, headers=asked.headers, data=body or None) as got:
                return web.Response(status=got.status, body=await got.read(), content_type=got.content_type)

        runner = web.ServerRunner(web.Server(answer, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()


class Client:
    """One connection, over which requests go one after the other."""

    def __init__(self, port: int, prefix: str = "") -> None:
        self.line, self.prefix = socket.create_connection(("127.0.0.1", port), 20), prefix
        self.line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, path: str, body: bytes = b"", *, until: bytes = b"", size: int = 0) -> float:
        """The seconds until the answer has come, as far as this text, or so many bytes."""
        head = f"{'POST' if body else 'GET'} {self.prefix}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        head += f"Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n" if body else ""
        head += "Connection: Upgrade\r\nUpgrade: websocket\r\n" if path == "/chat" else ""
        began, data, count = system.monotonic(), b"", 0
        self.line.sendall(head.encode() + b"\r\n" + body)
        while (until and until not in data) or count < size:
            part = self.line.recv(1 << 18)
            count += len(part)
            data = part if size else data + part
            assert part
        return system.monotonic() - began


Sides = Sequence[tuple[int, Client]]
"""Processes, each with a connection to it."""


def small(client: Client) -> None:
    client.ask("/x", until=b"}")


def large(client: Client) -> None:
    client.ask("/large", b"y" * LARGE, size=LARGE)


def cpu_s_of(ask: Callable[[Client], None], sides: Sides, count: int) -> list[list[float]]:
    """The CPU of a request at each side, in seconds, round by round; the sides take turns."""
    found: list[list[float]] = [[] for _ in sides]
    for _ in range(ROUNDS + 1):
        for each, (pid, client) in zip(found, sides, strict=True):
            before = cpu_s(pid)
            for _ in range(count // ROUNDS):
                ask(client)
            each.append((cpu_s(pid) - before) / (count // ROUNDS))
    return [each[1:] for each in found]


def times(figures: Sequence[float], others: Sequence[float]) -> float:
    """The multiple of the others, the median of all rounds."""
    return statistics.median(one / other for one, other in zip(figures, others, strict=True))


def later_ms(direct: Client, through: Client, path: str, until: bytes) -> float:
    found: list[list[float]] = [[], []]
    for _ in range(300):
        for client, times in zip((direct, through), found, strict=True):
            times.append(client.ask(path, until=until))
    return (statistics.median(found[1]) - statistics.median(found[0])) * 1e3


def main(arguments: list[str]) -> int:
    count = int(arguments[0]) if arguments else REQUESTS
    found = dict.fromkeys(GOALS, float("nan"))
    with service() as upstream, gateway(upstream) as (port, pid):
        web = Client(port, "/web")
        with process((sys.executable, __file__, "bare", str(other := free_port()), str(upstream)), other) as its:
            sides = [(pid, web), (pid, Client(port, "/hit")), (its, Client(other))]
            rounds = cpu_s_of(small, sides, count)
        plain, faulted, least = (statistics.median(each) * 1e6 for each in rounds)
        found |= {"CPU of a plain request, µs": plain, "CPU of a faulted request, µs": faulted}
        said = f"plain {times(rounds[0], rounds[2]):.2f} ×, faulted {times(rounds[1], rounds[2]):.2f} ×"
        print(f"CPU of a request through a bare proxy of aiohttp's: {least:.0f} µs ({said})")
        found["added at the median, ms"] = later_ms(Client(upstream), web, "/x", b"}")
        found["first event later by, ms"] = later_ms(Client(upstream), web, "/events", b"0\r\n\r\n")
        if shutil.which("toxiproxy-server"):
            with side("real", ("toxiproxy-server",), f"127.0.0.1:{upstream}") as real:
                sides = [(pid, web), (real.pid, Client(int(real.listen.rpartition(":")[2])))]
                rounds = cpu_s_of(large, sides, LARGE_TIMES)
            found["CPU of 2 MB bodies, × Toxiproxy's"] = times(*rounds)
            own_s, its_s = map(statistics.median, rounds)
            print(f"CPU of 2 MB up and down: gateway {own_s * 1e3:.1f} ms, Toxiproxy {its_s * 1e3:.1f} ms")
        before, held = memory_kb(pid), [Client(port, "/web") for _ in range(SOCKETS)]
        for each in held:
            each.ask("/chat", until=b"\r\n\r\n")
        found["1,000 idle WebSockets, MB"] = (memory_kb(pid) - before) / 1024
    for name, goal in GOALS.items():
        print(f"{name}: {found[name]:.2f} (goal {goal:g})")
    return int(any(found[name] > 1.5 * goal for name, goal in GOALS.items()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["bare"]:
        asyncio.run(bare(*map(int, sys.argv[2:])))
    sys.exit(main(sys.argv[1:]))
