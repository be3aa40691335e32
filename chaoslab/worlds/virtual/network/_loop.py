"""An asyncio event loop on the virtual machine: asyncio's own, except for its waiting and its connections."""

from __future__ import annotations

import asyncio
import ctypes
import inspect
import itertools
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from chaoslab.worlds.virtual.machine._standstill import describe_wait_by_frames
from chaoslab.worlds.virtual.machine.context import Unsupported, here
from chaoslab.worlds.virtual.machine.machine import Waiter
from chaoslab.worlds.virtual.network import _tls
from chaoslab.worlds.virtual.network._context import world
from chaoslab.worlds.virtual.network._sockets import VirtualSocket
from chaoslab.worlds.virtual.network._transport import VirtualServer, VirtualTransport
from chaoslab.worlds.virtual.network.network import NetworkEnd

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.network._context import World


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop of one thread of the machine. A program may run several, one after the other or in several threads."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world, self.machine, self.network = world, world.machine, world.network
        # asyncio takes what is due within the clock's resolution for due now; here time is exact.
        self._clock_resolution = 1e-9
        self._selector = self  # BaseEventLoop waits in it
        self._waiter: Waiter | None = None
        self._tasks_named, self._named = itertools.count(1), 0
        self._futures, self._tasks = itertools.count(1), itertools.count(1)
        self._servers: list[VirtualServer] = []
        self._signals: dict[int, Any] = {}
        self._left = False
        world.loops[id(self)] = self

    # Waiting.

    def time(self) -> float:
        machine = self.machine  # the same as `look`, at a third of the cost for most calls
        machine.looks_left -= 1
        return machine.now if machine.looks_left > 0 else machine.read_clock()

    def select(self, timeout: float | None) -> tuple[()]:
        """Lets others run: only those due now if this loop has work, else until it has."""
        until = None
        if timeout is not None:
            due: list[Any] = self._scheduled  # type: ignore[attr-defined]
            # Asked of the timer itself, since `timeout` is a difference of two floats and may miss it by a bit.
            until = due[0]._when if timeout > 0 else self.machine.steps.find_zero_wait_end(self)
        if until is not None and until <= self.machine.now:
            # Others that are due now go first, as another process would.
            self.machine.yield_to_due_calls()
            return ()
        waiter = self._waiter = Waiter(self.machine)
        try:
            waiter.park(self, until)
        finally:
            self._waiter = None
        return ()

    # Nothing comes from a selector: the network calls the loop.
    def _process_events(self, event_list: object) -> None:
        pass

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:  # type: ignore[override]
        self.machine.raise_if_foreign_thread()
        return super().call_soon_threadsafe(*args, **kwargs)

    def _write_to_self(self) -> None:
        # Only a loop that waits has to be woken.
        if self._waiter is not None:
            self._waiter.wake()

    def describe_waits(self) -> list[str]:
        """The unfinished tasks, each with its wait."""
        # Sorted, as tasks are kept in a set.
        return sorted(_describe_task(task) for task in asyncio.all_tasks(self))

    def call_if_open(self, call: Callable[..., Any], *args: Any) -> None:
        """Calls something on the loop, for the network or another thread. A closed loop ignores it."""
        if not self.is_closed():
            self.call_soon_threadsafe(call, *args)

    # Start and end.

    def run_until_stopped(self) -> None:
        """Runs until it is stopped, then ends the remaining tasks; for a thread that does nothing else."""
        try:
            self.run_forever()
            self.end_tasks()
        finally:
            self.close()

    def end_tasks(self) -> None:
        """Cancels the remaining tasks, lets them end, and waits for the threads of its executor, like `asyncio.run`."""
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        if tasks:
            # As asyncio.run does: what they raise is nobody's any more.
            self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.run_until_complete(self._shut_down_executor())

    def has_single_task(self) -> bool:
        """True if the running task is the only one, and nothing else is scheduled."""
        loop: Any = self
        due = any(not handle._cancelled for handle in (*loop._ready, *loop._scheduled))
        return not due and (
            self._named == 1 or len(asyncio.all_tasks(self)) == 1
        )  # the latter goes through all there are

    async def _shut_down_executor(self) -> None:
        await self.shutdown_asyncgens()
        await self.shutdown_default_executor()

    # Tasks and threads.

    def create_future(self) -> asyncio.Future[Any]:
        future = Future(loop=self)
        future.number = next(self._futures)
        return future

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: Any = None, **kwargs: Any
    ) -> asyncio.Task[Any]:
        """Makes a task; each loop numbers its tasks from one, since asyncio's number depends on the process's past."""
        number = self._named = next(self._tasks_named)
        name = f"Task-{number}" if name is None else name
        # A program's own factory gets its way, with the name that it would have here.
        if self._task_factory is not None:  # type: ignore[attr-defined]
            return super().create_task(coro, name=name, **kwargs)
        self._check_closed()
        return Task(coro, loop=self, name=name, **kwargs)

    # Connections.

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[Any]:
        return self._world.resolve_host(host, port)

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:  # noqa: ARG002
        return str(sockaddr[0]), str(sockaddr[1])

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: Any = None,
        port: Any = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        server_hostname: Any = None,
        **_: Any,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        name = _tls.choose_server_name(ssl, server_hostname, host)
        # aiohttp hands over sockets that it has connected itself.
        if sock is None:
            sock = VirtualSocket()
            await self.sock_connect(sock, (host, port))
        if ssl:
            self._perform_handshake(ssl, sock.end, sock.close)
        protocol = protocol_factory()
        transport = VirtualTransport(self, sock.end, protocol, sock)
        if ssl:
            transport.enable_tls(ssl, False, name)
        transport.start_protocol()
        return transport, protocol

    async def start_tls(  # type: ignore[override]
        self,
        transport: Any,
        protocol: asyncio.BaseProtocol,
        sslcontext: Any,
        *,
        server_side: bool = False,
        server_hostname: Any = None,
        **_: Any,
    ) -> asyncio.BaseTransport:
        """The same transport, from now on with TLS, for the new protocol."""
        if not isinstance(transport, VirtualTransport):
            raise TypeError(f"transport {transport!r} is not supported by start_tls()")
        if not server_side:
            self._perform_handshake(sslcontext, transport._end, transport.close)
        transport.enable_tls(sslcontext, server_side, server_hostname)
        transport.set_protocol(protocol)
        transport.resume_reading()
        return transport

    def _perform_handshake(self, context: Any, end: NetworkEnd, close: Callable[[], object]) -> None:
        """Makes a client's handshake; closes the connection if that fails, with `ssl.SSLError`."""
        try:
            _tls.perform_handshake(context, self._world.network.gates.get(end.peer_address))
        except OSError:
            close()
            raise

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: Any = None,
        port: Any = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        **_: Any,
    ) -> VirtualServer:
        """A server at one address; without a host it is loopback."""
        if sock is not None:
            raise Unsupported("a server of this kind", "let it listen by host and port")
        host = host[0] if isinstance(host, list | tuple) and host else host
        address = str(host) if host and host != "0.0.0.0" else "127.0.0.1"
        server = VirtualServer(self, self._world.network, address, int(port or 0), protocol_factory, ssl)
        self._servers.append(server)
        return server

    def close(self) -> None:
        """Closes the loop and its servers: new connections are refused, and the addresses are free again."""
        # asyncio refuses to close a loop that runs, in `super().close()`.
        if not self.is_running():
            for server in self._servers:
                server.close()
            if self._world.loops.pop(id(self), None) is not None:
                self._world.left_tasks += self.list_pending_tasks()
        super().close()

    def list_pending_tasks(self) -> list[asyncio.Task[Any]]:
        """Its unfinished tasks."""
        # By their numbers, since a set's order would differ between processes.
        return sorted(asyncio.all_tasks(self), key=hash)

    def close_with_trial(self) -> None:
        """Closes the loop with its trial."""
        # Its thread is gone, and a loop that is taken for running cannot be closed.
        self._thread_id = None
        self.close()
        self._left = True

    def _check_closed(self) -> None:
        """Renews a loop that the program has kept from an earlier trial. Raises RuntimeError: the program has closed
        it."""
        if not self._closed:  # type: ignore[attr-defined]  # neither closed nor left
            return
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        # What a program has set stays with a loop that it keeps.
        factory, handler, debug = self.get_task_factory(), self._exception_handler, self.get_debug()  # type: ignore[attr-defined]
        VirtualLoop.__init__(self, world())
        self.set_task_factory(factory)
        self.set_exception_handler(handler)
        self.set_debug(debug)

    def is_closed(self) -> bool:
        """True if the program closed it, or if its trial is over and no other has begun."""
        closed: bool = self._closed  # type: ignore[attr-defined]
        return closed and not (self._left and here.world not in (None, self._world))

    def __del__(self, *args: Any) -> None:
        # asyncio warns of a loop that was not closed; this one's trial closed it.
        if not self._left:
            super().__del__(*args)

    def accept_connection(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], end: NetworkEnd, context: Any = None
    ) -> None:
        """Starts the server's side of a connection. `context`: of its TLS. Runs on this loop's own thread."""
        sock = VirtualSocket()
        sock.adopt_connection(end)
        transport = VirtualTransport(self, end, protocol_factory(), sock)
        if context is not None:
            transport.enable_tls(context, True, None)
        transport.start_protocol()

    async def sock_connect(self, sock: Any, address: Any) -> None:
        connected = self.create_future()

        def settle_connect(outcome: NetworkEnd | OSError) -> None:
            if isinstance(outcome, OSError):
                self.call_if_open(settle_future, connected, None, outcome)
            elif connected.cancelled() or self.is_closed():  # the caller has given up
                outcome.close()
            else:
                self.call_if_open(settle_future, connected, outcome, None)

        host, port = address[:2]
        if self._world.network.find_address(str(host)) != host:
            host = self._world.resolve_host(host, port)[0][4][0]
        self._world.network.open_connection(self._world.normalize_address((host, port)), settle_connect)
        sock.adopt_connection(await connected)

    def remove_reader(self, fd: Any) -> bool:  # noqa: ARG002 - there never is one
        return False

    remove_writer = remove_reader

    # Signals: none arrives in a world, but many programs register handlers at their start.

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:  # type: ignore[override]
        self._signals[sig] = callback, args

    def remove_signal_handler(self, sig: int) -> bool:
        return self._signals.pop(sig, None) is not None


