"""Measures a proxy without toxics: the embedded Toxiproxy, plain and on uvloop, beside the real one, in one run.

Run as `python benchmarks/toxiproxy.py [ROUNDS [SECONDS [CHECKOUT]]]`; another checkout adds its embedded server as
further columns. One nginx answers behind every proxy, one wrk asks. All servers are up at the same time and take turns
round by round, so that what else the machine does meets all alike; the ratios are medians over rounds.
"""

import asyncio
import contextlib
import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import httpx

from chaoslab.base.clock import system

ROUNDS, SECONDS = 5, 1
START_S = 20.0
IDLE = 8000
BIG_BYTES = 64 * 1024**3  # sparse, so that one stream never comes to its end
NGINX = """
worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  access_log off; keepalive_requests 1000000000; sendfile on;
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{ return 200 "ok"; }}
    location /big {{ root {folder}; }}
  }}
}}
"""
FIGURES = {
    "requests/s, 1 connection": max,
    "requests/s, 32 connections": max,
    "one stream, MB/s": max,
    "CPU µs a request": min,
    f"KB a connection at {IDLE}": min,
}
Figures = dict[str, list[float]]


@dataclass
class Side:
    """One server with a proxy in front of nginx, and what was measured, round by round."""

    name: str
    pid: int
    api: httpx.Client
    upstream: str
    listen: str = ""
    found: Figures = field(default_factory=dict)

    def proxy(self, name: str, upstream: str) -> str:
        body = {"name": name, "upstream": upstream, "listen": "127.0.0.1:0"}
        return str(self.api.post("/proxies", json=body).raise_for_status().json()["listen"])

    def note(self, figure: str, value: float) -> None:
        self.found.setdefault(figure, []).append(value)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def process(command: Sequence[str], port: int) -> Iterator[int]:
    """A child that listens on the port; its pid."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = system.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            if child.poll() is not None or system.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} does not serve")
            system.sleep(0.05)
        yield child.pid
    finally:
        child.terminate()
        child.wait()


@contextlib.contextmanager
def nginx(folder: Path) -> Iterator[str]:
    port = free_port()
    folder.chmod(0o755)
    with (folder / "big").open("wb") as file:
        file.truncate(BIG_BYTES)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port), encoding="utf-8")
    with process(("nginx", "-c", str(folder / "nginx.conf")), port):
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def side(name: str, command: Sequence[str], upstream: str) -> Iterator[Side]:
    port = free_port()
    with contextlib.ExitStack() as stack:
        pid = stack.enter_context(process((*command, "-port" if name == "real" else "--port", str(port)), port))
        api = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False))
        one = Side(name, pid, api, upstream)
        one.listen = one.proxy("p", upstream)
        yield one


def wrk(address: str, *, connections: int, seconds: int) -> float:
    """Requests a second."""
    command = ("wrk", "-t1", f"-c{connections}", f"-d{seconds}s", f"http://{address}/")
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Requests/sec:\s*([\d.]+)", text)
    if found is None or "Non-2xx" in text:
        raise RuntimeError(f"wrk says {text}")
    return float(found[1])


def stream(address: str, *, seconds: int) -> float:
    """Megabytes a second of one long answer."""
    host, _, port = address.rpartition(":")
    buffer = bytearray(1024 * 1024)
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET /big HTTP/1.1\r\nHost: big\r\n\r\n")
        got, began = 0, system.monotonic()
        while (took := system.monotonic() - began) < seconds:
            got += connection.recv_into(buffer)
    return got / took / 1e6


def cpu_s(pid: int) -> float:
    """Seconds of processor time that the process has used."""
    values = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def memory_kb(pid: int) -> int:
    found = re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    assert found
    return int(found[1])


def speed(one: Side, seconds: int) -> None:
    one.note("requests/s, 1 connection", wrk(one.listen, connections=1, seconds=seconds))
    before = cpu_s(one.pid)
    rate = wrk(one.listen, connections=32, seconds=seconds)
    one.note("requests/s, 32 connections", rate)
    one.note("CPU µs a request", (cpu_s(one.pid) - before) / (rate * seconds) * 1e6)
    one.note("one stream, MB/s", stream(one.listen, seconds=seconds))


def without(one: Side, seconds: int, found: Figures) -> None:
    """Measures a connection without toxics while there are some elsewhere on the server, and after its own are gone."""

    def note(what: str) -> None:
        found.setdefault(what, []).append(wrk(one.listen, connections=32, seconds=seconds))

    toxic = {"name": "late", "type": "latency", "attributes": {"latency": 100, "jitter": 50}}
    note("no toxic anywhere")
    other = one.proxy("other", one.upstream)
    one.api.post("/proxies/other/toxics", json=toxic).raise_for_status()
    host, _, port = other.rpartition(":")
    with socket.create_connection((host, int(port))) as waiting:
        waiting.sendall(b"GET / HTTP/1.1\r\nHost: other\r\n\r\n")
        note("a toxic on another proxy")
    one.api.delete("/proxies/other").raise_for_status()
    one.api.post("/proxies/p/toxics", json=toxic).raise_for_status()
    one.api.delete("/proxies/p/toxics/late").raise_for_status()
    note("a toxic that was here and is gone")


class Held(asyncio.Protocol):
    """A connection that stays open and says nothing but its first byte, so that the upstream is known to be dialled."""

    arrived = 0

    def __init__(self, opened: list[asyncio.Transport]) -> None:
        self._opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._opened.append(transport)

    def data_received(self, data: bytes) -> None:
        Held.arrived += len(data)


async def idle(one: Side) -> None:
    """The memory of many connections that do nothing."""
    loop = asyncio.get_running_loop()
    opened: list[asyncio.Transport] = []
    server = await loop.create_server(lambda: Held(opened), "127.0.0.1", 0, backlog=1024)
    listen = one.proxy("idle", f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    host, _, port = listen.rpartition(":")
    before, Held.arrived = memory_kb(one.pid), 0
    for n in range(IDLE):
        transport, _ = await loop.create_connection(lambda: Held(opened), host, int(port))
        transport.write(b".")
        while Held.arrived < n - 100:
            await asyncio.sleep(0.001)
    while Held.arrived < IDLE:
        await asyncio.sleep(0.01)
    one.note(f"KB a connection at {IDLE}", (memory_kb(one.pid) - before) / IDLE)
    server.close()
    for transport in opened:
        transport.abort()
    await asyncio.sleep(0)
    one.api.delete("/proxies/idle").raise_for_status()


def table(sides: Sequence[Side]) -> str:
    lines = [
        f"{'':<28}" + "".join(f"{one.name:>32}" for one in sides),
        f"{'':<28}" + f"{'median      best  × real':>32}" * len(sides),
    ]
    reference = sides[0].found
    for figure, best in FIGURES.items():
        line = f"{figure:<28}"
        for one in sides:
            values = one.found[figure]
            pairs = zip(values, reference[figure], strict=True)
            ratio = statistics.median(a / b if best is max else b / a for a, b in pairs)
            line += f"{statistics.median(values):>14.1f}{best(values):>10.1f}{ratio:>7.2f}×"
        lines.append(line)
    return "\n".join(lines)


def commands(beside: str | None = None) -> dict[str, Sequence[str]]:
    """The servers, the real one first; `beside`: another checkout."""
    embedded = (sys.executable, "-m", "chaoslab", "toxiproxy", "--loop")
    found: dict[str, Sequence[str]] = {"real": ("toxiproxy-server",), "asyncio": (*embedded, "asyncio")}
    if find_spec("uvloop"):
        found["uvloop"] = (*embedded, "uvloop")
    else:
        print("without uvloop: it is not installed (the extra `fast`)")
    if beside is not None:
        found |= {f"{name} beside": ("env", "-C", beside, *found[name]) for name in tuple(found)[1:]}
    return found


def main(arguments: Sequence[str]) -> int:
    rounds = int(arguments[0]) if arguments else ROUNDS
    seconds = int(arguments[1]) if arguments[1:] else SECONDS
    beside = arguments[2] if arguments[2:] else None
    if missing := [name for name in ("nginx", "wrk", "toxiproxy-server") if shutil.which(name) is None]:
        print(f"skipped: {', '.join(missing)} not on PATH")
        return 0
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    unhurt: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        upstream = stack.enter_context(nginx(Path(folder)))
        sides = [stack.enter_context(side(name, command, upstream)) for name, command in commands(beside).items()]
        print(
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}, "
            f"{rounds} rounds of {seconds} s"
        )
        for one in sides:  # first, while no heap has grown yet
            asyncio.run(idle(one))
            one.found |= {figure: values * rounds for figure, values in one.found.items()}
        for _ in range(rounds):
            for one in sides:
                speed(one, seconds)
            for one in sides[1:] if beside is None else ():
                without(one, seconds, unhurt.setdefault(one.name, {}))
        print(table(sides))
        for name, found in unhurt.items():
            print(f"\n{name}, requests/s at 32 connections without a toxic of their own (median, best)")
            for what, values in found.items():
                print(f"  {what:<36}{statistics.median(values):>10.0f}{max(values):>10.0f}")
        print(f"\nload at the end {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
