"""Requests at the gateway: the route that they name, and those that are refused."""

from __future__ import annotations

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "[::1]", "host.docker.internal"})
"""The names under which a client may ask for the gateway. Any other is a page's of a browser that was led here."""
HOP = "Chaoslab-Hop"
"""The field with the marks of the gateways that a request has passed, where it may go round in a loop."""


def split(target: str, only: str) -> tuple[str, str]:
    """The route's name and the rest of the path. `only`: the route of the port, whose name no path has."""
    if target.startswith(("http://", "https://")):  # as to a proxy
        target = "/" + target.split("/", 3)[3] if target.count("/") > 2 else "/"
    if only:
        return only, target
    path, mark, query = target.partition("?")
    name, _, rest = path.removeprefix("/").partition("/")
    return name, f"/{rest}{mark}{query}"


def refusal(origin: str, host: str) -> str | None:
    """The words for a request that a browser makes for a page, or one under a foreign name; None for any other. `host`:
    in lower case."""
    if origin:
        return f"the gateway answers programs, not pages of a browser (Origin: {origin[:60]})"
    name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
    if name not in LOOPBACK:
        return f"the gateway is asked for as 127.0.0.1 or localhost, not as {host[:60]!r}"
    return None
