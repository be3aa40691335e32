"""One proxy: a listening socket, an upstream, its toxics in order, and its connections, each of which dials its
upstream and draws its toxics."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.wire.server._listener import Dials, Listener, bind_socket, format_address, split_address
from chaoslab.wire.server.end import AttachedToxic, ProxyEnd
from chaoslab.wire.server.turns import SOON_S, WorkerTimer
from chaoslab.wire.toxics import Toxic

# The real server dials without a deadline, one after the other, so that a black hole blocks all of its accepts.
DIAL_TIMEOUT_S = 10.0


class ConnectionOwner(Protocol):
    """A connection's interface to its proxy."""

    @property
    def upstream_address(self) -> tuple[str, int]: ...

    @property
    def toxics(self) -> list[AttachedToxic]: ...

    @property
    def worker_timer(self) -> WorkerTimer: ...

    @property
    def pending_dials(self) -> Dials: ...

    def add_connection(self, link: "ProxyConnection") -> None: ...

    def remove_connection(self, link: "ProxyConnection") -> None: ...


class ProxyConnection:
    """A connection through a proxy, from the accept until both ends are closed. `since`: the proxy's count of drops
    when the listener that accepted this one began."""

    def __init__(self, owner: ConnectionOwner, dice: Dice, *, since: int) -> None:
        self._owner = owner
        self.since = since
        self.worker_timer = owner.worker_timer
        self._dice = dice
        self._named: dict[str, Dice] = {}
        self._dial: asyncio.Task[None] | None = None
        self.open = False
        self.rude = False  # a toxic has reset it, so every end is closed with RST
        self._dropped = False
        self.client = ProxyEnd(self, "upstream")
        self.server = ProxyEnd(self, "downstream")
        self.client.peer, self.server.peer = self.server, self.client

    def handle_end_connected(self, end: ProxyEnd) -> None:
        """Notes that an end is connected: the client's was accepted, the server's was dialled."""
        if end is self.client:
            self._owner.add_connection(self)
            if self._dropped:
                return
            self._dial = asyncio.get_running_loop().create_task(self._dial_upstream())
        # The client may have gone, or the proxy been stopped, while this end was dialled.
        elif self.client.lost or self._dropped:
            end.abort()
        else:
            self._start_forwarding()

    def handle_end_lost(self, end: ProxyEnd) -> None:
        # No upstream for a client that has gone.
        if end is self.client and self._dial is not None:
            self._dial.cancel()
        if self.client.lost and (self.server.lost or self.server.transport is None):
            self._owner.remove_connection(self)

    def drop_connection(self) -> None:
        """Closes both ends at once, without waiting for a reader."""
        self._dropped = True
        if self._dial is not None:
            self._dial.cancel()
        for end in (self.client, self.server):
            end.stop_forwarding()
            end.abort()

    def attach_toxic(self, toxic: AttachedToxic, *, opening: bool = False) -> None:
        """Draws if a new or changed toxic acts on this connection. `opening`: all toxics are attached in order, so this
        one goes behind all."""
        if not self.open:
            return  # all toxics are drawn when the connection opens
        end = self._choose_end(toxic)
        dice = self._named.setdefault(toxic.name, self._dice(toxic.name))
        # No draw at toxicity 1, so that the usual toxic costs none.
        hit = toxic.toxicity >= 1 or dice.draw_bool(toxic.toxicity)
        # A pipe that acts already is changed in place: it may hold data.
        if hit and end.has_pipe(toxic.name):
            end.replace_pipe(toxic, dice("pipe"))
        elif hit:
            toxics = self._owner.toxics
            # At the opening all come in order, so looking for a place would only cost.
            last = opening or toxic is toxics[-1]
            before = None if last else {attached.name for attached in toxics[: toxics.index(toxic)]}
            end.insert_pipe(toxic, dice("pipe"), before)
        else:
            end.remove_pipe(toxic.name, spared=True)

    def detach_toxic(self, toxic: AttachedToxic) -> None:
        self._choose_end(toxic).remove_pipe(toxic.name)

    def _start_forwarding(self) -> None:
        self.open = True
        self._dial = None
        for toxic in self._owner.toxics:
            self.attach_toxic(toxic, opening=True)
        self.client.start_forwarding()
        self.server.start_forwarding()

    def _choose_end(self, toxic: AttachedToxic) -> ProxyEnd:
        return self.client if toxic.direction == "upstream" else self.server

    async def _dial_upstream(self) -> None:
        """Dials the upstream, in a task of its own with a deadline, so that a silent upstream delays only this
        connection."""
        self._owner.pending_dials.count += 1
        try:
            host, port = self._owner.upstream_address
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                await asyncio.get_running_loop().create_connection(lambda: self.server, host, port)
        # ValueError: an upstream that is no host:port. The connection is taken and ends, as on the real server.
        except (OSError, ValueError):
            self.client.close_gracefully()
        finally:
            self._owner.pending_dials.count -= 1


