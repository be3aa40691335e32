"""Addresses and cookies in a service's answer, made into those that lead its client back to the gateway."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from chaoslab.seams.gateway.routes import GatewayRoute
from chaoslab.wire.http1 import Fields

_ADDRESSES = frozenset({"location", "content-location"})
_REWRITTEN = _ADDRESSES | {"refresh", "set-cookie"}
# Browsers take a comma as well as a semicolon, quotes or none, and the word `url` may be missing.
_REFRESH = re.compile(r"(\s*[0-9.]*\s*[;,]\s*(?:url\s*=\s*)?)(['\"]?)(.*?)\2\s*", re.IGNORECASE)


class AddressRewriter:
    """The rewriting of one route's answers. `prefixes`: the address and path at the gateway of each route, as in
    "http://127.0.0.1:8888/crm"; `own`: the route's own."""

    def __init__(
        self, route: GatewayRoute, address: str, routes: Mapping[str, GatewayRoute], prefixes: Mapping[str, str]
    ) -> None:
        self._route, self._own, self._routes, self._prefixes = route, address, routes, prefixes

    def rewrite_headers(self, fields: Fields) -> Fields:
        """The fields of an answer as the client gets them."""
        # On the gateway's own port with the service's address, as behind the proxy, nothing has to change.
        if self._own == self._route.url:
            return fields
        return [
            (name, rewritten)
            for name, value in fields
            for rewritten in (
                self._rewrite_header_values(name.lower(), value) if name.lower() in _REWRITTEN else (value,)
            )
        ]

    def _rewrite_header_values(self, name: str, value: str) -> Iterable[str]:
        """The values in place of one. A cookie whose name demands Secure (RFC 6265bis) is sent with it and without: a
        client that holds to that takes the first alone, since loopback is secure to it. Any other one, as in Python,
        takes the second in its place, and would send the first to nobody over plain HTTP."""
        if name != "set-cookie":
            return (self._rewrite_header(name, value),)
        secure = value.lstrip().lower().startswith(("__host-", "__secure-"))
        # `fromkeys` drops the second where both are alike.
        return dict.fromkeys((self._rewrite_cookie(value, secure=secure), self._rewrite_cookie(value)))

    def _rewrite_header(self, name: str, value: str) -> str:
        if name in _ADDRESSES:
            return self.rewrite_address(value)
        if name == "refresh" and (match := _REFRESH.fullmatch(value)):
            return f"{match[1]}{match[2]}{self.rewrite_address(match[3])}{match[2]}"
        return value

    def rewrite_address(self, url: str) -> str:
        """The address at the gateway for one at a service; itself if it leads elsewhere."""
        # A URL that nothing can parse is the service's to send.
        try:
            host = urlsplit(url).hostname
        except ValueError:
            return url
        if not host:
            # Relative to the path that was asked for, which the gateway has kept.
            if not url.startswith("/"):
                return url
            path = self._route.strip_base(url)
            return url if path is None else urlsplit(self._own).path + path
        # The route itself first: two routes may lead to one host, and the client should stay on its own.
        for route in (self._route, *self._routes.values()):
            if (path := route.find_path(url)) is not None:
                return (self._own if route is self._route else self._prefixes[route.name]) + path
        return url

    def _rewrite_cookie(self, value: str, *, secure: bool = False) -> str:
        """A cookie for the gateway's host and the route's path, over plain HTTP unless it is to stay `secure`. One of
        __Host- is for all paths."""
        pair, *attributes = value.split(";")
        parts = [pair]
        for attribute in attributes:
            name, equals, text = attribute.partition("=")
            key = name.strip().lower()
            # A domain of the service: from the gateway's host a client would refuse it.
            if key == "domain" or (key == "secure" and self._route.scheme == "https" and not secure):
                continue
            # `__Host-` demands Path=/ (RFC 6265bis), so such a cookie keeps it.
            if key == "path" and text.strip().startswith("/") and not pair.lstrip().lower().startswith("__host-"):
                path, base = text.strip(), self._route.base
                inner = self._route.strip_base(path)
                if inner is None:
                    # A cookie for a path above the route's own is for all of the route.
                    inner = "" if (base + "/").startswith(path.rstrip("/") + "/") else path
                attribute = f"{name}{equals}{(urlsplit(self._own).path + inner).rstrip('/') or '/'}"
            parts.append(attribute)
        return ";".join(parts)
