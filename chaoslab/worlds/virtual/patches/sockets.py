"""Sockets, names and `select`, and the event loops that are made of them."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Iterable
from typing import Any

from chaoslab.worlds.virtual import sockets
from chaoslab.worlds.virtual.here import Uncovered, here
from chaoslab.worlds.virtual.loop import VirtualLoop
from chaoslab.worlds.virtual.patches import Patch

real_socket, real_getaddrinfo = socket.socket, socket.getaddrinfo
real_poll, real_select, real_new_event_loop = select.poll, select.select, asyncio.new_event_loop


class _Kind(type):
    """What is made and recognised depends on the thread."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return (real_socket if here.world is None else sockets.VirtualSocket)(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, real_socket | sockets.VirtualSocket)


class Socket(metaclass=_Kind):
    """`socket.socket`."""


def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
    world = here.world
    return real_getaddrinfo(host, port, *args, **kwargs) if world is None else world.resolve(host, port)


def poll() -> Any:
    return real_poll() if here.world is None else sockets.Poll()


def select_(rlist: Any, wlist: Any, xlist: Any, timeout: float | None = None) -> Any:
    return (real_select if here.world is None else sockets.select)(rlist, wlist, xlist, timeout)


def new_event_loop() -> Any:
    world = here.world
    return real_new_event_loop() if world is None else world.loop()


def selector_loop(self: Any, *args: Any, **kwargs: Any) -> None:
    """`asyncio.SelectorEventLoop()`, made by hand or by the policy, is a loop of the world, of whatever class it was called."""
    world = here.world
    if world is None:
        real_selector_loop(self, *args, **kwargs)
    elif type(self) is not asyncio.SelectorEventLoop:
        raise Uncovered(f"the event loop {type(self).__qualname__}", "use asyncio's own")
    else:
        self.__class__ = VirtualLoop
        self.__init__(world)


real_selector_loop = asyncio.SelectorEventLoop.__init__


def patches() -> Iterable[Patch]:
    yield Patch(socket, "socket", Socket, everywhere=True)
    yield Patch(socket, "getaddrinfo", getaddrinfo, everywhere=True)
    yield Patch(select, "poll", poll, everywhere=True)
    yield Patch(select, "select", select_, everywhere=True)
    yield Patch(asyncio, "new_event_loop", new_event_loop, everywhere=True)
    yield Patch(asyncio.SelectorEventLoop, "__init__", selector_loop)
