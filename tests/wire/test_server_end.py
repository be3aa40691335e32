"""One end of a connection, on a clock that is moved by hand: pieces with a pause between them leave one by one."""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import ROOM_BYTES
from chaoslab.wire.server import end as of_end
from chaoslab.wire.server.end import AttachedToxic, ProxyEnd
from chaoslab.wire.server.turns import SOON_S, Alarm, Worker, WorkerTimer
from chaoslab.wire.toxics.latency import ROOM_BYTES as LATENCY_ROOM
from chaoslab.wire.toxics.latency import Latency
from chaoslab.wire.toxics.slicer import Slicer
from chaoslab.wire.toxics.timeout import Timeout
from tests.told import in_a_loop

PAUSE_S = 0.0002
CHUNK_BYTES, GULP_BYTES, PIECE_BYTES = 32 * 1024, 512 * 1024, 150


class HandTurns(WorkerTimer):
    """Calls nobody: notes when a worker asked to be called. The time is the hand's."""

    def __init__(self) -> None:
        super().__init__(lambda: self.time_s, soon_s=0.0)
        self.time_s = 1.0
        self.asked_s: Any = None
        self.hurries = 0

    def schedule_worker(self, worker: Worker, when: float | None) -> None:  # noqa: ARG002
        self.asked_s = when

    def run_or_queue_worker(self, worker: Worker) -> None:  # noqa: ARG002
        """Works when the hand says so."""
        self.hurries += 1


@dataclass
class Link:
    worker_timer: WorkerTimer
    rude: bool = False

    def handle_end_connected(self, end: ProxyEnd) -> None: ...

    def handle_end_lost(self, end: ProxyEnd) -> None: ...


