"""The nemesis: a fault stands before its call, is gone afterwards, and nothing false is claimed of it."""

import asyncio
import contextlib
import itertools
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from requests.adapters import HTTPAdapter

from chaoslab.base import levers
from chaoslab.base.clock import SystemClock, system
from chaoslab.base.identity import Request, TrialId
from chaoslab.core import events
from chaoslab.core.exchange import Call
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.proxy_manager import clean_proxies
from chaoslab.proxy_manager import manager as manager_module
from chaoslab.proxy_manager.manager import Manager
from chaoslab.record.history import History
from chaoslab.record.log import LogLost
from chaoslab.record.runs import Run
from chaoslab.record.steering import PAUSED
from chaoslab.wire.control import ControlDatabase
from chaoslab.wire.lanes import Health, LabDown
from chaoslab.wire.proxies import ToxicInfo
from chaoslab.wire.toxiproxy_package import ToxiproxyServer
from tests.proxy_manager.manager_parts import (
    CALL,
    SLOW,
    Ahead,
    a_manager,
    always,
    another,
    end,
    on_lab,
    seen,
    turn_away,
    with_lab,
)
from tests.seams.lab_parts import NOW, SERVERS, Bench, bench, embedded, eventually, said, site
from tests.waiting import DEADLINE_S


@on_lab(always("latency", **SLOW), servers=SERVERS)
async def test_a_lane_is_made_for_one_call_and_goes_with_it(lab: Bench) -> None:
    row, answer = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    assert (answer.state, answer.rolled) == ("armed", ["wire"])
    (name,) = lab.lanes_left()
    held = lab.toxiproxy.fetch_proxy(name)
    assert held.listen == f"{answer.host}:{answer.port}"
    assert held.upstream == lab.toxiproxy.fetch_proxy("weather").upstream
    attributes = {"latency": 50, "jitter": 0}
    (slow,) = held.toxics().values()
    assert not ToxicInfo("latency_downstream", "latency", "downstream", 1.0, attributes).differs_from(slow)
    (shown,) = lab.manager.status()["lanes"]
    assert shown == {"lane": name, "fault": "latency", "target": "weather", "trial": "p1.r1"}
    lab.seam.lanes.end_call_with_observation(row, seen(0.06))
    history = lab.history()
    assert lab.lanes_left() == []
    order = [r.event.kind for r in history.records if r.writer == "manager"]
    assert order == ["fault_scheduled", "fault_armed", "fault_injected", "fault_witnessed", "fault_healed"]
    (armed,) = [e for _, e in history.find_events(events.FaultArmed)]
    assert (armed.lane, armed.request_id, armed.injection) == (name, "id1", "wire")
    stages = dict.fromkeys(("armed", "healed", "injected", "scheduled", "witnessed"), 1)
    assert lab.manager.status()["wire_faults"] == {"latency": stages}


@pytest.mark.parametrize("server", SERVERS)
def test_all_faults_that_hit_a_call_stand_on_its_one_lane(tmp_path: Path, server: str) -> None:
    """The second one was lost in silence."""
    late = Injection("late", (Choice("latency", 1.0, SLOW),), ("weather",))
    later = Injection("later", (Choice("latency", 1.0, {"delay_s": 0.1, "stream": "downstream"}),), ("weather",))
    cut = Injection("cut", (Choice("timeout", 1.0, {"after_s": 0.5, "stream": "upstream"}),), ("weather",), calls=(1,))

    async def story(lab: Bench) -> None:
        row, answer = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        (name,) = lab.lanes_left()
        assert answer.rolled == ["late", "later", "cut"]
        assert [(t.name, t.type, t.stream) for t in lab.toxiproxy.fetch_proxy(name).toxics().values()] == [
            ("timeout_upstream", "timeout", "upstream"),
            ("latency_downstream", "latency", "downstream"),
            ("latency_downstream_2", "latency", "downstream"),
        ]
        assert lab.manager.status()["lanes"][0]["fault"] == "latency and latency and timeout"
        lab.seam.lanes.end_call_with_observation(row, seen(0.5, error="closed"))
        history = lab.history()
        assert [e.injection for _, e in history.find_events(events.FaultArmed)] == ["late", "later", "cut"]
        assert [e.injection for _, e in history.find_events(events.FaultWitnessed)] == ["cut"]
        assert [e.masked_by for _, e in history.find_events(events.FaultHealed)] == ["timeout", "timeout", ""]
        assert lab.lanes_left() == []

    with_lab(tmp_path, Plan(1, (late, later, cut)), story, server=server)


