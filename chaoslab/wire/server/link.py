"""One proxied connection. Dials its upstream and draws its toxics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from chaoslab.base.dice import Dice
from chaoslab.wire.server.end import End
from chaoslab.wire.server.turns import Turns

if TYPE_CHECKING:
    from chaoslab.wire.server.attached import Attached
    from chaoslab.wire.server.listener import Dials

DIAL_TIMEOUT_S = 10.0


class Owner(Protocol):
    """A connection's interface to its proxy."""

    @property
    def upstream_address(self) -> tuple[str, int]: ...

    @property
    def toxics(self) -> list[Attached]: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def dials(self) -> Dials: ...

    def opened(self, link: Link) -> None: ...

    def closed(self, link: Link) -> None: ...

    def metered(self, end: End) -> asyncio.Protocol: ...


class Link:
    """A connection through a proxy, from the accept until both ends are closed. `since`: the proxy's count of drops
    when the listener that accepted this one began."""

    def __init__(self, owner: Owner, dice: Dice, *, since: int) -> None:
        self._owner = owner
        self.since = since
        self.turns = owner.turns
        self._dice = dice
        self._named: dict[str, Dice] = {}
        self._dial: asyncio.Task[None] | None = None
        self.open = False
        self.rude = False  # a toxic has reset it, so every end is closed with RST
        self._dropped = False
        self.client = End(self, "upstream")
        self.server = End(self, "downstream")
        self.client.peer, self.server.peer = self.server, self.client

    def made(self, end: End) -> None:
        """Notes that an end is connected: the client's was accepted, the server's was dialled."""
        if end is self.client:
            self._owner.opened(self)
            if self._dropped:
                return
            self._dial = asyncio.get_running_loop().create_task(self._dial_upstream())
        elif self.client.lost or self._dropped:
            end.abort()
        else:
            self._begin()

    def lost(self, end: End) -> None:
        if end is self.client and self._dial is not None:
            self._dial.cancel()
        if self.client.lost and (self.server.lost or self.server.transport is None):
            self._owner.closed(self)

    def drop(self) -> None:
        """Closes both ends at once, without waiting for a reader."""
        self._dropped = True
        if self._dial is not None:
            self._dial.cancel()
        for end in (self.client, self.server):
            end.stop()
            end.abort()

    def attach(self, toxic: Attached, *, opening: bool = False) -> None:
        """Draws if a new or changed toxic acts on this connection. `opening`: all toxics are attached in order, so this
        one goes behind all."""
        if not self.open:
            return  # all toxics are drawn when the connection opens
        end = self._end(toxic)
        dice = self._named.setdefault(toxic.name, self._dice(toxic.name))
        hit = toxic.toxicity >= 1 or dice.hits(toxic.toxicity)
        if hit and end.acts(toxic.name):
            end.change(toxic, dice("pipe"))
        elif hit:
            toxics = self._owner.toxics
            last = opening or toxic is toxics[-1]
            before = None if last else {other.name for other in toxics[: toxics.index(toxic)]}
            end.insert(toxic, dice("pipe"), before)
        else:
            end.take_out(toxic.name, spared=True)

    def detach(self, toxic: Attached) -> None:
        self._end(toxic).take_out(toxic.name)

    def _begin(self) -> None:
        self.open = True
        self._dial = None
        for toxic in self._owner.toxics:
            self.attach(toxic, opening=True)
        self.client.start()
        self.server.start()

    def _end(self, toxic: Attached) -> End:
        return self.client if toxic.direction == "upstream" else self.server

    async def _dial_upstream(self) -> None:
        """Dials the upstream, in a task of its own with a deadline, so that a silent upstream delays only this
        connection."""
        self._owner.dials.count += 1
        try:
            host, port = self._owner.upstream_address
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                await asyncio.get_running_loop().create_connection(lambda: self._owner.metered(self.server), host, port)
        except (OSError, ValueError):
            self.client.say_goodbye()
        finally:
            self._owner.dials.count -= 1
