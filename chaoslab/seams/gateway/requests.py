"""Requests at the gateway: the route that they name, their secrets, and those that are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from chaoslab.seams.services.messages import HttpRequest
from chaoslab.wire.http1 import Head

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "[::1]", "host.docker.internal"})
"""The names under which a client may ask for the gateway. Any other is a page's of a browser that was led here."""
SECRETS = frozenset({"key", "api_key", "apikey", "api-key", "access_token", "token", "signature", "sig"})
"""Fields of a query that are not written down."""
HIDDEN = "***"
CREDENTIALS = frozenset({
    "authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "x-auth-token",
})  # fmt: skip
"""Fields whose values are masked wherever a log would show them, even in an answer that repeats them."""
SECRET_MIN = 8
"""The shortest secret that is looked for."""


class Request(HttpRequest):
    """A request at the gateway. Secrets in its query are no part of its meaning."""

    def meaning(self) -> dict[str, Any]:
        found = super().meaning()
        query = found.get("query")
        if isinstance(query, dict) and any(name.lower() in SECRETS for name in query):
            found["query"] = {name: HIDDEN if name.lower() in SECRETS else value for name, value in query.items()}
        return found

    def with_meaning(self, value: Mapping[str, Any]) -> HttpRequest:
        query, own = value.get("query"), super().meaning().get("query")
        if isinstance(query, dict) and isinstance(own, dict):
            query = {name: own.get(name, each) if each == HIDDEN else each for name, each in query.items()}
            value = {**value, "query": query}
        return super().with_meaning(value)


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


def secrets_of(head: Head, path: str) -> set[str]:
    """The secrets of a request: its keys, without the words before them."""
    found = {value.rpartition(" ")[2] for name, value in head.fields if name.lower() in CREDENTIALS}
    query = parse_qsl(path.partition("?")[2]) if "?" in path else ()
    found |= {value for name, value in query if name.lower() in SECRETS}
    return {value for value in found if len(value) >= SECRET_MIN}
