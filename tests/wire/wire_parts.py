"""Shared by the tests of the wire: a script for a pipe, both servers, an upstream to talk to, a client's socket."""

import asyncio
import contextlib
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Pipe, Signal, Timed
from chaoslab.wire.server import serve
from chaoslab.wire.server.process import choose_loop_factory
from chaoslab.wire.toxics import Toxic
from tests import warm
from tests.free_ports import free_port

DEADLINE_S = 30.0
END, RESET = Signal.END, Signal.RESET


def live(toxic: Toxic, *names: object, since: float = 0.0) -> Pipe:
    """A pipe of the toxic from time `since` on, with dice of that name."""
    return toxic.pipe(Dice("test", *names), since)


def play(
    pipe: Pipe, script: Iterable[tuple[float, bytes | Signal]], *, until: float = 1e6
) -> list[tuple[float, bytes | Signal]]:
    """Feed the script at its times, poll exactly when the pipe asks for it; what comes out."""
    out: list[tuple[float, bytes | Signal]] = []

    def poll_up_to(limit: float) -> None:
        while (wake := pipe.find_next_due()) is not None and wake <= limit:
            out.extend((timed.at, timed.item) for timed in pipe.poll(wake))

    for at, item in script:
        poll_up_to(at)
        pipe.feed(Timed(at, item))
    poll_up_to(until)
    return out


@contextlib.contextmanager
def embedded(*, seed: int | None = 1, config: Path | None = None, loop: str = "asyncio") -> Iterator[str]:
    """The embedded server on a free port, in a thread of its own; gives its URL."""
    address: list[str] = []
    ready = threading.Event()
    failure: list[BaseException] = []
    handle: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    def is_ready(host: str, port: int) -> None:
        address.append(f"http://{host}:{port}")
        ready.set()

    async def main() -> None:
        task = asyncio.create_task(
            serve(
                host="127.0.0.1",
                port=0,
                config=config,
                seed=seed,
                ready=is_ready,
            )
        )
        handle.append((asyncio.get_running_loop(), task))
        with contextlib.suppress(asyncio.CancelledError):
            await task

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=choose_loop_factory(loop)) as runner:
                runner.run(main())
        except (OSError, ValueError) as error:
            failure.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(DEADLINE_S)
    if failure:
        thread.join(DEADLINE_S)
        raise failure[0]
    try:
        yield address[0]
    finally:
        running, task = handle[0]
        running.call_soon_threadsafe(task.cancel)
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "the server did not stop"


@contextlib.contextmanager
def process(loop: str, *, files: int | None = None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The embedded server in a process of its own, with so many files at most.

    Gives its URL, and the process, whose stderr can be read.
    """
    python = warm.python() if files is None else sys.executable
    command = [python, "-m", "chaoslab", "toxiproxy", "--port", "0", "--loop", loop]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            said = child.stdout.readline().decode()
            assert said.startswith("ready: toxiproxy on ")
            yield f"http://{said.split()[3]}", child
        finally:
            child.kill()


@contextlib.contextmanager
def real() -> Iterator[str]:
    """Shopify's own server on a free port; skips where it is not installed."""
    with real_with() as url:
        yield url


@contextlib.contextmanager
def real_with(*flags: str) -> Iterator[str]:
    """The same with flags of its own."""
    binary = shutil.which("toxiproxy-server")
    if binary is None:
        pytest.skip("toxiproxy-server is not on PATH")
    port = free_port()
    process = subprocess.Popen(
        [binary, "-port", str(port), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        answers_by(port, system.monotonic() + DEADLINE_S)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(DEADLINE_S)


def answers_by(port: int, deadline: float) -> None:
    """Returns once somebody listens on the port."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 0.1).close()
        except OSError:
            assert system.monotonic() < deadline, "nobody listens"
            threading.Event().wait(0.01)  # a process's start can only be polled
        else:
            return


@contextlib.contextmanager
def upstream(serve_one: Callable[[socket.socket], None]) -> Iterator[str]:
    """A TCP server on loopback that serves each connection in a thread; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []
    open_sockets: list[socket.socket] = []

    def one(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            serve_one(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(3 * DEADLINE_S)  # longer than a client waits, so that it never looks like an end
            open_sockets.append(connection)
            threads.append(threading.Thread(target=one, args=(connection,)))
            threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join(DEADLINE_S)
        for connection in open_sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive(), "an upstream thread hangs"


def echo(connection: socket.socket) -> None:
    """Sends back what it gets, until the other side is through."""
    while data := connection.recv(65536):
        connection.sendall(data)


def dial(address: str) -> socket.socket:
    """A client's connection, whose reads fail rather than hang."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), DEADLINE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError(f"ended after {data!r}")
        data += piece
    return data


@contextlib.contextmanager
def black_hole() -> Iterator[str]:
    """An address where dialling gets no answer at all: nobody accepts, and the queue of those waiting is full."""
    with socket.socket() as hole, contextlib.ExitStack() as stack:
        hole.bind(("127.0.0.1", 0))
        hole.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(hole.getsockname())
        yield f"127.0.0.1:{hole.getsockname()[1]}"