def _make_unsupported_method(feature: str, remedy: str) -> Callable[..., Any]:
    def raise_unsupported(self: VirtualLoop, *_: Any, **__: Any) -> Any:  # noqa: ARG001
        raise Unsupported(feature, remedy)

    return raise_unsupported


_LEFT_OUT, _STREAMS = "leave it out of the trial", "use asyncio.open_connection"
_REFUSED = (
    ("subprocess_exec subprocess_shell", "a subprocess", "call what it does as a function"),
    ("add_reader add_writer", "waiting for a file with {}", _LEFT_OUT),
    ("connect_read_pipe connect_write_pipe", "a pipe", _LEFT_OUT),
    ("create_unix_connection create_unix_server", "a Unix socket", "use TCP"),
    ("create_datagram_endpoint", "datagrams", "use TCP"),
    ("connect_accepted_socket", "a server of this kind", "use asyncio.start_server"),
    ("sock_accept sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into", "a loop's {}", _STREAMS),
    ("sock_sendall sock_sendto sock_sendfile", "a loop's {}", _STREAMS),
    ("sendfile", "a loop's {}", "write what the file holds"),
)
"""The methods of a loop that would leave the world, with a description and a remedy."""
for _names, _what, _remedy in _REFUSED:
    for _name in _names.split():
        setattr(VirtualLoop, _name, _make_unsupported_method(_what.format(_name), _remedy))


