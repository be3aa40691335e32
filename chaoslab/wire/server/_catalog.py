"""All proxies of a server and the API's operations on them. Changes are made one at a time."""

import asyncio
import contextlib
import sys
from collections.abc import Mapping
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.base.jsonable import shown
from chaoslab.wire import lane_names, toxics
from chaoslab.wire.server import metrics
from chaoslab.wire.server._address import Dials, is_old_spelling, same_place, split_address
from chaoslab.wire.server._decode import (
    Attributes,
    Field,
    flag,
    ignored_object,
    read_json,
    read_object,
    read_objects,
    share,
    text,
)
from chaoslab.wire.server._spelling import ApiError
from chaoslab.wire.server.end import Attached
from chaoslab.wire.server.metrics import Meters
from chaoslab.wire.server.proxy import Proxy, real_turns
from chaoslab.wire.toxics import Toxic

STREAMS = ("upstream", "downstream")
LOGGER = ignored_object("zerolog.Logger")
PROXY = {
    "name": Field("Proxy.name", text),
    "listen": Field("Proxy.listen", text),
    "upstream": Field("Proxy.upstream", text),
    "enabled": Field("Proxy.enabled", flag),
    "logger": Field("Proxy.Logger", LOGGER),
    "toxics": Field("Proxy.Toxics", lambda value: value),  # which Toxiproxy does not take either
}
LISTED = {name: Field(f".{field.path}", field.read) for name, field in PROXY.items()} | {
    "enabled": Field(".enabled", lambda value: flag(value) is not False)  # here null is a value: the default
}
# The types that Go quotes in a refusal.
ENTRY = 'struct { toxiproxy.Proxy; Enabled *bool "json:\\"enabled\\"" }'
CHANGE = 'struct { Attributes interface {} "json:\\"attributes\\""; Toxicity float32 "json:\\"toxicity\\"" }'
GO_NAMES = {"ResetPeer": "Reset"}  # the one toxic with another name in Go's code than in the API


class PopulateError(ApiError):
    """Some of a list of proxies could not be made. `made` are those that were."""

    def __init__(self, error: ApiError, made: list[Proxy]) -> None:
        super().__init__(error.status, error.message)
        self.made = made


class Catalog:
    """Proxies by name."""

    def __init__(self, dice: Dice, *, of_proxies: bool = False, of_process: bool = False) -> None:
        self._dice = dice
        """`of_proxies`, `of_process`: the metrics that are shown."""
        self._of_proxies, self._of_process = of_proxies, of_process
        self._proxies: dict[str, Proxy] = {}
        self._changing = asyncio.Lock()
        self._turns, self._dials = real_turns(), Dials()

    def to_json(self) -> dict[str, Any]:
        return {name: self._proxies[name].to_json() for name in sorted(self._proxies)}

    @property
    def shows_metrics(self) -> bool:
        return self._of_proxies or self._of_process

    def metrics(self) -> str:
        shown = list(metrics.handler())
        shown += Meters.families([proxy.meters for proxy in self._proxies.values() if proxy.meters is not None])
        if self._of_process:
            shown += metrics.process()
        return metrics.render(shown)

    def get(self, name: str) -> Proxy:
        try:
            return self._proxies[name]
        except KeyError:
            raise ApiError(404, "proxy not found") from None

    async def create(self, body: bytes) -> Proxy:
        wish = _complete(read_object(read_json(body), "toxiproxy.Proxy", PROXY))
        _require(wish)
        async with self._changing:
            if wish["name"] in self._proxies:
                raise ApiError(409, "proxy already exists")
            return await self._make(wish)

    async def update(self, name: str, body: bytes) -> Proxy:
        """Changes the fields given. Another address drops the connections; the name stays."""
        async with self._changing:
            proxy = self.get(name)
            now: dict[str, Any] = {"listen": proxy.listen, "upstream": proxy.upstream, "enabled": proxy.enabled}
            wish = now | read_object(read_json(body), "toxiproxy.Proxy", PROXY)
            if wish["upstream"] != proxy.upstream:
                _refuse_unreachable(wish["upstream"])
            if not await _in_place(proxy, wish):
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

    async def reap(self, now: float) -> None:
        """Deletes the lanes whose lease has expired: whoever made them is gone. `now`: in seconds since 1970."""
        for name in [name for name in self._proxies if lane_names.is_over(name, now)]:
            with contextlib.suppress(ApiError):  # another client was first
                await self.delete(name)

    async def populate(self, body: bytes) -> list[Proxy]:
        """Makes all these proxies. One that exists already, with the same addresses, is left as it is. Raises
        PopulateError: the first that failed, and those made before."""
        made: list[Proxy] = []
        try:
            wishes = [_complete(wish) for wish in read_objects(read_json(body), ENTRY, LISTED)]
            for number, entry in enumerate(wishes, start=1):
                _require(entry, at=f" at proxy {number}")
            async with self._changing:
                for wish in wishes:
                    made.append(await self._make_or_keep(wish))
        except ApiError as error:
            raise PopulateError(error, made) from error
        return made

    async def reset(self) -> None:
        """Enables every proxy and removes every toxic."""
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
        """Adds a toxic. The body is read twice, as in Toxiproxy: its attributes once the type is known."""
        proxy = self.get(proxy_name)
        value = read_json(body)
        wish: dict[str, Any] = {"name": "", "type": "", "stream": "downstream", "toxicity": 1.0}
        wish |= read_object(value, "toxics.ToxicWrapper", _wrapper())
        type_, stream = wish["type"], wish["stream"]
        name = wish["name"] or f"{type_}_{stream}"
        if stream.lower() not in STREAMS:
            raise ApiError(400, "stream was invalid, can be either upstream or downstream")
        try:
            given = _attributes(toxics.load(type_)())
        except LookupError:
            raise ApiError(400, "invalid toxic type") from None
        if any(other.name == name for other in proxy.toxics):
            raise ApiError(409, "toxic already exists")
        read_object(value, "", {"attributes": Field(".attributes", given)})
        attached = Attached(name, type_, stream, wish["toxicity"], given.toxic())
        proxy.attach(attached)
        return attached

    def update_toxic(self, proxy_name: str, name: str, body: bytes) -> Attached:
        """Changes attributes and toxicity. Correct attributes change even if something else in the body is wrong."""
        proxy, toxic = self.get(proxy_name), self.toxic(proxy_name, name)
        given = _attributes(toxic.toxic)
        fields = {"attributes": Field(".attributes", given), "toxicity": Field(".toxicity", share)}
        value = read_json(body)
        try:
            toxicity = read_object(value, CHANGE, fields).get("toxicity", toxic.toxicity)
        except ApiError:
            if (changed := given.toxic()) != toxic.toxic:
                proxy.change(toxic, attributes=changed, toxicity=toxic.toxicity)
            raise
        proxy.change(toxic, attributes=given.toxic(), toxicity=toxicity)
        return toxic

    def delete_toxic(self, proxy_name: str, name: str) -> None:
        toxic = self.toxic(proxy_name, name)
        self.get(proxy_name).detach(toxic)

    async def _make(self, wish: Mapping[str, Any]) -> Proxy:
        name = wish["name"]
        listen, upstream = wish["listen"], wish["upstream"]
        meters = Meters() if self._of_proxies else None
        shared: dict[str, Any] = {"turns": self._turns, "dials": self._dials, "meters": meters}
        proxy = Proxy(name, listen=listen, upstream=upstream, dice=self._dice(name), **shared)
        if wish["enabled"]:
            await proxy.start()
        self._proxies[name] = proxy
        return proxy

    async def _make_or_keep(self, wish: Mapping[str, Any]) -> Proxy:
        existing = self._proxies.get(wish["name"])
        if existing is not None:
            if await _in_place(existing, wish):
                if wish["enabled"] != existing.enabled:
                    now = "enabled" if existing.enabled else "disabled"
                    _warn(f"the proxy {shown(existing.name)} is there and stays {now}: PATCH it to change that")
                return existing
            existing.stop()
            del self._proxies[existing.name]
        return await self._make(wish)


