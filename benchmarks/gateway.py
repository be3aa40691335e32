"""Measures the gateway without faults beside the real Toxiproxy in one run: requests a second, added time, first event.

Run as `python benchmarks/gateway.py [ROUNDS [SECONDS]]`. One nginx answers behind both, one wrk asks at 32 connections;
all servers are up at the same time and take turns round by round. The added time is the median over single requests of
one connection, direct and through the gateway in turn; so is that of the first event of a stream. Exits 1 when a goal
is missed by half.
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from toxiproxy import free_port, nginx, process, side  # type: ignore[attr-defined]

from chaoslab.base.clock import system

ROUNDS, SECONDS = 5, 2
SHARE_GOAL, ADDED_GOAL_MS, EVENT_GOAL_MS = 0.5, 1.0, 2.0
ASKED = 300


class Events(BaseHTTPRequestHandler):
    """A service that streams one event and ends."""

    protocol_version = "HTTP/1.1"

    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        event = b'data: {"n": 0}\n\n'
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


@contextlib.contextmanager
def events() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Events)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@contextlib.contextmanager
def gateway(*routes: str) -> Iterator[str]:
    port = free_port()
    with tempfile.TemporaryDirectory() as logs:
        given = [word for route in routes for word in ("--route", route)]
        command = (sys.executable, "-m", "chaoslab", "gateway", "--port", str(port), "--logs", logs, *given)
        with process(command, port):
            yield f"http://127.0.0.1:{port}"


def rate(url: str, seconds: int) -> float:
    """Requests a second at 32 connections."""
    done = subprocess.run(["wrk", "-t1", "-c32", f"-d{seconds}s", url], capture_output=True, text=True, check=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise RuntimeError(done.stdout)
    return float(done.stdout.partition("Requests/sec:")[2].split()[0])


def added_ms(direct: str, through: str, *, stream: bool) -> float:
    """Milliseconds that the gateway adds, at the median, until the whole answer or the first event is there."""
    found: dict[str, list[float]] = {direct: [], through: []}
    with httpx.Client(trust_env=False) as client:
        for _ in range(ASKED):
            for url, times in found.items():
                began = system.monotonic()
                if stream:
                    with client.stream("GET", url) as reply:
                        parts = reply.iter_raw()
                        next(parts)
                        times.append(system.monotonic() - began)
                        list(parts)
                else:
                    client.get(url)
                    times.append(system.monotonic() - began)
    return (statistics.median(found[through]) - statistics.median(found[direct])) * 1000


def main(arguments: list[str]) -> int:
    rounds = int(arguments[0]) if arguments else ROUNDS
    seconds = int(arguments[1]) if arguments[1:] else SECONDS
    if missing := [name for name in ("nginx", "wrk", "toxiproxy-server") if shutil.which(name) is None]:
        print(f"skipped: {', '.join(missing)} not on PATH")
        return 0
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        upstream = stack.enter_context(nginx(Path(folder)))
        streamed = stack.enter_context(events())
        real = stack.enter_context(side("real", ("toxiproxy-server",), upstream))
        own = stack.enter_context(gateway(f"web=http://{upstream}", f"events={streamed}"))
        rates: dict[str, list[float]] = {f"http://{real.listen}/": [], f"{own}/web/": []}
        for _ in range(rounds):
            for url, found in rates.items():
                found.append(rate(url, seconds))
        toxiproxy, gateway_ = (statistics.median(found) for found in rates.values())
        shares = [b / a for a, b in zip(*rates.values(), strict=True)]
        share = statistics.median(shares)
        added = added_ms(f"http://{upstream}/", f"{own}/web/", stream=False)
        event = added_ms(f"{streamed}/", f"{own}/events/", stream=True)
    print(
        f"requests/s at 32 connections: Toxiproxy {toxiproxy:.0f}, gateway {gateway_:.0f}, {share:.2f} of it "
        f"(goal {SHARE_GOAL})"
    )
    print(f"added at the median: {added:.2f} ms (goal {ADDED_GOAL_MS})")
    print(f"first event later by: {event:.2f} ms (goal {EVENT_GOAL_MS})")
    missed = share < SHARE_GOAL / 1.5 or added > ADDED_GOAL_MS * 1.5 or event > EVENT_GOAL_MS * 1.5
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
