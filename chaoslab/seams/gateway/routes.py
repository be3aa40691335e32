"""The routes of a gateway, each a name and the address of a service."""

import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # documented all the same

from chaoslab.base.registry import suggest_name
from chaoslab.base.secrets import printed

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
# 253 characters are the most that a name in the DNS has.
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?(?::[0-9]{1,5})?")
PORTS = {"http": 80, "https": 443}
CONNECT_S = 10.0
"""The longest time that a connection to a service takes, in seconds."""


@dataclass(frozen=True)
class GatewayRoute:
    """A service behind the gateway. `base`: the path before that of each request, without a slash at its end."""

    name: str
    scheme: str
    host: str
    port: int
    base: str = ""

    @cached_property
    def is_local(self) -> bool:
        """True if the service is on this machine, and asked by loopback."""
        return is_loopback_host(self.host)

    @cached_property
    def authority(self) -> str:
        """The service's name in a Host field."""
        return join_host_port(self.host, None if self.port == PORTS[self.scheme] else self.port)

    @cached_property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.base}"

    def find_path(self, url: str) -> str | None:
        """The path behind the route's own address in a URL that leads to its service, however it is spelled; None in
        any other. A URL without a scheme has the route's."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            return None
        scheme = parts.scheme or self.scheme
        same = scheme == self.scheme and (port or PORTS[scheme]) == self.port and is_same_host(host or "", self.host)
        return self.strip_base(url.split("//", 1)[1][len(parts.netloc) :] or "/") if same else None

    def strip_base(self, path: str) -> str | None:
        """The path behind the route's own; None if it is none of the route's."""
        rest = path.removeprefix(self.base)
        return rest if path.startswith(self.base) and (not rest or rest[0] in "/?#") else None


def join_host_port(host: str, port: int | None) -> str:
    """A host, which may be an address of IPv6, with its port."""
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"


def is_loopback_host(host: str) -> bool:
    """True if the host is this machine, by loopback."""
    # All of 127.0.0.0/8 is loopback.
    return host in ("localhost", "::1") or host.startswith("127.")


def is_same_host(one: str, other: str) -> bool:
    """True if two hosts, in small letters as `urlsplit` gives them, are one. A dot may end a whole name, and a service
    behind loopback may call itself by any of its names."""
    one, other = one.removesuffix("."), other.removesuffix(".")
    # Two addresses of 127.0.0.0/8 may be those of two services, as where each has one of its own.
    apart = one.startswith("127.") and other.startswith("127.")
    return one == other or (is_loopback_host(one) and is_loopback_host(other) and not apart)


def is_host_name(name: str) -> bool:
    """True if the name is a host's, as in api.openai.com or crm:8080, and not one that a route was given."""
    # Without a dot or a colon it could be a route's name.
    return _HOST.fullmatch(name) is not None and (name == "localhost" or "." in name or ":" in name)


def make_host_route(name: str) -> GatewayRoute:
    """The route of a host that is asked at its own address. Raises ValueError: its port is none."""
    host, _, number = name.partition(":")
    port = int(number or PORTS["https"])
    if not 0 < port < 65536:
        raise ValueError(f"the host {name} should have a port from 1 to 65535")
    return GatewayRoute(name, "https" if port == PORTS["https"] else "http", host, port)


def parse_route(text: str, *, hosts: bool = False) -> GatewayRoute:
    """The route in a text such as "crm=http://127.0.0.1:9000". `hosts`: a host may be one, as in api.openai.com, with
    another address in its place or without. Raises ValueError: it is none; the message says what it should be."""
    if hosts and _HOST.fullmatch(text):
        return make_host_route(text)
    # A route may hold a password, and its text goes into an error.
    text = printed.mask(text) if "@" in text else text
    name, equals, url = text.partition("=")
    example = "as in crm=http://127.0.0.1:9000"
    if not equals:
        lacks = "name" if "://" in text else "URL"
        hint = "; a host alone needs the proxy" if is_host_name(text) else ""
        raise ValueError(f"the route {text[:80]!r} has no {lacks}: {example}{hint}")
    if not (_HOST if hosts else _NAME).fullmatch(name):
        hint = "; a host needs the proxy" if is_host_name(name) else ""
        raise ValueError(f"the route {text[:80]!r} has a wrong name: small letters, digits, - and _, {example}{hint}")
    # Only to refuse a port that is none.
    make_host_route(name)
    parts, subject = urlsplit(url), f"the route {name} goes to {url[:80]!r}"
    if parts.scheme not in PORTS:
        raise ValueError(f"{subject}: it should begin with http:// or https://, {example}")
    try:
        port = parts.port
    except ValueError:
        raise ValueError(f"{subject}: its port should be from 0 to 65535") from None
    # A query or a fragment has no place before the paths of requests, and a password would stand in logs.
    if not parts.hostname or parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"{subject}: it should be a scheme, a host and a path, {example}")
    return GatewayRoute(name, parts.scheme, parts.hostname, port or PORTS[parts.scheme], parts.path.rstrip("/"))


def parse_routes(texts: Iterable[str], *, hosts: bool = False) -> dict[str, GatewayRoute]:
    """The routes by name. `hosts`: as in `route`; there may be none then. Raises ValueError: one is wrong, two have one
    name, or there is none."""
    by_name: dict[str, GatewayRoute] = {}
    for text in texts:
        parsed = parse_route(text, hosts=hosts)
        if parsed.name in by_name:
            raise ValueError(f"two routes are called {parsed.name}: each needs a name of its own")
        by_name[parsed.name] = parsed
    if not by_name and not hosts:
        raise ValueError("no route is given: --route NAME=URL, as in --route crm=http://127.0.0.1:9000")
    return by_name


def describe_unknown_route(name: str, route_names: Iterable[str]) -> str:
    """The words for a path that leads to no route."""
    names = list(route_names)
    return (
        f"no route is called '{name[:60]}': {suggest_name(name, names)}"
        if name
        else (f"the path names no route: it should begin with {' or '.join(f'/{route_name}/' for route_name in names)}")
    )


def find_proxy(route: GatewayRoute, environment: Mapping[str, str]) -> str:
    """The address of the proxy over which the route's service is asked, as the environment has it; empty if there is
    none."""
    # Names in either case, as curl and Python read them; an empty one is none.
    variables = {name.lower(): value for name, value in environment.items() if value}
    proxy = variables.get(f"{route.scheme}_proxy") or variables.get("all_proxy") or ""
    # Never for this machine: a proxy would look for the service on its own.
    if route.is_local or not proxy or proxy_bypass_environment(route.host, {"no": variables.get("no_proxy", "")}):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


# Asked before the run: an agent that meets no service proves nothing.
def ensure_reachable(route: GatewayRoute, *, only_here: bool = False) -> None:
    """Checks that the route's service takes connections. `only_here`: if it is on this machine, and by loopback. Raises
    LookupError: it takes none."""
    if only_here and not route.is_local:
        return
    try:
        socket.create_connection((route.host, route.port), CONNECT_S).close()
    except OSError as error:
        reason = "it did not answer" if isinstance(error, TimeoutError) else error.strerror or error
        raise LookupError(
            f"the upstream {route.name} ({route.url}) cannot be reached: {reason}: start it first"
        ) from None
