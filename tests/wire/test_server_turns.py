"""Turns: whoever has something due does a bounded amount of it in one turn of the loop, and the others get theirs."""

import asyncio
import gc
import weakref

from chaoslab.base.dice import Dice
from chaoslab.wire.server.turns import SHARE_PIECES, SOON_S, STALE_MAX, TURN_PIECES, Alarm, WorkerTimer
from tests.told import Story, in_a_loop, told_by


class Digger:
    """Has so many pieces to move, all due by now, and notes when it moved how many."""

    def __init__(self, turns: WorkerTimer, pieces: int, diary: list[tuple[str, int]], name: str = "") -> None:
        self.alarm: Alarm | None = None
        self.ready = self.needs_precise_timing = False
        self._turns, self._pieces, self._diary, self._name = turns, pieces, diary, name

    def run_due_work(self, limit: float, most: int) -> int:
        done = min(most, self._pieces)
        self._pieces -= done
        self._diary.append((self._name, done))
        self._turns.schedule_worker(self, limit if self._pieces else None)
        return done


@told_by
def with_turns(story: Story) -> None:
    async def main() -> None:
        await story(WorkerTimer(asyncio.get_running_loop().time, soon_s=SOON_S))

    asyncio.run(main())


async def turn() -> None:
    await asyncio.sleep(0)


@in_a_loop
async def test_a_timer_that_fires_early_does_nothing_before_it_is_due() -> None:
    now_s, diary = [1.0], list[tuple[str, int]]()
    turns = WorkerTimer(lambda: now_s[0], soon_s=SOON_S)
    turns.schedule_worker(Digger(turns, 1, diary), 1.001)  # for the loop, whose time is another, this is past
    for now_s[0] in (1.0005, 1.0006, 1.0009):
        await turn()
        await turn()
        assert diary == []
    now_s[0] = 1.001
    await turn()
    await turn()
    assert diary == [("", 1)]


@with_turns
async def test_a_turn_moves_no_more_than_its_pieces_however_many_are_due(turns: WorkerTimer) -> None:
    diary: list[tuple[str, int]] = []
    turns.run_or_queue_worker(Digger(turns, 10_000, diary))
    turns_taken = 0
    while sum(done for _, done in diary) < 10_000:
        before = sum(done for _, done in diary)
        await turn()
        turns_taken += 1
        assert sum(done for _, done in diary) - before <= TURN_PIECES
    assert turns_taken >= 10_000 // TURN_PIECES - 1


@with_turns
async def test_a_neighbour_with_little_to_do_is_through_in_the_next_turn(turns: WorkerTimer) -> None:
    diary: list[tuple[str, int]] = []
    turns.run_or_queue_worker(Digger(turns, 10_000, diary, "busy"))
    turns.run_or_queue_worker(Digger(turns, 3, diary, "neighbour"))
    await turn()
    assert ("neighbour", 3) in diary
    assert sum(done for name, done in diary if name == "busy") <= SHARE_PIECES + TURN_PIECES


@with_turns
async def test_many_that_are_due_at_one_moment_share_the_turns(turns: WorkerTimer) -> None:
    diary: list[tuple[str, int]] = []
    due = asyncio.get_running_loop().time() + 0.05
    for number in range(50):
        turns.schedule_worker(Digger(turns, 40, diary, str(number)), due)
    most, seen = 0, 0
    while sum(done for _, done in diary) < 50 * 40:
        await turn()
        most, seen = max(most, sum(done for _, done in diary[seen:])), len(diary)
    assert 0 < most <= TURN_PIECES
    assert [name for name, _ in diary[:3]] == ["0", "1", "2"]


@with_turns
async def test_an_alarm_that_is_moved_rings_once_and_one_that_is_called_off_never(turns: WorkerTimer) -> None:
    diary: list[tuple[str, int]] = []
    now = asyncio.get_running_loop().time()
    moved, off, last = (Digger(turns, 1, diary, name) for name in ("moved", "off", "last"))
    turns.schedule_worker(moved, now + 60)
    turns.schedule_worker(moved, now + 0.001)
    turns.schedule_worker(off, now + 0.001)
    turns.schedule_worker(off, None)
    turns.schedule_worker(last, now + 0.003)
    while ("last", 1) not in diary:
        await turn()
    assert diary == [("moved", 1), ("last", 1)]


@with_turns
async def test_who_called_off_a_far_alarm_is_not_kept_for_it(turns: WorkerTimer) -> None:
    now = asyncio.get_running_loop().time()
    gone = []
    for _ in range(20 * STALE_MAX):
        digger = Digger(turns, 1, [])
        turns.schedule_worker(digger, now + 1e6)
        turns.schedule_worker(digger, None)
        gone.append(weakref.ref(digger))
    del digger
    gc.collect()
    assert [one for one in gone if one() is not None] == []
    assert sum(type(thing) is Alarm for thing in gc.get_objects()) <= 2 * STALE_MAX


@in_a_loop
async def test_alarms_ring_in_the_order_of_their_moments_though_many_were_called_off() -> None:
    began = asyncio.get_running_loop().time() - 1000  # for the loop all of it is past
    now_s, diary = [began], list[tuple[str, int]]()
    turns = WorkerTimer(lambda: now_s[0], soon_s=SOON_S)
    dice = Dice(1)
    order = sorted(range(200), key=lambda n: dice(n).uniform())
    diggers = {n: Digger(turns, 1, diary, f"{n:03}") for n in order}
    for n, digger in diggers.items():
        turns.schedule_worker(digger, began + 1 + n)
    for n in order[: 2 * STALE_MAX]:
        turns.schedule_worker(diggers[n], None)
    now_s[0] += 500
    while len(diary) < 200 - 2 * STALE_MAX:
        await turn()
    assert diary == sorted(diary)


@in_a_loop
async def test_what_is_left_of_a_moment_that_has_rung_is_done_in_the_next_turn() -> None:
    now_s, diary = [1.0], list[tuple[str, int]]()
    turns = WorkerTimer(lambda: now_s[0], soon_s=0.0)
    turns.schedule_worker(Digger(turns, 2 * SHARE_PIECES, diary), 1.001)
    now_s[0] = 1.001
    for _ in range(6):
        await turn()
    assert sum(done for _, done in diary) == 2 * SHARE_PIECES
