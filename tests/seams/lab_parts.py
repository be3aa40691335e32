"""Shared by the tests of the whole path: a site that answers as told, a manager at work, and a seam with its run."""

import asyncio
import contextlib
import json
import socket
import sqlite3
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from chaoslab.base.clock import Clock, system
from chaoslab.base.identity import Request
from chaoslab.core.exchange import Reply
from chaoslab.core.plan import Plan
from chaoslab.model.prices import compute_cost_usd
from chaoslab.proxy_manager.arming import Places
from chaoslab.proxy_manager.manager import Manager
from chaoslab.record.history import History
from chaoslab.record.log import LogLost
from chaoslab.record.runs import Run
from chaoslab.seams.http.seam import HttpSeam
from chaoslab.seams.http.tags import EXTENSION, RequestTag, Target
from chaoslab.wire.control import ControlDatabase
from chaoslab.wire.lanes import Lanes
from chaoslab.wire.toxiproxy_package import ToxiproxyServer
from tests.free_ports import fixed_ports as fixed_ports
from tests.free_ports import free_port as free_port
from tests.waiting import DEADLINE_S as DEADLINE_S
from tests.waiting import eventually as eventually
from tests.wire.wire_parts import embedded as embedded
from tests.wire.wire_parts import real as real

NOW = "2026-06-01T09:00:00Z"
SERVERS = {"embedded": embedded, "real": real}


@dataclass(frozen=True)
class Heard:
    """One request as a site got it; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Site:
    """An HTTP server on loopback and all that it heard; `names`: the server names (SNI) that its callers asked for."""

    port: int
    heard: list[Heard] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"


def said(value: Any, status: int = 200, **headers: str) -> Reply:
    return Reply(status, {"Content-Type": "application/json", **headers}, json.dumps(value).encode())


@contextlib.contextmanager
def site(answer: Callable[[Heard], Reply], *, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    """A site that answers as the function says."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = DEADLINE_S
        disable_nagle_algorithm = True

        def setup(self) -> None:
            if tls is not None:
                self.request.recv(
                    1, socket.MSG_PEEK
                )  # a reset caller ends here, and not within the making of an SSL socket
                self.request = tls.wrap_socket(self.request, server_side=True)
            super().setup()

        def finish(self) -> None:
            super().finish()
            if tls is not None:
                self.request.close()

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            heard = Heard(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            made.heard.append(heard)
            reply = answer(heard)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = do_DELETE = _do

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's own name
            """Tests read `heard`."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A caller that goes away is what these tests are about."""

    server = Server(("127.0.0.1", port), Handler)
    made = Site(server.server_port)
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: made.names.append(name)
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(DEADLINE_S)


@contextlib.contextmanager
def managed(folder: Path, url: str, targets: list[str], *, clock: Clock = system) -> Iterator[Manager]:
    """A proxy manager in a thread of its own, over the Toxiproxy at `url`."""
    ports = dict(zip(targets, fixed_ports(len(targets)), strict=True))
    places = Places("127.0.0.1", "127.0.0.1", ports, fixed_ports(1, start=30000)[0])
    with ToxiproxyServer(url) as toxiproxy:
        manager = Manager(
            state=folder / "state.db", logs=folder / "logs", toxiproxy=toxiproxy, places=places, clock=clock
        )

        def serve() -> None:
            with contextlib.suppress(sqlite3.Error, LogLost):  # as its own process does, once it has said so
                manager.serve()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            eventually(lambda: manager.health().trouble != "the proxy manager has not begun yet")
            yield manager
        finally:
            manager.stopping.set()
            thread.join(DEADLINE_S)
            assert not thread.is_alive(), "the manager did not stop"


@dataclass
class Bench:
    """One run: its seam, the manager that serves it, and a client that goes through the seam."""

    run: Run
    seam: HttpSeam
    manager: Manager
    toxiproxy: ToxiproxyServer
    client: httpx.AsyncClient
    state: Path

    def history(self) -> History:
        """The logged records, once every lane that was used is healed."""
        control = ControlDatabase(self.state)
        try:
            eventually(lambda: not control.list_pending_calls([self.run.name]))
        finally:
            control.close()
        eventually(lambda: not self.manager.status()["lanes"])
        return History.read(self.run.folder)

    def lanes_left(self) -> list[str]:
        return [name for name in self.toxiproxy.proxies() if name.startswith("lane.")]

    def text(self) -> str:
        """All logs, and the shared state, as one text."""
        files = [*self.run.folder.iterdir(), self.state]
        return "\n".join(path.read_bytes().decode(errors="replace") for path in files)

    async def get(self, request: Request, *, attempt: int = 1, direct: bool = False) -> httpx.Response:
        return await get(self.seam, self.client, request, attempt=attempt, direct=direct)


async def get(
    seam: HttpSeam, client: httpx.AsyncClient, request: Request, *, attempt: int, direct: bool = False
) -> httpx.Response:
    """One attempt of a request that is a plain GET of its target."""
    asked = RequestTag(request, attempt, {"n": request.number}, direct)
    url = f"{seam.targets[request.target].url}/{request.number}"
    return await client.get(url, extensions={EXTENSION: asked})


@contextlib.asynccontextmanager
async def bench(
    folder: Path,
    url: str,
    plan: Plan,
    sites: Mapping[str, str],
    *,
    deadline_s: float = DEADLINE_S,
    urls: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    managers_clock: Clock = system,
    **of_target: Any,
) -> AsyncIterator[Bench]:
    """A run over `sites` (target → host:port).

    `urls` says where a target is for its callers, when that is another place.
    """
    run = Run.create(folder / "logs", now=NOW)
    state = folder / "state.db"
    with contextlib.ExitStack() as stack:
        manager = stack.enter_context(managed(folder, url, list(sites), clock=managers_clock))
        lane_of = {name: ("127.0.0.1", port) for name, port in manager.places.proxy_ports.items()}
        targets = {
            name: Target(name, (urls or {}).get(name, f"http://{at}"), lane_of[name], deadline_s, **of_target)
            for name, at in sites.items()
        }
        open_run(state, run.name, plan, sites)
        lanes = Lanes(state, run.name, clock=system, healthy=lambda: asyncio.to_thread(manager.health))
        stack.callback(lanes.close)
        info = stack.enter_context(run.open_log("info"))
        toxiproxy = stack.enter_context(ToxiproxyServer(url))
        seam = HttpSeam(
            plan=plan, targets=targets, lanes=lanes, log=info, clock=system, price=compute_cost_usd, tls=tls
        )
        async with httpx.AsyncClient(transport=seam, timeout=None) as client:
            yield Bench(run, seam, manager, toxiproxy, client, state)


def open_run(state: Path, run: str, plan: Plan, sites: Mapping[str, str]) -> None:
    """Asks for the run's lanes and waits for them."""
    control = ControlDatabase(state)
    try:
        control.request_run_setup(run, plan=plan.to_json(), targets=sites)
        eventually(lambda: control.get_run_state(run)[0] != "asked")
        assert control.get_run_state(run) == ("ready", "")
    finally:
        control.close()
