"""ASGI 3 applications on the virtual network: each runs on an event loop of the world, in a thread of its own.

To the server it is a WSGI application, so that faults hit it in the same way. Its loop starts with the first request,
after the lifespan's startup, and ends with the trial, after its shutdown. Only HTTP is supported.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.phrases import get_status_phrase
from chaoslab.seams.services.app import LEFT, RAW, Wsgi, detect_service_kind, make_wsgi
from chaoslab.worlds.virtual.machine.machine import Waiter

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.network._context import World
    from chaoslab.worlds.virtual.network._loop import VirtualLoop

Asgi = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]
Message = dict[str, Any]
_VERSION = {"version": "3.0", "spec_version": "2.3"}


def wrap_as_wsgi(world: World, app: Any, name: str) -> Wsgi:
    """A service of any form as a WSGI application of that world. Raises TypeError: it has none of the forms."""
    kind = detect_service_kind(app)
    if kind == "asgi":
        return AsgiServer(world, app, name)
    wsgi: Wsgi = make_wsgi(app) if kind == "function" else app
    return wsgi


class RecreatedService:
    """A service that is made at its first request, and anew at the first one after it has lost its state."""

    def __init__(self, world: World, make: Callable[[], Any], name: str) -> None:
        self._world, self._make, self._name = world, make, name
        self._app: Wsgi | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self._app is None:
            self._app = wrap_as_wsgi(self._world, self._make(), self._name)
        return self._app(environ, start_response)

    def forget_application(self) -> None:
        """Forgets the application, and all that it kept in itself."""
        self._app = None


class AsgiServer:
    """The server of one application in one world."""

    def __init__(self, world: World, app: Asgi, name: str) -> None:
        self.world, self.app, self.name = world, app, name
        self.loop: VirtualLoop | None = None
        self.state: dict[str, Any] = {}
        self._ready, self._failed = False, ""
        self._waiting: list[Waiter] = []
        self._life: _Lifespan | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        self._wait_for_startup()
        exchange = _Exchange(self, environ)
        status, headers = exchange.wait_for_response_head()
        start_response(status, headers)
        return exchange

    def _wait_for_startup(self) -> None:
        """Waits until the application has started. Raises RuntimeError: it failed to."""
        if self.loop is None:
            self.loop = self.world.create_loop()
            self.world.machine.start_thread(self._run_loop, name=f"the loop of {self.name}")
            # Shut down in a thread, after the work: a shutdown may wait.
            self.world.closings.append(self._shut_down)
        if not self._ready:
            waiter = Waiter(self.world.machine)
            self._waiting.append(waiter)
            waiter.park(f"the startup of {self.name}")
        if self._failed:
            raise RuntimeError(f"the service {self.name} failed to start: {self._failed}")

    def _run_loop(self) -> None:
        loop = self.loop
        assert loop is not None
        try:
            self._life = _Lifespan(self)
            self._failed = loop.run_until_complete(self._life.startup())
            self._ready = True
            # All that wait for the startup; they look themselves how it ended.
            self._wake_waiters()
            loop.run_forever()
            loop.run_until_complete(self._life.shutdown())
            loop.end_tasks()
        finally:
            # Also if the loop fails, so that nobody waits for it for ever.
            loop.close()
            self._wake_waiters()

    def _wake_waiters(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter.wake()

    def _shut_down(self) -> None:
        """Ends the loop after the application's shutdown."""
        loop = self.loop
        if loop is not None and not loop.is_closed():
            loop.call_if_open(loop.stop)
            waiter = Waiter(self.world.machine)
            self._waiting.append(waiter)
            waiter.park(f"the shutdown of {self.name}")


