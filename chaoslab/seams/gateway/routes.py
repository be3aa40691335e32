"""The routes of a gateway, each a name and the address of a service."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from chaoslab.base.registry import did_you_mean
from chaoslab.base.secrets import printed

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
PORTS = {"http": 80, "https": 443}
CONNECT_S = 10.0
"""The longest time that a connection to a service takes, in seconds."""


@dataclass(frozen=True)
class Route:
    """A service behind the gateway. `base`: the path before that of each request, without a slash at its end."""

    name: str
    scheme: str
    host: str
    port: int
    base: str = ""

    @property
    def near(self) -> bool:
        """True if the service is on this machine, and asked by loopback."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    @property
    def authority(self) -> str:
        """The service's name in a Host field."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.base}"


def route(text: str) -> Route:
    """The route in a text such as "crm=http://127.0.0.1:9000".

    Raises:
        ValueError: it is none; the message says what it should be.
    """
    text = printed.mask(text) if "@" in text else text
    name, equals, url = text.partition("=")
    like = "as in crm=http://127.0.0.1:9000"
    if not equals:
        lacks = "name" if "://" in text else "URL"
        raise ValueError(f"the route {text[:80]!r} has no {lacks}: {like}")
    if not _NAME.fullmatch(name):
        raise ValueError(f"the route {text[:80]!r} has a wrong name: small letters, digits, - and _, {like}")
    parts = urlsplit(url)
    if parts.scheme not in PORTS:
        raise ValueError(f"the route {name} goes to {url[:80]!r}: it should begin with http:// or https://, {like}")
    try:
        port = parts.port
    except ValueError:
        raise ValueError(f"the route {name} goes to {url[:80]!r}: its port should be from 0 to 65535") from None
    if not parts.hostname or parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"the route {name} goes to {url[:80]!r}: it should be a scheme, a host and a path, {like}")
    return Route(name, parts.scheme, parts.hostname, port or PORTS[parts.scheme], parts.path.rstrip("/"))


def routes(texts: Iterable[str]) -> dict[str, Route]:
    """The routes by name.

    Raises:
        ValueError: one is wrong, two have one name, or there is none.
    """
    found: dict[str, Route] = {}
    for text in texts:
        each = route(text)
        if each.name in found:
            raise ValueError(f"two routes are called {each.name}: each needs a name of its own")
        found[each.name] = each
    if not found:
        raise ValueError("no route is given: --route NAME=URL, as in --route crm=http://127.0.0.1:9000")
    return found


def unknown(name: str, known: Iterable[str]) -> str:
    """The words for a path that leads to no route."""
    names = list(known)
    return f"no route is called '{name[:60]}': {did_you_mean(name, names)}" if name else (
        f"the path names no route: it should begin with {' or '.join(f'/{each}/' for each in names)}"
    )  # fmt: skip


def check_reached(route: Route, *, only_here: bool = False) -> None:
    """Checks that the route's service takes connections. `only_here`: if it is on this machine, and by loopback.

    Raises:
        LookupError: it takes none.
    """
    if only_here and not route.near:
        return
    try:
        socket.create_connection((route.host, route.port), CONNECT_S).close()
    except OSError as error:
        why = "it did not answer" if isinstance(error, TimeoutError) else error.strerror or error
        raise LookupError(f"the upstream {route.name} ({route.url}) cannot be reached: {why}: start it first") from None