@pytest.mark.parametrize("server", SERVERS)
def test_a_fault_that_goes_on_stands_for_all_its_calls_on_kept_connections(tmp_path: Path, server: str) -> None:
    """An outage that gave every call a connection of its own would spare what production keeps open."""
    lasting = Injection("lasting", (Choice("latency", 1.0, SLOW),), ("weather",), triggers={"persistence": "for_good"})

    async def story(lab: Bench) -> None:
        for n in (1, 2, 3):
            wanted = Request(TrialId(lab.run.name, 1), "weather", "current_weather", n, ("current_weather", str(n)))
            assert (await lab.get(wanted)).status_code == 200
        history = lab.history()
        lanes = {e.lane for _, e in history.find_events(events.FaultArmed)}
        assert len(lanes) == 1
        assert lab.lanes_left() == list(lanes)
        assert [e.witnessed for _, e in history.find_events(events.FaultHealed)] == [True] * 3
        assert len(list(history.find_events(events.FaultWitnessed))) == 3
        other = Call("weather", "current_weather", "p2.r1", 1, 1, "id2")
        row, answer = await lab.seam.lanes.request_lane(other, deadline_s=2.0)
        assert answer.stands
        assert lanes.isdisjoint(lab.lanes_left()), "nothing of a trial stays for the next"
        lab.seam.lanes.end_call_with_observation(row, seen(0.06))

    with_lab(tmp_path, Plan(1, (lasting,)), story, server=server)


def test_a_lane_that_stood_and_is_gone_is_made_anew(tmp_path: Path) -> None:
    lasting = Injection("lasting", (Choice("latency", 1.0, SLOW),), ("weather",), triggers={"window_s": [0, 100]})

    async def story(lab: Bench) -> None:
        rows = []
        for request in (1, 2):
            row, _ = await lab.seam.lanes.request_lane(Call("weather", "w", "p1.r1", request, 1), deadline_s=2.0)
            lab.seam.lanes.end_call_with_observation(row, seen(0.06))
            rows.append(lab.lanes_left())
            lab.history()
            lab.toxiproxy.destroy(rows[-1][0])
        assert rows[0] != rows[1]

    with_lab(tmp_path, Plan(1, (lasting,)), story)


def test_the_row_carries_the_occasion_so_the_manager_needs_no_memory(tmp_path: Path) -> None:
    slow = Choice("latency", 1.0, SLOW)
    twice = Injection("twice", (slow,), ("weather",), triggers={"max_times": 2, "when": 'city == "Oslo"'})

    async def story(lab: Bench) -> None:
        async def state(city: str, times: int) -> str:
            met = {"twice": {"injection": "twice", "times": times, "since_s": 0.0, "in_a_row": 1}}
            occasion = {"turn": 1, "in_turn": 1, "elapsed_s": 3.0, "arguments": {"city": city}, "met": met}
            row, answer = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0, occasion=occasion)
            if answer.state == "armed":
                lab.seam.lanes.end_call_with_observation(row, seen(0.06))
            return answer.state

        asked = [("Oslo", 0), ("Oslo", 1), ("Oslo", 2), ("Rome", 0), ("Oslo", 0)]
        assert [await state(*each) for each in asked] == ["armed", "armed", "clear", "clear", "armed"]

    with_lab(tmp_path, Plan(1, (twice,)), story)


@on_lab(always("latency", **SLOW))
async def test_what_the_caller_did_not_meet_is_not_witnessed(lab: Bench) -> None:
    row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    lab.seam.lanes.end_call_with_observation(row, seen(0.01))
    history = lab.history()
    assert [e.witnessed for _, e in history.find_events(events.FaultHealed)] == [False]
    assert not list(history.find_events(events.FaultWitnessed))
    assert not list(history.find_events(events.FaultInjected))


