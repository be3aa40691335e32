"""Outages of the lab's own services: who is told that they met one, and what is said when nobody stops anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Call
from chaoslab.core.fault import Fault, Outage
from chaoslab.faults.process.crash_after_effect import CrashAfterEffect
from chaoslab.faults.process.service_down import ServiceDown
from chaoslab.faults.process.service_paused import ServicePaused
from chaoslab.seams.http.process_faults import ProcessFaults, Stopped
from chaoslab.wire.control import Control
from chaoslab.wire.outages import BACK_S, STOPPED_S, NotStopped, OutageRequests
from tests.worlds.test_stopping import Clock as SetByHand


class Clock(SetByHand):
    """A clock that lets other tasks run while it is moved."""

    async def asleep(self, delay_s: float) -> None:
        await asyncio.sleep(0)
        await super().asleep(delay_s)


CALL = Call("weather", "current_weather", "p1.r1", 3, 2, "id3")


def stopped(fault: Fault) -> Stopped:
    outage = fault.outage()
    assert outage is not None
    return Stopped(1, ActiveFault("it", "a_fault", fault), outage, until_s=5.0)


@pytest.mark.parametrize("fault", [ServiceDown(), CrashAfterEffect()])
def test_a_call_meets_a_dead_process_by_its_failure_alone(fault: Fault) -> None:
    found = stopped(fault)
    for failed, word in (("closed", "reset"), ("reset", "reset"), ("refused", "refused")):
        met = found.met(failed, began_s=1.0, ended_s=1.1)
        assert met is not None
        assert vars(met.fault) == {"error": word}
    for error in (None, "timed_out", "garbled"):  # it answered, or something else was the matter
        assert found.met(error, began_s=1.0, ended_s=1.1) is None


def test_a_call_meets_a_paused_process_if_it_waited_to_its_end_or_gave_up() -> None:
    found = stopped(ServicePaused(4.0))
    waited = found.met(None, began_s=2.0, ended_s=5.1)
    assert waited is not None
    assert vars(waited.fault) == {"paused_s": 3.0}
    assert found.met("timed_out", began_s=2.0, ended_s=4.0) is not None
    assert found.met(None, began_s=2.0, ended_s=4.0) is None  # it was answered while the process stood still: by whom?
    assert found.met("timed_out", began_s=5.0, ended_s=7.0) is None  # it began when the process went on


def test_a_crash_begins_when_the_work_is_done_and_the_others_before() -> None:
    assert CrashAfterEffect(1.0).outage() == Outage(1.0, after_effect=True)
    assert not ServiceDown().outage().after_effect


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def faults(tmp_path: Path, clock: Clock) -> Iterator[ProcessFaults]:
    with closing(OutageRequests(tmp_path / "state.db", "r1", clock=clock)) as requests:
        yield ProcessFaults(requests, clock)


def test_where_nobody_stops_processes_the_run_is_told_in_a_line(faults: ProcessFaults, clock: Clock) -> None:
    with pytest.raises(NotStopped, match="nobody stops the process of weather here: start the lab with `chaoslab lab`"):
        asyncio.run(faults.begin(ActiveFault("it", "service_down", ServiceDown()), CALL))
    assert STOPPED_S <= clock.now_s < STOPPED_S + 1
    asyncio.run(faults.end())  # nothing was stopped
    assert clock.now_s < STOPPED_S + 1


def test_an_outage_ends_with_its_trial_and_one_that_does_not_ends_the_run(
    tmp_path: Path, faults: ProcessFaults, clock: Clock
) -> None:
    supervisor = Control(tmp_path / "state.db")
    supervisor.open_run("r1", plan={}, targets={})

    async def begun() -> Stopped | None:
        tasks = [
            asyncio.create_task(faults.begin(ActiveFault(name, "service_down", ServiceDown()), CALL)) for name in "ab"
        ]
        while not supervisor.outages() and not all(task.done() for task in tasks):
            await asyncio.sleep(0)
        for row in supervisor.outages():
            supervisor.set_outage(row.id, "stopped")
        first, second = await asyncio.gather(*tasks)
        assert second is None  # asked at once, while the first is not down yet
        return first

    first = asyncio.run(begun())
    assert first is not None
    assert len(supervisor.outages()) == 1
    assert faults.going_on("weather") == first
    assert faults.going_on("search") is None
    assert asyncio.run(begun()) is None  # it is down already
    with pytest.raises(NotStopped, match="does not answer again"):
        asyncio.run(faults.end())
    assert clock.now_s >= BACK_S
    assert [row.ended for row in supervisor.outages()] == [True]
    supervisor.set_outage(first.row, "over")
    assert faults.going_on("weather") is None
    supervisor.close()