def make_worker_timer() -> WorkerTimer:
    """Turns in the machine's own time. The time of uvloop's loop is only exact to a millisecond."""
    return WorkerTimer(system.monotonic, soon_s=SOON_S)


class ProxiedConnections:
    """The toxics, in an order that may change, and the connections through them to one upstream."""

    def __init__(self, dice: Dice, turns: WorkerTimer, *, dials: Dials | None = None) -> None:
        self.toxics: list[AttachedToxic] = []
        self.worker_timer = turns
        self.pending_dials = dials or Dials()
        self._dice = dice
        self._links: set[ProxyConnection] = set()
        self._accepted = 0
        self._drops = 0

    @property
    def upstream_address(self) -> tuple[str, int]:
        raise NotImplementedError

    def attach_toxic(self, toxic: AttachedToxic) -> None:
        self.toxics.append(toxic)
        # A copy, as a link that ends takes itself out.
        for link in tuple(self._links):
            link.attach_toxic(toxic)

    def change_toxic(self, toxic: AttachedToxic, *, attributes: Toxic, toxicity: float) -> None:
        toxic.toxic, toxic.toxicity = attributes, toxicity
        for link in tuple(self._links):
            link.attach_toxic(toxic)

    def detach_toxic(self, toxic: AttachedToxic) -> None:
        self.toxics.remove(toxic)
        for link in tuple(self._links):
            link.detach_toxic(toxic)

    def drop_connections(self) -> None:
        """Drops every connection at once. One that was accepted but is not handed over yet is dropped then."""
        self._drops += 1
        for link in tuple(self._links):
            link.drop_connection()

    def add_connection(self, link: ProxyConnection) -> None:
        # By a count, since a link may be accepted before a stop and handed over after it.
        self._links.add(link)
        if link.since != self._drops:
            link.drop_connection()

    def remove_connection(self, link: ProxyConnection) -> None:
        self._links.discard(link)

    def _make_protocol_factory(self) -> Callable[[], asyncio.Protocol]:
        """A factory for a listener that begins now. It makes the client's end of each accepted connection."""
        return partial(self._accept_connection, self._drops)

    def _accept_connection(self, since: int) -> asyncio.Protocol:
        if since != self._drops:  # else asyncio keeps it open, unread, until the garbage is collected
            raise ConnectionAbortedError("accepted by a listener that is closed by now")
        # Numbered at the proxy, so that a connection's draws depend on nothing else that goes on.
        self._accepted += 1
        return ProxyConnection(self, self._dice(self._accepted), since=since).client


class Proxy(ProxiedConnections):
    """A proxy, which accepts while it is enabled. All of it may change while connections are open."""

    def __init__(
        self,
        name: str,
        *,
        listen: str,
        upstream: str,
        dice: Dice,
        turns: WorkerTimer | None = None,
        dials: Dials | None = None,
    ) -> None:
        """Makes a disabled proxy. `turns` and `dials` are the server's, if it has several proxies."""
        super().__init__(dice, turns or make_worker_timer(), dials=dials)
        self.name = name
        self.listen = listen
        self.upstream = upstream
        self._server: Listener | None = None

    @property
    def enabled(self) -> bool:
        return self._server is not None

    @property
    def upstream_address(self) -> tuple[str, int]:
        host, port = split_address(self.upstream)
        # Without a host an upstream is this machine, as for Go's dialler.
        return host or "localhost", port

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name, "listen": self.listen, "upstream": self.upstream, "enabled": self.enabled,
            # As on the real server, which leaks its logger here.
            "Logger": {}, "toxics": self.toxics_to_json(),
        }  # fmt: skip

    def toxics_to_json(self) -> list[dict[str, Any]]:
        """The upstream toxics, then the downstream ones, each in the order of adding."""
        return [
            toxic.to_json() for side in ("upstream", "downstream") for toxic in self.toxics if toxic.direction == side
        ]

    async def start(self) -> None:
        """Begins to listen. `listen` is then the address really bound. Raises OSError or ValueError: the address is
        taken, or there is none."""
        if self._server is not None:
            return
        listener = await bind_socket(self.listen)
        self._server = Listener(listener, self._make_protocol_factory(), dials=self.pending_dials)
        # The address that was bound, with the port in place of 0, as the real server shows it.
        self.listen = format_address(listener.getsockname())

    def stop(self) -> None:
        """Stops listening and drops every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.drop_connections()