@on_lab(always("latency", **SLOW))
async def test_a_pause_rolls_no_dice_and_a_resume_rolls_the_same_ones(lab: Bench) -> None:
    lab.manager.paused.set()
    _, clear = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    assert (clear.state, clear.rolled) == ("clear", [])
    assert lab.manager.status()["paused"] is True
    lab.manager.paused.clear()
    row, armed = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    assert armed.state == "armed"
    lab.seam.lanes.end_call_with_observation(row, seen(0.06))


@on_lab(always("latency", **SLOW))
async def test_its_lever_in_the_runs_folder_takes_back_what_is_armed_and_arms_nothing(lab: Bench) -> None:
    row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    assert len(lab.lanes_left()) == 1
    lever = lab.run.folder / PAUSED
    levers.write_stop_file(lever, "Ann paused it")
    eventually(lambda: lab.lanes_left() == [])
    lab.seam.lanes.end_call_with_observation(row, seen(0.01))
    _, clear = await lab.seam.lanes.request_lane(replace(CALL, request=2), deadline_s=2.0)
    assert clear.state == "clear"
    (held,) = (event for _, event in lab.history().find_events(events.FaultHeldBack))
    assert (held.at.request, held.limit) == (2, f"lever {lever}: Ann paused it")
    levers.remove_stop_file(lever)
    said_so = "the proxy manager makes faults again: its lever was released"
    eventually(lambda: said_so in [event.message for _, event in lab.history().find_events(events.LabWarning)])
    row, armed = await lab.seam.lanes.request_lane(replace(CALL, request=3), deadline_s=2.0)
    assert armed.state == "armed"
    lab.seam.lanes.end_call_with_observation(row, seen(0.06))
    told = [event.message for _, event in lab.history().find_events(events.LabWarning)]
    assert "the proxy manager makes no fault: Ann paused it" in told


@on_lab(always("latency", **SLOW))
async def test_a_pause_takes_back_what_is_armed(lab: Bench) -> None:
    await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    lab.manager.paused.set()
    eventually(lambda: lab.lanes_left() == [])
    lab.manager.paused.clear()


@on_lab(always("latency", **SLOW))
async def test_a_target_that_no_injection_covers_is_not_rolled_for(lab: Bench) -> None:
    for asked in (1, 2):
        _, answer = await lab.seam.lanes.request_lane(
            Call("movies", "search_movies", "p1.r1", asked, 1), deadline_s=2.0
        )
        assert (answer.state, answer.rolled) == ("clear", [])
        assert lab.manager.status()["calls"] == asked


@on_lab(always("refused"), servers=SERVERS)
async def test_refused_is_one_disabled_proxy_that_stays(lab: Bench) -> None:
    row, answer = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    assert answer.port == lab.manager.places.refused_port
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(answer.host, answer.port)
    lab.seam.lanes.end_call_with_observation(row, seen(0.001, error="refused"))
    assert [e.evidence for _, e in lab.history().find_events(events.FaultWitnessed)] == ["connection refused"]
    assert lab.toxiproxy.fetch_proxy("refused").enabled is False


@on_lab(always("refused"))
async def test_a_fault_that_cannot_be_armed_ends_the_experiment(lab: Bench) -> None:
    lab.toxiproxy.fetch_proxy("refused").enable()
    with pytest.raises(LabDown, match="could not be armed: the proxy 'refused' has been enabled by somebody else"):
        await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    assert "enabled by somebody else" in lab.manager.health().trouble
    assert not list(lab.history().find_events(events.FaultArmed))


def test_a_new_run_reaps_what_lost_its_owner_and_nothing_else(tmp_path: Path) -> None:
    now = int(system.utc().timestamp())
    expired, alive = f"lane.weather.old.1.{now - 1}", f"lane.weather.other.2.{now + 100}"
    foreign = {"somebody.else", "lane.weather.theirs.²", f"lane.weather.theirs.{'1' * 5000}"}

    async def run(url: str, address: str) -> None:
        with ToxiproxyServer(url) as toxiproxy:
            for name in (expired, alive, *foreign):
                toxiproxy.create(name=name, upstream=address)
        async with bench(tmp_path, url, Plan(1), {"weather": address}) as lab:
            assert set(lab.toxiproxy.proxies()) == {alive, *foreign, "weather", "refused"}

    with embedded() as url, site(lambda _: said({})) as weather:
        asyncio.run(run(url, weather.address))


