"""Measures the gateway without faults beside the real Toxiproxy and beside no proxy at all, in one run.

Run as `python benchmarks/gateway.py [ROUNDS [SECONDS]]`. One nginx answers behind both, one wrk asks. All servers are
up at the same time and take turns round by round; the ratio is the median over rounds. The first event of a stream
comes from a small server of server-sent events, asked on a connection of its own each time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

from chaoslab.base.clock import system

ROUNDS, SECONDS, ASKED = 5, 2, 200
BOUNDS = {"rate": 0.5, "median_ms": 1.0, "first_event_ms": 2.0}
"""The least share of the real one's requests/s at 32 connections, and the most milliseconds added, in the median."""
EVENT = b"data: {}\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def _beside() -> Any:
    """The benchmark of the embedded Toxiproxy, whose servers are used here. Its name is also that of a package."""
    spec = util.spec_from_file_location("toxiproxy_benchmark", Path(__file__).with_name("toxiproxy.py"))
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def events() -> Iterator[str]:
    """A server that answers each connection with two events; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                with line, contextlib.suppress(OSError):
                    line.recv(65536)
                    line.sendall(HEAD + EVENT)
                    line.sendall(EVENT)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def gateway(folder: Path, port: int, **routes: str) -> Iterator[None]:
    """`chaoslab gateway` with these routes, on that port."""
    given = [word for name, address in routes.items() for word in ("--route", f"{name}=http://{address}")]
    command = [sys.executable, "-m", "chaoslab", "gateway", "--port", str(port), "--logs", str(folder), *given]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        while not (line := child.stdout.readline()).startswith("ready"):
            if not line:
                raise RuntimeError("the gateway does not serve")
        yield
    finally:
        child.terminate()
        child.wait()
        child.stdout.close()


def rate(url: str, *, connections: int, seconds: int) -> float:
    """Requests a second."""
    command = ("wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url)
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Requests/sec:\s*([\d.]+)", text)
    if found is None or "Non-2xx" in text or "Socket errors" in text:
        raise RuntimeError(f"wrk says {text}")
    return float(found[1])


def median_ms(address: str, path: str) -> float:
    """The median duration of one request after the other on one connection, in milliseconds."""
    host, _, port = address.rpartition(":")
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    took = []
    with socket.create_connection((host, int(port))) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(ASKED):
            began, got = system.monotonic(), b""
            line.sendall(request)
            while not got.endswith(b"\r\n\r\nok"):
                part = line.recv(65536)
                if not part:
                    raise RuntimeError(f"{address} closed the connection after {got!r}")
                got += part
            took.append(system.monotonic() - began)
    return statistics.median(took) * 1000


def first_event_ms(address: str, path: str) -> float:
    """The median time from connecting to the first event of a stream, in milliseconds."""
    host, _, port = address.rpartition(":")
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    took = []
    for _ in range(ASKED):
        began, got = system.monotonic(), b""
        with socket.create_connection((host, int(port))) as line:
            line.sendall(request)
            while EVENT not in got:
                part = line.recv(65536)
                if not part:
                    raise RuntimeError(f"{address} closed the connection after {got!r}")
                got += part
            took.append(system.monotonic() - began)
    return statistics.median(took) * 1000


def main(arguments: list[str]) -> int:
    rounds = int(arguments[0]) if arguments else ROUNDS
    seconds = int(arguments[1]) if arguments[1:] else SECONDS
    if missing := [name for name in ("nginx", "wrk", "toxiproxy-server") if shutil.which(name) is None]:
        print(f"skipped: {', '.join(missing)} not on PATH")
        return 0
    beside = _beside()
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder, port = Path(name), beside.free_port()
        web = stack.enter_context(beside.nginx(folder))
        stream = stack.enter_context(events())
        real = stack.enter_context(beside.side("real", ("toxiproxy-server",), web))
        stack.enter_context(gateway(folder / "logs", port, web=web, sse=stream))
        through = f"127.0.0.1:{port}"
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {rounds} rounds of {seconds} s")
        sides = {"direct": (web, "/"), "real": (real.listen, "/"), "gateway": (through, "/web/")}
        for _ in range(rounds):
            for side, (address, path) in sides.items():
                for connections in (1, 32):
                    each = rate(f"http://{address}{path}", connections=connections, seconds=seconds)
                    found.setdefault(f"{side}, requests/s, {connections} connections", []).append(each)
                found.setdefault(f"{side}, ms a request", []).append(median_ms(address, path))
            for side, address, path in (("direct", stream, "/"), ("gateway", through, "/sse/")):
                found.setdefault(f"{side}, ms to the first event", []).append(first_event_ms(address, path))
    for what, values in sorted(found.items()):
        print(f"{what:<44}{statistics.median(values):>12.3f}")

    def over(one: str, other: str) -> list[tuple[float, float]]:
        return list(zip(found[one], found[other], strict=True))

    busy, asked, first = "requests/s, 32 connections", "ms a request", "ms to the first event"
    figures = {
        "rate": statistics.median(a / b for a, b in over(f"gateway, {busy}", f"real, {busy}")),
        "median_ms": statistics.median(a - b for a, b in over(f"gateway, {asked}", f"direct, {asked}")),
        "first_event_ms": statistics.median(a - b for a, b in over(f"gateway, {first}", f"direct, {first}")),
    }
    held = {k: (v >= BOUNDS[k]) if k == "rate" else (v <= BOUNDS[k]) for k, v in figures.items()}
    print(json.dumps({"figures": {k: round(v, 3) for k, v in figures.items()}, "bounds": BOUNDS, "held": held}))
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
