"""Shared by the tests of streamed replies: a source with a timetable, and a reader that notes when a part came."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx

from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Failure, Observation, Reply
from chaoslab.core.fault import Fault
from chaoslab.core.pipe import Pipe
from chaoslab.core.stream import Streamed, WatchedPipe
from chaoslab.seams.http._streamed import StreamedBody
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World
from tests.faults.fault_parts import Target, meet
from tests.seams.lab_parts import NOW

STREAM = {"content-type": "text/event-stream"}
DEADLINE_S = 30.0


def event(number: int) -> bytes:
    return b'data: {"choices": [{"delta": {"content": "w%d "}}]}\n\n' % number


def events(count: int) -> list[bytes]:
    return [*map(event, range(count)), b"data: [DONE]\n\n"]


@dataclass
class Timetable:
    """Parts, each `every_s` after the one before it; then the end, or a failure."""

    parts: Sequence[bytes]
    every_s: float = 0.0
    fails: str = ""
    taken: int = 0
    closed: list[float] = field(default_factory=list)

    def __hash__(self) -> int:
        return id(self)

    async def read_part(self) -> bytes | None:
        assert not self.closed, "it is read after it was closed"
        if self.every_s:
            await asyncio.sleep(self.every_s)
        if self.taken == len(self.parts):
            if self.fails:
                raise Failure(self.fails)
            return None
        self.taken += 1
        return self.parts[self.taken - 1]

    async def aclose(self) -> None:
        self.closed.append(system.monotonic())


@dataclass
class Read:
    """The reader's notes: each part with the time since it began, the error, and the lab's own observation."""

    came: list[tuple[float, bytes]] = field(default_factory=list)
    error: str | None = None
    seen: list[Streamed] = field(default_factory=list)
    failed: list[str | None] = field(default_factory=list)

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.came]

    @property
    def observed(self) -> Observation:
        """The observation that a fault is shown of it."""
        (seen,) = self.seen
        return Observation(self.times[-1] if self.came else 0.0, DEADLINE_S, self.error, 200, streamed=seen)

    @property
    def body(self) -> bytes:
        return b"".join(part for _, part in self.came)


def streamed_over(fault: Fault) -> tuple[WatchedPipe, ...]:
    """The pipes that the fault's story puts over a streamed reply."""
    met = meet(fault, Target(reply=Reply(200, STREAM, stream=Timetable([]))))
    assert met.reply is not None
    return met.reply.pipes


def drawn_over(fault: Fault) -> set[Fault]:
    """The faults that are drawn of it."""
    return {fault.draw(Dice(number)) for number in range(200)}


def read(source: Timetable, *pipes: Pipe, stops_after: int | None = None, on: Callable[[], Any] = lambda: None) -> Read:
    """A reader of the source through these pipes, in a world of its own. `on` is called at each part."""
    notes = Read()
    reply = Reply(200, STREAM, stream=source)
    for pipe in pipes:
        reply = reply.through(pipe)

    def over(streamed: Streamed, failure: Failure | None) -> None:
        notes.seen.append(streamed)
        notes.failed.append(failure.kind if failure else None)

    async def main() -> None:
        began_s = system.monotonic()
        body = StreamedBody(
            reply,
            clock=system,
            began_s=began_s,
            silence_s=DEADLINE_S,
            over=over,
            native=lambda failure: httpx.ReadError(failure.kind),
        )
        try:
            async for part in body:
                notes.came.append((round(system.monotonic() - began_s, 6), part))
                on()
                if len(notes.came) == stops_after:
                    break
        except httpx.ReadError as error:
            notes.error = str(error)
        await body.aclose()

    with Patches():
        World(1, now=datetime.fromisoformat(NOW)).run_program_async(main)
    return notes