def test_a_lane_whose_agent_was_killed_goes_when_its_lease_runs_out(tmp_path: Path) -> None:
    clock = Ahead()

    async def story(lab: Bench) -> None:
        row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        assert len(lab.lanes_left()) == 1
        clock.by_s = 50
        await lab.seam.lanes.request_lane(Call("movies", "search_movies", "p1.r1", 1, 1), deadline_s=2.0)
        assert len(lab.lanes_left()) == 1
        clock.by_s = 70
        eventually(lambda: not lab.lanes_left())
        # a moment later
        eventually(lambda: [e.witnessed for _, e in lab.history().find_events(events.FaultHealed)] == [False])
        lab.seam.lanes.end_call_with_observation(row, seen(0.06))  # it lives after all
        assert [e.witnessed for _, e in lab.history().find_events(events.FaultHealed)] == [False]
        assert lab.manager.health() == Health()

    with_lab(tmp_path, always("latency", **SLOW), story, clock=clock)


def test_a_manager_that_stops_takes_its_lanes_down(tmp_path: Path) -> None:
    left: list[str] = []

    async def run(url: str, address: str) -> None:
        async with bench(tmp_path, url, always("latency", **SLOW), {"weather": address}) as lab:
            await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
            left.extend(lab.lanes_left())
        with ToxiproxyServer(url) as toxiproxy:
            assert not [name for name in toxiproxy.proxies() if name.startswith("lane.")]

    with embedded() as url, site(lambda _: said({})) as weather:
        asyncio.run(run(url, weather.address))
    assert len(left) == 1


class Held:
    """A lock that knows which thread has it, and what is touched by a thread that has it not."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None
        self.unheld: list[str] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._holder = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._holder = None
        self._lock.release()

    def watched(self, name: str, held: dict[Any, Any]) -> Any:
        """A dict that notes who changes it, and who goes through it but the loop, which alone changes it."""

        def look(what: str) -> None:
            if self._holder != threading.get_ident():
                self.unheld.append(f"{name}: {what}")

        class Watched(type(held)):  # type: ignore[misc]
            def __setitem__(self, key: Any, value: Any) -> None:
                look(f"set {key}")
                super().__setitem__(key, value)

            def __delitem__(self, key: Any) -> None:
                look(f"delete {key}")
                super().__delitem__(key)

            def pop(self, key: Any, *default: Any) -> Any:
                look(f"pop {key}")
                return super().pop(key, *default)

            def values(self) -> Any:
                if threading.current_thread() is threading.main_thread():
                    look("values")
                return super().values()

            def items(self) -> Any:
                look("items")
                return super().items()

        watched = Watched()
        dict.update(watched, held)
        return watched


def test_what_other_threads_are_told_of_is_changed_and_gone_through_under_the_lock_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dict that changes while somebody goes through it breaks a question for the status once in a thousand times."""
    clock, lock, wishes = Ahead(), Held(), list[str]()

    def wish(manager: Manager) -> list[threading.Event]:
        wishes.append("held" if lock._holder == threading.get_ident() else "unheld")
        found: list[threading.Event] = vars(manager)["wishes"]
        return found

    def wished(manager: Manager, new: list[threading.Event]) -> None:
        wishes.append("held" if lock._holder == threading.get_ident() else "unheld")
        vars(manager)["wishes"] = new

    async def story(lab: Bench) -> None:
        manager: Any = lab.manager
        manager._lock = lock
        vars(manager)["wishes"] = []
        monkeypatch.setattr(Manager, "_wants_reconciled", property(wish, wished), raising=False)
        assert manager.health() == Health()  # the loop has come round, and holds the old lock no more
        wishes.clear()
        assert manager.health() == Health()
        manager._runs = lock.watched("runs", manager._runs)
        manager._counts = lock.watched("counts", manager._counts)
        experiment = manager._runs[lab.run.name]
        experiment.lanes = lock.watched("lanes", experiment.lanes)
        second = another(lab)
        row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        assert len(manager.status()["lanes"]) == 1
        lab.seam.lanes.end_call_with_observation(row, seen(0.06))
        lab.history()
        await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        clock.by_s = 70
        eventually(lambda: not manager.status()["lanes"])
        row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        (lab.run.folder / "manager.log").unlink()
        lab.seam.lanes.end_call_with_observation(row, seen(0.06))
        eventually(lambda: not manager.status()["lanes"])
        end(lab, second)
        eventually(lambda: manager.status()["runs"] == [lab.run.name])

    with_lab(tmp_path, always("latency", **SLOW), story, clock=clock)
    assert set(wishes) == {"held"}
    assert lock.unheld == []


