"""Toxics at work: neighbours beside a busy connection, jitter, speed; the embedded Toxiproxy beside the real one, in
one run.

Run as `python benchmarks/toxics.py [--rounds N] [--only plain,jitter,speed,many,api,neighbours] [--beside CHECKOUT]`;
the servers take turns round by round. `plain` is benchmarks/toxiproxy.py. `--beside` adds the embedded server of
another checkout as further columns. Speed needs wrk and nginx on PATH.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import toxiproxy
from toxiproxy import Side, commands, cpu_s, nginx, side

from chaoslab.base.clock import system

ROUNDS = 3
BUSY_S = 2.0  # how long a neighbour is asked beside a busy connection
PATIENCE_S = 20.0  # what takes longer is told as this, and that server is asked no more of its neighbours
BUSY = (
    ("slicer, 1 byte", "slicer", {"average_size": 1}),
    ("slicer, 10 bytes", "slicer", {"average_size": 10}),
    ("latency 1 ms", "latency", {"latency": 1}),
    ("latency 10 ± 10 ms", "latency", {"latency": 10, "jitter": 10}),
    ("bandwidth 1 GB/s", "bandwidth", {"rate": 1_000_000}),
    ("slow_close", "slow_close", {"delay": 1}),
    ("limit_data", "limit_data", {"bytes": 2**62}),
    ("timeout", "timeout", {}),
    ("noop", "noop", {}),
)
NEIGHBOURLY = ("round trip, median ms", "round trip, slowest ms", "API call, slowest ms", "DELETE, ms")
JITTERS = ((10, 10), (20, 18), (5, 20))
PARTS = ("jitter", "speed", "many", "api", "neighbours")
EXCHANGES = 200
TOXICS = 1000
PROXIES = 2000
CHANGES = 1000
LATE_CONNECTIONS = 64

Figures = dict[str, dict[str, list[float]]]  # by what, by server, round by round


class Api:
    """The API over one kept connection of our own, so that the client costs little."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def __call__(self, method: str, path: str, body: object = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self._socket.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
        )
        status = self._file.readline()
        length, chunked = 0, False
        while (line := self._file.readline().lower().strip()) != b"":
            length = int(line.partition(b":")[2]) if line.startswith(b"content-length") else length
            chunked = chunked or line == b"transfer-encoding: chunked"
        self._file.read(length)
        while chunked and (size := int(self._file.readline(), 16)):
            self._file.read(size + 2)
        if chunked:
            self._file.readline()
        if status.split()[1][:1] != b"2":
            raise RuntimeError(f"{method} {path}: {status.decode()}")

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def api_of(one: Side) -> Api:
    return Api(one.api.base_url.port or 0)


