"""All proxies of a server and the API's operations on them. Changes are made one at a time."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import msgspec

from chaoslab.base.dice import Dice
from chaoslab.base.jsonable import repr_one_line
from chaoslab.wire import lane_names, toxics
from chaoslab.wire.server._listener import Dials, is_same_address, split_address
from chaoslab.wire.server.end import AttachedToxic
from chaoslab.wire.server.proxy import Proxy, make_worker_timer
from chaoslab.wire.toxics import Toxic

STREAMS = ("upstream", "downstream")
T = TypeVar("T")
# The values of an attribute: a larger one would break the arithmetic of times.
INT64 = range(-(2**63), 2**63)


class ApiError(Exception):
    """A refusal: an HTTP status and its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class PopulateError(ApiError):
    """Some of a list of proxies could not be made. `made` are those that were."""

    def __init__(self, error: ApiError, proxies: list[Proxy]) -> None:
        super().__init__(error.status, error.message)
        # The real server answers with those made before the failure, so they go with the error.
        self.made = proxies


class ProxyBody(msgspec.Struct):
    """The fields of a proxy in a request. None: not given. Others are ignored."""

    name: str | None = None
    listen: str | None = None
    upstream: str | None = None
    enabled: bool | None = None
    # Read only to warn of it, as the real server ignores it without a word.
    toxics: Any = None


class ToxicBody(msgspec.Struct):
    """The fields of a toxic in a request. None: not given. Others are ignored."""

    name: str | None = None
    type: str | None = None
    stream: str | None = None
    toxicity: float | None = None
    attributes: dict[str, Any] | None = None


class ToxicChange(msgspec.Struct):
    """The fields of a toxic that can change."""

    toxicity: float | None = None
    attributes: dict[str, Any] | None = None


class Catalog:
    """Proxies by name."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._proxies: dict[str, Proxy] = {}
        # An asyncio lock, as changes wait for names and ports; toxics change without one, since nothing there waits.
        self._changing = asyncio.Lock()
        self._turns, self._dials = make_worker_timer(), Dials()

    def to_json(self) -> dict[str, Any]:
        # By name, as Go encodes its maps.
        return {name: self._proxies[name].to_json() for name in sorted(self._proxies)}

    def get_proxy(self, name: str) -> Proxy:
        try:
            return self._proxies[name]
        except KeyError:
            raise ApiError(404, "proxy not found") from None

    async def create_proxy(self, body: bytes) -> Proxy:
        # Before the lock: a body that cannot be read need not wait for others.
        spec = parse_body(body, ProxyBody)
        name, _ = _require_fields(spec)
        async with self._changing:
            if name in self._proxies:
                raise ApiError(409, "proxy already exists")
            return await self._make_proxy(spec)

    async def update_proxy(self, name: str, body: bytes) -> Proxy:
        """Changes the fields given. Another address drops the connections; the name stays."""
        async with self._changing:
            proxy = self.get_proxy(name)
            spec = parse_body(body, ProxyBody)
            listen = proxy.listen if spec.listen is None else spec.listen
            upstream = proxy.upstream if spec.upstream is None else spec.upstream
            enabled = proxy.enabled if spec.enabled is None else spec.enabled
            # `localhost:8001` and `127.0.0.1:8001` are one place, so what they resolve to is compared.
            if not await _has_addresses(proxy, listen, upstream):
                proxy.stop()
                proxy.listen, proxy.upstream = listen, upstream
            if enabled:
                await _start_proxy(proxy)
            else:
                proxy.stop()
            return proxy

    async def delete_proxy(self, name: str) -> None:
        async with self._changing:
            self.get_proxy(name).stop()
            del self._proxies[name]

    async def delete_expired_lanes(self, now: float) -> None:
        """Deletes the lanes whose lease has expired: whoever made them is gone. `now`: in seconds since 1970."""
        # The list first, since deleting changes the dictionary.
        for name in [name for name in self._proxies if lane_names.is_lane_expired(name, now)]:
            with contextlib.suppress(ApiError):  # another client was first
                await self.delete_proxy(name)

    async def populate_proxies(self, body: bytes) -> list[Proxy]:
        """Makes all these proxies. One that exists already, with the same addresses, is left as it is. Raises
        PopulateError: the first that failed, and those made before."""
        proxies: list[Proxy] = []
        try:
            specs = parse_body(body, list[ProxyBody])
            # All of them before the first is made, as on the real server; later failures leave those before in place.
            for number, spec in enumerate(specs, start=1):
                _require_fields(spec, at=f" at proxy {number}")
            async with self._changing:
                for spec in specs:
                    proxies.append(await self._make_or_keep_proxy(spec))
        except ApiError as error:
            raise PopulateError(error, proxies) from error
        return proxies

    async def reset_proxies(self) -> None:
        """Enables every proxy and removes every toxic."""
        async with self._changing:
            for proxy in self._proxies.values():
                await _start_proxy(proxy)
                # A copy, since detaching takes them out of the list.
                for toxic in tuple(proxy.toxics):
                    proxy.detach_toxic(toxic)

    def stop_proxies(self) -> None:
        for proxy in self._proxies.values():
            proxy.stop()
        self._proxies.clear()

    def get_toxic(self, proxy: str, name: str) -> AttachedToxic:
        for toxic in self.get_proxy(proxy).toxics:
            if toxic.name == name:
                return toxic
        raise ApiError(404, "toxic not found")

    def add_toxic(self, proxy_name: str, body: bytes) -> AttachedToxic:
        proxy, spec = self.get_proxy(proxy_name), parse_body(body, ToxicBody)
        type_ = spec.type or ""
        stream = "downstream" if spec.stream is None else spec.stream
        # Before the type, as on the real server. An explicit empty text is invalid, too.
        if stream.lower() not in STREAMS:
            raise ApiError(400, "stream was invalid, can be either upstream or downstream")
        try:
            plain = toxics.load_toxic(type_)()
        except LookupError:
            raise ApiError(400, "invalid toxic type") from None
        # The stream as it was typed, as the real server names it.
        name = spec.name or f"{type_}_{stream}"
        if any(existing.name == name for existing in proxy.toxics):
            raise ApiError(409, "toxic already exists")
        toxicity = 1.0 if spec.toxicity is None else spec.toxicity
        # Toxicity is not held to 0-1: the real server takes any number.
        attached = AttachedToxic(name, type_, stream, toxicity, _replace_attributes(plain, spec.attributes))
        proxy.attach_toxic(attached)
        return attached

    def update_toxic(self, proxy_name: str, name: str, body: bytes) -> AttachedToxic:
        """Changes attributes and toxicity; attributes that are not given stay."""
        proxy, toxic, spec = self.get_proxy(proxy_name), self.get_toxic(proxy_name, name), parse_body(body, ToxicChange)
        toxicity = toxic.toxicity if spec.toxicity is None else spec.toxicity
        proxy.change_toxic(toxic, attributes=_replace_attributes(toxic.toxic, spec.attributes), toxicity=toxicity)
        return toxic

    def delete_toxic(self, proxy_name: str, name: str) -> None:
        toxic = self.get_toxic(proxy_name, name)
        self.get_proxy(proxy_name).detach_toxic(toxic)

    async def _make_proxy(self, spec: ProxyBody) -> Proxy:
        name, upstream = _require_fields(spec)
        _warn_of_ignored_fields(spec)
        proxy = Proxy(
            name,
            listen=spec.listen or "",
            upstream=upstream,
            dice=self._dice(name),
            turns=self._turns,
            dials=self._dials,
        )
        # None means true.
        if spec.enabled is not False:
            await _start_proxy(proxy)
        # Only once it listens: a proxy that could not is not listed, as on the real server.
        self._proxies[name] = proxy
        return proxy

    async def _make_or_keep_proxy(self, spec: ProxyBody) -> Proxy:
        name, upstream = _require_fields(spec)
        existing = self._proxies.get(name)
        if existing is not None:
            if await _has_addresses(existing, spec.listen or "", upstream):
                return existing
            existing.stop()
            del self._proxies[name]
        return await self._make_proxy(spec)


def parse_body(body: bytes, kind: type[T]) -> T:
    """The body's JSON as an object of that kind; null is an empty one. Raises ApiError: 400."""
    try:
        # `| None`, since the real server takes null for an empty object.
        value: T | None = msgspec.json.decode(body, type=kind | None)
    # Deep nesting is a RecursionError in the decoder.
    except (msgspec.DecodeError, RecursionError) as error:
        raise ApiError(400, f"bad request body: {error}") from None
    return kind() if value is None else value