def test_how_long_it_took_to_arm_a_fault_is_told_to_the_microsecond(tmp_path: Path) -> None:
    step_s = 0.0012345678

    class Stepping(SystemClock):
        steps = 0

        def monotonic(self) -> float:
            self.steps += 1
            return self.steps * step_s

    async def story(lab: Bench) -> None:
        await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        (armed,) = [e for _, e in History.read(lab.run.folder).find_events(events.FaultArmed)]
        assert armed.took_s in {round(steps * step_s, 6) for steps in range(1000)}

    with_lab(tmp_path, always("latency", **SLOW), story, clock=Stepping())


@on_lab(always("latency", **SLOW))
async def test_who_follows_the_manager_reads_a_line_for_each_thing_that_happens(lab: Bench) -> None:
    told: list[str] = []
    lab.manager.tell = told.append
    for number, took_s in ((1, 0.06), (2, 0.01)):
        row, _ = await lab.seam.lanes.request_lane(replace(CALL, request=number, attempt=number), deadline_s=2.0)
        lab.seam.lanes.end_call_with_observation(row, seen(took_s))
    lab.history()
    lab.toxiproxy.destroy("weather")
    eventually(lambda: lab.manager.health() == Health(epoch=1))
    second = another(lab)
    assert told[-1].endswith("is open")
    end(lab, second)
    eventually(lambda: told[-1].endswith("is over"))
    assert told[:2] == [
        "latency on weather.current_weather, p1.r1 attempt 1: took 0.060 s, at least 0.050 s were armed",
        "latency on weather.current_weather, p1.r1 attempt 2: NOT witnessed",
    ]
    assert re.fullmatch(r"weather had been taken down; all stands again after [\d.]+ m?s, 0 lanes lost", told[2])
    assert told[3:] == [f"run {second.name} is open", f"run {second.name} is over"]


def test_a_busy_loop_is_waited_for_and_not_taken_for_one_that_mends(tmp_path: Path) -> None:
    class Drowsy(SystemClock):
        def sleep(self, delay_s: float) -> None:
            super().sleep(max(delay_s, 0.06))

    async def story(lab: Bench) -> None:
        assert [await asyncio.to_thread(lab.manager.health) for _ in range(3)] == [Health()] * 3

    with_lab(tmp_path, Plan(1), story, clock=Drowsy())


def test_an_idle_loop_looks_less_often_until_there_is_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "IDLE_SHARE", 0.2)
    waits_s: list[float] = []

    class Noting(SystemClock):
        def sleep(self, delay_s: float) -> None:
            waits_s.append(delay_s)
            super().sleep(delay_s)

    async def story(lab: Bench) -> None:
        eventually(lambda: waits_s[-1:] == [0.01])
        idle = len(waits_s)
        await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        eventually(lambda: 0.001 in waits_s[idle:])

    with_lab(tmp_path, Plan(1), story, clock=Noting())


