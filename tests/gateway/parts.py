"""A service on loopback, and a gateway in front of it."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from chaoslab.core.events import PromptStarted
from chaoslab.core.limits import Limits
from chaoslab.record.history import History
from chaoslab.reports.places import read_history
from chaoslab.seams.gateway.routes import parse_routes
from chaoslab.surfaces.gateway import RunningGateway, parse_plan, run_gateway, write_trial_and_run_end
from tests.waiting import DEADLINE_S


class Shop(BaseHTTPRequestHandler):
    """A service that echoes what it was sent. `/stream` waits for `go_on` after its first event."""

    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *_: Any) -> None:
        pass

    def _reply(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path.startswith("/stream"):
            self._stream()
        elif self.path == "/dies":
            self.close_connection = True
        elif self.path == "/big":
            self._reply(200, "x" * 3_000_000)
        elif self.path == "/once":
            self.server.asked += 1
            self._reply(200, {"asked": self.server.asked})
            self.close_connection = True
        else:
            self._reply(200, {"path": self.path, "price": 30, "headers": dict(self.headers)})

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            size = 0
            while chunk := int(self.rfile.readline(), 16):
                size += len(self.rfile.read(chunk))
                self.rfile.readline()
            self.rfile.readline()
        else:
            size = len(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        self.server.posts += 1
        self.server.posted_to = self.path
        if self.path == "/dies":  # after the work
            self.close_connection = True
            return
        self._reply(200, {"size": size, "amount": 30})

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(4):
            if number == 1:
                self.server.go_on.wait(DEADLINE_S)
            self._chunk(f'data: {{"n": {number}}}\n\n'.encode())
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


@contextmanager
def shop() -> Iterator[Any]:
    """The service; `server.url` is its address."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # of a client that has gone, maybe after the test that made it go
    server.go_on = threading.Event()
    server.go_on.set()
    server.asked = server.posts = 0
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def on_loopback(app: Any) -> Iterator[str]:
    """The address of a WSGI application, such as a model."""

    class Silent(WSGIRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    with make_server("127.0.0.1", 0, app, handler_class=Silent) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def process_of(campaign: Path) -> Iterator[int]:
    """A process that a campaign in this folder has begun; the number of its group."""
    variables = {**os.environ, "CHAOSLAB_LIMITS": str(campaign / "limits.json")}
    with subprocess.Popen(["sleep", "600"], env=variables, start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@contextmanager
def standing(
    logs: Path,
    route: Sequence[str],
    *faults: dict[str, Any],
    ports: Mapping[str, int] | None = None,
    timeout_s: float = 20.0,
    elsewhere: str = "",
    proxy_port: int = 0,
    limits: Sequence[Limits] = (),
    **more: Any,
) -> Iterator[RunningGateway]:
    """A gateway with these routes and faults; with a proxy, if it is told what to do with hosts elsewhere."""
    known = parse_routes(route, hosts=bool(elsewhere))
    plan = parse_plan([json.dumps(fault) for fault in faults], None, 1, known, hosts=bool(elsewhere))
    plan = replace(plan, limits=(*plan.limits, *limits))
    started = PromptStarted(prompt_index=1, prompt="test", effects=None)
    proxy = (proxy_port, elsewhere) if elsewhere else None
    with run_gateway(
        known, plan, logs=logs, started=started, ports=ports, timeout_s=timeout_s, proxy=proxy, **more
    ) as running:
        yield running
        running.end_trial()
        write_trial_and_run_end(running.book, prompt="test", answer="done", seconds=1.0)


def history(logs: Path) -> History:
    return read_history("latest", logs=logs)
