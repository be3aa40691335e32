"""Pipes: timed chunks in, timed chunks out. A toxic is a pipe of a TCP stream, a stream fault one of a streamed reply.

A pipe does no I/O and reads no clock; its owner passes the time. The owner feeds it what arrives, polls it for what is
due and sleeps until `find_next_due()`. Each output carries the exact moment at which it was due, and in a chain that
moment is
the next pipe's arrival. So two delays of 100 ms make 200 ms, however late or seldom the owner polls, and however little
it takes at once. All times are seconds on one monotonic axis.
"""

import math
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

BOUNDLESS = sys.maxsize
ROOM_BYTES = 256 * 1024  # taken in by a pipe without delays before its owner stops reading
WALK_MIN = 4  # chunks that go through a long chain together, at least


class Signal(Enum):
    """The two ways in which a stream stops."""

    END = "end"
    RESET = "reset"


class Timed(NamedTuple):
    """An item of a stream at its moment: bytes, or the signal that stops the stream."""

    at: float
    item: bytes | Signal


NOTHING: Iterator[Timed] = iter(())


class Pipe(Protocol):
    """One disturbance of one direction of one stream."""

    @property
    def held_bytes(self) -> int:
        """Bytes taken in and not yet let out. The owner stops reading when they exceed `capacity_bytes`."""

    @property
    def held_piece_count(self) -> int:
        """The number of pieces that hold these bytes."""

    @property
    def capacity_bytes(self) -> int: ...

    @property
    def straight(self) -> bool:
        """True if bytes always pass at once and uncut; a chain need not feed them to it then."""

    @property
    def piece_interval_s(self) -> float:
        """Seconds between the pieces that it cuts (0: none); such pieces must not arrive as one."""

    @property
    def acts_on_silence(self) -> bool:
        """True if it acts on silence. It must be fed all that arrives by a moment before it is polled up to that
        moment."""

    def feed(self, timed: Timed) -> None:
        """Takes in what arrives; times must not fall."""

    def poll(self, now: float, count_max: int = BOUNDLESS) -> list[Timed]:
        """The pieces due by now, in order, each with the moment at which it was due; at most `count_max` pieces."""

    def find_next_due(self) -> float | None:
        """The next moment at which a poll gives something, if nothing more arrives. It is past if a poll left some
        over."""

    def hand_over_items(self, now: float) -> tuple[list[Timed], list[Timed]]:
        """Makes room for a successor of the same kind. Returns what leaves at once and what to feed the successor."""

    def release_all_items(self, now: float) -> list[Timed]:
        """Lets go of everything, because the pipe is taken out."""


class Law(Protocol):
    """The rule by which a `PacedQueue` treats one item."""

    def __call__(self, timed: Timed, start: float) -> Iterable[Timed]:
        """The pieces of an item that gets its turn at `start`, each with its due time (never falling, `math.inf` is
        never). Byte pieces are successive parts of the item. An empty piece is a pause: it keeps the line busy and is
        not let out."""


