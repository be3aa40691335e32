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
from chaoslab.base.jsonable import show_value
from chaoslab.wire import lane_names, toxics
from chaoslab.wire.server._listener import Dials, same_place, split_address
from chaoslab.wire.server.end import Attached
from chaoslab.wire.server.proxy import Proxy, real_turns
from chaoslab.wire.toxics import Toxic

STREAMS = ("upstream", "downstream")
T = TypeVar("T")
INT64 = range(-(2**63), 2**63)
"""The values of an attribute: a larger one would break the arithmetic of times."""


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
        self.made = proxies


class ProxyBody(msgspec.Struct):
    """The fields of a proxy in a request. None: not given. Others are ignored."""

    name: str | None = None
    listen: str | None = None
    upstream: str | None = None
    enabled: bool | None = None
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
        self._changing = asyncio.Lock()
        self._turns, self._dials = real_turns(), Dials()

    def to_json(self) -> dict[str, Any]:
        return {name: self._proxies[name].to_json() for name in sorted(self._proxies)}

    def get(self, name: str) -> Proxy:
        try:
            return self._proxies[name]
        except KeyError:
            raise ApiError(404, "proxy not found") from None

    async def create(self, body: bytes) -> Proxy:
        wish = read_body(body, ProxyBody)
        name, _ = _require(wish)
        async with self._changing:
            if name in self._proxies:
                raise ApiError(409, "proxy already exists")
            return await self._make(wish)

    async def update(self, name: str, body: bytes) -> Proxy:
        """Changes the fields given. Another address drops the connections; the name stays."""
        async with self._changing:
            proxy = self.get(name)
            wish = read_body(body, ProxyBody)
            listen = proxy.listen if wish.listen is None else wish.listen
            upstream = proxy.upstream if wish.upstream is None else wish.upstream
            enabled = proxy.enabled if wish.enabled is None else wish.enabled
            if not await _in_place(proxy, listen, upstream):
                proxy.stop()
                proxy.listen, proxy.upstream = listen, upstream
            if enabled:
                await _start(proxy)
            else:
                proxy.stop()
            return proxy

    async def delete(self, name: str) -> None:
        async with self._changing:
            self.get(name).stop()
            del self._proxies[name]

    async def reap(self, now: float) -> None:
        """Deletes the lanes whose lease has expired: whoever made them is gone. `now`: in seconds since 1970."""
        for name in [name for name in self._proxies if lane_names.is_over(name, now)]:
            with contextlib.suppress(ApiError):  # another client was first
                await self.delete(name)

    async def populate(self, body: bytes) -> list[Proxy]:
        """Makes all these proxies. One that exists already, with the same addresses, is left as it is. Raises
        PopulateError: the first that failed, and those made before."""
        proxies: list[Proxy] = []
        try:
            wishes = read_body(body, list[ProxyBody])
            for number, wish in enumerate(wishes, start=1):
                _require(wish, at=f" at proxy {number}")
            async with self._changing:
                for wish in wishes:
                    proxies.append(await self._make_or_keep(wish))
        except ApiError as error:
            raise PopulateError(error, proxies) from error
        return proxies

    async def reset(self) -> None:
        """Enables every proxy and removes every toxic."""
        async with self._changing:
            for proxy in self._proxies.values():
                await _start(proxy)
                for toxic in tuple(proxy.toxics):
                    proxy.detach(toxic)

    def stop(self) -> None:
        for proxy in self._proxies.values():
            proxy.stop()
        self._proxies.clear()

    def toxic(self, proxy: str, name: str) -> Attached:
        for toxic in self.get(proxy).toxics:
            if toxic.name == name:
                return toxic
        raise ApiError(404, "toxic not found")

    def add_toxic(self, proxy_name: str, body: bytes) -> Attached:
        proxy, wish = self.get(proxy_name), read_body(body, ToxicBody)
        type_ = wish.type or ""
        stream = "downstream" if wish.stream is None else wish.stream
        if stream.lower() not in STREAMS:
            raise ApiError(400, "stream was invalid, can be either upstream or downstream")
        try:
            plain = toxics.load(type_)()
        except LookupError:
            raise ApiError(400, "invalid toxic type") from None
        name = wish.name or f"{type_}_{stream}"
        if any(existing.name == name for existing in proxy.toxics):
            raise ApiError(409, "toxic already exists")
        toxicity = 1.0 if wish.toxicity is None else wish.toxicity
        attached = Attached(name, type_, stream, toxicity, _with_attributes(plain, wish.attributes))
        proxy.attach(attached)
        return attached

    def update_toxic(self, proxy_name: str, name: str, body: bytes) -> Attached:
        """Changes attributes and toxicity; attributes that are not given stay."""
        proxy, toxic, wish = self.get(proxy_name), self.toxic(proxy_name, name), read_body(body, ToxicChange)
        toxicity = toxic.toxicity if wish.toxicity is None else wish.toxicity
        proxy.change(toxic, attributes=_with_attributes(toxic.toxic, wish.attributes), toxicity=toxicity)
        return toxic

    def delete_toxic(self, proxy_name: str, name: str) -> None:
        toxic = self.toxic(proxy_name, name)
        self.get(proxy_name).detach(toxic)

    async def _make(self, wish: ProxyBody) -> Proxy:
        name, upstream = _require(wish)
        _warn_of_ignored(wish)
        proxy = Proxy(
            name, listen=wish.listen or "", upstream=upstream, dice=self._dice(name), turns=self._turns,
            dials=self._dials,
        )  # fmt: skip
        if wish.enabled is not False:
            await _start(proxy)
        self._proxies[name] = proxy
        return proxy

    async def _make_or_keep(self, wish: ProxyBody) -> Proxy:
        name, upstream = _require(wish)
        existing = self._proxies.get(name)
        if existing is not None:
            if await _in_place(existing, wish.listen or "", upstream):
                return existing
            existing.stop()
            del self._proxies[name]
        return await self._make(wish)