@dataclass
class Writer:
    """A transport that notes what it is told."""

    written: list[bytes] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    waiting: int = 0

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return "close" in self.told or "abort" in self.told

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def get_extra_info(self, _: str) -> Any:
        return self

    def setsockopt(self, *told: Any) -> None:
        assert told == (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.told.append("linger")

    def get_protocol(self) -> None: ...

    def set_protocol(self, protocol: Any) -> None:  # noqa: ARG002
        self.told.append("set")

    def __getattr__(self, name: str) -> Any:
        if name in ("pause_reading", "resume_reading", "write_eof", "close", "abort"):
            return lambda: self.told.append(name.removesuffix("_reading"))
        raise AttributeError(name)


def sliced(turns: WorkerTimer, pieces: int) -> tuple[ProxyEnd, list[bytes]]:
    """An end that has pieces of ten bytes to pass on, and what it has written."""
    link, reader, writer = Link(turns), Writer(), Writer()
    end, peer = ProxyEnd(link, "downstream"), ProxyEnd(link, "upstream")
    end.peer, peer.peer = peer, end
    end.transport, peer.transport = cast(asyncio.Transport, reader), cast(asyncio.Transport, writer)
    end.start_forwarding()
    slicer = Slicer(average_size=10, size_variation=0, delay=round(PAUSE_S * 1e6))
    end.insert_pipe(AttachedToxic("s", "slicer", "downstream", 1.0, slicer), Dice(1), None)
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
        end.run_due_work(turns.now_s(), 32)
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
    end.run_due_work(turns.now_s(), 32)
    assert len(written) == 1
    assert turns.asked_s == pytest.approx(1.0 + PAUSE_S)
    turns.time_s = 1.01  # late: the next two are due
    end.run_due_work(turns.now_s(), 32)
    assert len(written) == 2
    assert turns.asked_s == pytest.approx(1.01 + PAUSE_S / 2)
    end.run_due_work(turns.now_s(), 32)
    assert len(written) == 2


@pytest.mark.parametrize(("pause_s", "hurried"), [(0.0002, True), (0.0019, True), (0.002, False), (0.1, False)])
def test_only_pauses_too_short_for_a_timer_are_kept_turn_by_turn(pause_s: float, hurried: bool) -> None:
    link = Link(HandTurns())
    end, peer = ProxyEnd(link, "downstream"), ProxyEnd(link, "upstream")
    end.peer, peer.peer = peer, end
    end.start_forwarding()
    assert not end.needs_precise_timing
    slicer = Slicer(average_size=10, delay=round(pause_s * 1e6))
    end.insert_pipe(AttachedToxic("s", "slicer", "downstream", 1.0, slicer), Dice(1), None)
    assert end.needs_precise_timing is hurried


def test_a_hurried_end_does_not_let_a_piece_leave_early() -> None:
    turns = HandTurns()
    end, written = sliced(turns, 3)
    end.run_due_work(turns.now_s(), 32)
    turns.time_s += PAUSE_S * 0.6
    end.run_due_work(turns.now_s(), 32)
    assert len(written) == 1
    turns.time_s += PAUSE_S * 0.6
    end.run_due_work(turns.now_s(), 32)
    assert len(written) == 2


@in_a_loop
async def test_the_turns_call_a_hurried_worker_turn_by_turn_within_a_millisecond() -> None:
    class Called:
        alarm: Alarm | None = None
        ready = False

        def __init__(self, *, hurried: bool) -> None:
            self.needs_precise_timing = hurried

        def run_due_work(self, limit: float, most: int) -> int:  # noqa: ARG002
            return 0

    turns = WorkerTimer(lambda: 1.0, soon_s=SOON_S)
    hurried, patient = Called(hurried=True), Called(hurried=False)
    turns.schedule_worker(hurried, 1.0009)
    turns.schedule_worker(patient, 1.0009)
    assert (hurried.ready, patient.ready) == (True, False)
    assert patient.alarm is not None
    turns.schedule_worker(patient, None)


@dataclass
class Both:
    """Two ends of a connection, with what each socket was told."""

    turns: HandTurns = field(default_factory=HandTurns)

    def __post_init__(self) -> None:
        self.link = Link(self.turns)
        self.here, self.there = ProxyEnd(self.link, "upstream"), ProxyEnd(self.link, "downstream")
        self.here.peer, self.there.peer = self.there, self.here
        self.reader, self.writer = Writer(), Writer()

    def connect(self) -> Both:
        for end, transport in ((self.here, self.reader), (self.there, self.writer)):
            end.connection_made(cast(asyncio.Transport, transport))
        return self

    def start(self) -> Both:
        self.here.start_forwarding()
        self.there.start_forwarding()
        return self

    def toxic(self, name: str, *, before: set[str] | None = None, **attributes: int) -> None:
        self.here.insert_pipe(self.note_connected(name, **attributes), Dice(1), before)

    def note_connected(self, name: str, **attributes: int) -> AttachedToxic:
        return AttachedToxic(name, "latency", "upstream", 1.0, Latency(**attributes))

    def work(self, at_s: float = 0.0, most: int = 32) -> int:
        self.turns.time_s = max(self.turns.time_s, at_s)
        return self.here.run_due_work(self.turns.time_s, most)


@pytest.mark.parametrize("ends", [False, True])
def test_what_comes_before_the_other_end_is_there_waits_and_goes_out_in_order(ends: bool) -> None:
    both = Both().connect()
    both.here.data_received(b"a")
    both.here.data_received(bytes(ROOM_BYTES - 2))
    assert both.reader.told == []
    both.here.data_received(b"z")
    assert both.reader.told == ["pause"]
    if ends:
        assert both.here.eof_received() is True
    both.start()
    assert both.writer.written == [b"a", bytes(ROOM_BYTES - 2), b"z"]
    assert ("close" in both.writer.told, "resume" in both.reader.told) == (ends, not ends)
    both.here.data_received(b"more")
    assert both.writer.written[3:] == ([] if ends else [b"more"])


def test_without_toxics_bytes_go_straight_to_the_other_socket_and_its_fullness_stops_the_reading() -> None:
    both = Both().connect().start()
    assert both.here.data_received == both.writer.write
    assert both.reader.told == ["set"]  # or uvloop would call the old method
    both.there.pause_writing()
    both.there.pause_writing()
    both.there.resume_writing()
    assert both.reader.told == ["set", "pause", "resume"]
    both.toxic("t", latency=100)
    assert "data_received" not in vars(both.here)
    both.here.remove_pipe("t")
    assert both.here.data_received == both.writer.write
    assert both.reader.told[3:] == ["set", "set"]


def test_a_toxic_s_bytes_leave_when_they_are_due_and_too_many_stop_the_reading() -> None:
    both = Both().connect().start()
    both.toxic("slow", latency=100)
    assert (both.here.has_pipe("slow"), both.here.has_pipe("other"), both.there.has_pipe("slow")) == (
        True,
        False,
        False,
    )
    both.here.data_received(b"a")
    both.turns.time_s += 0.05
    both.here.data_received(b"b")
    assert (both.work(), both.writer.written) == (0, [])
    assert both.turns.asked_s == pytest.approx(1.1)
    assert (both.work(1.1), both.writer.written) == (1, [b"a"])
    assert both.turns.asked_s == pytest.approx(1.15)
    both.work(1.2)
    assert (both.writer.written, both.turns.asked_s) == ([b"a", b"b"], None)
    for _ in range(3):
        both.here.data_received(b"c")
    assert (both.work(1.4, most=2), both.writer.written[2:]) == (2, [b"c", b"c"])
    assert (both.work(1.4, most=2), both.writer.written[2:]) == (1, [b"c"] * 3)
    assert both.here.run_due_work(0.0, 32) == 0


def test_each_piece_that_is_held_counts_with_the_memory_it_takes() -> None:
    both = Both().connect().start()
    both.toxic("slow", latency=100)
    for _ in range(LATENCY_ROOM // (CHUNK_BYTES + PIECE_BYTES)):
        both.here.data_received(bytes(CHUNK_BYTES))
        both.here.pause_or_resume_reading()
    assert "pause" not in both.reader.told
    both.here.data_received(bytes(CHUNK_BYTES))
    both.here.pause_or_resume_reading()
    assert both.reader.told[-1] == "pause"
    both.here.data_received(b"")
    both.work(1.2, most=400)
    assert both.reader.told[-1] == "pause"
    both.work(1.2, most=400)
    assert both.reader.told[-1] == "resume"


def test_what_waits_in_a_full_socket_counts_too_and_goes_out_in_one() -> None:
    both = Both().connect().start()
    both.toxic("slow", latency=100)
    both.writer.waiting = LATENCY_ROOM
    both.here.pause_or_resume_reading()
    assert "pause" not in both.reader.told  # the socket takes it
    both.there.pause_writing()
    assert both.reader.told[-1] == "pause"
    for part in (b"a", b"b"):
        both.here.data_received(part)
    both.here.eof_received()
    both.work(1.2)
    assert (both.writer.written, both.writer.told[-1]) == ([b"ab"], "close")


@pytest.mark.parametrize(("rude", "told"), [(False, ["close"]), (True, ["linger", "abort"])])
def test_the_end_of_a_stream_ends_the_other_side_and_after_a_reset_rudely(rude: bool, told: list[str]) -> None:
    both = Both().connect().start()
    both.writer.told.clear()
    both.link.rude = rude
    assert both.here.eof_received() is True
    assert both.here.eof_received() is True
    assert both.writer.told == told
    both.there.abort(rudely=True)
    assert both.writer.told == [*told, "linger", "abort"]
    both.there.connection_lost(None)
    both.there.abort(rudely=True)
    assert (both.there.lost, both.here.lost) == (True, False)
    assert both.writer.told == [*told, "linger", "abort"]


def test_an_end_that_is_lost_passes_nothing_on_in_either_direction_and_closes_the_other() -> None:
    both = Both()
    both.here.close()
    both.here.abort()  # nothing is there yet
    both.connect().start()
    both.here.connection_lost(None)
    both.there.data_received(b"a")
    both.here.data_received(b"b")
    assert (both.reader.written, both.writer.written) == ([], [])
    assert both.writer.told[-1] == "close"


def test_an_end_works_at_once_after_each_change_once_it_has_begun() -> None:
    both = Both().connect()
    both.toxic("a", latency=10)
    both.here.replace_pipe(both.note_connected("a", latency=20), Dice(1))
    assert both.turns.hurries == 0
    both.start()
    assert both.turns.hurries == 1
    both.toxic("b", latency=10)
    both.here.replace_pipe(both.note_connected("b", latency=20), Dice(1))
    both.here.remove_pipe("b")
    assert both.turns.hurries == 4
    both.turns.asked_s = 7.0
    both.here.remove_pipe("a")
    assert (both.turns.hurries, both.turns.asked_s) == (4, None)
    both.here.replace_pipe(both.note_connected("a", latency=20), Dice(1))
    assert (both.turns.hurries, both.here.has_pipe("a")) == (4, False)
    both.turns.asked_s = 7.0
    both.here.stop_forwarding()
    assert both.turns.asked_s is None


@pytest.mark.parametrize("spared", [False, True])
def test_a_toxic_that_has_lost_bytes_ends_the_stream_when_it_goes_unless_the_dice_spare_it(spared: bool) -> None:
    both = Both().connect().start()
    both.here.insert_pipe(AttachedToxic("t", "timeout", "upstream", 1.0, Timeout(timeout=0)), Dice(1), None)
    both.here.data_received(b"lost")
    both.here.remove_pipe("t", spared=spared)
    both.here.data_received(b"more")
    assert (both.writer.written, "close" in both.writer.told) == (([b"more"], False) if spared else ([], True))
    assert not both.here.has_pipe("t")


def test_what_the_last_toxic_held_leaves_in_one_and_the_end_with_it() -> None:
    both = Both().connect().start()
    both.toxic("slow", latency=100)
    both.here.data_received(b"a")
    both.here.data_received(b"b")
    both.here.remove_pipe("slow")
    assert both.writer.written == [b"ab"]
    both.toxic("slow", latency=100)
    for _ in range(LATENCY_ROOM // CHUNK_BYTES + 1):
        both.here.data_received(bytes(CHUNK_BYTES))
    both.here.pause_or_resume_reading()
    assert both.reader.told[-1] == "pause"
    both.here.remove_pipe("slow")
    assert both.reader.told[-1] == "resume"
    both.toxic("slow", latency=100)
    both.here.data_received(b"last")
    both.here.eof_received()
    both.here.remove_pipe("slow")
    assert (both.writer.written[-1], both.writer.told[-1]) == (b"last", "close")
    both.there.pause_writing()
    assert "pause" not in both.reader.told[-1:]  # nothing more comes


def test_pipes_stand_in_the_order_of_their_toxics_and_a_change_or_a_draw_keeps_what_is_held() -> None:
    both = Both().connect().start()
    both.toxic("c", latency=1)
    both.toxic("a", latency=1, before=set())
    both.toxic("b", latency=1, before={"a"})
    both.toxic("d", latency=1)
    chain = both.here._chain
    assert chain is not None
    assert [*chain.keys] == ["a", "b", "c", "d"]
    both.here.data_received(b"x")
    both.here.replace_pipe(both.note_connected("b", latency=500), Dice(1))
    both.work(1.1)
    assert both.writer.written == []
    both.here.remove_pipe("b", spared=True)
    both.here.remove_pipe("zz")
    assert ([*chain.keys], both.here.has_pipe("b")) == (["a", "c", "d"], False)
    both.work(1.3)
    assert both.writer.written == [b"x"]
    both.here.data_received(b"y")
    for name in "acd":
        both.here.remove_pipe(name)
    assert both.writer.written == [b"x", b"y"]
    assert both.here.data_received == both.writer.write
    both.here.stop_forwarding()
    both.toxic("late", latency=1)
    both.here.data_received(b"z")
    assert (both.here.has_pipe("late"), both.writer.written) == (False, [b"x", b"y"])


def test_who_cannot_reach_the_other_side_says_goodbye_and_closes_when_the_client_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        both = Both()
        both.here.close_gracefully()  # who is not there has nothing to say
        both.connect()
        both.here.close_gracefully()
        both.here.data_received(b"a")
        both.here.start_forwarding()
        assert (both.writer.written, both.reader.told) == ([], ["write_eof"])
        while "close" not in both.reader.told:
            await asyncio.sleep(0)
        assert both.here.eof_received() is False
        ended = Both().connect()
        ended.here.eof_received()
        ended.here.close_gracefully()
        assert ended.reader.told == ["write_eof", "close"]
        ended.here.close_gracefully()
        assert ended.reader.told == ["write_eof", "close"]
        gone = Both().connect()
        gone.here.connection_lost(None)
        gone.here.close_gracefully()
        assert gone.reader.told == []

    monkeypatch.setattr(of_end, "GOODBYE_S", 0.0)
    asyncio.run(story())


@in_a_loop
async def test_a_flood_is_read_in_gulps_one_a_turn() -> None:
    both = Both().connect().start()
    both.toxic("slow", latency=100)
    both.reader.told.clear()
    both.here.data_received(bytes(GULP_BYTES - 1))
    assert both.reader.told == []
    both.here.data_received(bytes(CHUNK_BYTES + 1))
    assert both.reader.told == ["pause"]
    await asyncio.sleep(0)
    assert both.reader.told == ["pause", "resume"]
    both.here.data_received(bytes(GULP_BYTES - 1))
    await asyncio.sleep(0)
    assert both.reader.told == ["pause", "resume"]
    both.work(2.0, most=10**6)
    sizes = [len(part) for part in both.writer.written]
    assert (max(sizes), sum(sizes)) == (CHUNK_BYTES, 2 * (GULP_BYTES - 1) + CHUNK_BYTES + 1)


@in_a_loop
async def test_the_reading_of_a_socket_that_closes_is_neither_stopped_nor_begun() -> None:
    both = Both().connect().start()
    both.toxic("slow", latency=100)
    both.reader.told.clear()
    both.here.data_received(bytes(GULP_BYTES))
    both.here.close()
    await asyncio.sleep(0)
    both.here.data_received(bytes(GULP_BYTES))
    await asyncio.sleep(0)
    both.work(2.0, most=10**6)
    assert both.reader.told == ["pause", "close"]