class PacedQueue:
    """A queue that serves one item after the other by a law, so that order always holds."""

    acts_on_silence = False

    def __init__(
        self,
        law: Law,
        *,
        since: float = -math.inf,
        straight: bool = False,
        capacity_bytes: int = ROOM_BYTES,
        piece_interval_s: float = 0.0,
    ) -> None:
        """Makes a line from which nothing leaves before `since`, not even overdue items taken over from a
        predecessor."""
        self.held_bytes = 0
        self.piece_interval_s = piece_interval_s
        self.straight = straight
        self.capacity_bytes = capacity_bytes
        self._law = law
        self._queue: deque[Timed] = deque()
        self._item: Timed | None = None  # the item in hand, of which `_sent` bytes are out already
        self._sent = 0
        self._pieces = NOTHING
        self._next: Timed | None = None
        self._free_at = since
        self._over = False

    @property
    def held_piece_count(self) -> int:
        return len(self._queue)

    def feed(self, timed: Timed) -> None:
        if self._over:
            return
        if timed.item.__class__ is bytes:
            self.held_bytes += len(timed.item)
        self._queue.append(timed)

    def poll(self, now: float, count_max: int = BOUNDLESS) -> list[Timed]:
        out: list[Timed] = []
        while count_max > 0:
            piece = self._next
            if piece is None and (piece := self._peek_next_piece()) is None:
                break
            if piece[0] > now:
                break
            count_max -= 1
            self._free_at, item = piece
            if isinstance(item, Signal):
                out.append(piece)
                self._drop_all_items()
                self._over = True
                break
            if item:
                size = len(item)
                self._sent += size
                self.held_bytes -= size
                out.append(piece)
            self._next = next(self._pieces, None)
            if self._next is None:  # it is through, and what the law cut off of it is held no more
                self._forget_current_item()
        return out

    def find_next_due(self) -> float | None:
        if self._next is None and not self._queue:
            return None
        piece = self._peek_next_piece()
        return None if piece is None or piece.at == math.inf else piece.at

    def hand_over_items(self, now: float) -> tuple[list[Timed], list[Timed]]:
        """The chunk in hand leaves at once, as in Toxiproxy; a waiting end or reset begins its wait again."""
        piece = self._peek_next_piece()
        hand, waiting = [Timed(now, timed.item) for timed in self._list_current_item_rest()], list(self._queue)
        self._drop_all_items()
        if piece is not None and isinstance(piece.item, bytes):
            return hand, waiting
        return [], hand + waiting

    def release_all_items(self, now: float) -> list[Timed]:
        everything = [Timed(now, timed.item) for timed in (*self._list_current_item_rest(), *self._queue)]
        self._drop_all_items()
        return everything

    def _peek_next_piece(self) -> Timed | None:
        """The next piece; takes the next item in hand when the last one is through."""
        while self._next is None:
            if self._item is not None:
                self._forget_current_item()
            if not self._queue:
                return None
            timed = self._item = self._queue.popleft()
            at = timed[0]
            pieces = self._pieces = iter(self._law(timed, at if at > self._free_at else self._free_at))
            self._next = next(pieces, None)
        return self._next

    def _forget_current_item(self) -> None:
        if self._item is not None and (item := self._item[1]).__class__ is bytes:
            self.held_bytes -= len(item) - self._sent  # what the law cut off
        self._item, self._sent, self._next, self._pieces = None, 0, None, NOTHING

    def _list_current_item_rest(self) -> list[Timed]:
        """The rest of the item in hand: one entry, or none."""
        if self._item is None:
            return []
        at, item = self._item
        rest = item[self._sent :] if isinstance(item, bytes) else item
        return [Timed(at, rest)] if rest else []

    def _drop_all_items(self) -> None:
        self._forget_current_item()
        self._queue.clear()
        self.held_bytes = 0