def _replace_attributes(toxic: Toxic, stated: Mapping[str, Any] | None) -> Toxic:
    """The toxic with these attributes in place of its own. Raises ApiError: 400, one is no integer."""
    names = {attribute.name for attribute in fields(toxic)}
    # null keeps the old value, and unknown names are ignored, as on the real server.
    changed = {name: value for name, value in (stated or {}).items() if name in names and value is not None}
    # `type`, since True would pass for an int.
    for name, value in changed.items():
        if type(value) is not int or value not in INT64:
            # Checked before anything changes; the real server applies the valid ones and then refuses.
            raise ApiError(400, f"bad request body: the attribute {name} should be an integer of 64 bits")
    return replace(toxic, **changed)


def _require_fields(spec: ProxyBody, *, at: str = "") -> tuple[str, str]:
    """The name and upstream of a proxy that is to be made. Raises ApiError: 400, one is missing."""
    if not spec.name or not spec.upstream:
        raise ApiError(400, f"missing required field: {'upstream' if spec.name else 'name'}{at}")
    return spec.name, spec.upstream


def _warn_of_ignored_fields(spec: ProxyBody) -> None:
    """Says in one line each what the server ignores, as Toxiproxy ignores it without a word."""
    name, upstream = _require_fields(spec)
    if spec.toxics:
        path = f"/proxies/{name}/toxics"
        _print_warning(
            f"the toxics of the proxy {repr_one_line(name)} are ignored: add them with POST {repr_one_line(path)}"
        )
    try:
        split_address(upstream)
    except ValueError:
        _print_warning(
            f"the upstream {repr_one_line(upstream)} is no host:port, so that every connection to it just ends"
        )


def _print_warning(message: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed
        print(f"toxiproxy: {message}", file=sys.stderr, flush=True)


async def _start_proxy(proxy: Proxy) -> None:
    """Starts the proxy. Raises ApiError: 500, it cannot listen."""
    try:
        await proxy.start()
    except (OSError, ValueError) as error:
        raise _make_listen_error(proxy.listen, error) from None


async def _has_addresses(proxy: Proxy, listen: str, upstream: str) -> bool:
    """True if the proxy already has these addresses. Raises ApiError: 500, such an address is impossible."""
    try:
        return await is_same_address(proxy.listen, listen) and proxy.upstream == upstream
    except (OSError, ValueError) as error:
        raise _make_listen_error(listen, error) from None


def _make_listen_error(listen: str, error: OSError | ValueError) -> ApiError:
    if isinstance(error, OSError):
        # The numbers of getaddrinfo are below 0, and `strerror` has no words for them.
        reason = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
        return ApiError(500, f"listen tcp {listen}: bind: {reason}")
    return ApiError(500, f"listen tcp: {error}")
