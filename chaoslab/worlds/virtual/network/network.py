"""The virtual network: listeners, and connections of two ends whose bytes are in transit for a moment.

It offers a program what TCP does: bytes in order, an end, a reset, a refusal. Each delivery takes `TRIP_S`, so that
time passes with every call, and the trial's deadline bounds a loop of calls.
"""

import errno
import itertools
import os
import socket
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, Protocol

from chaoslab.worlds.virtual.machine.machine import Machine

# The time from one end to the other; about as long as on loopback.
TRIP_S = 0.000_05
WINDOW_BYTES = 1024 * 1024
"""The most bytes in transit or unread before the writer must wait."""

Address = tuple[str, int]
NOBODY: Address = ("127.0.0.1", 1)
"""An address without a listener."""


class Receiver(Protocol):
    """The receiver of an end's events. The machine calls it, never a method of the end itself."""

    def handle_arrival(self) -> None:
        """Bytes or the end of the stream can be read with `receive_bytes`."""

    def handle_reset(self, error: OSError) -> None:
        """The connection was reset: nothing more arrives or can be sent."""

    def handle_write_room(self) -> None:
        """There is room to write again."""


class Watcher(Protocol):
    """The receiver of what the program at an end observes, in the moment in which it does."""

    def handle_read(self, data: bytes) -> None:
        """The program took these bytes."""

    def handle_send(self) -> None:
        """The program sends bytes, now."""

    def handle_timeout(self) -> None:
        """The program waited for more until a timeout of its own."""

    def handle_end(self, end_kind: str) -> None:
        """The connection is over for the program: reset, closed (by the peer), or left (by itself)."""


