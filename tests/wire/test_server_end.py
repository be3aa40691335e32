"""One end of a connection, on a clock that is moved by hand: pieces with a pause between them leave one by one."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from chaoslab.base.dice import Dice
from chaoslab.wire.server.end import Attached, End
from chaoslab.wire.server.turns import SOON_S, Alarm, Turns, Worker
from chaoslab.wire.toxics.slicer import Slicer

PAUSE_S = 0.0002


class HandTurns(Turns):
    """Calls nobody: notes when a worker asked to be called. The time is the hand's."""

    def __init__(self) -> None:
        super().__init__(lambda: self.time_s, soon_s=0.0)
        self.time_s = 1.0
        self.asked_s: float | None = None

    def call(self, worker: Worker, when: float | None) -> None:  # noqa: ARG002
        self.asked_s = when

    def at_once(self, worker: Worker) -> None:
        """Works when the hand says so."""


@dataclass
class Link:
    turns: Turns
    rude: bool = False

    def made(self, end: End) -> None: ...

    def lost(self, end: End) -> None: ...


@dataclass
class Writer:
    """A transport of which only the writing is of interest."""

    written: list[bytes] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return False

    def get_protocol(self) -> None: ...

    def set_protocol(self, protocol: Any) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def sliced(turns: Turns, pieces: int) -> tuple[End, list[bytes]]:
    """An end that has pieces of ten bytes to pass on, and what it has written."""
    link, reader, writer = Link(turns), Writer(), Writer()
    end, peer = End(link, "downstream"), End(link, "upstream")
    end.peer, peer.peer = peer, end
    end.transport, peer.transport = cast(asyncio.Transport, reader), cast(asyncio.Transport, writer)
    end.start()
    slicer = Slicer(average_size=10, size_variation=0, delay=round(PAUSE_S * 1e6))
    end.insert(Attached("s", "slicer", "downstream", 1.0, slicer), Dice(1), None)
    end.data_received(bytes(10 * pieces))
    return end, writer.written


def test_late_pieces_leave_one_by_one_with_half_a_pause_between_them() -> None:
    """All eight are due when the end is called at last, and it is called again and again from then on."""
    turns = HandTurns()
    end, written = sliced(turns, 8)
    turns.time_s += 1.0
    moments: list[float] = []
    for _ in range(100):
        before = len(written)
        end.work(turns.now_s(), 32)
        assert len(written) - before <= 1
        if len(written) > before:
            moments.append(turns.now_s())
        turns.time_s += PAUSE_S / 10
    assert written == [bytes(10)] * 8
    gaps = [after - before for before, after in itertools.pairwise(moments)]
    assert min(gaps) == pytest.approx(PAUSE_S / 2, rel=0.21)


def test_an_end_asks_to_be_called_for_the_next_piece_and_not_before_it_may_leave() -> None:
    turns = HandTurns()
    end, written = sliced(turns, 3)
    end.work(turns.now_s(), 32)
    assert len(written) == 1
    assert turns.asked_s == pytest.approx(1.0 + PAUSE_S)
    turns.time_s = 1.01  # late: the next two are due
    end.work(turns.now_s(), 32)
    assert len(written) == 2
    assert turns.asked_s == pytest.approx(1.01 + PAUSE_S / 2)
    end.work(turns.now_s(), 32)
    assert len(written) == 2


@pytest.mark.parametrize(("pause_s", "hurried"), [(0.0002, True), (0.0019, True), (0.002, False), (0.1, False)])
def test_only_pauses_too_short_for_a_timer_are_kept_turn_by_turn(pause_s: float, hurried: bool) -> None:
    turns = HandTurns()
    link = Link(turns)
    end, peer = End(link, "downstream"), End(link, "upstream")
    end.peer, peer.peer = peer, end
    end.start()
    assert not end.hurried
    slicer = Slicer(average_size=10, delay=round(pause_s * 1e6))
    end.insert(Attached("s", "slicer", "downstream", 1.0, slicer), Dice(1), None)
    assert end.hurried is hurried


def test_a_hurried_end_does_not_let_a_piece_leave_early() -> None:
    turns = HandTurns()
    end, written = sliced(turns, 3)
    end.work(turns.now_s(), 32)
    turns.time_s += PAUSE_S * 0.6
    end.work(turns.now_s(), 32)
    assert len(written) == 1
    turns.time_s += PAUSE_S * 0.6
    end.work(turns.now_s(), 32)
    assert len(written) == 2


def test_the_turns_call_a_hurried_worker_turn_by_turn_within_a_millisecond() -> None:
    class Called:
        alarm: Alarm | None = None
        ready = False

        def __init__(self, *, hurried: bool) -> None:
            self.hurried = hurried

        def work(self, limit: float, most: int) -> int:  # noqa: ARG002
            return 0

    async def story() -> None:
        turns = Turns(lambda: 1.0, soon_s=SOON_S)
        hurried, patient = Called(hurried=True), Called(hurried=False)
        turns.call(hurried, 1.0009)
        turns.call(patient, 1.0009)
        assert (hurried.ready, patient.ready) == (True, False)
        assert patient.alarm is not None
        turns.call(patient, None)

    asyncio.run(story())