class Counted(SystemClock):
    """Time that passes in naps alone; `on_nap` is what the world does meanwhile."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.naps_s: list[float] = []
        self.on_nap: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s
        self.naps_s.append(delay_s)
        self.on_nap()


@pytest.mark.parametrize("runs", [0, 1])
def test_a_loop_looks_after_its_state_and_proxies_twice_a_second_and_naps_longer_the_longer_it_is_idle(
    runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, checked_s, looked_s = Counted(), list[float](), list[float]()
    monkeypatch.setattr(ControlDatabase, "check_file_in_place", lambda _: checked_s.append(clock.now_s))
    with a_manager(tmp_path, clock=clock) as manager:
        monkeypatch.setattr(manager._standing, "repair_missing_proxies", lambda: looked_s.append(clock.now_s))

        def lives() -> None:
            if runs and len(clock.naps_s) == 1:
                run, control = Run.create(tmp_path / "logs", now=NOW), ControlDatabase(tmp_path / "state.db")
                control.request_run_setup(run.name, plan=Plan(1).to_json(), targets={})
                control.close()
            if clock.now_s > 4.0:
                manager.stopping.set()

        clock.on_nap = lives
        manager.serve()
    idle_s = [0.0, *itertools.accumulate(clock.naps_s)]
    assert clock.naps_s[50:] == pytest.approx([min(max(each / 50, 0.001), 0.01) for each in idle_s[50:-1]], abs=1e-4)
    assert clock.naps_s[:50] == [0.001] * 50
    for moments_s in (checked_s, looked_s) if runs else (checked_s,):
        assert len(moments_s) == 7
        assert all(0.49 < later - sooner < 0.53 for sooner, later in itertools.pairwise([0.0, *moments_s]))
    assert bool(looked_s) == bool(runs)


def test_a_manager_that_stops_lets_go_of_its_logs_and_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[ControlDatabase] = []
    fresh = ControlDatabase.open_fresh

    def noted(path: Path, **named: str) -> ControlDatabase:
        held.append(fresh(path, **named))
        return held[-1]

    monkeypatch.setattr(ControlDatabase, "open_fresh", noted)
    clock = Counted()
    with a_manager(tmp_path, clock=clock) as manager:
        logs: list[Any] = []

        def lives() -> None:
            if len(clock.naps_s) == 1:
                run, control = Run.create(tmp_path / "logs", now=NOW), ControlDatabase(tmp_path / "state.db")
                control.request_run_setup(run.name, plan=Plan(1).to_json(), targets={})
                control.close()
            elif manager._runs or len(clock.naps_s) > 1000:
                logs.extend(each.log for each in manager._runs.values())
                manager.stopping.set()

        clock.on_nap = lives
        manager.serve()
    assert [log._file.closed for log in logs] == [True]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        held[0].list_ended_runs()


def test_a_manager_without_a_usable_state_says_so_and_not_that_it_has_yet_to_begin(tmp_path: Path) -> None:
    (tmp_path / "state.db").mkdir()
    with a_manager(tmp_path) as manager:
        assert manager.health().trouble == "the proxy manager has not begun yet"
        with pytest.raises(sqlite3.Error):
            manager.serve()
        assert manager.health().trouble == manager.broken
        assert str(tmp_path) in manager.broken


def test_a_loop_that_a_lost_log_ends_says_so_to_whoever_asks(tmp_path: Path) -> None:
    class Unwritten(Manager):
        def _handle_runs_and_calls(self, control: ControlDatabase) -> bool:  # noqa: ARG002
            raise LogLost("manager.log cannot be written")

    with a_manager(tmp_path, kind=Unwritten) as manager:
        with pytest.raises(LogLost):
            manager.serve()
        assert manager.health() == Health("manager.log cannot be written")


@on_lab(Plan(1))
async def test_a_run_that_cannot_be_opened_says_why(lab: Bench) -> None:
    control = ControlDatabase(lab.state)
    control.request_run_setup("nobody-made-me", plan=Plan(1).to_json(), targets={"weather": "127.0.0.1:1"})
    eventually(lambda: control.get_run_state("nobody-made-me")[0] == "failed")
    assert "no run is called 'nobody-made-me'" in control.get_run_state("nobody-made-me")[1]
    control.close()
    assert lab.manager.health().trouble == ""


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (Choice("gremlin"), "no fault is called 'gremlin': "),
        (Choice("latency", 1.0, {"delay": 1}), "unexpected keyword argument 'delay'"),
    ],
    ids=["a fault that is not installed", "a parameter that it does not have"],
)
@on_lab(Plan(1))
async def test_a_plan_that_cannot_be_carried_out_here_is_refused_before_the_first_call(
    lab: Bench, *, choice: Choice, why: str
) -> None:
    run, control = Run.create(lab.run.folder.parent, now=lab.run.now), ControlDatabase(lab.state)
    plan = Plan(1, (Injection("mine", (choice,), ("weather",)),))
    control.request_run_setup(
        run.name, plan=plan.to_json(), targets={"weather": lab.toxiproxy.fetch_proxy("weather").upstream}
    )
    eventually(lambda: control.get_run_state(run.name)[0] != "asked")
    state, said = control.get_run_state(run.name)
    assert state == "failed"
    assert why in said
    control.close()
    assert lab.manager.health() == Health()


def test_a_dead_toxiproxy_is_waited_for_and_then_said(tmp_path: Path) -> None:
    clock = Ahead()

    async def run(address: str) -> None:
        with embedded() as url:
            plan = always("latency", **SLOW)
            at_work = bench(tmp_path, url, plan, {"weather": address}, managers_clock=clock)
            lab = await at_work.__aenter__()
        try:
            assert lab.manager.health() == Health(recovering=True)
            clock.by_s = clean_proxies.RECOVER_S
            eventually(lambda: not lab.manager.health().recovering)
            assert lab.manager.health().trouble == f"Toxiproxy at {url} is gone: it did not answer for 10 s"
            with pytest.raises(LabDown, match=f"Toxiproxy at {url} is gone"):
                await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        finally:
            await at_work.__aexit__(None, None, None)

    with site(lambda _: said({})) as weather:
        asyncio.run(run(weather.address))


@contextlib.contextmanager
def held_up(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> Iterator[threading.Event]:
    """A method that does not go on until this is over; the event says that it was called."""
    called, go_on = threading.Event(), threading.Event()
    real = getattr(owner, name)

    def waits(*given: object, **named: object) -> object:
        if given[1:2] != ("GET",):
            called.set()
            assert go_on.wait(DEADLINE_S)
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, waits)
        try:
            yield called
        finally:
            go_on.set()


def test_a_toxiproxy_that_takes_long_to_delete_a_lane_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real one does while the lane dials an upstream that is no more; nothing of the lab stands still for it."""

    async def story(lab: Bench) -> None:
        row, _ = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        with held_up(monkeypatch, HTTPAdapter, "send") as called, monkeypatch.context() as patch:
            patch.setattr(manager_module, "SLOW_S", 0.02)
            patch.setattr(manager_module, "STILL_S", 0.1)
            lab.seam.lanes.end_call_with_observation(row, seen(0.06))
            assert await asyncio.to_thread(called.wait, DEADLINE_S)
            for _ in range(8):  # longer than STILL_S
                assert await asyncio.to_thread(lab.manager.health) == Health(recovering=True)
        eventually(lambda: lab.manager.health() == Health())
        assert len(list(lab.history().find_events(events.FaultHealed))) == 1
        assert not list(lab.history().find_events(events.CallDisturbed))

    with_lab(tmp_path, always("latency", **SLOW), story)