class NetworkEnd:
    """One end of a connection."""

    # Two for each connection, and many for a trial.
    __slots__ = (
        "_inbox",
        "_sent",
        "_sent_at",
        "_unread",
        "address",
        "closed",
        "ended",
        "error",
        "machine",
        "peer",
        "peer_address",
        "receiver",
        "sent_end",
        "tls",
        "watcher",
    )

    def __init__(self, machine: Machine, address: Address, peer_address: Address) -> None:
        self.machine, self.address, self.peer_address = machine, address, peer_address
        self.peer: NetworkEnd
        self.receiver: Receiver | None = None
        self.watcher: Watcher | None = None
        self.error: OSError | None = None
        self.ended = False
        """True if the other end has sent everything."""
        self.sent_end = False
        self.tls = False
        """True if the program at this end believes that it speaks TLS."""
        self.closed = False
        self._inbox: deque[bytes | memoryview] = deque()
        self._unread = 0  # bytes that this end has sent and the other has not read
        self._sent: list[bytes] = []
        self._sent_at = -1.0

    def write(self, data: bytes) -> None:
        """Sends bytes, those of one moment together. Raises OSError if the connection is over."""
        if self.error is not None:
            raise self._pop_break_error()
        if self.sent_end or self.closed:
            raise _make_broken_pipe()
        # h11 writes empty pieces, which must not arrive as an end.
        if data:
            if self.watcher is not None:
                self.watcher.handle_send()
            self._unread += len(data)
            # What one moment writes arrives together: each delivery is an event of the machine.
            if self._sent_at == self.machine.now:
                self._sent.append(bytes(data))
            else:
                self._sent, self._sent_at = [bytes(data)], self.machine.now
                self.machine.schedule_after(TRIP_S, self.peer._deliver_arrived, self._sent)

    @property
    def is_full(self) -> bool:
        return self._unread > WINDOW_BYTES

    @property
    def bytes_beyond_window(self) -> int:
        """The number of bytes written beyond the window."""
        return max(0, self._unread - WINDOW_BYTES)

    def end_stream(self) -> None:
        """Ends the stream from here; data already written still arrives."""
        if not self.sent_end:
            self.sent_end = True
            # After what was written, by the order of timers of one moment.
            self.machine.schedule_after(TRIP_S, self.peer._deliver_arrived, None)

    def close(self) -> None:
        """Ends the stream and stops reading. Unread data, and data that still arrives, is answered with a reset."""
        if self.closed:
            return
        self._report_end_to_watcher("left")
        self.closed = True
        # As Linux does: a socket that is closed with unread data resets the connection.
        if self._inbox:
            self._reset_peer()
        self.end_stream()
        self._inbox.clear()
        self._drop_observers()

    def _drop_observers(self) -> None:
        """Lets go of those whom a closed end has nothing more to tell, so that a connection that is over is no circle
        of references. A writer that waits for room is still told of it."""
        self.watcher = None
        if not self.is_full:
            self.receiver = None

    def reset(self) -> None:
        """Resets the connection: the other end gets an error after it has read the data sent before."""
        if not self.closed:
            self._report_end_to_watcher("left")
            self.closed = self.sent_end = True
            self._inbox.clear()
            self._reset_peer()
            self._drop_observers()

    def has_readable_data(self) -> bool:
        """True if `receive_bytes` would return at once: bytes, the end, or an error."""
        return bool(self._inbox) or self.ended or self.error is not None

    def receive_bytes(self, size: int = 65536) -> bytes:
        """The next bytes that have arrived, at most `size`; empty if there are none. Raises OSError: the connection was
        reset."""
        if not self._inbox:
            if self.error is not None and not self.ended:
                raise self._pop_break_error()
            if self.ended:
                self._report_end_to_watcher("closed")
            return b""
        data = self._inbox.popleft()
        if len(data) > size:
            view = memoryview(data)  # a big write is read in many parts and must not be copied for each
            self._inbox.appendleft(view[size:])
            data = view[:size]
        data = bytes(data)
        peer = self.peer
        was_full = peer.is_full
        # Only reading makes room for the peer, as with the window of TCP.
        peer._unread -= len(data)
        if was_full and not peer.is_full and peer.receiver is not None:
            self.machine.schedule_after(TRIP_S, peer.receiver.handle_write_room)
        if self.watcher is not None:
            self.watcher.handle_read(data)
        return data

    def end_without_peer(self) -> None:
        """Ends the connection without a peer, since the machine is gone."""
        self._inbox.clear()
        self.ended, self.error, self.receiver, self.watcher = True, _make_broken_pipe(), None, None

    def _deliver_arrived(self, sent: list[bytes] | None) -> None:
        if self.error is not None:
            return
        if self.closed:
            # Data for a socket that is closed is answered by a reset; an end is not.
            if sent:
                self._reset_peer()
            return
        if sent is None:
            self.ended = True
        else:
            self._inbox.append(sent[0] if len(sent) == 1 else b"".join(sent))
        if self.receiver is not None:
            self.receiver.handle_arrival()

    def _reset_peer(self) -> None:
        self.machine.schedule_after(
            TRIP_S, self.peer._break_connection, ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        )

    def _break_connection(self, error: OSError) -> None:
        """Breaks the connection, like Linux: data that has arrived can be read, and after the stream's end only writing
        shows the break."""
        if self.error is None and not self.closed:
            self.error = _make_broken_pipe() if self.ended else error
            # No writer waits for room any more.
            self._unread = 0
            if self.receiver is not None:
                self.receiver.handle_reset(error)

    def _report_end_to_watcher(self, end_kind: str) -> None:
        """Tells the watcher that the connection is over. A program that leaves a broken one met the break."""
        if self.watcher is not None:
            broken = end_kind == "left" and self.error is not None and not self.ended
            self.watcher.handle_end("reset" if broken else end_kind)

    def _pop_break_error(self) -> OSError:
        """The reason for the break, once. After that reading is at its end, and writing meets a broken pipe."""
        assert self.error is not None
        self._report_end_to_watcher("closed" if self.ended else "reset")
        self.ended = True
        error, self.error = self.error, _make_broken_pipe()
        return error


def _make_broken_pipe() -> OSError:
    return BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


Accept = Callable[[NetworkEnd], object]
Gate = Callable[[Literal["lookup", "connection", "handshake"]], Callable[[], None] | None]
"""A decision on a step of making a connection: None, or it fails, and the function is called when the client is
told."""