class _Lifespan:
    """The lifespan of an application, which may have none."""

    def __init__(self, server: AsgiServer) -> None:
        self._server = server
        self._asked: asyncio.Queue[Message] = asyncio.Queue()
        self._told: asyncio.Queue[Message | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def startup(self) -> str:
        """Starts the application; returns the reason if it fails."""
        self._task = asyncio.create_task(self._run_lifespan())
        self._asked.put_nowait({"type": "lifespan.startup"})
        reply = await self._told.get()
        # An application that raises, or returns, has no lifespan; servers go on then.
        if reply is None or reply["type"] == "lifespan.startup.complete":
            return ""
        return str(reply.get("message") or "its lifespan says so")

    async def shutdown(self) -> None:
        if self._task is not None and not self._task.done():
            self._asked.put_nowait({"type": "lifespan.shutdown"})
            await self._told.get()

    async def _run_lifespan(self) -> None:
        server = self._server
        scope = {"type": "lifespan", "asgi": _VERSION, "state": server.state}
        try:
            await server.app(scope, self._asked.get, self._told.put)
        except BaseException as error:  # noqa: BLE001 - an application without a lifespan raises anything
            reraise_unless_foreign(error)
            logging.getLogger(__name__).debug("%s has no lifespan: %r", server.name, error)
        finally:
            self._told.put_nowait(None)


class _Exchange:
    """One request: its coroutine runs on the application's loop, and the server's thread reads the parts of the
    answer."""

    has_sent_head = True
    """By the time that its parts are read; see `OpenedAnswer`."""

    def __init__(self, server: AsgiServer, environ: dict[str, Any]) -> None:
        assert server.loop is not None
        self._server, self._loop, self._scope = server, server.loop, _make_scope(environ, server.state)
        self._body: bytes | None = environ["wsgi.input"].read()
        self._head: tuple[str, list[tuple[str, str]]] | None = None
        self._parts: deque[bytes] = deque()
        self._error: BaseException | None = None
        self._complete = self._over = self._gone = False
        self._waiter: Waiter | None = None
        self._room: asyncio.Future[None] | None = None
        self._end: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        # A client that hangs up is told to the application as `http.disconnect`.
        environ.get(LEFT, []).append(self.close)
        self._loop.call_if_open(self._start_application_task)

    # In the server's thread.

    def wait_for_response_head(self) -> tuple[str, list[tuple[str, str]]]:
        """The status line and the headers. Raises Exception: the application's own, before it answered."""
        self._wait_until_ready(lambda: self._head is not None or self._gone)
        if self._head is None:
            raise self._error or RuntimeError("the application answered nothing")
        return self._head

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        self._wait_until_ready(lambda: bool(self._parts) or self._complete or self._gone)
        if not self._parts:
            # Its end was stated, or its client has gone; a failure afterwards changes nothing.
            if self._complete or self._gone:
                raise StopIteration
            raise self._error or RuntimeError("the application did not end its answer")
        piece = self._parts.popleft()
        # The application goes on as soon as its part was taken: no faster than its reader.
        if not self._parts:
            self._loop.call_if_open(self._signal_write_room)
        return piece

    def close(self) -> None:
        """Tells the application that nobody reads any more."""
        if not self._over and not self._gone:
            self._gone = True
            self._loop.call_if_open(self._handle_client_gone)
            self._wake_reader()

    def _wait_until_ready(self, ready: Callable[[], bool]) -> None:
        while not ready() and not self._over:
            self._waiter = Waiter(self._server.world.machine)
            self._waiter.park(f"the application of {self._server.name}")

    # On the loop.

    def _wake_reader(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.wake()

    def _start_application_task(self) -> None:
        self._end = self._loop.create_future()
        self._task = self._loop.create_task(self._run_application())

    async def _run_application(self) -> None:
        try:
            await self._server.app(self._scope, self._receive_message, self._send_message)
        except asyncio.CancelledError:
            self._error = RuntimeError("the trial is over")
            raise
        except BaseException as error:
            reraise_unless_foreign(error)
            self._error = error
            # Its client has the whole answer, so the error can only be logged.
            if self._complete:
                logging.getLogger(__name__).error("after the answer of %s", self._server.name, exc_info=error)
        finally:
            self._over = True
            self._wake_reader()

    async def _receive_message(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        assert self._end is not None
        # Shielded: the application may stop waiting, and ask again.
        await asyncio.shield(self._end)
        return {"type": "http.disconnect"}

    async def _send_message(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            status = int(message["status"])
            headers = [(bytes(k).decode("latin-1"), bytes(v).decode("latin-1")) for k, v in message.get("headers", ())]
            # ASGI states no reason, so it is the usual one.
            self._head = f"{status} {get_status_phrase(status)}", headers
        elif message["type"] == "http.response.body":
            if piece := bytes(message.get("body", b"")):
                self._parts.append(piece)
            if not message.get("more_body", False):
                self._complete = True
                self._signal_disconnect()
            self._wake_reader()
            # Back-pressure: a part that is not taken holds the next one up.
            while self._parts and not self._complete and not self._gone:
                self._room = self._loop.create_future()
                await self._room

    def _signal_disconnect(self) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    def _signal_write_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _handle_client_gone(self) -> None:
        self._signal_disconnect()
        self._signal_write_room()


def _make_scope(environ: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    target, headers = environ[RAW]
    path, _, query = target.partition(b"?")
    return {
        "type": "http",
        "asgi": _VERSION,
        "http_version": "1.1",
        "method": environ["REQUEST_METHOD"],
        "scheme": environ["wsgi.url_scheme"],
        # The path unquoted is a text in ASGI, and Latin-1 in the environment.
        "path": environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        # ASGI wants names in lower case.
        "headers": [(bytes(name).lower(), bytes(value)) for name, value in headers],
        "client": (environ["REMOTE_ADDR"], 0),
        "server": (environ["SERVER_NAME"], int(environ["SERVER_PORT"])),
        # A shallow copy for each request, as ASGI wants it.
        "state": state.copy(),
    }