class Future(asyncio.Future[Any]):
    """A future with a number as its hash. `asyncio.wait` and task groups keep sets; hashed by address, their order
    would differ between processes."""

    number = 0

    def __hash__(self) -> int:
        """The number; a future that no loop made gets one at the first use."""
        if not self.number:
            loop: Any = self.get_loop()
            self.number = next(loop._futures)
        return self.number


class Task(asyncio.Task[Any]):
    """A task with a number as its hash, given by its loop at the first use."""

    _number = 0

    def __hash__(self) -> int:
        if not self._number:
            loop: Any = self.get_loop()
            self._number = next(loop._tasks)
        return self._number


def close_coroutine(task: asyncio.Task[Any], *, loop: asyncio.AbstractEventLoop) -> None:
    """Ends the coroutine of a task that no loop runs any more. `loop`: an open one."""
    # It would print that a pending task was destroyed.
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    # Listed before, since one that awaits again is let go by whoever awaits it.
    chain = list(_iterate_await_chain(task.get_coro()))
    # One that catches GeneratorExit and awaits again is suspended there by a loop. Without one `asyncio.sleep` raises,
    # and `while True: try: ... except BaseException: pass` would turn for ever.
    asyncio._set_running_loop(loop)
    try:
        with suppress(Exception):  # a coroutine that awaits at its end cannot be closed
            chain[0].close()
    finally:
        # It would be told to end once more when it is freed, at the latest at the process's end, and turn then.
        for coroutine in chain:
            if getattr(coroutine, "cr_frame", None) is not None:
                _count_reference(coroutine)