class Network:
    """The names, addresses and listeners of one trial."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._listeners: dict[Address, Accept] = {}
        self.heard: set[Address] = set()
        """The addresses at which somebody has listened, even if nobody does now."""
        self._names: dict[str, str] = {"localhost": "127.0.0.1"}
        # Where Linux begins with ports of clients.
        self._ports = itertools.count(32768)
        self.gates: dict[Address, Gate] = {}
        """The listeners whose connections may be refused."""

    def listen(self, host: str, port: int, accept: Accept) -> Address:
        """Listens and returns the address. `host`: an address, or a name, which gets an address. `port`: 0 for a free
        one.

        `accept` is called with the server's end of each connection. Raises OSError: the address has a listener already.
        """
        host_address = self.find_address(host) or self._assign_address(host)
        free = (number for number in self._ports if (host_address, number) not in self._listeners)
        address = host_address, port or next(free)
        if address in self._listeners:
            raise OSError(errno.EADDRINUSE, f"{os.strerror(errno.EADDRINUSE)}: {self.format_address(address)}")
        self._listeners[address] = accept
        self.heard.add(address)
        return address

    def copy_listeners(self, model: "Network") -> None:
        """Listens as another network does, whose listeners belong to none. To set them up takes longer."""
        self._listeners.update(model._listeners)
        self.heard |= model.heard

    def stop_listening(self, host: str, port: int) -> None:
        """Stops listening at the address."""
        self._listeners.pop((self.find_address(host) or host, port), None)

    def is_known_host(self, host: str) -> bool:
        """True if a name or address is, or was, on this network."""
        address = self.find_address(host)
        return address in self._names.values() or any(address == listener_host for listener_host, _ in self._listeners)

    def find_address(self, host: str) -> str | None:
        """The address of a name; an address is its own; None if unknown."""
        return self._names.get(host) or (host if _is_address(host) else None)

    def is_listening(self, address: Address) -> bool:
        return address in self._listeners

    def find_name(self, address: str) -> str:
        """The name of an address, or the address itself."""
        return next((name for name, address_ in self._names.items() if address_ == address), address)

    def format_address(self, address: Any) -> str:
        """The address as text, as in "search:5000"."""
        return f"{self.find_name(str(address[0]))}:{address[1]}"

    def open_connection(self, address: Address, on_connected: Callable[[NetworkEnd | OSError], None]) -> None:
        """Connects; calls `on_connected` with this side's end, or with the error."""
        self.machine.schedule_after(TRIP_S, self._attempt_connection, address, on_connected)

    def _attempt_connection(self, address: Address, on_connected: Callable[[NetworkEnd | OSError], None]) -> None:
        accept, gate = self._listeners.get(address), self.gates.get(address)
        refused = gate("connection") if accept is not None and gate is not None else None
        if accept is None or refused is not None:
            self.machine.steps.count_request(self.format_address(address))
            if refused is not None:
                self.machine.schedule_after(TRIP_S, refused)
            self.machine.schedule_after(
                TRIP_S, on_connected, ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
            )
            return
        # From the same numbers as servers without a port: they are the world's, so that no run differs by them.
        ours = ("127.0.0.1", next(self._ports))
        client, server = NetworkEnd(self.machine, ours, address), NetworkEnd(self.machine, address, ours)
        client.peer, server.peer = server, client
        self.machine.schedule_after(TRIP_S, on_connected, client)
        accept(server)

    def find_connection_gate(self, name: str) -> Gate | None:
        """The gate of a host by its name alone: that of its port for https, or of another one but for http's."""
        host_address = self.find_address(name)
        ports = sorted(
            (port for gate_host, port in self.gates if gate_host == host_address and port != 80), key=(443).__ne__
        )
        return self.gates[host_address, ports[0]] if host_address is not None and ports else None

    def resolve_host(self, host: str | bytes | None, port: Any) -> list[tuple[Any, ...]]:
        """The one address of a host, in the form of `socket.getaddrinfo`. Raises LookupError: this network has no such
        name."""
        name = host.decode() if isinstance(host, bytes) else host or "localhost"
        address = self.find_address(name)
        if address is None:
            raise LookupError(name)
        number = int(port) if port not in (None, "") else 0
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, number))]

    def _assign_address(self, host: str) -> str:
        n = len(self._names)
        # Private addresses by the order of names, 250 of them in each last number.
        self._names[host] = f"10.77.{n // 250}.{n % 250 + 1}"
        return self._names[host]


# Asked at each connection and each lookup, always for the same few names.
@lru_cache(256)
def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False
