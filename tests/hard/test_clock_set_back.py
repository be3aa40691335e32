"""The wall clock is set back by an hour, or ahead by a day, in mid-run.

Names stay apart, order stays, and no lane goes early or stays.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from chaoslab.base.clock import SystemClock
from chaoslab.base.identity import TrialId
from chaoslab.core.events import CallFinished, FaultHealed, FaultWitnessed, LabWarning
from chaoslab.core.exchange import Call, Observation
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.wire.control import ControlDatabase
from tests.seams.lab_parts import NOW, Bench, bench, embedded, eventually, open_run, said, site
from tests.waiting import HUNG_S

SLOW = Plan(1, (Injection("wire", (Choice("latency", 1.0, {"delay_s": 0.05, "stream": "downstream"}),), ("weather",)),))
CALL = Call("weather", "current_weather", "p1.r1", 1, 1, "id1")
JUMPS = [timedelta(hours=-1), timedelta(days=1)]


class Set(SystemClock):
    """A wall clock that somebody sets; `later_s`: how much more time has really passed."""

    ahead = timedelta()
    later_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.later_s

    def utc(self) -> datetime:
        return super().utc() + timedelta(seconds=self.later_s) + self.ahead


@pytest.fixture(params=JUMPS, ids=str)
def jump(request: pytest.FixtureRequest) -> timedelta:
    found: timedelta = request.param
    return found


def with_lab(folder: Path, clock: Set, story: Callable[[Bench], Awaitable[None]]) -> None:
    async def run(url: str, address: str) -> None:
        async with bench(folder, url, SLOW, {"weather": address}, managers_clock=clock) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                await story(lab)

    with embedded() as url, site(lambda _: said({"temp": 21})) as weather:
        asyncio.run(run(url, weather.address))


def looked_after(lab: Bench) -> None:
    """Waits until the manager has opened another run, for which it reaps, and has looked at its lanes' leases."""
    other = Run.create(lab.run.folder.parent, now=NOW)
    weather = lab.toxiproxy.fetch_proxy("weather")
    open_run(lab.state, other.name, SLOW, {"weather": weather.upstream})
    with contextlib.closing(ControlDatabase(lab.state)) as control:
        control.end_run(other.name)
    eventually(
        lambda: lab.manager.status()["runs"] == [lab.run.name]
    )  # ended runs are closed when leases are looked at


def test_order_and_durations_are_the_monotonic_clocks(tmp_path: Path, jump: timedelta) -> None:
    clock = Set()
    run = Run.create(tmp_path, now=NOW, clock=clock)
    with run.open_log("info", clock=clock) as one, run.open_log("manager", clock=clock) as two:
        one.write(LabWarning(message="first"))
        clock.ahead = jump
        two.write(LabWarning(message="second"))
        clock.ahead = timedelta()
        one.write(LabWarning(message="third"))
    history = History.read(run.folder)
    stamps = [record.ts for record in history.records]
    assert stamps != sorted(stamps)
    assert [event.message for _, event in history.find_events(LabWarning)] == ["first", "second", "third"]
    assert all(0 <= record.t < HUNG_S for record in history.records)


def test_two_runs_never_share_a_name(tmp_path: Path, jump: timedelta) -> None:
    clock, names = Set(), []
    for ahead in (timedelta(), jump, timedelta(), jump):
        clock.ahead = ahead
        run = Run.create(tmp_path, now=NOW, clock=clock)
        run.link_as_latest()
        names.append(run.name)
        assert (tmp_path / "latest").readlink() == Path(run.name)
    assert len(set(names)) == 4


def test_a_lane_in_use_is_not_taken_down_early(tmp_path: Path, jump: timedelta) -> None:
    clock = Set()

    async def story(lab: Bench) -> None:
        row, answer = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        assert answer.state == "armed"
        (lane,) = lab.lanes_left()
        clock.ahead = jump
        looked_after(lab)
        assert lab.lanes_left() == [lane]
        lab.seam.lanes.end_call_with_observation(row, Observation(0.06, 2.0, None, 200))
        history = lab.history()
        assert [e.witnessed for _, e in history.find_events(FaultHealed)] == [True]
        assert lab.lanes_left() == []

    with_lab(tmp_path, clock, story)


def test_a_lane_that_lost_its_agent_goes_when_its_lease_is_over(tmp_path: Path, jump: timedelta) -> None:
    clock = Set()

    async def story(lab: Bench) -> None:
        await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        clock.ahead = jump
        looked_after(lab)
        assert len(lab.lanes_left()) == 1
        clock.later_s = 70
        eventually(lambda: not lab.lanes_left())
        eventually(lambda: not lab.manager.status()["lanes"])
        eventually(lambda: [e.witnessed for _, e in lab.history().find_events(FaultHealed)] == [False])

    with_lab(tmp_path, clock, story)


def test_a_call_that_meets_its_fault_while_the_clock_is_set_is_measured_all_the_same(
    tmp_path: Path, jump: timedelta
) -> None:
    clock = Set()

    async def story(lab: Bench) -> None:
        lab.seam.on_call = lambda _: setattr(clock, "ahead", jump)
        with lab.seam.open_trial(TrialId(lab.run.name, 2)) as episode:
            for n in range(2):
                assert (await lab.get(episode.requests.find_or_create("weather", "t", {"n": n}))).status_code == 200
        history = lab.history()
        assert len(list(history.find_events(FaultWitnessed))) == 2
        assert all(0.05 <= e.duration_s < HUNG_S for _, e in history.find_events(CallFinished))
        assert all(0 <= record.t < HUNG_S for record in history.records)

    with_lab(tmp_path, clock, story)
