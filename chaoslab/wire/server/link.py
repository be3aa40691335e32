"""One proxied connection: two ends, and between them, for each direction, either nothing at all or a chain of toxics."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING, Protocol, cast

from chaoslab.dice import Dice
from chaoslab.pipe import Chain, Signal, Timed

if TYPE_CHECKING:
    from chaoslab.wire.server.proxy import Attached

DIAL_TIMEOUT_S = 10.0
HELD_BYTES_MAX = 32 * 1024 * 1024  # a smaller buffer would throttle a fast stream with a long latency
CHUNK_BYTES = 32 * 1024  # what Toxiproxy reads at once, and so what a changed toxic lets go of at once
RST_ON_CLOSE = struct.pack("ii", 1, 0)


class Owner(Protocol):
    """What a connection needs of its proxy."""

    @property
    def upstream_address(self) -> tuple[str, int]: ...

    @property
    def toxics(self) -> list[Attached]: ...

    @property
    def slack_s(self) -> float:
        """How much earlier than due a timer is to ring, and what is due by then to go out with it."""

    def opened(self, link: Link) -> None: ...

    def closed(self, link: Link) -> None: ...

    def metered(self, end: End) -> asyncio.Protocol: ...


class End(asyncio.Protocol):
    """One end of a connection, and the direction of what arrives here: through the chain, on to the peer."""

    peer: End

    def __init__(self, link: Link, direction: str) -> None:
        self.direction = direction
        self.transport: asyncio.Transport | None = None
        self.lost = False
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._early: list[bytes | Signal] | None = []  # what came before the other end was there
        self._early_bytes = 0
        self._chain: Chain | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._wake: float | None = None  # what the timer was set for
        self._source_over = False  # nothing more arrives
        self._over = False  # nothing more is passed on
        self._paused = False
        self._full = False  # the socket of this end takes no more for now

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by class
        self._link.made(self)

    def data_received(self, data: bytes) -> None:
        """What arrives when it has to wait or to go through toxics; else `_rewire` has put the peer's `write` in this place."""
        self._arrive(data)

    def eof_received(self) -> bool:
        self._source_ended()
        return True  # what is on its way to this end may still be delivered

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.lost = True
        self.peer.stop()
        self._source_ended()
        self._link.lost(self)

    def pause_writing(self) -> None:
        self._full = True
        self.peer.balance()

    def resume_writing(self) -> None:
        self._full = False
        self.peer.balance()

    # What the link tells.

    def start(self) -> None:
        """The other end is there: what came early goes out."""
        early, self._early = self._early or [], None
        self._early_bytes = 0
        for item in early:
            self._pass(item, self._loop.time())
        self._rewire()
        self.balance()

    def stop(self) -> None:
        """Nothing more is to be passed on from here."""
        self._over = True
        self._chain = None
        self._early = None
        self._rewire()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def acts(self, name: str) -> bool:
        """Whether the toxic of this name has a pipe here."""
        return self._chain is not None and name in self._chain.keys

    def insert(self, toxic: Attached, dice: Dice, before: list[str]) -> None:
        """The toxic begins to act, behind those named in `before`."""
        if self._over:
            return
        now = self._loop.time()
        if self._chain is None:
            self._chain = Chain()
            self._rewire()
        index = sum(name in before for name in self._chain.keys)
        self._chain.add(toxic.name, toxic.toxic.pipe(dice, now), now, index=index)
        self._pump()

    def change(self, toxic: Attached, dice: Dice) -> None:
        """The toxic goes on with other attributes; what it held is taken over."""
        if self._chain is not None:
            now = self._loop.time()
            pipe = toxic.toxic.pipe(dice, now, before=self._chain.get(toxic.name))
            self._chain.replace(toxic.name, pipe, now)
            self._pump()

    def take_out(self, name: str, *, spared: bool = False) -> None:
        """The toxic acts no more, because it is gone or because a new draw spared this connection; with the last one goes the chain."""
        if self._chain is not None and name in self._chain.keys:
            if spared:
                self._chain.spare(name, self._loop.time())
            else:
                self._chain.remove(name, self._loop.time())
            self._pump()
            if self._chain is not None and not self._chain.keys:
                self._chain = None
                self._rewire()
                self.balance()

    def close(self) -> None:
        """A closing in order: what was written is still delivered."""
        if self.transport is not None:
            self.transport.close()

    def abort(self, *, rudely: bool = False) -> None:
        """Close now; rudely is with RST."""
        if self.transport is None or self.lost:
            return
        if rudely:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self.transport.abort()

    def balance(self) -> None:
        """Stop reading while too much is on its way, read on when it is not."""
        if self.transport is None or self._source_over or self.transport.is_closing():
            return
        load = self._load()
        if not self._paused and load >= HELD_BYTES_MAX:
            self._paused = True
            self.transport.pause_reading()
        elif self._paused and load < HELD_BYTES_MAX // 2:
            self._paused = False
            self.transport.resume_reading()

    def _rewire(self) -> None:
        """Without toxics what arrives goes straight into the other socket: no code of ours runs for it."""
        direct = self._chain is None and self._early is None and not self._over
        if direct == ("data_received" in self.__dict__):
            return
        if direct and self.peer.transport is not None:
            self.data_received = self.peer.transport.write  # type: ignore[method-assign]
        else:
            self.__dict__.pop("data_received", None)
        if self.transport is not None and not self.lost and not self.transport.is_closing():
            self.transport.set_protocol(self.transport.get_protocol())  # only now does uvloop look the method up again

    def _load(self) -> int:
        """Bytes on their way from here; without toxics a full socket counts as too many at once."""
        if self._early is not None:
            return self._early_bytes
        if self._chain is None:
            return HELD_BYTES_MAX if self.peer._full else 0
        waiting = self.peer.transport.get_write_buffer_size() if self.peer.transport is not None else 0
        return self._chain.held + waiting

    def _arrive(self, item: bytes | Signal) -> None:
        if self._over:
            return
        if self._early is not None:
            self._early.append(item)
            self._early_bytes += len(item) if isinstance(item, bytes) else 0
            self.balance()
        else:
            self._pass(item, self._loop.time())

    def _pass(self, item: bytes | Signal, now: float) -> None:
        if self._over:
            return
        if self._chain is None:
            self._deliver(item)
        elif isinstance(item, Signal):
            self._chain.feed(Timed(now, item))
            self._pump()
        else:
            for begin in range(0, len(item), CHUNK_BYTES):
                self._chain.feed(Timed(now, item[begin : begin + CHUNK_BYTES]))
            self._pump()

    def _deliver(self, item: bytes | Signal) -> None:
        if isinstance(item, bytes):
            if self.peer.transport is not None:
                self.peer.transport.write(item)
            return
        self.stop()
        if item is Signal.RESET:
            self._link.rude = True
        if self._link.rude:
            self.peer.abort(rudely=True)  # and when that end is lost, the other one learns of it through its own toxics
        else:
            self.peer.close()

    def _source_ended(self) -> None:
        if not self._source_over:
            self._source_over = True
            self._arrive(Signal.END)

    def _pump(self) -> None:
        """Deliver what is due and be woken for what is not."""
        if self._chain is None:
            return
        for timed in self._chain.poll(self._loop.time() + self._link.slack_s):
            self._deliver(timed.item)
            if self._over:
                return
        wake = self._chain.wake()
        if self._timer is None or wake != self._wake:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None if wake is None else self._loop.call_at(wake - self._link.slack_s, self._ring)
            self._wake = wake
        self.balance()

    def _ring(self) -> None:
        self._timer = None
        self._pump()