class Stepping(SystemClock):
    """Goes on by a quarter of a second with each look that the test's own thread takes."""

    steps = 0

    def monotonic(self) -> float:
        if threading.current_thread() is not threading.main_thread():
            return super().monotonic()
        self.steps += 1
        return self.steps / 4


@pytest.mark.parametrize(
    ("waiting", "steps", "health"),
    [
        (False, 21, Health("the proxy manager's loop stands still")),  # longer than five seconds
        (True, 3, Health(recovering=True)),  # longer than half a second
    ],
)
def test_a_loop_is_given_five_seconds_and_half_a_second_when_it_waits_for_toxiproxy(
    waiting: bool, steps: int, health: Health, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Stepping()

    async def story(lab: Bench) -> None:
        with held_up(monkeypatch, Manager, "_handle_runs_and_calls") as called:
            assert await asyncio.to_thread(called.wait, DEADLINE_S)
            toxiproxy: Any = lab.manager._toxiproxy
            toxiproxy.waiting = waiting
            before = clock.steps
            assert lab.manager.health() == health
            assert clock.steps - before - 1 == steps
            toxiproxy.waiting = False

    with_lab(tmp_path, Plan(1), story, clock=clock)


def test_a_loop_that_stands_still_by_itself_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "STILL_S", 0.1)

    async def story(lab: Bench) -> None:
        with held_up(monkeypatch, Manager, "_handle_runs_and_calls") as called:
            assert await asyncio.to_thread(called.wait, DEADLINE_S)
            assert lab.manager.health() == Health("the proxy manager's loop stands still")

    with_lab(tmp_path, Plan(1), story)


