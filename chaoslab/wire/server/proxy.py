"""One proxy: a listening socket, an upstream, its toxics in order, and the connections that run through it."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import asdict, dataclass
from typing import Any

from chaoslab.dice import Dice
from chaoslab.wire.server.errors import ApiError
from chaoslab.wire.server.link import Link
from chaoslab.wire.toxics import Toxic

BACKLOG = 1024


@dataclass
class Attached:
    """A toxic as it hangs on a proxy. `stream` keeps the spelling in which it was asked for."""

    name: str
    type: str
    stream: str
    toxicity: float
    toxic: Toxic

    @property
    def direction(self) -> str:
        return self.stream.lower()

    def to_json(self) -> dict[str, Any]:
        return {
            "attributes": asdict(self.toxic),
            "name": self.name,
            "type": self.type,
            "stream": self.stream,
            "toxicity": int(self.toxicity) if self.toxicity.is_integer() else self.toxicity,
        }


class Proxy:
    """Accepts while enabled; everything about it may change while connections are open."""

    def __init__(self, name: str, *, listen: str, upstream: str, dice: Dice) -> None:
        self.name = name
        self.listen = listen
        self.upstream = upstream
        self.toxics: list[Attached] = []
        self._dice = dice
        self._server: asyncio.Server | None = None
        self._links: set[Link] = set()
        self._accepted = 0

    @property
    def enabled(self) -> bool:
        return self._server is not None

    @property
    def upstream_address(self) -> tuple[str, int]:
        host, port = split_address(self.upstream)
        return host or "localhost", port

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "Logger": {},
            "toxics": self.toxics_json(),
        }

    def toxics_json(self) -> list[dict[str, Any]]:
        """All upstream ones, then all downstream ones, each in the order of adding."""
        return [
            toxic.to_json() for side in ("upstream", "downstream") for toxic in self.toxics if toxic.direction == side
        ]

    async def start(self) -> None:
        """Listen; the address is then the one that was really bound.

        Raises:
            ApiError: 500, worded as Go words it.
        """
        if self._server is not None:
            return
        listener = await bind(self.listen)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, sock=listener, backlog=BACKLOG)
        self.listen = spell_address(listener.getsockname())

    def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for link in tuple(self._links):
            link.drop()

    def attach(self, toxic: Attached) -> None:
        self.toxics.append(toxic)
        for link in tuple(self._links):
            link.attach(toxic)

    def change(self, toxic: Attached, *, attributes: Toxic, toxicity: float) -> None:
        toxic.toxic, toxic.toxicity = attributes, toxicity
        for link in tuple(self._links):
            link.attach(toxic)

    def detach(self, toxic: Attached) -> None:
        self.toxics.remove(toxic)
        for link in tuple(self._links):
            link.detach(toxic)

    def opened(self, link: Link) -> None:
        self._links.add(link)

    def closed(self, link: Link) -> None:
        self._links.discard(link)

    def _accept(self) -> asyncio.Protocol:
        self._accepted += 1
        return Link(self, self._dice(self._accepted)).client


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port`, `:port` or `[::1]:port`.

    Raises:
        ValueError: worded as Go words it.
    """
    host, colon, port = address.rpartition(":")
    if not colon:
        raise ValueError(f"address {address}: missing port in address")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"address {address}: too many colons in address")
    if not port.isascii() or not (port.isdigit() or port == ""):
        raise ValueError(f"lookup tcp/{port}: unknown port")
    number = int(port[:6] or 0)
    if number > 65535:
        raise ValueError(f"address {port}: invalid port")
    return host, number


def spell_address(sockname: tuple[Any, ...]) -> str:
    host, port = sockname[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def resolve(listen: str) -> tuple[str, int]:
    """The address of a `listen`, IPv4 before IPv6, an IP that all the world may dial only where one was asked for.

    Raises:
        ApiError: 500.
    """
    try:
        host, port = split_address(listen) if listen else ("127.0.0.1", 0)
    except ValueError as error:
        raise ApiError(500, f"listen tcp: {error}") from None
    if host in ("", "0.0.0.0", "::"):
        return "::" if socket.has_dualstack_ipv6() else "0.0.0.0", port
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ApiError(500, f"listen tcp: lookup {host}: no such host") from None
    family_first = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)
    return str(family_first[0][4][0]), port


async def bind(listen: str) -> socket.socket:
    """A bound socket, not yet accepting.

    Raises:
        ApiError: 500.
    """
    host, port = await resolve(listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        listener.bind((host, port))
        listener.listen(BACKLOG)  # here and not later: only this tells of a port that is taken
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        spelled = spell_address((host, port))
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise ApiError(500, f"listen tcp {spelled}: bind: {reason}") from None
    return listener


async def same_place(proxy: Proxy, *, listen: str, upstream: str) -> bool:
    """Whether a wished-for proxy is where this one is already."""
    if proxy.upstream != upstream:
        return False
    if proxy.listen == listen:
        return True
    return spell_address(await resolve(listen)) == proxy.listen
