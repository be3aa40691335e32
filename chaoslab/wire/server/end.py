"""One end of a proxied connection. Data that arrives here goes to the other end, directly or through a chain of
toxics."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import asdict, dataclass
from typing import Any, Protocol, cast

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import ROOM_BYTES, Pipeline, Signal, Timed
from chaoslab.wire.server.turns import TURN_PIECES, Alarm, WorkerTimer
from chaoslab.wire.toxics import Toxic

CHUNK_BYTES = 32 * 1024  # as Toxiproxy reads at once, and so lets go of at once when a toxic changes
GULP_BYTES = 512 * 1024  # the most that is read for the toxics in one turn; uvloop would read 8 MB, asyncio 256 KB
GOODBYE_S = 1.0  # the most that the other side may take to close
HURRIED_S = 0.002  # shorter pauses are kept turn by turn, since timers fire each millisecond at best
PIECE_BYTES = 150  # the memory of a piece that is kept, beside its bytes
RST_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass
class AttachedToxic:
    """A toxic on a proxy. `stream` keeps the spelling of the request."""

    name: str
    type: str
    stream: str
    toxicity: float
    toxic: Toxic

    @property
    def direction(self) -> str:
        return self.stream.lower()

    def to_json(self) -> dict[str, Any]:
        return {
            "attributes": asdict(self.toxic),
            "name": self.name,
            "type": self.type,
            "stream": self.stream,
            "toxicity": self.toxicity,
        }


class EndOwner(Protocol):
    """An end's interface to its connection. `rude`: one of its toxics resets the connection."""

    rude: bool

    @property
    def worker_timer(self) -> WorkerTimer: ...

    def handle_end_connected(self, end: ProxyEnd) -> None: ...

    def handle_end_lost(self, end: ProxyEnd) -> None: ...


