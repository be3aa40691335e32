"""Binds an address `host:port`, listens there, and accepts connections while there are files for them."""

import asyncio
import contextlib
import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

# Connections that come in one burst wait here; the system may cut it to its own limit.
BACKLOG = 1024
PORT_MAX = 65535


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port`, `:port` or `[::1]:port`. Raises ValueError: it is no such address."""
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not bracketed):
        raise ValueError(f"address {address}: not host:port")
    # `isdigit` alone is true for digits of other scripts, which int would take.
    if not (port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
        raise ValueError(f"address {address}: invalid port")
    return host.strip("[]") if bracketed else host, int(port)


def format_address(sockname: tuple[Any, ...]) -> str:
    host, port = sockname[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def resolve_address(address: str) -> tuple[str, int]:
    """The IP, IPv4 before IPv6, and the port of an address. Without a host it is `::`, every interface; an empty
    address is any port of loopback. Raises OSError or ValueError: there is no such address."""
    # An empty address is Toxiproxy's `[::]:N`; here it is loopback, since nobody gave the proxy to the network.
    host, port = split_address(address) if address else ("127.0.0.1", 0)
    # One socket of IPv6 takes both kinds of clients where the system can do that, as Go listens.
    if host in ("", "0.0.0.0", "::"):
        return "::" if socket.has_dualstack_ipv6() else "0.0.0.0", port
    with contextlib.suppress(ValueError):  # a name, whose lookup may take long
        return str(ipaddress.ip_address(host)), port
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # a label that is empty or too long
        raise ValueError(f"lookup {host}: no such host") from None
    family_first = sorted(addresses, key=lambda entry: entry[0] != socket.AF_INET)
    return str(family_first[0][4][0]), port


async def bind_socket(listen: str) -> socket.socket:
    """A bound socket, not yet accepting. Raises OSError or ValueError: the address is taken, or there is none."""
    host, port = await resolve_address(listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With `::` it takes IPv4 too, which is what "every interface" means to Toxiproxy.
    return _make_listening_socket(family, (host, port), v6_only=host != "::")


async def open_sockets(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of the host, or for every interface if the host is empty. Raises OSError: there is no
    such address, or it is taken."""
    bound = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        # Some systems list an address twice, and binding it again would fail.
        for family, _, _, _, address in dict.fromkeys(bound):
            sockets.append(_make_listening_socket(family, address))
    except OSError:
        for socket_ in sockets:
            socket_.close()
        raise
    return sockets


def _make_listening_socket(family: int, address: tuple[Any, ...], *, v6_only: bool = True) -> socket.socket:
    # The protocol is named, since asyncio switches Nagle's algorithm off only for accepted sockets that name theirs.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # A port whose old connections are in TIME_WAIT can be taken at once.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(v6_only))
        listener.bind(address)
        listener.listen(BACKLOG)  # here and not later: only this fails for a port that is taken
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


async def is_same_address(listen: str, wished: str) -> bool:
    """True if `wished` is the address that is listened on. Raises OSError or ValueError: there is no such address."""
    return format_address(await resolve_address(wished)) == listen


# The most connections accepted in a turn.
ACCEPTS = 16
# Seconds until the next check for free files. New connections wait in the system's queue meanwhile.
PAUSE_S = 0.2
# Files left to the API and its changes, however many connections the proxies have.
RESERVE_FILES = 32
SHORT_OF = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Dials:
    """The number of connections to upstreams that are being made. Each takes a file soon."""

    def __init__(self) -> None:
        self.count = 0


class Listener:
    """Accepts connections from a listening socket until it is closed. `dials` counts the dials for accepted
    connections. `reserve`: the number of files left to others."""

    _warned = False  # once in the life of a process

    def __init__(
        self,
        sock: socket.socket,
        connection: Callable[[], asyncio.Protocol],
        *,
        dials: Dials | None = None,
        reserve: int = RESERVE_FILES,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._connection = connection
        self._dials = dials
        self._reserve = reserve
        self._beginning: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        # A reader of its own: at EMFILE asyncio's accepting wrote 248,000 lines to stderr and took 10 s of CPU.
        self._loop.add_reader(sock.fileno(), self._accept_connections)

    def getsockname(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()[:2]
        return host, port

    def close(self) -> None:
        """Stops accepting. Connections accepted before are still handed over."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _accept_connections(self) -> None:
        # Some and not all, so that a storm of connections leaves the loop to those that stand.
        for _ in range(ACCEPTS):
            if self._is_file_limit_near():
                self._pause_accepting(os.strerror(errno.EMFILE))
                return
            try:
                sock, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in SHORT_OF:
                    raise
                self._pause_accepting(os.strerror(error.errno))
                return
            sock.setblocking(False)
            # A task holds it: the loop itself keeps weak references alone.
            task = self._loop.create_task(self._adopt_accepted_socket(sock))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _adopt_accepted_socket(self, sock: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._connection, sock)
        except OSError:  # it is gone already, or its proxy has dropped it
            sock.close()

    def _is_file_limit_near(self) -> bool:
        """Tells if the next file would be one of the reserve. The system gives the lowest free number."""
        try:
            import resource
        except ImportError:  # Windows, where there is no such limit
            return False
        files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files_max == resource.RLIM_INFINITY:
            return False
        try:
            # Duplicated to see the number that the next file gets; the limit bounds numbers, not counts.
            next_file = os.dup(self._socket.fileno())
        except OSError:
            return True
        os.close(next_file)
        # Accepted and dialled connections have no file of their own yet.
        promised = 0 if self._dials is None else self._dials.count + len(self._beginning)
        # A quarter at most, or a small limit would leave none for connections.
        return next_file + promised >= files_max - min(self._reserve, files_max // 4)

    def _pause_accepting(self, reason: str) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._pause = self._loop.call_later(PAUSE_S, self._resume_accepting)
        if not Listener._warned:
            Listener._warned = True
            remedy = "new connections wait until others are closed; raise the limit of open files (ulimit -n)"
            with contextlib.suppress(OSError, ValueError):  # stderr may be closed
                print(f"toxiproxy: {reason.lower()}: {remedy}; this is said once", file=sys.stderr, flush=True)

    def _resume_accepting(self) -> None:
        self._pause = None
        self._loop.add_reader(self._socket.fileno(), self._accept_connections)
