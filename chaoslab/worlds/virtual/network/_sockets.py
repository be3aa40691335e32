"""Blocking sockets on the virtual network, the `socket.socket` of the machine's threads, and `select` over them."""

from __future__ import annotations

import errno
import io
import os
import select as real_select
import socket as real
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.machine.machine import Waiter
from chaoslab.worlds.virtual.network._context import find_world, world
from chaoslab.worlds.virtual.network.network import NetworkEnd

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.network._context import World

# The first file number, above those of the process's files.
FIRST_FD = 1_000_000_000


class VirtualSocket:
    """A TCP client's socket."""

    def __init__(
        self,
        family: int = real.AF_INET,
        type: int = real.SOCK_STREAM,  # noqa: A002 - the name that callers know
        proto: int = 0,
        fileno: Any = None,
    ) -> None:
        # -1 is the default of `socket.socket`, which means these values.
        if fileno is not None or family not in (real.AF_INET, real.AF_INET6, -1) or type not in (real.SOCK_STREAM, -1):
            raise Unsupported("a socket that is not a TCP client's", "use TCP")
        self.family, self.type, self.proto = real.AddressFamily(max(family, 2)), real.SOCK_STREAM, proto
        self.end: NetworkEnd | None = None
        self._asked = self._dialling = False  # its outcome was not reported; it is not established
        self._failed: OSError | None = None  # the reason for a failed connection
        self._deaf = False
        self.rude = False
        self._world: World = world()
        self._timeout: float | None = self._world.default_timeout_s
        self._waiters: list[Waiter] = []
        self._number = self._world.sockets.add_socket(self)
        self._closed = self._gone = False  # gone: closed together with the last file made from it
        self._held = 0  # the number of files made from it
        self._heir: VirtualSocket | None = None  # took its connection over

    # Events of the end: they wake the waiting threads.

    def handle_arrival(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.wake()

    def handle_reset(self, error: OSError) -> None:  # noqa: ARG002 - kept by the end
        self.handle_arrival()

    def handle_write_room(self) -> None:
        self.handle_arrival()

    # Connecting.

    def connect(self, address: Any) -> None:
        """Connects. Without waiting it raises EINPROGRESS; the connection is established later, and then the socket is
        writable."""
        if self._gone:
            raise _make_os_error(errno.EBADF)
        # The two errors of POSIX for a connect that has begun: the first call says EINPROGRESS, the next ones EALREADY.
        busy = errno.EALREADY if self._dialling else errno.EINPROGRESS
        if not self._asked:
            if self.end is not None:
                raise _make_os_error(errno.EISCONN)
            self._world.network.open_connection(self._world.normalize_address(address), self._finish_connect)
            self._asked = self._dialling = True
        if self._dialling:
            self._wait_until_ready(
                lambda: not self._dialling, f"connect to {self._world.network.format_address(address)}", busy
            )
        self._asked = False
        self._raise_connect_error()

    def _finish_connect(self, outcome: NetworkEnd | OSError) -> None:
        # `wrap_socket` may have taken it over while the connection was being made.
        if self._heir is not None:
            self._heir._finish_connect(outcome)
            return
        self._dialling = False
        if isinstance(outcome, OSError):
            self._failed = outcome
        # Closed meanwhile: the other side must not wait for it.
        elif self._gone:
            outcome.close()
        else:
            self.adopt_connection(outcome)
        self.handle_arrival()

    def _raise_connect_error(self) -> None:
        """Raises the reason for a failed connection, once."""
        error, self._failed = self._failed, None
        if error is not None:
            raise error

    def connect_ex(self, address: Any) -> int:
        try:
            self.connect(address)
        except OSError as error:
            return error.errno or errno.EAGAIN  # EAGAIN for a timeout, which has no number
        return 0

    def adopt_connection(self, end: NetworkEnd) -> None:
        """Takes over a connection that was made for it."""
        self.end = end
        end.receiver = self

    def hand_over_connection(self, heir: VirtualSocket) -> None:
        """Gives the connection, its number and its settings to a new socket, and is detached, as by `wrap_socket`."""
        # The heir's own fields win: those of TLS are set already.
        vars(heir).update({key: value for key, value in vars(self).items() if key not in vars(heir)})
        self._world.sockets.reassign_number(self._number, heir)
        if self.end is not None:
            self.end.receiver = heir
        self.end, self._heir, self._closed, self._gone = None, heir, True, True
        self.handle_arrival()

    def bind(self, address: Any) -> None:
        """Accepts port 0 alone: a client's own address has no effect here."""
        # Port 0 is what clients bind, to choose an interface.
        if address[1] != 0:
            raise Unsupported("a socket that listens", "serve it with services={…}")

    def listen(self, backlog: int = 0) -> None:  # noqa: ARG002
        raise Unsupported("a socket that listens", "serve it with services={…}")

    # Reading and writing.

    def _require_connection(self) -> NetworkEnd:
        if self._gone:
            raise _make_os_error(errno.EBADF)
        self._raise_connect_error()
        if self.end is None:
            raise _make_os_error(errno.EAGAIN if self._dialling else errno.ENOTCONN)
        return self.end

    def _format_peer_address(self) -> str:
        return self._world.network.format_address(self._require_connection().peer_address)

    def _wait_until_ready(self, ready: Callable[[], bool], doing: str, busy: int = errno.EAGAIN) -> None:
        """Waits until it is ready. `busy`: the error code if the socket does not block."""
        machine = self._world.machine
        until = None if self._timeout is None else machine.now + self._timeout
        while not ready():
            # A loop that tries again and again without a wait would not end, since no time passes.
            if self._timeout == 0:
                machine.steps.tries.count_step(f"tries to {doing}", "times")
                raise _make_os_error(busy)
            waiter = Waiter(machine)
            self.add_waiter(waiter)
            try:
                woken = waiter.park(doing, until)
            finally:
                # A waiter that stays would be woken for the next wait.
                self.remove_waiter(waiter)
            # What it waits for may have come at the very moment of the timeout.
            if not woken and not ready():
                raise TimeoutError("timed out")
            if self._gone:
                raise _make_os_error(errno.EBADF)

    def recv(self, size: int, flags: int = 0) -> bytes:
        end = self._require_connection()
        if flags & real.MSG_PEEK:
            raise Unsupported("MSG_PEEK on a socket", "read without it")
        if not self.is_readable():
            try:
                self._wait_until_ready(self.is_readable, f"recv from {self._format_peer_address()}")
            except TimeoutError:
                if end.watcher is not None:
                    # The client met its timeout, and may keep the connection; a fault's witness has to know.
                    end.watcher.handle_timeout()
                raise
        return end.receive_bytes(size)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        view = memoryview(buffer).cast("B")
        data = self.recv(nbytes or len(view), flags)
        view[: len(data)] = data
        return len(data)

    def send(self, data: Any, flags: int = 0) -> int:  # noqa: ARG002
        end = self._require_connection()
        if end.is_full:
            self._wait_until_ready(
                lambda: not end.is_full or end.sent_end or end.error is not None,
                f"send to {self._format_peer_address()}",
            )
        # Copied, since a program may use its buffer again.
        end.write(bytes(data))
        return len(data)

    def sendall(self, data: Any, flags: int = 0) -> None:
        self.send(data, flags)

    def is_readable(self) -> bool:
        # After a shutdown of reading the end can be read.
        return not self._dialling if self.end is None else self._deaf or self.end.has_readable_data()

    def is_writable(self) -> bool:
        return not self._dialling if self.end is None else not self.end.is_full

    def add_waiter(self, waiter: Waiter) -> None:
        self._waiters.append(waiter)

    def remove_waiter(self, waiter: Waiter) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def makefile(self, mode: str = "r", buffering: int | None = None, **kwargs: Any) -> Any:
        # io's own raw file, which needs `recv_into`, `send` and `_decref_socketios` of a socket.
        raw = real.SocketIO(self, "".join(sorted(set(mode) & set("rw"))))  # type: ignore[arg-type]
        self._held += 1
        if buffering == 0:
            return raw
        size = io.DEFAULT_BUFFER_SIZE if buffering in (None, -1) else int(buffering or 0)
        buffered: Any = (
            io.BufferedRWPair(raw, raw, size)
            if {"r", "w"} <= set(mode)
            else (io.BufferedReader(raw, size) if "r" in mode else io.BufferedWriter(raw, size))
        )
        return buffered if "b" in mode else io.TextIOWrapper(buffered, **kwargs)

    # Ending.

    def _decref_socketios(self) -> None:
        """Called by a file made from this socket when it is closed."""
        self._held -= 1
        if self._closed and not self._held:
            self._really_close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            # As in CPython: a file that was made from it keeps the socket open.
            if not self._held:
                self._really_close()

    def _really_close(self) -> None:
        self._gone = True
        self._world.sockets.remove_number(self._number)
        if self.end is not None:
            if self.rude:
                self.end.reset()
            else:
                self.end.close()
        self.handle_arrival()

    def detach(self) -> int:
        return self._number

    def shutdown(self, how: int) -> None:
        end = self._require_connection()
        if how in (real.SHUT_WR, real.SHUT_RDWR):
            end.end_stream()
        if how in (real.SHUT_RD, real.SHUT_RDWR):
            self._deaf = True
        self.handle_arrival()

    # Attributes and options.

    def settimeout(self, timeout: float | None) -> None:
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        return self._timeout

    @property
    def timeout(self) -> float | None:
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        self._timeout = None if flag else 0.0

    def getblocking(self) -> bool:
        return self._timeout != 0

    def setsockopt(self, level: int, option: int, *value: Any) -> None:
        if (level, option) == (real.SOL_SOCKET, real.SO_LINGER):
            # A linger time of 0 turns its close into a reset.
            self.rude = struct.unpack("ii", value[0]) == (1, 0)

    def getsockopt(self, level: int, option: int, buflen: int = 0) -> Any:
        value = self.type if (level, option) == (real.SOL_SOCKET, real.SO_TYPE) else 0
        # Read once, as the system gives it.
        if (level, option) == (real.SOL_SOCKET, real.SO_ERROR) and self._failed is not None:
            value, self._failed = self._failed.errno or 0, None
        return value.to_bytes(buflen, sys.byteorder) if buflen else int(value)

    def getsockname(self) -> Any:
        return self.end.address if self.end else ("0.0.0.0", 0)

    def getpeername(self) -> Any:
        return self._require_connection().peer_address

    def fileno(self) -> int:
        # A socket kept over trials needs a number of the present one.
        return -1 if self._closed else (find_world() or self._world).sockets.get_or_assign_number(self, self._number)

    def end_with_trial(self) -> None:
        """Ends the connection at the end of its trial. If somebody keeps the socket for the next trial, the other side
        appears to have closed it."""
        if self.end is not None:
            self.end.end_without_peer()

    def set_inheritable(self, inheritable: bool) -> None:
        pass

    def __enter__(self) -> VirtualSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _make_os_error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


class Sockets:
    """The sockets of a trial by number."""

    def __init__(self) -> None:
        self._next = self._left = FIRST_FD
        self._open: dict[int, VirtualSocket] = {}

    def add_socket(self, sock: VirtualSocket) -> int:
        self._next += 1
        self._open[self._next] = sock
        return self._next

    def reassign_number(self, number: int, sock: VirtualSocket) -> None:
        """Gives a number to another socket."""
        if number in self._open:
            self._open[number] = sock

    def remove_number(self, number: int) -> None:
        self._open.pop(number, None)

    def get_or_assign_number(self, sock: VirtualSocket, number: int) -> int:
        """The number of a socket in this trial. One left by an earlier trial gets a number from another range, so that
        it shifts no other."""
        if self._open.get(number) is sock:
            return number
        own_number = next((number_left for number_left, open_socket in self._open.items() if open_socket is sock), 0)
        if not own_number:
            self._left -= 1
            own_number, self._open[self._left] = self._left, sock
        return own_number

    def end_all_connections(self) -> None:
        """Ends the connections of all sockets: the trial is over."""
        for sock in self._open.values():
            sock.end_with_trial()
        self._open.clear()

    def find_socket(self, file: Any) -> VirtualSocket:
        number = file if isinstance(file, int) else file.fileno()
        if number in self._open:
            return self._open[number]
        if number < 0:
            # The words of the real `select`.
            raise ValueError("file descriptor cannot be a negative integer (-1)")
        raise Unsupported("waiting for a real file or pipe", "leave it out of the trial")


class Poll:
    """`select.poll()`."""

    def __init__(self) -> None:
        self._asked: dict[int, int] = {}

    def register(self, fd: Any, eventmask: int = real_select.POLLIN | real_select.POLLOUT) -> None:
        self._asked[fd if isinstance(fd, int) else fd.fileno()] = eventmask
        # Now, so that a file which no world knows is refused where it is registered.
        world().sockets.find_socket(fd)

    def modify(self, fd: Any, eventmask: int) -> None:
        self.register(fd, eventmask)

    def unregister(self, fd: Any) -> None:
        del self._asked[fd if isinstance(fd, int) else fd.fileno()]

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        """Waits at most `timeout` milliseconds."""
        return _wait_for_ready_files(
            self._list_ready_files, list(self._asked), None if timeout is None or timeout < 0 else timeout / 1000
        )

    def _list_ready_files(self) -> list[tuple[int, int]]:
        events_ready = []
        for number, mask in self._asked.items():
            sock = world().sockets.find_socket(number)
            events = (real_select.POLLIN if sock.is_readable() else 0) | (
                real_select.POLLOUT if sock.is_writable() else 0
            )
            if events & mask:
                events_ready.append((number, events & mask))
        return events_ready


def select(rlist: Any, wlist: Any, xlist: Any, timeout: float | None = None) -> tuple[list[Any], list[Any], list[Any]]:
    """`select.select`."""
    sockets = world().sockets

    def list_ready_files() -> list[tuple[list[Any], list[Any]]]:
        r = [s for s in rlist if sockets.find_socket(s).is_readable()]
        w = [s for s in wlist if sockets.find_socket(s).is_writable()]
        return [(r, w)] if r or w else []

    ready_lists = _wait_for_ready_files(list_ready_files, [*rlist, *wlist, *xlist], timeout)
    return (*ready_lists[0], []) if ready_lists else ([], [], [])


def _wait_for_ready_files(ready: Any, files: list[Any], timeout_s: float | None) -> list[Any]:
    machine, sockets = world().machine, world().sockets
    until = None if timeout_s is None else machine.now + timeout_s
    while not (result := ready()):
        if until is not None and machine.now >= until:
            # A loop that only asks takes no time and would not end.
            machine.steps.tries.count_step("asks what is ready", "times")
            return []
        waiter, watched = Waiter(machine), [sockets.find_socket(file) for file in files]
        for sock in watched:
            sock.add_waiter(waiter)
        try:
            woken = waiter.park("select", until)
        finally:
            for sock in watched:
                sock.remove_waiter(waiter)
        if not woken:
            # The time is over; what came at this very moment counts.
            return list(ready())
    return list(result)
