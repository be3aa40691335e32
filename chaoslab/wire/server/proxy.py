"""One proxy: a listening socket, an upstream, its toxics in order, and its connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.wire.server.address import bind, spell_address, split_address
from chaoslab.wire.server.attached import Attached
from chaoslab.wire.server.end import End
from chaoslab.wire.server.link import Link
from chaoslab.wire.server.listener import Dials, Listener
from chaoslab.wire.server.metrics import Meters
from chaoslab.wire.server.turns import SOON_S, Turns
from chaoslab.wire.toxics import Toxic


def real_turns() -> Turns:
    """Turns in the machine's own time. The time of uvloop's loop is only exact to a millisecond."""
    return Turns(system.monotonic, soon_s=SOON_S)


class Junction:
    """The toxics, in an order that may change, and the connections through them to one upstream."""

    def __init__(self, dice: Dice, turns: Turns, *, dials: Dials | None = None) -> None:
        self.toxics: list[Attached] = []
        self.turns = turns
        self.dials = dials or Dials()
        self._dice = dice
        self._links: set[Link] = set()
        self._accepted = 0
        self._drops = 0

    @property
    def upstream_address(self) -> tuple[str, int]:
        raise NotImplementedError

    def attach(self, toxic: Attached) -> None:
        self.toxics.append(toxic)
        for link in tuple(self._links):
            link.attach(toxic)

    def change(self, toxic: Attached, *, attributes: Toxic, toxicity: float) -> None:
        toxic.toxic, toxic.toxicity = attributes, toxicity
        for link in tuple(self._links):
            link.attach(toxic)

    def detach(self, toxic: Attached) -> None:
        self.toxics.remove(toxic)
        for link in tuple(self._links):
            link.detach(toxic)

    def drop(self) -> None:
        """Drops every connection at once. One that was accepted but is not handed over yet is dropped then."""
        self._drops += 1
        for link in tuple(self._links):
            link.drop()

    def opened(self, link: Link) -> None:
        self._links.add(link)
        if link.since != self._drops:
            link.drop()

    def closed(self, link: Link) -> None:
        self._links.discard(link)

    def metered(self, end: End) -> asyncio.Protocol:
        return end

    def _accepting(self) -> Callable[[], asyncio.Protocol]:
        """A factory for a listener that begins now. It makes the client's end of each accepted connection."""
        return partial(self._accept, self._drops)

    def _accept(self, since: int) -> asyncio.Protocol:
        if since != self._drops:  # else asyncio keeps it open, unread, until the garbage is collected
            raise ConnectionAbortedError("accepted by a listener that is closed by now")
        self._accepted += 1
        return self.metered(Link(self, self._dice(self._accepted), since=since).client)


class Proxy(Junction):
    """A proxy, which accepts while it is enabled. All of it may change while connections are open."""

    def __init__(
        self,
        name: str,
        *,
        listen: str,
        upstream: str,
        dice: Dice,
        turns: Turns | None = None,
        dials: Dials | None = None,
        meters: Meters | None = None,
    ) -> None:
        """Makes a disabled proxy. `turns` and `dials` are the server's, if it has several proxies. `meters` counts its
        bytes."""
        super().__init__(dice, turns or real_turns(), dials=dials)
        self.name = name
        self.listen = listen
        self.upstream = upstream
        self.meters = meters
        self._server: Listener | None = None

    @property
    def enabled(self) -> bool:
        return self._server is not None

    @property
    def upstream_address(self) -> tuple[str, int]:
        host, port = split_address(self.upstream)
        return host or "localhost", port

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "Logger": {},
            "toxics": self.toxics_json(),
        }

    def toxics_json(self) -> list[dict[str, Any]]:
        """The upstream toxics, then the downstream ones, each in the order of adding."""
        return [
            toxic.to_json() for side in ("upstream", "downstream") for toxic in self.toxics if toxic.direction == side
        ]

    async def start(self) -> None:
        """Begins to listen. `listen` is then the address really bound. Raises ApiError: 500, worded as Go words it."""
        if self._server is not None:
            return
        listener = await bind(self.listen)
        self._server = Listener(listener, self._accepting(), dials=self.dials)
        self.listen = spell_address(listener.getsockname())

    def stop(self) -> None:
        """Stops listening and drops every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.drop()

    def metered(self, end: End) -> asyncio.Protocol:
        """The end itself, or one that counts its bytes if the proxy has meters."""
        if self.meters is None:
            return end
        return self.meters.count(end, proxy=self.name, listener=self.listen, upstream=self.upstream)