class Link:
    """A connection through a proxy, from the accept until both ends are closed. `since`: how often the proxy had dropped all
    that it had when the listener began that accepted this one."""

    def __init__(self, owner: Owner, dice: Dice, *, since: int) -> None:
        self._owner = owner
        self.since = since
        self.slack_s = owner.slack_s
        self._dice = dice
        self._named: dict[str, Dice] = {}
        self._dial: asyncio.Task[None] | None = None
        self.open = False
        self.rude = False  # a toxic has reset it: every end is told by RST
        self._dropped = False
        self.client = End(self, "upstream")
        self.server = End(self, "downstream")
        self.client.peer, self.server.peer = self.server, self.client

    def made(self, end: End) -> None:
        """An end is connected: the client's was accepted, the server's was dialled."""
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
        if end is self.client and not self.open and self._dial is not None:
            self._dial.cancel()
        if self.client.lost and (self.server.lost or self.server.transport is None):
            self._owner.closed(self)

    def drop(self) -> None:
        """Close both ends at once, without waiting for anyone to read."""
        self._dropped = True
        if self._dial is not None:
            self._dial.cancel()
        for end in (self.client, self.server):
            end.stop()
            end.abort()

    def attach(self, toxic: Attached) -> None:
        """A toxic came, or its attributes or toxicity changed: the draw is made (again)."""
        if not self.open:
            return  # all toxics are drawn when the connection opens
        end = self._end(toxic)
        dice = self._named.setdefault(toxic.name, self._dice(toxic.name))
        hit = dice.hits(toxic.toxicity)
        if hit and end.acts(toxic.name):
            end.change(toxic, dice("pipe"))
        elif hit:
            names = [other.name for other in self._owner.toxics]
            end.insert(toxic, dice("pipe"), names[: names.index(toxic.name)])
        else:
            end.take_out(toxic.name, spared=True)

    def detach(self, toxic: Attached) -> None:
        if self.open:
            self._end(toxic).take_out(toxic.name)

    def _begin(self) -> None:
        self.open = True
        self._dial = None
        for toxic in self._owner.toxics:
            self.attach(toxic)
        self.client.start()
        self.server.start()

    def _end(self, toxic: Attached) -> End:
        return self.client if toxic.direction == "upstream" else self.server

    async def _dial_upstream(self) -> None:
        """In a task of its own with a deadline, so that a black hole upstream holds up this connection only."""
        try:
            host, port = self._owner.upstream_address
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                await asyncio.get_running_loop().create_connection(lambda: self._owner.metered(self.server), host, port)
        except (OSError, ValueError):
            self.client.stop()
            self.client.close()