def dial(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _serve(connection: socket.socket) -> None:
    """Serves one connection by its first byte: `p` pours without an end, anything else is echoed."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection, contextlib.suppress(OSError):
        data = connection.recv(65536)
        while data[:1] == b"p":
            connection.sendall(bytes(1_000_000))
        while data:
            connection.sendall(data)
            data = connection.recv(65536)


def _upstream(ready: multiprocessing.connection.Connection) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    ready.send(f"127.0.0.1:{listener.getsockname()[1]}")
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection,), daemon=True).start()


@contextlib.contextmanager
def upstream() -> Iterator[str]:
    """Pours or echoes, in a process of its own."""
    here, there = multiprocessing.Pipe()
    child = multiprocessing.Process(target=_upstream, args=(there,), daemon=True)
    child.start()
    try:
        yield here.recv()
    finally:
        child.kill()
        child.join()


def _drain(address: str) -> None:
    with dial(address) as connection, contextlib.suppress(OSError):
        connection.sendall(b"p")
        while connection.recv(1024 * 1024):
            pass


@contextlib.contextmanager
def stream_through(listen: str) -> Iterator[None]:
    """Somebody reads an endless stream through that proxy, in a process of its own."""
    child = multiprocessing.Process(target=_drain, args=(listen,), daemon=True)
    child.start()
    try:
        yield
    finally:
        child.kill()
        child.join()


def took(act: Callable[[], object]) -> float:
    """Milliseconds."""
    began = system.monotonic()
    act()
    return (system.monotonic() - began) * 1e3


def exchange(connection: socket.socket) -> None:
    connection.sendall(b".")
    if not connection.recv(1):
        raise RuntimeError("the connection has ended")


def neighbours(one: Side, address: str, note: Callable[[str, float], None]) -> None:
    """The slowest round trip of another proxy, the slowest call of the API, and how long taking the toxic out takes."""
    told: set[str] = set()

    def tell(what: str, value: float) -> None:
        told.add(what)
        note(what, value)

    try:
        _neighbours(one, address, tell)
    except TimeoutError:
        for label, _, _ in BUSY:
            for what in NEIGHBOURLY:
                if f"{label}: {what}" not in told:
                    note(f"{label}: {what}", PATIENCE_S * 1e3)


def _neighbours(one: Side, address: str, note: Callable[[str, float], None]) -> None:
    api = api_of(one)
    quiet = one.proxy("quiet", address)
    for label, kind, attributes in BUSY:
        busy = one.proxy("busy", address)
        api("POST", "/proxies/busy/toxics", {"name": "t", "type": kind, "attributes": attributes})
        with dial(quiet) as neighbour, stream_through(busy):
            exchange(neighbour)
            system.sleep(0.3)  # until the stream is on its way
            over, trips, calls = system.monotonic() + BUSY_S, [], []
            while system.monotonic() < over:
                trips.append(took(lambda: exchange(neighbour)))
                calls.append(took(lambda: api("GET", "/version")))
            removal = took(lambda: api("DELETE", "/proxies/busy/toxics/t"))
            for what, value in zip(
                NEIGHBOURLY, (statistics.median(trips), max(trips), max(calls), removal), strict=True
            ):
                note(f"{label}: {what}", value)
        api("DELETE", "/proxies/busy")
    api("DELETE", "/proxies/quiet")
    api.close()


def jitter(one: Side, address: str, note: Callable[[str, float], None]) -> None:
    api = api_of(one)
    listen = one.proxy("jitter", address)
    for latency, spread in JITTERS:
        toxic = {"name": "t", "type": "latency", "attributes": {"latency": latency, "jitter": spread}}
        api("POST", "/proxies/jitter/toxics", toxic)
        with dial(listen) as connection:
            trips = [took(lambda: exchange(connection)) for _ in range(EXCHANGES)]
        note(f"{latency} ± {spread} ms: mean of {EXCHANGES} exchanges", statistics.mean(trips))
        api("DELETE", "/proxies/jitter/toxics/t")
    api("DELETE", "/proxies/jitter")
    api.close()


def stream(address: str, seconds: float) -> float:
    """Megabytes a second of an endless stream."""
    buffer = bytearray(1024 * 1024)
    with dial(address) as connection:
        connection.sendall(b"p")
        got, began = 0, system.monotonic()
        while (spent := system.monotonic() - began) < seconds:
            got += connection.recv_into(buffer)
    return got / spent / 1e6


def late(one: Side, note: Callable[[str, float], None]) -> None:
    """64 connections, 10 ms of latency."""
    api = api_of(one)
    api("POST", "/proxies/p/toxics", {"name": "t", "type": "latency", "attributes": {"latency": 10}})
    before = cpu_s(one.pid)
    command = ("wrk", "-t1", f"-c{LATE_CONNECTIONS}", "-d2s", "--latency", f"http://{one.listen}/")
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    used = cpu_s(one.pid) - before
    requests = int(said[said.index("requests") - 1])
    p99 = said[said.index("99%") + 1]
    note("latency 10 ms, 64 connections: CPU µs a request", used / requests * 1e6)
    note("latency 10 ms, 64 connections: p99 ms", float(p99.rstrip("mus")) * (0.001 if p99.endswith("us") else 1))
    note("latency 10 ms, 64 connections: requests/s", float(said[said.index("Requests/sec:") + 1]))
    api("DELETE", "/proxies/p/toxics/t")
    api.close()


def many(one: Side, address: str, note: Callable[[str, float], None]) -> None:
    """A thousand toxics on one proxy."""
    api = api_of(one)
    for label, kind, attributes in (
        ("noop", "noop", {}),
        ("latency 0", "latency", {}),
        ("limit_data", "limit_data", {"bytes": 2**62}),
    ):
        listen = one.proxy("many", address)
        for n in range(TOXICS):
            body = {"name": f"t{n}", "type": kind, "attributes": attributes}
            api("POST", "/proxies/many/toxics", body)
        note(f"{TOXICS} toxics ({label}): MB/s", stream(listen, 1.5))
        api("DELETE", "/proxies/many")
    api.close()


def changes(one: Side, address: str, note: Callable[[str, float], None]) -> None:
    """The API's speed in real time, which others on the machine disturb, and in the server's own processor time."""
    api = api_of(one)
    toxic = {"name": "t", "type": "latency", "attributes": {"latency": 100}}

    def many_times(what: str, count: int, act: Callable[[int], object]) -> None:
        before = cpu_s(one.pid)
        spent_s = took(lambda: [act(n) for n in range(count)]) / 1e3
        note(f"{what}, a second", count / spent_s)
        note(f"{what}: CPU µs", (cpu_s(one.pid) - before) / count * 1e6)

    def come_and_go(_: int) -> None:
        api("POST", "/proxies/p/toxics", toxic)
        api("DELETE", "/proxies/p/toxics/t")

    def make(n: int) -> None:
        api("POST", "/proxies", {"name": f"m{n}", "upstream": address, "listen": "127.0.0.1:0"})

    many_times(f"{PROXIES} proxies made", PROXIES, make)
    many_times(f"{PROXIES} proxies deleted", PROXIES, lambda n: api("DELETE", f"/proxies/m{n}"))
    many_times("toxics added and removed", CHANGES, come_and_go)
    many_times("GET /version", CHANGES, lambda _: api("GET", "/version"))
    api.close()


def table(found: Figures, names: Sequence[str]) -> str:
    """Medians over the rounds, and how many times better than the real server: the median of the rounds' ratios."""
    lines = [f"{'':<50}" + "".join(f"{name:>22}" for name in names)]
    for what, sides in found.items():
        line = f"{what:<50}"
        more_is_better = what.endswith(("a second", "MB/s", "requests/s"))
        for name in names:
            pairs = zip(sides[name], sides[names[0]], strict=True)
            ratio = statistics.median(a / b if more_is_better else b / a for a, b in pairs)
            shown = "" if "mean of" in what or name == names[0] else f" {ratio:6.2f}×"
            line += f"{statistics.median(sides[name]):>14.2f}{shown:>8}"
        lines.append(line)
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--only", default=",".join(PARTS), help=f"some of plain,{','.join(PARTS)} (default: all but plain)"
    )
    parser.add_argument("--beside", metavar="CHECKOUT")
    options = parser.parse_args(arguments)
    if shutil.which("toxiproxy-server") is None:
        print("skipped: toxiproxy-server not on PATH")
        return 0
    wanted = options.only.split(",")
    if "speed" in wanted and (missing := [name for name in ("nginx", "wrk") if shutil.which(name) is None]):
        print(f"without the speed of requests: {', '.join(missing)} not on PATH")
        wanted.remove("speed")
    if "plain" in wanted:
        toxiproxy.main([str(options.rounds), "1", *([options.beside] if options.beside else [])])
        print()
    run = commands(options.beside)
    found: Figures = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        web = stack.enter_context(nginx(Path(folder))) if "speed" in wanted else "127.0.0.1:9"
        address = stack.enter_context(upstream())
        sides = [stack.enter_context(side(name, command, web)) for name, command in run.items()]
        print(
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}, "
            f"{options.rounds} rounds"
        )
        for _ in range(options.rounds):
            for one in sides:

                def note(what: str, value: float, name: str = one.name) -> None:
                    found.setdefault(what, {}).setdefault(name, []).append(value)

                if "jitter" in wanted:
                    jitter(one, address, note)
                if "speed" in wanted:
                    late(one, note)
                if "many" in wanted:
                    many(one, address, note)
                if "api" in wanted:
                    changes(one, address, note)
                if "neighbours" in wanted:
                    neighbours(one, address, note)
        print(table(found, list(run)))
        print(f"load at the end {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
