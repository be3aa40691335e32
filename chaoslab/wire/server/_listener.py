"""A listening socket. It accepts a few connections in each turn of the loop, and none while open files run short."""

import asyncio
import contextlib
import errno
import os
import socket
import sys
from collections.abc import Callable

ACCEPTS = 16
"""The most connections accepted in a turn."""
PAUSE_S = 0.2
"""Seconds until the next check for free files. New connections wait in the system's queue meanwhile."""
RESERVE_FILES = 32
"""Files left to the API and its changes, however many connections the proxies have."""
SHORT_OF = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Dials:
    """The number of connections to upstreams that are being made. Each takes a file soon."""

    def __init__(self) -> None:
        self.count = 0


class Listener:
    """Accepts connections from a listening socket until it is closed. `dials` counts the dials for accepted
    connections. `reserve`: the number of files left to others."""

    _said = False  # once in the life of a process

    def __init__(
        self, sock: socket.socket, connection: Callable[[], asyncio.Protocol], *, dials: Dials | None = None,
        reserve: int = RESERVE_FILES,
    ) -> None:  # fmt: skip
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._connection = connection
        self._dials = dials
        self._reserve = reserve
        self._beginning: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._loop.add_reader(sock.fileno(), self._accept)

    def getsockname(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()[:2]
        return host, port

    def close(self) -> None:
        """Stops accepting. Connections accepted before are still handed over."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTS):
            if self._files_are_short():
                self._wait(os.strerror(errno.EMFILE))
                return
            try:
                sock, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in SHORT_OF:
                    raise
                self._wait(os.strerror(error.errno))
                return
            sock.setblocking(False)
            task = self._loop.create_task(self._begin(sock))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _begin(self, sock: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._connection, sock)
        except OSError:  # it is gone already, or its proxy has dropped it
            sock.close()

    def _files_are_short(self) -> bool:
        """Tells if the next file would be one of the reserve. The system gives the lowest free number."""
        try:
            import resource
        except ImportError:  # Windows, where there is no such limit
            return False
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most == resource.RLIM_INFINITY:
            return False
        try:
            next_file = os.dup(self._socket.fileno())
        except OSError:
            return True
        os.close(next_file)
        promised = 0 if self._dials is None else self._dials.count + len(self._beginning)
        return next_file + promised >= most - min(self._reserve, most // 4)

    def _wait(self, why: str) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._pause = self._loop.call_later(PAUSE_S, self._go_on)
        if not Listener._said:
            Listener._said = True
            remedy = "new connections wait until others are closed; raise the limit of open files (ulimit -n)"
            with contextlib.suppress(OSError, ValueError):  # stderr may be closed
                print(f"toxiproxy: {why.lower()}: {remedy}; this is said once", file=sys.stderr, flush=True)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._socket.fileno(), self._accept)
