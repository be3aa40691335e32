"""Fakes for sockets, name lookups and `select`, and for the event loops that use them."""

import asyncio
import select
import socket
import ssl
from collections.abc import Iterable
from typing import Any

from chaoslab.worlds.virtual.machine.context import Unsupported, here
from chaoslab.worlds.virtual.network import _sockets, _tls
from chaoslab.worlds.virtual.network._context import find_world
from chaoslab.worlds.virtual.network._loop import VirtualLoop
from chaoslab.worlds.virtual.patches import Patch

real_socket, real_getaddrinfo = socket.socket, socket.getaddrinfo
real_gethostbyname, real_gethostbyname_ex = socket.gethostbyname, socket.gethostbyname_ex
real_gethostbyaddr, real_getnameinfo = socket.gethostbyaddr, socket.getnameinfo
real_gethostname, real_socketpair = socket.gethostname, socket.socketpair
real_setdefaulttimeout, real_getdefaulttimeout = socket.setdefaulttimeout, socket.getdefaulttimeout
real_wrap_socket, real_wrap_bio = ssl.SSLContext.wrap_socket, ssl.SSLContext.wrap_bio
real_poll, real_select, real_new_event_loop = select.poll, select.select, asyncio.new_event_loop


class _Kind(type):
    """A metaclass whose calls and instance checks depend on the thread."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return (real_socket if here.world is None else _sockets.VirtualSocket)(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        # Sockets of either kind: a program may have made one before the world.
        return isinstance(instance, real_socket | _sockets.VirtualSocket)


class Socket(metaclass=_Kind):
    """`socket.socket`."""


def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
    world = find_world()
    return real_getaddrinfo(host, port, *args, **kwargs) if world is None else world.resolve_host(host, port)


# Of one address: a host has exactly one here.
def gethostbyname(host: str) -> str:
    world = find_world()
    return real_gethostbyname(host) if world is None else str(world.resolve_host(host, 0)[0][4][0])


def gethostbyname_ex(host: str) -> tuple[str, list[str], list[str]]:
    return real_gethostbyname_ex(host) if here.world is None else (host, [], [gethostbyname(host)])


def gethostbyaddr(address: str) -> tuple[str, list[str], list[str]]:
    """The address itself as its name, since no address has another name here."""
    return real_gethostbyaddr(address) if here.world is None else (address, [], [gethostbyname(address)])


def getnameinfo(address: Any, flags: int) -> tuple[str, str]:
    return real_getnameinfo(address, flags) if here.world is None else (str(address[0]), str(address[1]))


def gethostname() -> str:
    """A fixed name: the real one differs between machines."""
    return real_gethostname() if here.world is None else "localhost"


def socketpair(*args: Any, **kwargs: Any) -> Any:
    if here.world is not None:
        raise Unsupported("socketpair", "use a queue")
    return real_socketpair(*args, **kwargs)


def setdefaulttimeout(timeout: float | None) -> None:
    """Sets the world's own default; the process's default stays as it was."""
    world = find_world()
    if world is None:
        real_setdefaulttimeout(timeout)
        return
    if timeout is not None and timeout < 0:
        raise ValueError("Timeout value out of range")
    world.default_timeout_s = None if timeout is None else float(timeout)


def getdefaulttimeout() -> float | None:
    world = find_world()
    return real_getdefaulttimeout() if world is None else world.default_timeout_s


def wrap_socket(
    self: ssl.SSLContext,
    sock: Any,
    server_side: bool = False,
    do_handshake_on_connect: bool = True,
    suppress_ragged_eofs: bool = True,
    server_hostname: Any = None,
    session: Any = None,
) -> Any:
    """`SSLContext.wrap_socket`. A socket of the process keeps its real TLS."""
    if here.world is not None and isinstance(sock, _sockets.VirtualSocket):
        return _tls.wrap_socket(self, sock, server_side, server_hostname)
    return real_wrap_socket(
        self, sock, server_side, do_handshake_on_connect, suppress_ragged_eofs, server_hostname, session
    )


def wrap_bio(
    self: ssl.SSLContext,
    incoming: Any,
    outgoing: Any,
    server_side: bool = False,
    server_hostname: Any = None,
    session: Any = None,
) -> Any:
    """`SSLContext.wrap_bio`."""
    if here.world is not None:
        return _tls.SslObject(self, incoming, outgoing, server_side, server_hostname)
    return real_wrap_bio(self, incoming, outgoing, server_side, server_hostname, session)


class poll:  # a class, since `selectors` has it as a class attribute, where a function would be bound
    """`select.poll`."""

    def __new__(cls) -> Any:
        return real_poll() if here.world is None else _sockets.Poll()


def select_(rlist: Any, wlist: Any, xlist: Any, timeout: float | None = None) -> Any:
    return (real_select if here.world is None else _sockets.select)(rlist, wlist, xlist, timeout)


def new_event_loop() -> Any:
    world = find_world()
    return real_new_event_loop() if world is None else world.create_loop()


def init_selector_loop(self: Any, *args: Any, **kwargs: Any) -> None:
    """`asyncio.SelectorEventLoop()`, made by hand or by the policy: in a world it makes a loop of the world."""
    world, kind = find_world(), type(self)
    if world is None:
        real_selector_loop(self, *args, **kwargs)
    elif kind is not asyncio.SelectorEventLoop:
        self._closed = True  # so that its destructor does not warn
        raise Unsupported(f"the event loop {kind.__qualname__}", "use asyncio's own")
    else:
        # In place: the object was made already, by its class or a policy.
        self.__class__ = VirtualLoop
        VirtualLoop.__init__(self, world)


real_selector_loop = asyncio.SelectorEventLoop.__init__


def patches() -> Iterable[Patch]:
    yield Patch(socket, "socket", Socket, everywhere=True)
    names = (getaddrinfo, gethostbyname, gethostbyname_ex, gethostbyaddr, getnameinfo, gethostname, socketpair)
    for stand_in in (*names, setdefaulttimeout, getdefaulttimeout):
        yield Patch(socket, stand_in.__name__, stand_in, everywhere=True)
    yield Patch(ssl.SSLContext, "wrap_socket", wrap_socket)
    yield Patch(ssl.SSLContext, "wrap_bio", wrap_bio)
    yield Patch(select, "poll", poll, everywhere=True)
    yield Patch(select, "select", select_, everywhere=True)
    yield Patch(asyncio, "new_event_loop", new_event_loop, everywhere=True)
    yield Patch(asyncio.SelectorEventLoop, "__init__", init_selector_loop)
