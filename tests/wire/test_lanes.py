"""The seam's side of the wire: it waits as long as the manager lives, and not a moment longer."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaoslab.base.clock import SystemClock
from chaoslab.core.exchange import Call, Observation
from chaoslab.wire.control import ControlDatabase, ManagerAnswer
from chaoslab.wire.lanes import FORGOTTEN, LATE_S, LOST_S, MENDING_S, Health, LabDown, Lanes

CALL = Call("weather", "current_weather", "p1.r1", 1, 1, "id1")


@dataclass
class Counted(SystemClock):
    """Time that passes only while somebody naps; `on_nap` is what the world does meanwhile."""

    now_s: float = 0.0
    on_nap: Callable[[float], None] = lambda _now_s: None

    def monotonic(self) -> float:
        return self.now_s

    async def sleep_async(self, delay_s: float) -> None:
        self.now_s += delay_s
        self.on_nap(self.now_s)


@contextlib.contextmanager
def lanes(folder: Path, clock: Counted, healthy: Callable[[], str | Health]) -> Iterator[tuple[Lanes, ControlDatabase]]:
    async def asked() -> Health:
        said = healthy()
        return Health(said) if isinstance(said, str) else said

    door = Lanes(folder / "state.db", "r1", clock=clock, healthy=asked, poll_s=0.01)
    manager = ControlDatabase(folder / "state.db")
    manager.request_run_setup("r1", plan={}, targets={})
    try:
        yield door, manager
    finally:
        door.close()
        manager.close()


def test_an_answer_is_waited_for_and_handed_on(tmp_path: Path) -> None:
    clock = Counted()
    with lanes(tmp_path, clock, lambda: "nobody who is in time is asked how he is") as (door, manager):
        armed = ManagerAnswer("armed", "127.0.0.1", 40001, ["wire"])

        def at_last(now_s: float) -> None:
            if now_s > 0.1:
                for row in manager.list_pending_calls(["r1"]):
                    manager.write_call_answer(row.id, armed)

        clock.on_nap = at_last
        row, answer = asyncio.run(door.request_lane(CALL, deadline_s=2.0))
        assert answer == armed
        assert 0.1 < clock.now_s < 0.13
        door.end_call_with_observation(row, Observation(0.31234567, 2.0, "reset", None, 0))
        (done,) = manager.list_pending_calls(["r1"])
        assert done.observation == {
            "duration_s": 0.312346, "deadline_s": 2.0, "error": "reset", "status": None, "bytes": 0,
        }  # fmt: skip


def test_an_answer_is_looked_for_a_thousand_times_a_second_unless_told_otherwise(tmp_path: Path) -> None:
    async def well() -> Health:
        return Health()

    clock, naps_s = Counted(), list[float]()
    door, manager = (
        Lanes(tmp_path / "state.db", "r1", clock=clock, healthy=well),
        ControlDatabase(tmp_path / "state.db"),
    )

    def answers(now_s: float) -> None:
        naps_s.append(now_s)
        if len(naps_s) == 3:
            (row,) = manager.list_pending_calls(["r1"])
            manager.write_call_answer(row.id, ManagerAnswer("clear"))

    clock.on_nap = answers
    manager.request_run_setup("r1", plan={}, targets={})
    asyncio.run(door.request_lane(CALL, deadline_s=2.0))
    assert naps_s == pytest.approx([0.001, 0.002, 0.003])
    door.close()
    manager.close()


def test_a_dead_manager_is_said_as_soon_as_its_answer_is_late(tmp_path: Path) -> None:
    clock = Counted()
    with lanes(tmp_path, clock, lambda: "nobody there") as (door, _):
        with pytest.raises(LabDown, match="nobody there"):
            asyncio.run(door.request_lane(CALL, deadline_s=2.0))
        assert LATE_S < clock.now_s < LATE_S + 0.05


def test_a_manager_that_lives_and_does_not_answer_is_taken_for_broken(tmp_path: Path) -> None:
    probes: list[float] = []
    clock = Counted()

    def healthy() -> str:
        probes.append(clock.now_s)
        return ""

    with lanes(tmp_path, clock, healthy) as (door, _):
        with pytest.raises(LabDown, match=f"did not answer for {LOST_S:g} s"):
            asyncio.run(door.request_lane(CALL, deadline_s=2.0))
        assert LOST_S < clock.now_s < LOST_S + 0.05
        assert len(probes) == 10  # the first after LATE_S, then one a second: a busy manager is not asked all the time


def test_a_manager_that_mends_the_lab_is_waited_for_and_not_for_ever(tmp_path: Path) -> None:
    clock = Counted()
    with lanes(tmp_path, clock, lambda: Health(recovering=True)) as (door, manager):

        def at_last(now_s: float) -> None:
            if now_s > LOST_S + 5:
                for row in manager.list_pending_calls(["r1"]):
                    manager.write_call_answer(row.id, ManagerAnswer("clear", epoch=1, held=True))

        clock.on_nap = at_last
        _, answer = asyncio.run(door.request_lane(CALL, deadline_s=2.0))
        assert (answer.epoch, answer.held) == (1, True)
        clock.on_nap = lambda _: None
        clock.now_s = 0.0
        with pytest.raises(LabDown, match="did not answer for"):
            asyncio.run(door.request_lane(CALL, deadline_s=2.0))
        assert MENDING_S < clock.now_s < MENDING_S + LOST_S + 0.1


def test_a_call_was_cut_when_the_clean_proxies_are_others_than_those_it_was_sent_to(tmp_path: Path) -> None:
    clock = Counted()

    probes: list[float] = []

    def healthy() -> Health:
        probes.append(round(clock.now_s, 6))
        return Health(epoch=3) if clock.now_s > 1 else Health(recovering=True)

    with lanes(tmp_path, clock, healthy) as (door, _):
        assert asyncio.run(door.has_lost_proxies(ManagerAnswer("clear", epoch=2))) is True
        assert 1 < clock.now_s < 1.1
        assert probes[:4] == [0.0, 0.05, 0.1, 0.15]  # twenty times a second
        assert asyncio.run(door.has_lost_proxies(ManagerAnswer("clear", epoch=3))) is False


def test_clean_proxies_that_do_not_come_back_are_the_end_of_the_lab(tmp_path: Path) -> None:
    clock = Counted()
    with lanes(tmp_path, clock, lambda: Health(recovering=True)) as (door, _):
        with pytest.raises(LabDown, match=f"have not come back in {MENDING_S:g} s"):
            asyncio.run(door.has_lost_proxies(ManagerAnswer("clear")))
        assert door.down is not None


def test_a_manager_that_was_restarted_has_forgotten_the_run_and_that_is_said_soon(tmp_path: Path) -> None:
    clock = Counted()
    with lanes(tmp_path, clock, lambda: "") as (door, manager):
        clock.on_nap = lambda _: manager.delete_earlier_runs()
        with pytest.raises(LabDown, match=FORGOTTEN):
            asyncio.run(door.request_lane(CALL, deadline_s=2.0))
        assert clock.now_s < 0.05  # the call's own row is gone
        clock.on_nap = lambda _: None
        with pytest.raises(LabDown, match=FORGOTTEN):
            asyncio.run(door.request_lane(CALL, deadline_s=2.0))
        assert clock.now_s < LATE_S + 0.05  # nobody looks at this one


def test_a_fault_that_was_not_armed_stops_everything(tmp_path: Path) -> None:
    clock = Counted()
    with lanes(tmp_path, clock, lambda: "") as (door, manager):

        def refuse(_now_s: float) -> None:
            for row in manager.list_pending_calls(["r1"]):
                manager.write_call_answer(row.id, ManagerAnswer("failed", error="no port left"))

        clock.on_nap = refuse
        with pytest.raises(LabDown, match="no port left"):
            asyncio.run(door.request_lane(CALL, deadline_s=2.0))


def test_a_state_that_cannot_be_used_is_the_end_of_the_lab(tmp_path: Path) -> None:
    with lanes(tmp_path, Counted(), lambda: "") as (door, _):
        with contextlib.closing(sqlite3.connect(tmp_path / "state.db")) as db:
            db.execute("DROP TABLE calls")
        with pytest.raises(LabDown, match="cannot be used: no such table"):
            asyncio.run(door.request_lane(CALL, deadline_s=2.0))
        with pytest.raises(LabDown, match="cannot be used"):
            door.end_call_with_observation(1, Observation(0.1, 2.0))


def test_a_door_that_is_closed_leads_nowhere(tmp_path: Path) -> None:
    with lanes(tmp_path, Counted(), lambda: "") as (door, _):
        door.close()
        with pytest.raises(LabDown, match="cannot be used"):
            asyncio.run(door.request_lane(CALL, deadline_s=2.0))


def test_the_end_of_the_lab_is_no_error_that_an_sdk_would_retry() -> None:
    assert not issubclass(LabDown, Exception)