@pytest.mark.parametrize("ends", ["stopped", "lost"])
def test_who_asks_while_the_loop_ends_hears_why_and_not_that_it_stands_still(tmp_path: Path, ends: str) -> None:
    heard: list[Health] = []

    class Ending(Manager):
        def _handle_runs_and_calls(self, control: ControlDatabase) -> bool:  # noqa: ARG002
            asking.start()
            eventually(lambda: bool(self._wants_reconciled))
            if ends == "lost":
                raise LogLost("manager.log cannot be written")
            self.stopping.set()
            asking.join(DEADLINE_S)
            return True

    with a_manager(tmp_path, kind=Ending) as manager:
        asking = threading.Thread(target=lambda: heard.append(manager.health()))
        with contextlib.suppress(LogLost):
            manager.serve()
        asking.join(DEADLINE_S)
    said_so = {"stopped": "the proxy manager is being stopped", "lost": "manager.log cannot be written"}
    assert heard == [Health(said_so[ends])]


@on_lab(Plan(1))
async def test_another_plan_holds_from_the_first_call_that_has_its_number(lab: Bench) -> None:
    with contextlib.closing(ControlDatabase(lab.state)) as control:
        control.set_plan(lab.run.name, always("latency", **SLOW).to_json())
    for occasion, state in (({}, "clear"), ({"plan": 2}, "armed"), ({"plan": 2}, "armed")):
        row, answer = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0, occasion=occasion)
        assert answer.state == state
        lab.seam.lanes.end_call_with_observation(row, seen(0.06))


@on_lab(Plan(1))
async def test_what_is_taken_down_by_hand_is_made_anew_and_told(lab: Bench) -> None:
    lab.toxiproxy.destroy("weather")
    eventually(lambda: lab.manager.health() == Health(epoch=1))  # it may be mending already when it is asked
    assert lab.toxiproxy.fetch_proxy("weather").listen.endswith(f":{lab.manager.places.proxy_ports['weather']}")
    (told,) = [e for _, e in lab.history().find_events(events.LabDisturbed)]
    assert (told.what, told.lanes, told.epoch) == ("weather had been taken down", [], 1)


@on_lab(Plan(1))
async def test_a_clean_proxy_that_has_become_anothers_is_no_lab_of_ours(lab: Bench) -> None:
    turn_away(lab, "weather")
    assert "'weather' on the Toxiproxy" in lab.manager.health().trouble
    with pytest.raises(LabDown, match=r"is another's: it listens on .* for 127.0.0.1:9"):
        await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
    control = ControlDatabase(lab.state)
    # and who does not ask after the manager is told too
    row = control.request_call_address(lab.run.name, CALL, deadline_s=2.0)
    eventually(lambda: control.get_call_answer(row) is not None)
    answer = control.get_call_answer(row)
    assert answer is not None
    assert (answer.state, "is another's" in answer.error) == ("failed", True)
    control.end_run(lab.run.name)
    eventually(lambda: not lab.manager.status()["runs"])
    control.close()
    assert lab.manager.health().trouble == ""
    assert set(lab.toxiproxy.proxies()) == {"weather"}  # the other's is left to the other


@on_lab(Plan(1))
async def test_a_second_run_of_the_same_lab_shares_the_proxies_and_cuts_nothing(lab: Bench) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", lab.manager.places.proxy_ports["weather"])
    another(lab)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()
    await writer.wait_closed()
    third = Run.create(lab.run.folder.parent, now=lab.run.now)
    control = ControlDatabase(lab.state)
    control.request_run_setup(third.name, plan=Plan(1).to_json(), targets={"weather": "127.0.0.1:9"})
    eventually(lambda: control.get_run_state(third.name)[0] == "failed")
    assert f"for {lab.toxiproxy.fetch_proxy('weather').upstream}; end that lab" in control.get_run_state(third.name)[1]
    control.close()
    assert lab.manager.health() == Health()