class ProxyEnd(asyncio.Protocol):
    """One end of a connection, and the direction of data that arrives here: through the chain, on to the peer."""

    peer: ProxyEnd

    def __init__(self, link: EndOwner, direction: str) -> None:
        self.direction = direction
        self.transport: asyncio.Transport | None = None
        self.lost = False
        self.alarm: Alarm | None = None  # the turns' own
        self.ready = False  # the turns' own
        self._link = link
        self._turns = link.worker_timer
        self._early: list[bytes | Signal] | None = []  # data that came before the other end was connected
        self._early_bytes = 0
        self._chain: Pipeline | None = None
        self._source_over = False  # nothing more arrives
        self._over = False  # nothing more is passed on
        self._leaving = False  # this end has sent all that it will, and closes when the other side has
        self._paused = False
        self._inside = 0  # an estimate of the bytes in the chain, counted anew by `_count_pending_bytes`
        self._gulped = 0  # bytes read in this turn
        self._apart_until = 0.0  # a pause between pieces lasts at least until then
        self._full = False  # the socket of this end takes no more for now

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is of another class
        self._link.handle_end_connected(self)

    def data_received(self, data: bytes) -> None:
        """Takes data that must wait or go through toxics. Otherwise `_choose_data_path` puts the peer's `write` in this
        place."""
        if self._chain is None or self._early is not None:
            self._route_arrived_item(data)
        else:
            self._feed_toxics(data)

    def eof_received(self) -> bool:
        self._handle_source_end()
        return not self._leaving  # data on its way to this end may still be delivered

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.lost = True
        self.peer.stop_forwarding()
        self._handle_source_end()
        self._link.handle_end_lost(self)

    def pause_writing(self) -> None:
        # A full socket downstream stops the reading upstream, so that memory is bounded by the rooms of the toxics.
        self._full = True
        self.peer.pause_or_resume_reading()

    def resume_writing(self) -> None:
        self._full = False
        self.peer.pause_or_resume_reading()

    # Methods for the link.

    def start_forwarding(self) -> None:
        """Begins to pass data on, since the other end is connected. Early data goes out."""
        early, self._early = self._early or [], None
        for item in early:
            self._route_arrived_item(item)
        self._choose_data_path()
        if self._chain is not None:
            self._turns.run_or_queue_worker(self)  # a toxic may act before anything arrives
        self.pause_or_resume_reading()

    def stop_forwarding(self) -> None:
        """Passes nothing more on from here."""
        self._over = True
        self._chain = None
        self._early = None
        self._choose_data_path()
        self._turns.schedule_worker(self, None)

    def has_pipe(self, name: str) -> bool:
        """Tells if the toxic of this name has a pipe here."""
        return self._chain is not None and name in self._chain

    def insert_pipe(self, toxic: AttachedToxic, dice: Dice, before: set[str] | None) -> None:
        """Adds the toxic's pipe, behind those named in `before` (None: behind all)."""
        if self._over:
            return
        now = self._turns.now_s()
        if self._chain is None:
            self._chain = Pipeline()
            self._choose_data_path()
        # Behind those that stand before it on the proxy; some of them may have spared this connection.
        index = None if before is None else sum(name in before for name in self._chain.keys)
        self._chain.add(toxic.name, toxic.toxic.pipe(dice, now), now, index=index, most=TURN_PIECES)
        self._run_after_chain_change()

    def replace_pipe(self, toxic: AttachedToxic, dice: Dice) -> None:
        """Replaces the toxic's pipe by one with its new attributes, which takes over the data held."""
        if self._chain is not None:
            now = self._turns.now_s()
            pipe = toxic.toxic.pipe(dice, now, before=self._chain.get(toxic.name))
            self._chain.replace(toxic.name, pipe, now, most=TURN_PIECES)
            self._run_after_chain_change()

    def remove_pipe(self, name: str, *, spared: bool = False) -> None:
        """Removes the toxic's pipe, and with the last one the chain. `spared`: a new draw spared this connection."""
        chain = self._chain
        if chain is None or not self.has_pipe(name):
            return
        now = self._turns.now_s()
        if spared:
            chain.remove_as_replaced(name, now, most=TURN_PIECES)
        else:
            chain.remove(name, now, most=TURN_PIECES)
        if chain:
            self._run_after_chain_change()
            return
        self._turns.schedule_worker(self, None)
        self._write_to_peer(chain.poll(now), whole=True)
        if not self._over:
            self._chain = None
            self._choose_data_path()
            self.pause_or_resume_reading()

    def _run_after_chain_change(self) -> None:
        """Works at once, since after a change of the toxics something may be due by now."""
        if self._early is None:
            self._turns.run_or_queue_worker(self)

    def close_gracefully(self) -> None:
        """Ends, and closes once the other side has. A socket that is closed with unread data would be reset."""
        self.stop_forwarding()
        if (line := self._transport_if_open) is not None:
            self._leaving = True
            line.write_eof()
            if self._source_over:
                # The other side has ended too, so nothing unread can turn the close into a reset.
                line.close()
            else:
                asyncio.get_running_loop().call_later(GOODBYE_S, line.close)

    def close(self) -> None:
        """Closes in order: written data is still delivered."""
        if self.transport is not None:
            self.transport.close()

    def abort(self, *, rudely: bool = False) -> None:
        """Closes at once. `rudely`: with RST."""
        if self.transport is None or self.lost:
            return
        if rudely:
            # A linger time of 0 makes the kernel send RST in place of FIN.
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self.transport.abort()

    @property
    def _transport_if_open(self) -> asyncio.Transport | None:
        """The transport while it is open."""
        line = self.transport
        return None if line is None or self.lost or line.is_closing() else line

    def pause_or_resume_reading(self) -> None:
        """Stops reading while too much is on its way, and reads on when it is not."""
        line = self._transport_if_open
        if line is None or self._source_over:
            return
        room = ROOM_BYTES if self._chain is None else self._chain.capacity_bytes
        load = self._count_pending_bytes()
        if not self._paused and load >= room:
            self._paused = True
            line.pause_reading()
        # Half of the room apart, so that reading does not stop and start with each chunk.
        elif self._paused and load < room // 2:
            self._paused = False
            line.resume_reading()

    def _choose_data_path(self) -> None:
        """Connects arriving data straight to the other socket if there are no toxics, so that no code of ours runs."""
        direct = self._chain is None and self._early is None and not self._over
        if direct == ("data_received" in self.__dict__):
            return
        if direct and self.peer.transport is not None:
            self.data_received = self.peer.transport.write  # type: ignore[method-assign]
        else:
            self.__dict__.pop("data_received", None)
        if (line := self._transport_if_open) is not None:
            line.set_protocol(line.get_protocol())  # only now does uvloop look the method up again

    def _count_pending_bytes(self) -> int:
        """The bytes on their way from here. Without toxics a full socket counts as too many at once."""
        if self._early is not None:
            return self._early_bytes
        if self._chain is None:
            return ROOM_BYTES if self.peer._full else 0
        # The socket's buffer counts as well, or a stalled reader would fill it without bound.
        waiting = self.peer.transport.get_write_buffer_size() if self.peer._full and self.peer.transport else 0
        self._inside = self._chain.held_bytes
        return self._inside + self._chain.held_piece_count * PIECE_BYTES + waiting

    def _route_arrived_item(self, item: bytes | Signal) -> None:
        if self._over:
            return
        if self._early is not None:
            self._early.append(item)
            if isinstance(item, bytes):
                self._early_bytes += len(item)
            self.pause_or_resume_reading()
        elif self._chain is not None:
            self._feed_toxics(item)
        else:
            self._write_to_peer([Timed(0.0, item)])

    def _feed_toxics(self, item: bytes | Signal) -> None:
        """Feeds the toxics, and passes on what nothing delays."""
        assert self._chain is not None
        now = self._turns.now_s()
        if isinstance(item, Signal):
            self._chain.feed(Timed(now, item))
        # The usual case first: a chunk is small.
        elif len(item) <= CHUNK_BYTES:
            self._inside += len(item)
            self._chain.feed(Timed(now, item))
        else:
            self._inside += len(item)
            for begin in range(0, len(item), CHUNK_BYTES):
                self._chain.feed(Timed(now, item[begin : begin + CHUNK_BYTES]))
            self._limit_reading(len(item))
        self._turns.run_or_queue_worker(self)

    def _limit_reading(self, size: int) -> None:
        """Stops reading until the loop's next turn once `GULP_BYTES` were read."""
        # Once a turn: the count is that of one turn of the loop.
        if self._gulped == 0:
            asyncio.get_running_loop().call_soon(self._resume_reading)
        self._gulped += size
        if self._gulped >= GULP_BYTES and (line := self._transport_if_open) is not None:
            line.pause_reading()

    def _resume_reading(self) -> None:
        stopped, self._gulped = self._gulped >= GULP_BYTES, 0
        if stopped and not (self._paused or self._source_over) and (line := self._transport_if_open) is not None:
            line.resume_reading()

    @property
    def needs_precise_timing(self) -> bool:
        return self._chain is not None and 0 < self._chain.piece_interval_s < HURRIED_S

    def run_due_work(self, limit: float, most: int) -> int:
        """Delivers about `most` pieces of what is due by `limit`, and asks to be called again for the rest."""
        chain = self._chain
        if chain is None:
            return 0
        if chain.piece_interval_s:
            return self._deliver_with_pauses(chain, limit)
        out = chain.poll(limit, most)
        if out:
            self._write_to_peer(out)
            if self._over:
                return len(out)
        wake = chain.find_next_due()
        self._turns.schedule_worker(self, wake)
        much = self._inside * PIECE_BYTES > chain.capacity_bytes  # or at least it may be too much
        if much or self._paused or self.peer._full:
            self.pause_or_resume_reading()
        return most if wake is not None and wake <= limit else len(out)

    def _deliver_with_pauses(self, chain: Pipeline, limit: float) -> int:
        """Delivers pieces with a pause between them: one at a time, never closer than half the pause, however late.
        Otherwise late pieces would leave together and arrive as one."""
        out = chain.poll(limit, 1) if limit >= self._apart_until else []
        wake = chain.find_next_due()
        if out:
            self._write_to_peer(out)
            if self._over:
                return 1
            self._apart_until = limit if wake is None else limit + (wake - out[-1].at) / 2
        self._turns.schedule_worker(self, None if wake is None else max(wake, self._apart_until))
        self.pause_or_resume_reading()
        return len(out)

    def _write_to_peer(self, out: list[Timed], *, whole: bool = False) -> None:
        """Writes to the other end's socket: each piece by itself, or all in one if `whole` or if the socket is full."""
        peer = self.peer
        for number, (_, item) in enumerate(out):
            if isinstance(item, Signal):
                self._close_peer(item)
                return
            if peer.transport is None or peer.transport.is_closing():
                continue  # data has no effect there any more, but a reset has
            if whole or peer._full:
                rest = out[number:]
                peer.transport.write(b"".join([timed.item for timed in rest if isinstance(timed.item, bytes)]))
                if isinstance(rest[-1].item, Signal):
                    self._close_peer(rest[-1].item)
                return
            self._inside -= len(item)
            peer.transport.write(item)

    def _close_peer(self, signal: Signal) -> None:
        self.stop_forwarding()
        if signal is Signal.RESET:
            self._link.rude = True
        if self._link.rude:
            self.peer.abort(rudely=True)  # its loss then reaches this end through the other direction's toxics
        else:
            self.peer.close()

    def _handle_source_end(self) -> None:
        if not self._source_over:
            self._source_over = True
            self._route_arrived_item(Signal.END)
