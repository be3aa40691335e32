"""Servers that do not keep to HTTP: what they say is bytes on a socket, said for as long as anybody listens."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from chaoslab.worlds.virtual.network._context import world
from chaoslab.worlds.virtual.network._sockets import VirtualSocket
from chaoslab.worlds.virtual.network.network import NetworkEnd
from tests.seams.lab_parts import Heard

DEAF_S = 20.0
"""After which a socket that nobody reads or writes gives up, so that no test leaves a thread behind."""


@dataclass
class Hostile:
    """A server's address, the requests that it heard, and how many bytes it could send."""

    port: int
    heard: list[Heard] = field(default_factory=list)
    sent: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def say(self, connection: socket.socket, data: bytes) -> None:
        connection.sendall(data)
        self.sent += len(data)

    def answer(self, connection: socket.socket, answers: Sequence[Answer]) -> None:
        """A request, in its turn; the connection is closed afterwards."""
        with connection, contextlib.suppress(OSError):
            connection.settimeout(DEAF_S)
            said = answers[min(len(self.heard), len(answers) - 1)]
            self.heard.append(_hear(connection))
            if isinstance(said, bytes):
                self.say(connection, said)
            else:
                said(self, connection)
            connection.shutdown(socket.SHUT_WR)  # an end, and not a reset that would take unread bytes with it
            connection.recv(1)


Answer = bytes | Callable[[Hostile, socket.socket], None]


@contextlib.contextmanager
def hostile(*answers: Answer) -> Iterator[Hostile]:
    """Answers its requests so in turn, the last for ever, each over a connection that is closed after it."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        made = Hostile(door.getsockname()[1])
        threads: list[threading.Thread] = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threads.append(threading.Thread(target=made.answer, args=(door.accept()[0], answers)))
                    threads[-1].start()

        threads.append(threading.Thread(target=accept))
        threads[0].start()
        try:
            yield made
        finally:
            made.stopping.set()
            door.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(DEAF_S)


def hostile_host(name: str, *answers: Answer) -> Hostile:
    """The same as a host of that name, in the world that this runs in."""
    made, here = Hostile(80), world()

    def accept(end: NetworkEnd) -> None:
        connection = VirtualSocket()
        connection.adopt_connection(end)
        here.machine.start_thread(lambda: made.answer(cast(socket.socket, connection), answers), name=f"{name} at work")

    here.network.listen(name, made.port, accept)
    return made


def _hear(connection: socket.socket) -> Heard:
    """The whole request."""
    with connection.makefile("rb") as lines:
        method, path, _ = lines.readline().decode().split()
        headers = dict(line.decode().strip().lower().split(": ", 1) for line in iter(lines.readline, b"\r\n"))
        return Heard(method, path, headers, lines.read(int(headers.get("content-length", 0))))


def reply(body: bytes, *headers: str, status: str = "200 OK", length: object = ...) -> bytes:
    """A reply with that body; `length`: what it claims, None for nothing."""
    claimed = len(body) if length is ... else length
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", "Connection: close", *headers]
    lines += [] if claimed is None else [f"Content-Length: {claimed}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def for_ever(data: bytes, *, first: bytes = b"", pause_s: float = 0.0, most: int = 1 << 30) -> Answer:
    """Says it again and again, up to 1 GB."""

    def say(server: Hostile, connection: socket.socket) -> None:
        server.say(connection, first)
        while server.sent < most and not server.stopping.wait(pause_s):
            server.say(connection, data)

    return say


def never(_server: Hostile, connection: socket.socket) -> None:
    """Hears and says nothing, until the caller goes."""
    connection.recv(1)
