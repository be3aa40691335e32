"""All proxies of a server, and what the API can ask of them; one change at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from chaoslab.dice import Dice
from chaoslab.wire import toxics
from chaoslab.wire.server.decode import as_object, attributes, bad_body, field, kind, read_json, read_object
from chaoslab.wire.server.errors import ApiError
from chaoslab.wire.server.proxy import Attached, Proxy, same_place

STREAMS = ("upstream", "downstream")


class PopulateError(ApiError):
    """A list of proxies that could not all be made; `made` are those that were."""

    def __init__(self, error: ApiError, made: list[Proxy]) -> None:
        super().__init__(error.status, error.message)
        self.made = made


class Catalog:
    """Proxies by name."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._proxies: dict[str, Proxy] = {}
        self._changing = asyncio.Lock()

    def to_json(self) -> dict[str, Any]:
        return {name: self._proxies[name].to_json() for name in sorted(self._proxies)}

    def get(self, name: str) -> Proxy:
        try:
            return self._proxies[name]
        except KeyError:
            raise ApiError(404, "proxy not found") from None

    async def create(self, body: bytes) -> Proxy:
        wish = _wish(read_object(body, "toxiproxy.Proxy"), where="Proxy")
        _require(wish)
        async with self._changing:
            if wish["name"] in self._proxies:
                raise ApiError(409, "proxy already exists")
            return await self._make(wish)

    async def update(self, name: str, body: bytes) -> Proxy:
        """A partial change; another address drops the connections, the name stays."""
        async with self._changing:
            proxy = self.get(name)
            now = {"listen": proxy.listen, "upstream": proxy.upstream, "enabled": proxy.enabled}
            wish = _wish(read_object(body, "toxiproxy.Proxy"), where="Proxy", default=now)
            try:
                moved = not await same_place(proxy, listen=wish["listen"], upstream=wish["upstream"])
            except ApiError as error:
                raise ApiError(error.status, error.message.removeprefix("listen tcp: ")) from None
            if moved:
                proxy.stop()
                proxy.listen, proxy.upstream = wish["listen"], wish["upstream"]
            if wish["enabled"]:
                await proxy.start()
            else:
                proxy.stop()
            return proxy

    async def delete(self, name: str) -> None:
        async with self._changing:
            self.get(name).stop()
            del self._proxies[name]

    async def populate(self, body: bytes) -> list[Proxy]:
        """Make all these; one that is there already, at the same place, is left as it is.

        Raises:
            PopulateError: the first that failed, and those made before.
        """
        made: list[Proxy] = []
        try:
            wishes = _wishes(body)
            async with self._changing:
                for wish in wishes:
                    made.append(await self._make_or_keep(wish))
        except ApiError as error:
            raise PopulateError(error, made) from error
        return made

    async def reset(self) -> None:
        """Every proxy enabled, every toxic gone."""
        async with self._changing:
            for proxy in self._proxies.values():
                await proxy.start()
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
        proxy = self.get(proxy_name)
        data = read_object(body, "toxics.ToxicWrapper")
        where = "ToxicWrapper"
        type_ = field(data, "type", "", where=where)
        stream = field(data, "stream", "downstream", where=where)
        name = field(data, "name", "", where=where) or f"{type_}_{stream}"
        toxicity = field(data, "toxicity", 1.0, where=where)
        if stream.lower() not in STREAMS:
            raise ApiError(400, "stream was invalid, can be either upstream or downstream")
        try:
            toxic = toxics.load(type_)()
        except LookupError:
            raise ApiError(400, "invalid toxic type") from None
        if any(other.name == name for other in proxy.toxics):
            raise ApiError(409, "toxic already exists")
        attached = Attached(name, type_, stream, toxicity, attributes(data.get("attributes"), toxic))
        proxy.attach(attached)
        return attached

    def update_toxic(self, proxy_name: str, name: str, body: bytes) -> Attached:
        """Only attributes and toxicity can change; a change that fails changes nothing."""
        toxic = self.toxic(proxy_name, name)
        data = read_object(body, "toxics.ToxicWrapper")
        changed = attributes(data.get("attributes"), toxic.toxic)
        toxicity = field(data, "toxicity", toxic.toxicity, where="ToxicWrapper")
        self.get(proxy_name).change(toxic, attributes=changed, toxicity=toxicity)
        return toxic

    def delete_toxic(self, proxy_name: str, name: str) -> None:
        toxic = self.toxic(proxy_name, name)
        self.get(proxy_name).detach(toxic)

    async def _make(self, wish: Mapping[str, Any]) -> Proxy:
        name = wish["name"]
        proxy = Proxy(name, listen=wish["listen"], upstream=wish["upstream"], dice=self._dice(name))
        if wish["enabled"]:
            await proxy.start()
        self._proxies[name] = proxy
        return proxy

    async def _make_or_keep(self, wish: Mapping[str, Any]) -> Proxy:
        existing = self._proxies.get(wish["name"])
        if existing is not None:
            if await same_place(existing, listen=wish["listen"], upstream=wish["upstream"]):
                return existing
            existing.stop()
            del self._proxies[existing.name]
        return await self._make(wish)


def _wish(data: Mapping[str, Any], *, where: str, default: Mapping[str, Any] | None = None) -> dict[str, Any]:
    blank = {"name": "", "listen": "", "upstream": "", "enabled": True}
    return {name: field(data, name, value, where=where) for name, value in {**blank, **(default or {})}.items()}


def _require(wish: Mapping[str, Any], *, at: str = "") -> None:
    for name in ("name", "upstream"):
        if not wish[name]:
            raise ApiError(400, f"missing required field: {name}{at}")


def _wishes(body: bytes) -> list[dict[str, Any]]:
    entries = read_json(body)
    if entries is None:
        entries = []
    if not isinstance(entries, list):
        raise bad_body(f"json: cannot unmarshal {kind(entries)} into Go value of type []toxiproxy.Proxy")
    wishes = [_wish(as_object(entry, "toxiproxy.Proxy"), where=".Proxy") for entry in entries]
    for number, wish in enumerate(wishes, start=1):
        _require(wish, at=f" at proxy {number}")
    return wishes
