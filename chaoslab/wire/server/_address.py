"""Reads and binds addresses as Go does."""

import asyncio
import contextlib
import ipaddress
import os
import re
import socket
from typing import Any

from chaoslab.wire.server._spelling import ApiError

BACKLOG = 1024
PORT_MAX = 65535
ANY = ("", "0.0.0.0", "::")


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port`, `:port` or `[::1]:port`. The port may be a service's name. Raises ValueError:
    worded as Go words it."""
    host, port = _split(address)
    if re.fullmatch(r"[+-]?[0-9]*", port, re.ASCII):
        number = int(port) if port.strip("+-") else 0
        if not 0 <= number <= PORT_MAX:
            raise ValueError(f"address {port}: invalid port")
        return host, number
    try:
        return host, socket.getservbyname(port.lower(), "tcp")
    except (OSError, UnicodeError):
        raise ValueError(f"lookup tcp/{port}: unknown port") from None


def _split(address: str) -> tuple[str, str]:
    host, colon, port = address.rpartition(":")
    if not colon:
        raise ValueError(f"address {address}: missing port in address")
    rest = address
    if address.startswith("["):
        bracket = address.find("]")
        if bracket < 0:
            raise ValueError(f"address {address}: missing ']' in address")
        if bracket + 1 != len(host):
            after = address[bracket + 1 : bracket + 2]
            reason = "too many colons" if after == ":" else "missing port"
            raise ValueError(f"address {address}: {reason} in address")
        host, rest = address[1:bracket], address[1:bracket] + port
    elif ":" in host:
        raise ValueError(f"address {address}: too many colons in address")
    for bracket_ in "[]":
        if bracket_ in rest:
            raise ValueError(f"address {address}: unexpected '{bracket_}' in address")
    return host, port


def spell_address(sockname: tuple[Any, ...]) -> str:
    host, port = sockname[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_old_spelling(host: str) -> bool:
    """Tells if only C's library takes it for an address (`127.1`, `0`, `2130706433`, `0x7f.0.0.1`). Go looks it up as a
    name."""
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        with contextlib.suppress(OSError, UnicodeError):
            return bool(socket.inet_aton(host))
    return False


async def resolve(address: str) -> tuple[str, int]:
    """The IP, IPv4 before IPv6, and the port of an address. An empty address is any port of loopback. Raises
    ValueError: worded as Go words it."""
    host, port = split_address(address) if address else ("127.0.0.1", 0)
    if host in ANY:
        return host, port
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return str((ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None) or ip), port
    if is_old_spelling(host):
        raise ValueError(f"lookup {host}: no such host")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ValueError(f"lookup {host}: no such host") from None
    family_first = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)
    return str(family_first[0][4][0]), port


async def bind(listen: str) -> socket.socket:
    """A bound socket, not yet accepting. It is on every interface only if `listen` asks for that. Raises ApiError:
    500."""
    try:
        host, port = await resolve(listen)
    except ValueError as error:
        raise ApiError(500, f"listen tcp: {error}") from None
    if host in ANY:
        host = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return _listening(family, (host, port), v6_only=host != "::")
    except OSError as error:
        spelled = spell_address((host, port))
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise ApiError(500, f"listen tcp {spelled}: bind: {reason}") from None


async def listening(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of the host, or for every interface if the host is empty. Raises OSError: there is no
    such address, or it is taken."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            sockets.append(_listening(family, address))
    except OSError:
        for one in sockets:
            one.close()
        raise
    return sockets


def _listening(family: int, address: tuple[Any, ...], *, v6_only: bool = True) -> socket.socket:
    # The protocol is named, since asyncio switches Nagle's algorithm off only for accepted sockets that name theirs.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
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


async def same_place(listen: str, wished: str) -> bool:
    """Tells if `wished` is the address that is listened on. Raises ApiError: 500, there is no such address."""
    try:
        return spell_address(await resolve(wished)) == listen
    except ValueError as error:
        raise ApiError(500, str(error)) from None