def read_body(body: bytes, kind: type[T]) -> T:
    """The body's JSON as an object of that kind; null is an empty one. Raises ApiError: 400."""
    try:
        value: T | None = msgspec.json.decode(body, type=kind | None)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ApiError(400, f"bad request body: {error}") from None
    return kind() if value is None else value


def _with_attributes(toxic: Toxic, stated: Mapping[str, Any] | None) -> Toxic:
    """The toxic with these attributes in place of its own. Raises ApiError: 400, one is no integer."""
    names = {attribute.name for attribute in fields(toxic)}
    changed = {name: value for name, value in (stated or {}).items() if name in names and value is not None}
    for name, value in changed.items():
        if type(value) is not int or value not in INT64:
            raise ApiError(400, f"bad request body: the attribute {name} should be an integer of 64 bits")
    return replace(toxic, **changed)


def _require(wish: ProxyBody, *, at: str = "") -> tuple[str, str]:
    """The name and upstream of a proxy that is to be made. Raises ApiError: 400, one is missing."""
    if not wish.name or not wish.upstream:
        raise ApiError(400, f"missing required field: {'upstream' if wish.name else 'name'}{at}")
    return wish.name, wish.upstream


def _warn_of_ignored(wish: ProxyBody) -> None:
    """Says in one line each what the server ignores, as Toxiproxy ignores it without a word."""
    name, upstream = _require(wish)
    if wish.toxics:
        path = f"/proxies/{name}/toxics"
        _warn(f"the toxics of the proxy {show_value(name)} are ignored: add them with POST {show_value(path)}")
    try:
        split_address(upstream)
    except ValueError:
        _warn(f"the upstream {show_value(upstream)} is no host:port, so that every connection to it just ends")


def _warn(message: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed
        print(f"toxiproxy: {message}", file=sys.stderr, flush=True)


async def _start(proxy: Proxy) -> None:
    """Starts the proxy. Raises ApiError: 500, it cannot listen."""
    try:
        await proxy.start()
    except (OSError, ValueError) as error:
        raise _cannot_listen(proxy.listen, error) from None


async def _in_place(proxy: Proxy, listen: str, upstream: str) -> bool:
    """True if the proxy already has these addresses. Raises ApiError: 500, such an address is impossible."""
    try:
        return await same_place(proxy.listen, listen) and proxy.upstream == upstream
    except (OSError, ValueError) as error:
        raise _cannot_listen(listen, error) from None


def _cannot_listen(listen: str, error: OSError | ValueError) -> ApiError:
    if isinstance(error, OSError):
        reason = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
        return ApiError(500, f"listen tcp {listen}: bind: {reason}")
    return ApiError(500, f"listen tcp: {error}")