def _iterate_await_chain(coroutine: Any) -> Iterator[Any]:
    """The coroutine, and that which it awaits, and so on."""
    while coroutine is not None:
        yield coroutine
        coroutine = getattr(coroutine, "cr_await", None)


_count_reference = ctypes.pythonapi.Py_IncRef
"""Keeps an object for as long as the process lives, and past its end: nothing ever frees it."""
_count_reference.argtypes = [ctypes.py_object]
_count_reference.restype = None


def settle_future(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """Sets the future's result or error, unless it was cancelled."""
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):  # no future can carry it
        future.set_exception(RuntimeError("the thread raised StopIteration"))
    else:
        future.set_exception(error)


def _describe_task(task: asyncio.Task[Any]) -> str:
    """A task, the thing it awaits, and its place in the code."""
    name, coroutine = task.get_name(), task.get_coro()
    if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
        return f"{name} has not begun"
    frames: list[FrameType] = []
    inner: Any = coroutine
    while inner is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(inner, f"{kind}_frame")), None)
        if kind is None:
            break
        frame = getattr(inner, f"{kind}_frame")
        if frame is not None:
            frames.insert(0, frame)
        inner = getattr(inner, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
    return f"{name} {describe_wait_by_frames(frames, _describe_awaited(getattr(task, '_fut_waiter', None), frames))}"


def _describe_awaited(awaited: Any, frames: list[FrameType]) -> str:
    """The event that would end the wait."""
    for frame in frames:
        # The names under which clients keep their transport.
        for holder in ("_transport", "transport", "_stream", "_protocol"):
            transport = getattr(frame.f_locals.get("self"), holder, None)
            transport = getattr(transport, "transport", transport)
            if isinstance(transport, VirtualTransport):
                return f"recv from {transport.peer_name}"
    if isinstance(awaited, asyncio.Task):
        return f"task {awaited.get_name()}"
    children = getattr(awaited, "_children", None)
    if children:
        return "tasks " + ", ".join(sorted(child.get_name() for child in children if not child.done()))
    return "its next turn" if awaited is None else "something that nobody has promised"