def _warn(words: str) -> None:
    """Says what is ignored here, as Toxiproxy ignores it without a word."""
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed
        print(f"toxiproxy: {words}", file=sys.stderr, flush=True)


async def _in_place(proxy: Proxy, wish: Mapping[str, Any]) -> bool:
    """Tells if the proxy already has the addresses asked for. Raises ApiError: 500, such an address is impossible."""
    return await same_place(proxy.listen, wish["listen"]) and proxy.upstream == wish["upstream"]


def _complete(wish: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": "", "listen": "", "upstream": "", "enabled": True, **wish}


def _require(wish: Mapping[str, Any], *, at: str = "") -> None:
    for name in ("name", "upstream"):
        if not wish[name]:
            raise ApiError(400, f"missing required field: {name}{at}")
    _refuse_unreachable(wish["upstream"], at=at)
    if wish.get("toxics"):
        path = f"/proxies/{wish['name']}/toxics"
        _warn(f"the toxics of the proxy {shown(wish['name'])} are ignored: add them with POST {shown(path)}")


def _refuse_unreachable(upstream: str, *, at: str = "") -> None:
    """Refuses an upstream that looks like an address and is none. A failed connection would not show the reason."""
    try:
        host, port = split_address(upstream)
    except ValueError:
        host, port = "", 0
    if is_old_spelling(host):
        raise ApiError(400, f"upstream {upstream}{at}: no such host; an IPv4 address has four decimal parts")
    if not port or "/" in host:
        _warn(f"the upstream {shown(upstream)}{at} is no host:port, so that every connection to it just ends")


def _wrapper() -> dict[str, Field]:
    """The fields of a toxic's body before its type is known. The attributes must be an object."""
    return {
        "name": Field("ToxicWrapper.name", text),
        "type": Field("ToxicWrapper.type", text),
        "stream": Field("ToxicWrapper.stream", text),
        "toxicity": Field("ToxicWrapper.toxicity", share),
        "attributes": Field("ToxicWrapper.attributes", Attributes("NoopToxic", Toxic(), missing="toxics.Toxic")),
    }


def _attributes(toxic: Toxic) -> Attributes:
    name = type(toxic).__name__
    return Attributes(f"{GO_NAMES.get(name, name)}Toxic", toxic)