class Pipeline:
    """Pipes in a row, each under a key, which may change while data is in them. A pipeline is itself a pipe.

    The output and its moments do not depend on how much is taken at once: a pipe that acts on silence is polled only up
    to the next moment at which a pipe before it passes something on. The last pipe with something due is served first,
    so that a slicer's pieces do not pile up behind it.
    """

    straight = False
    acts_on_silence = True

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._pipes: list[Pipe] = []
        self._through: deque[Timed] = deque()
        self._bent: list[int] = []  # the places of the pipes that are not straight
        self.piece_interval_s = 0.0
        self.capacity_bytes = ROOM_BYTES
        self._ending = False  # a signal is or was on its way: every pipe counts, the straight ones too

    def __len__(self) -> int:
        return len(self._pipes)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._keys)

    @property
    def held_bytes(self) -> int:
        through = sum(len(timed.item) for timed in self._through if isinstance(timed.item, bytes))
        return through + sum([self._pipes[index].held_bytes for index in self._list_active_positions()])

    @property
    def held_piece_count(self) -> int:
        return len(self._through) + sum(
            [self._pipes[index].held_piece_count for index in self._list_active_positions()]
        )

    def feed(self, timed: Timed) -> None:
        # The usual lane has one toxic, whose chunks need not go through the chain.
        if len(self._pipes) == 1 and self._bent and timed[1].__class__ is bytes:
            self._pipes[0].feed(timed)
        else:
            self._feed_next_pipe(0, (timed,))

    def poll(self, now: float, count_max: int = BOUNDLESS) -> list[Timed]:
        if len(self._pipes) == 1 and not self._through:
            return self._pipes[0].poll(now, count_max)
        self._move_due_pieces(now, count_max)
        if len(self._through) <= count_max:
            out = list(self._through)
            self._through.clear()
            return out
        return [self._through.popleft() for _ in range(count_max)]

    def find_next_due(self) -> float | None:
        if self._through:
            return self._through[0].at
        if len(self._pipes) == 1:
            return self._pipes[0].find_next_due()
        soonest = None
        for index in self._list_active_positions():
            moment = self._pipes[index].find_next_due()
            if moment is not None and (soonest is None or moment < soonest):
                soonest = moment
        return soonest

    def hand_over_items(self, now: float) -> tuple[list[Timed], list[Timed]]:
        return self.release_all_items(now), []

    def release_all_items(self, now: float) -> list[Timed]:
        while self._keys:
            self.remove(self._keys[0], now)
        return self.poll(now)

    def add(self, key: str, pipe: Pipe, now: float, *, index: int | None = None, most: int = BOUNDLESS) -> None:
        """Adds a pipe at `index` (by default at the end). Bytes that have passed that place are not touched."""
        self._move_due_pieces(now, most)
        position = len(self._keys) if index is None else index
        self._keys.insert(position, key)
        self._pipes.insert(position, pipe)
        if position < len(self._pipes) - 1 or pipe.piece_interval_s or pipe.capacity_bytes > self.capacity_bytes:
            self._refresh_cache()
        elif not pipe.straight:  # the usual case, a thousand times over
            self._bent.append(position)

    def replace(self, key: str, pipe: Pipe, now: float, *, most: int = BOUNDLESS) -> None:
        """Puts a successor under this key, which takes over what its predecessor still holds."""
        self._move_due_pieces(now, most)
        position = self._keys.index(key)
        leave, rest = self._pipes[position].hand_over_items(now)
        self._feed_next_pipe(position + 1, leave)
        self._pipes[position] = pipe
        self._refresh_cache()
        if pipe.straight:
            rest = [Timed(now, timed.item) for timed in rest]
        self._feed_next_pipe(position, rest)

    def remove(self, key: str, now: float, *, most: int = BOUNDLESS) -> None:
        """Removes the pipe under this key; what it held moves on at once."""
        self._move_due_pieces(now, most)
        self._drop_pipe(key, self.get(key).release_all_items(now))

    def remove_as_replaced(self, key: str, now: float, *, most: int = BOUNDLESS) -> None:
        """Removes the pipe under this key as if a successor took over: what it lost does not end the stream."""
        self._move_due_pieces(now, most)
        leave, rest = self.get(key).hand_over_items(now)
        self._drop_pipe(key, leave + [Timed(now, timed.item) for timed in rest])

    def get(self, key: str) -> Pipe:
        return self._pipes[self._keys.index(key)]

    def _drop_pipe(self, key: str, rest: list[Timed]) -> None:
        position = self._keys.index(key)
        del self._keys[position], self._pipes[position]
        self._refresh_cache()
        self._feed_next_pipe(position, rest)

    def _refresh_cache(self) -> None:
        """Recomputes what is cached about the pipes."""
        self._bent = [position for position, pipe in enumerate(self._pipes) if not pipe.straight]
        self.capacity_bytes = max((pipe.capacity_bytes for pipe in self._pipes), default=ROOM_BYTES)
        self.piece_interval_s = min(
            (pipe.piece_interval_s for pipe in self._pipes if pipe.piece_interval_s), default=0.0
        )

    def _list_active_positions(self) -> Sequence[int]:
        """The pipes that may have something to pass on, from first to last."""
        return range(len(self._pipes)) if self._ending else self._bent

    def _move_due_pieces(self, now: float, count_max: int) -> None:
        """Moves what is due by now, in about `count_max` moves."""
        places = self._list_active_positions()
        batch = count_max if len(places) <= 1 else max(WALK_MIN, count_max // len(places))
        while count_max > 0:
            last, limit = self._find_last_due_pipe(now)
            if last is None:
                return
            count_max -= max(1, self._move_pieces_from(last, limit, now, min(batch, count_max)))

    def _find_last_due_pipe(self, now: float) -> tuple[int | None, float]:
        """The last pipe that has something due, and the moment up to which it may be polled."""
        last, until, soonest = None, now, math.inf
        for position in self._list_active_positions():
            pipe = self._pipes[position]
            moment = pipe.find_next_due()
            if moment is not None:
                limit = min(now, soonest) if pipe.acts_on_silence else now
                if moment <= limit:
                    last, until = position, limit
                if moment < soonest:
                    soonest = moment
        return last, until

    def _move_pieces_from(self, position: int, limit: float, now: float, count_max: int) -> int:
        """Moves what is due at `position` along the chain until something delays it. Returns the number of moves."""
        moves, end = 0, len(self._pipes)
        out = self._pipes[position].poll(limit, count_max)
        while out:
            moves += len(out)
            position = self._feed_next_pipe(position + 1, out)
            if position >= end or self._pipes[position].acts_on_silence:
                break
            out = self._pipes[position].poll(now, count_max)
        return moves

    def _feed_next_pipe(self, position: int, items: Sequence[Timed]) -> int:
        """Feeds the items to the next pipe, from `position` on, that they must go through. Returns that pipe's place.
        A signal can only be the last item."""
        if not items:
            return len(self._pipes)
        if not self._ending and items[-1].item.__class__ is Signal:
            self._ending = True
        if not self._ending:
            bend = bisect_left(self._bent, position)
            position = self._bent[bend] if bend < len(self._bent) else len(self._pipes)
        if position < len(self._pipes):
            feed = self._pipes[position].feed
            for timed in items:
                feed(timed)
        else:
            self._through.extend(items)
        return position
