"""Timed chunks in, timed chunks out: what a toxic is to a TCP stream and a stream fault to a streamed reply.

A pipe does no I/O and is told the time; it never asks. Whoever owns one feeds it what arrives, polls it for what is due and
sleeps until `wake()`. Each output carries the exact moment at which it was due, and in a chain that moment is the next pipe's
arrival: two delays of 100 ms make 200 ms, however late or seldom anybody polls. All times are seconds on one monotonic axis.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, Protocol


class Signal(Enum):
    """How a stream stops."""

    END = "end"
    RESET = "reset"


class Timed(NamedTuple):
    """Something that happens on a stream at a moment: bytes, or how the stream stops."""

    at: float
    item: bytes | Signal


class Pipe(Protocol):
    """One disturbance of one direction of one stream."""

    @property
    def held(self) -> int:
        """Bytes taken in and not yet let out; the owner stops reading when these are too many."""

    def feed(self, timed: Timed) -> None:
        """Something arrives; times must not fall."""

    def poll(self, now: float) -> list[Timed]:
        """What is due by now, in order, each with the moment at which it was due."""

    def wake(self) -> float | None:
        """The next moment at which polling gives something, if nothing more arrives."""

    def retire(self, now: float) -> tuple[list[Timed], list[Timed]]:
        """Make room for a successor of the same kind: what leaves at once, and what the successor is to be fed."""

    def release(self, now: float) -> list[Timed]:
        """Let go of everything, because the pipe is taken out."""


class Law(Protocol):
    """How a `Line` treats one item."""

    def __call__(self, timed: Timed, start: float) -> Iterator[Timed]:
        """The pieces of an item that gets its turn at `start`, each with its due time (never falling, `math.inf` is never).

        Byte pieces are successive parts of the item. An empty piece is a pause: it keeps the line busy and is not let out.
        """


class Line:
    """A queue that serves one item after the other by a law, so that order always holds."""

    def __init__(self, law: Law, *, since: float = -math.inf) -> None:
        """Nothing leaves before `since`, even what was taken over from a predecessor and is overdue."""
        self.held = 0
        self._law = law
        self._queue: deque[Timed] = deque()
        self._item: Timed | None = None  # the item in hand, of which `_sent` bytes are out already
        self._sent = 0
        self._pieces: Iterator[Timed] = iter(())
        self._next: Timed | None = None
        self._free_at = since
        self._over = False

    def feed(self, timed: Timed) -> None:
        if self._over:
            return
        if isinstance(timed.item, bytes):
            self.held += len(timed.item)
        self._queue.append(timed)

    def poll(self, now: float) -> list[Timed]:
        out: list[Timed] = []
        while (piece := self._peek()) is not None and piece.at <= now:
            self._free_at = piece.at
            if isinstance(piece.item, Signal):
                out.append(piece)
                self._drop_all()
                self._over = True
                break
            self._sent += len(piece.item)
            self.held -= len(piece.item)
            if piece.item:
                out.append(piece)
            self._next = next(self._pieces, None)
        return out

    def wake(self) -> float | None:
        piece = self._peek()
        return None if piece is None or piece.at == math.inf else piece.at

    def retire(self, now: float) -> tuple[list[Timed], list[Timed]]:
        """The chunk in hand leaves at once, as in Toxiproxy; a waiting end or reset begins its wait again."""
        piece = self._peek()
        hand, waiting = [Timed(now, timed.item) for timed in self._in_hand()], list(self._queue)
        self._drop_all()
        if piece is not None and isinstance(piece.item, bytes):
            return hand, waiting
        return [], hand + waiting

    def release(self, now: float) -> list[Timed]:
        everything = [Timed(now, timed.item) for timed in (*self._in_hand(), *self._queue)]
        self._drop_all()
        return everything

    def _peek(self) -> Timed | None:
        """The next piece; takes the next item in hand when the last one is through."""
        while self._next is None:
            if self._item is not None:
                self._forget_item()
            if not self._queue:
                return None
            self._item = self._queue.popleft()
            self._pieces = self._law(self._item, max(self._item.at, self._free_at))
            self._next = next(self._pieces, None)
        return self._next

    def _forget_item(self) -> None:
        if self._item is not None and isinstance(self._item.item, bytes):
            self.held -= len(self._item.item) - self._sent  # what the law cut off
        self._item, self._sent, self._next, self._pieces = None, 0, None, iter(())

    def _in_hand(self) -> list[Timed]:
        """What is left of the item in hand: one entry, or none."""
        if self._item is None:
            return []
        at, item = self._item
        left = item[self._sent :] if isinstance(item, bytes) else item
        return [Timed(at, left)] if left else []

    def _drop_all(self) -> None:
        self._forget_item()
        self._queue.clear()
        self.held = 0


class Chain:
    """Pipes in a row, each under a key, which may change while data is in them. A chain is itself a pipe."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._pipes: list[Pipe] = []
        self._through: list[Timed] = []

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._keys)

    @property
    def held(self) -> int:
        return sum(pipe.held for pipe in self._pipes) + sum(
            len(t.item) for t in self._through if isinstance(t.item, bytes)
        )

    def feed(self, timed: Timed) -> None:
        self._pass_on(0, timed)

    def poll(self, now: float) -> list[Timed]:
        self._advance(now)
        out, self._through = self._through, []
        return out

    def wake(self) -> float | None:
        moments = [self._through[0].at] if self._through else []
        moments += [moment for pipe in self._pipes if (moment := pipe.wake()) is not None]
        return min(moments, default=None)

    def retire(self, now: float) -> tuple[list[Timed], list[Timed]]:
        return self.release(now), []

    def release(self, now: float) -> list[Timed]:
        while self._keys:
            self.remove(self._keys[0], now)
        return self.poll(now)

    def add(self, key: str, pipe: Pipe, now: float, *, index: int | None = None) -> None:
        """A new pipe at `index` (at the end by default); what has passed that place already is not touched."""
        self._advance(now)
        place = len(self._keys) if index is None else index
        self._keys.insert(place, key)
        self._pipes.insert(place, pipe)

    def replace(self, key: str, pipe: Pipe, now: float) -> None:
        """A successor takes over what the pipe under this key still holds."""
        self._advance(now)
        place = self._keys.index(key)
        leave, rest = self._pipes[place].retire(now)
        for timed in leave:
            self._pass_on(place + 1, timed)
        self._pipes[place] = pipe
        for timed in rest:
            pipe.feed(timed)

    def remove(self, key: str, now: float) -> None:
        """The pipe under this key goes; what it held moves on at once."""
        self._advance(now)
        self._cut(key, self.get(key).release(now))

    def spare(self, key: str, now: float) -> None:
        """The pipe under this key gives way to nothing at all, as to a successor: what it lost does not end the stream."""
        self._advance(now)
        leave, rest = self.get(key).retire(now)
        self._cut(key, leave + [Timed(now, timed.item) for timed in rest])

    def get(self, key: str) -> Pipe:
        return self._pipes[self._keys.index(key)]

    def _cut(self, key: str, left: list[Timed]) -> None:
        place = self._keys.index(key)
        del self._keys[place], self._pipes[place]
        for timed in left:
            self._pass_on(place, timed)

    def _advance(self, now: float) -> None:
        for place, pipe in enumerate(self._pipes):
            for timed in pipe.poll(now):
                self._pass_on(place + 1, timed)

    def _pass_on(self, place: int, timed: Timed) -> None:
        if place < len(self._pipes):
            self._pipes[place].feed(timed)
        else:
            self._through.append(timed)
