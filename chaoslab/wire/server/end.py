"""One end of a proxied connection: what arrives here goes to the other end, through nothing at all or through a chain of toxics."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING, Protocol, cast

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import ROOM_BYTES, Pipeline, Signal, Timed
from chaoslab.wire.server.turns import TURN_PIECES, Alarm, Turns

if TYPE_CHECKING:
    from chaoslab.wire.server.attached import Attached

CHUNK_BYTES = 32 * 1024  # what Toxiproxy reads at once, and so what a changed toxic lets go of at once
GULP_BYTES = 512 * 1024  # so much is read for the toxics in one turn; uvloop would read 8 MB, asyncio reads half of it
GOODBYE_S = 1.0  # so long the other side may take to close what is over
HURRIED_S = 0.002  # pauses this short are kept turn by turn, since timers ring each millisecond at best
PIECE_BYTES = 150  # what a piece takes beside its bytes while it is kept
RST_ON_CLOSE = struct.pack("ii", 1, 0)


class Whole(Protocol):
    """What an end needs of the connection that it is of. `rude`: a toxic of it resets."""

    rude: bool

    @property
    def turns(self) -> Turns: ...

    def made(self, end: End) -> None: ...

    def lost(self, end: End) -> None: ...


class End(asyncio.Protocol):
    """One end of a connection, and the direction of what arrives here: through the chain, on to the peer."""

    peer: End

    def __init__(self, link: Whole, direction: str) -> None:
        self.direction = direction
        self.transport: asyncio.Transport | None = None
        self.lost = False
        self.alarm: Alarm | None = None  # the turns' own
        self.ready = False  # the turns' own
        self._link = link
        self._turns = link.turns
        self._early: list[bytes | Signal] | None = []  # what came before the other end was there
        self._early_bytes = 0
        self._chain: Pipeline | None = None
        self._source_over = False  # nothing more arrives
        self._over = False  # nothing more is passed on
        self._leaving = False  # this end has said all that it will, and closes when the other side has
        self._paused = False
        self._inside = 0  # bytes that went into the chain since its load was last counted, less those that came out
        self._gulped = 0  # bytes read in this turn
        self._apart_until = 0.0  # a pause between pieces lasts at least until then
        self._full = False  # the socket of this end takes no more for now

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by class
        self._link.made(self)

    def data_received(self, data: bytes) -> None:
        """What arrives when it has to wait or to go through toxics; else `_rewire` has put the peer's `write` in this place."""
        if self._chain is None or self._early is not None:
            self._arrive(data)
        else:
            self._feed(data)

    def eof_received(self) -> bool:
        self._source_ended()
        return not self._leaving  # what is on its way to this end may still be delivered

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
            self._arrive(item)
        self._rewire()
        if self._chain is not None:
            self._turns.at_once(self)  # a toxic may act before anything arrives
        self.balance()

    def stop(self) -> None:
        """Nothing more is to be passed on from here."""
        self._over = True
        self._chain = None
        self._early = None
        self._rewire()
        self._turns.call(self, None)

    def acts(self, name: str) -> bool:
        """Whether the toxic of this name has a pipe here."""
        return self._chain is not None and name in self._chain

    def insert(self, toxic: Attached, dice: Dice, before: set[str] | None) -> None:
        """The toxic begins to act, behind those named in `before` (None: behind all)."""
        if self._over:
            return
        now = self._turns.now_s()
        if self._chain is None:
            self._chain = Pipeline()
            self._rewire()
        index = None if before is None else sum(name in before for name in self._chain.keys)
        self._chain.add(toxic.name, toxic.toxic.pipe(dice, now), now, index=index, most=TURN_PIECES)
        self._changed()

    def change(self, toxic: Attached, dice: Dice) -> None:
        """The toxic goes on with other attributes; what it held is taken over."""
        if self._chain is not None:
            now = self._turns.now_s()
            pipe = toxic.toxic.pipe(dice, now, before=self._chain.get(toxic.name))
            self._chain.replace(toxic.name, pipe, now, most=TURN_PIECES)
            self._changed()

    def take_out(self, name: str, *, spared: bool = False) -> None:
        """The toxic acts no more, because it is gone or because a new draw spared this connection; with the last one goes the chain."""
        chain = self._chain
        if chain is None or not self.acts(name):
            return
        now = self._turns.now_s()
        if spared:
            chain.spare(name, now, most=TURN_PIECES)
        else:
            chain.remove(name, now, most=TURN_PIECES)
        if chain:
            self._changed()
            return
        self._turns.call(self, None)
        self._deliver(chain.poll(now), whole=True)
        if not self._over:
            self._chain = None
            self._rewire()
            self.balance()

    def _changed(self) -> None:
        """Another toxic acts, or one acts otherwise: something may be due by now."""
        if self._early is None:
            self._turns.at_once(self)

    def say_goodbye(self) -> None:
        """Ends, and closes once the other side has: a socket that is closed with something unread would be reset."""
        self.stop()
        if self.transport is not None and not self.lost and not self.transport.is_closing():
            self._leaving = True
            self.transport.write_eof()
            if self._source_over:
                self.transport.close()
            else:
                asyncio.get_running_loop().call_later(GOODBYE_S, self.transport.close)

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
        room = ROOM_BYTES if self._chain is None else self._chain.room_bytes
        load = self._load()
        if not self._paused and load >= room:
            self._paused = True
            self.transport.pause_reading()
        elif self._paused and load < room // 2:
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
            return ROOM_BYTES if self.peer._full else 0
        waiting = self.peer.transport.get_write_buffer_size() if self.peer._full and self.peer.transport else 0
        self._inside = self._chain.held
        return self._inside + self._chain.pieces * PIECE_BYTES + waiting

    def _arrive(self, item: bytes | Signal) -> None:
        if self._over:
            return
        if self._early is not None:
            self._early.append(item)
            self._early_bytes += len(item) if isinstance(item, bytes) else 0
            self.balance()
        elif self._chain is not None:
            self._feed(item)
        else:
            self._deliver([Timed(0.0, item)])

    def _feed(self, item: bytes | Signal) -> None:
        """To the toxics, and on from them as far as nothing delays it."""
        assert self._chain is not None
        now = self._turns.now_s()
        if isinstance(item, Signal):
            self._chain.feed(Timed(now, item))
        elif len(item) <= CHUNK_BYTES:
            self._inside += len(item)
            self._chain.feed(Timed(now, item))
        else:
            self._inside += len(item)
            for begin in range(0, len(item), CHUNK_BYTES):
                self._chain.feed(Timed(now, item[begin : begin + CHUNK_BYTES]))
            self._gulp(len(item))
        self._turns.at_once(self)

    def _gulp(self, size: int) -> None:
        """After a big bite nothing more is read before the loop's next turn."""
        if self._gulped == 0:
            asyncio.get_running_loop().call_soon(self._breathe)
        self._gulped += size
        if self._gulped >= GULP_BYTES and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def _breathe(self) -> None:
        stopped, self._gulped = self._gulped >= GULP_BYTES, 0
        if stopped and not (self._paused or self._source_over or self.transport is None or self.transport.is_closing()):
            self.transport.resume_reading()

    @property
    def hurried(self) -> bool:
        return self._chain is not None and 0 < self._chain.pause_s < HURRIED_S

    def work(self, limit: float, most: int) -> int:
        """Delivers what is due by then, about `most` pieces of it, and is called again for what is not."""
        chain = self._chain
        if chain is None:
            return 0
        if chain.pause_s:
            return self._work_apart(chain, limit)
        out = chain.poll(limit, most)
        if out:
            self._deliver(out)
            if self._over:
                return len(out)
        wake = chain.wake()
        self._turns.call(self, wake)
        much = self._inside * PIECE_BYTES > chain.room_bytes  # or at least it may be
        if much or self._paused or self.peer._full:
            self.balance()
        return most if wake is not None and wake <= limit else len(out)

    def _work_apart(self, chain: Pipeline, limit: float) -> int:
        """The same of pieces between which there is a pause: one at a time, and never closer than half of that, however late it is.

        Else those that are late would leave together, and arrive as one.
        """
        if self.hurried:
            limit -= self._turns.slack_s
        out = chain.poll(limit, 1) if limit >= self._apart_until else []
        wake = chain.wake()
        if out:
            self._deliver(out)
            if self._over:
                return 1
            self._apart_until = limit if wake is None else limit + (wake - out[-1].at) / 2
        self._turns.call(self, None if wake is None else max(wake, self._apart_until))
        self.balance()
        return len(out)

    def _deliver(self, out: list[Timed], *, whole: bool = False) -> None:
        """To the other end's socket: each piece by itself, in one if `whole` or where the socket takes no more for now anyway."""
        peer = self.peer
        for number, (_, item) in enumerate(out):
            if isinstance(item, Signal):
                self._deliver_end(item)
                return
            if peer.transport is None or peer.transport.is_closing():
                continue  # nothing is heard there any more, but a reset still is
            if whole or peer._full:
                rest = out[number:]
                peer.transport.write(b"".join([timed.item for timed in rest if isinstance(timed.item, bytes)]))
                if isinstance(rest[-1].item, Signal):
                    self._deliver_end(rest[-1].item)
                return
            self._inside -= len(item)
            peer.transport.write(item)

    def _deliver_end(self, how: Signal) -> None:
        self.stop()
        if how is Signal.RESET:
            self._link.rude = True
        if self._link.rude:
            self.peer.abort(rudely=True)  # and when that end is lost, the other one learns of it through its own toxics
        else:
            self.peer.close()

    def _source_ended(self) -> None:
        if not self._source_over:
            self._source_over = True
            self._arrive(Signal.END)
