"""Outages of the lab's own services: who is told that they met one, and what is said when nobody stops anything."""

import asyncio
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaoslab.base.clock import system
from chaoslab.base.identity import Request, TrialId
from chaoslab.core import events
from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Call, Reply
from chaoslab.core.fault import Fault, Outage
from chaoslab.core.limits import Limits
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.faults.process.crash_after_effect import CrashAfterEffect
from chaoslab.faults.process.service_down import ServiceDown
from chaoslab.faults.process.service_paused import ServicePaused
from chaoslab.seams.http.process_faults import (
    BACK_S,
    STOPPED_S,
    ConfirmedOutage,
    NotStopped,
    OutageRequests,
    ProcessFaults,
)
from chaoslab.wire.control import ControlDatabase
from chaoslab.wire.lanes import LabDown
from tests.seams.lab_parts import said
from tests.seams.virtual_parts import Bench, bench, virtually
from tests.worlds.test_stopping import Clock as SetByHand
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


class Clock(SetByHand):
    """A clock that lets other tasks run while it is moved."""

    async def sleep_async(self, delay_s: float) -> None:
        await asyncio.sleep(0)
        await super().sleep_async(delay_s)


CALL = Call("weather", "current_weather", "p1.r1", 3, 2, "id3")


def stopped(fault: Fault) -> ConfirmedOutage:
    outage = fault.outage()
    assert outage is not None
    return ConfirmedOutage(1, ActiveFault("it", "a_fault", fault), outage, until_s=5.0)


@pytest.mark.parametrize("fault", [ServiceDown(), CrashAfterEffect()])
def test_a_call_meets_a_dead_process_by_its_failure_alone(fault: Fault) -> None:
    found = stopped(fault)
    for failed, word in (("closed", "reset"), ("reset", "reset"), ("refused", "refused")):
        met = found.make_fault_if_met(failed, began_s=1.0, ended_s=1.1)
        assert met is not None
        assert vars(met.fault) == {"error": word}
    for error in (None, "timed_out", "garbled"):  # it answered, or something else was the matter
        assert found.make_fault_if_met(error, began_s=1.0, ended_s=1.1) is None


def test_a_call_meets_a_paused_process_if_it_waited_to_its_end_or_gave_up() -> None:
    found = stopped(ServicePaused(4.0))
    waited = found.make_fault_if_met(None, began_s=2.0, ended_s=5.1)
    assert waited is not None
    assert vars(waited.fault) == {"paused_s": 3.0}
    assert found.make_fault_if_met("timed_out", began_s=2.0, ended_s=4.0) is not None
    # it was answered while the process stood still: by whom?
    assert found.make_fault_if_met(None, began_s=2.0, ended_s=4.0) is None
    assert found.make_fault_if_met("timed_out", began_s=5.0, ended_s=7.0) is None  # it began when the process went on


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
        asyncio.run(faults.begin_outage(ActiveFault("it", "service_down", ServiceDown()), CALL))
    assert STOPPED_S <= clock.now_s < STOPPED_S + 1
    asyncio.run(faults.end_outages())  # nothing was stopped
    assert clock.now_s < STOPPED_S + 1


def test_an_outage_ends_with_its_trial_and_one_that_does_not_ends_the_run(
    tmp_path: Path, faults: ProcessFaults, clock: Clock
) -> None:
    supervisor = ControlDatabase(tmp_path / "state.db")
    supervisor.request_run_setup("r1", plan={}, targets={})

    async def begun() -> ConfirmedOutage | None:
        tasks = [
            asyncio.create_task(faults.begin_outage(ActiveFault(name, "service_down", ServiceDown()), CALL))
            for name in "ab"
        ]
        while not supervisor.list_outages() and not all(task.done() for task in tasks):
            await asyncio.sleep(0)
        for row in supervisor.list_outages():
            supervisor.set_outage_state(row.id, "stopped")
        first, second = await asyncio.gather(*tasks)
        assert second is None  # asked at once, while the first is not down yet
        return first

    first = asyncio.run(begun())
    assert first is not None
    assert len(supervisor.list_outages()) == 1
    assert faults.find_active_outage("weather") == first
    assert faults.find_active_outage("search") is None
    assert asyncio.run(begun()) is None  # it is down already
    with pytest.raises(NotStopped, match="does not answer again"):
        asyncio.run(faults.end_outages())
    assert clock.now_s >= BACK_S
    assert [row.ended for row in supervisor.list_outages()] == [True]
    supervisor.set_outage_state(first.row, "over")
    assert faults.find_active_outage("weather") is None
    supervisor.close()


class Supervisor(OutageRequests):
    """Stops a process in 0.7 s, and has it back after `for_s`. `lost`: what it cannot do."""

    def __init__(self, lost: str = "") -> None:
        self.lost = lost
        self.stopped: list[tuple[str, str, float, Mapping[str, Any]]] = []
        self.back_s: list[float] = []

    async def stop_process(self, service: str, how: str, *, for_s: float, fault: Mapping[str, Any]) -> int:
        await system.sleep_async(0.7)
        if self.lost == "stop":
            raise NotStopped("nobody stops it")
        self.stopped.append((service, how, for_s, fault))
        self.back_s.append(system.monotonic() + for_s)
        return len(self.stopped) - 1

    def is_outage_over(self, row: int) -> bool:
        return system.monotonic() >= self.back_s[row]

    async def end_outages(self, rows: list[int]) -> None:
        if self.lost == "end":
            raise NotStopped("it does not come back")
        for row in rows:
            self.back_s[row] = 0.0


class NoName(httpx.ConnectError):
    """The client's error where a container's name is gone with it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.__cause__ = socket.gaierror(socket.EAI_NONAME, "Name or service not known")


class Wire:
    """The way to a service that answers, or fails, like this: (seconds, the failure or None) for each request."""

    def __init__(self, *ends: tuple[float, type[httpx.TransportError] | None]) -> None:
        self.ends = list(ends)

    async def send_request(self, *_: Any) -> Reply:
        took_s, failed = self.ends.pop(0)
        await system.sleep_async(took_s)
        if failed:
            raise failed("")
        return said({"temp": 20})

    async def aclose(self) -> None: ...


def wanted(number: int, target: str = "weather") -> Request:
    return Request(TrialId("run", 1), target, "ask", number, ("ask", f"wish {number}"))


def lasting(name: str, *calls: int, target: str = "weather", **params: Any) -> Injection:
    return Injection(f"{name}{calls}", (Choice(name, 1.0, params),), (target,), calls=calls)


CLOSED, RESET, REFUSED, LATE = httpx.RemoteProtocolError, httpx.ReadError, httpx.ConnectError, httpx.ReadTimeout
DEAD, DONE = "connection reset, nothing was done", "connection reset, the work was done"


@pytest.mark.parametrize(
    ("faults", "calls", "stopped", "met"),
    [
        # (the pause before a call, its seconds on the wire, its failure) → (the call that met it, the fault, evidence)
        ([lasting("service_down", 1)], [(0, 0.1, RESET)], ["killed"], [(1, "service_down", DEAD)]),
        ([lasting("service_down", 1)], [(0, 0.1, REFUSED)], ["killed"], []),
        ([lasting("service_down", 1)], [(0, 0.1, RESET), (0, 0.1, REFUSED), (9, 0.1, RESET)], ["killed"],
         [(1, "service_down", DEAD), (2, "service_down", "connection refused")]),
        ([lasting("service_down", 1)], [(0, 0.1, RESET), (0, 0.1, NoName)], ["killed"],
         [(1, "service_down", DEAD), (2, "service_down", "the name was not found")]),
        ([lasting("service_down", 1)], [(0, 0.1, RESET), (0, 0.1, None)], ["killed"],
         [(1, "service_down", DEAD)]),
        ([lasting("service_down", 1), lasting("service_down", 2)], [(0, 0.1, RESET), (0, 0.1, REFUSED)], ["killed"],
         [(1, "service_down", DEAD), (2, "service_down", "connection refused")]),
        ([lasting("service_down", 1), lasting("service_down", 3)], [(0, 0.1, RESET), (9, 0.1, None), (0, 0.1, RESET)],
         ["killed", "killed"], [(1, "service_down", DEAD), (3, "service_down", DEAD)]),
        ([lasting("service_paused", 1, paused_s=1.5)], [(0, 1.6, None)], ["paused"],
         [(1, "service_paused", "took 2.300 s, of which the service was paused for 1.500 s")]),
        ([lasting("service_paused", 1, paused_s=9.0)], [(0, 5.0, LATE)], ["paused"],
         [(1, "service_paused", "no answer within 2.700 s")]),
        ([lasting("service_paused", 1, paused_s=3.0)], [(0, 5.0, LATE), (0, 1.2, None)], ["paused"],
         [(1, "service_paused", "no answer within 2.700 s"),
          (2, "service_paused", "took 1.200 s, of which the service was paused for 0.300 s")]),
        ([lasting("crash_after_effect", 1)], [(0, 0.1, None), (0, 0.1, REFUSED)], ["killed"],
         [(1, "crash_after_effect", DONE), (2, "crash_after_effect", "connection refused")]),
        ([lasting("crash_after_effect", 1)], [(0, 0.1, RESET)], [], []),
        ([lasting("crash_after_effect", 1), lasting("service_down", 1)], [(0, 0.1, None)], ["killed"],
         [(1, "crash_after_effect", DONE)]),
        ([lasting("crash_after_effect", 1), lasting("crash_after_effect", 2)], [(0, 0.1, None), (0, 0.1, None)],
         ["killed"], [(1, "crash_after_effect", DONE)]),
    ],
)  # fmt: skip
def test_a_call_is_told_of_the_outage_that_it_met(
    tmp_path: Path, faults: list[Injection], calls: list[tuple[float, float, type[httpx.TransportError] | None]],
    stopped: list[str], met: list[tuple[int, str, str]],
) -> None:  # fmt: skip
    supervisor = Supervisor()

    async def story() -> list[tuple[int, str, str]]:
        async with bench(tmp_path, Plan(1, tuple(faults)), ["weather"]) as lab:
            through(lab, supervisor, Wire(*[call[1:] for call in calls]))
            with lab.seam.open_trial(TrialId(lab.run.name, 1)) as trial:
                for number, (pause_s, _, _) in enumerate(calls, 1):
                    await system.sleep_async(pause_s)
                    with suppress(httpx.TransportError):
                        await lab.get(wanted(number))
                await lab.seam.end_outages()
                assert trial.memory.guard.others() == 0
            return [(e.request, e.fault, e.evidence) for _, e in lab.history().find_events(events.FaultWitnessed)]

    assert virtually(story) == met
    assert [how for _, how, _, _ in supervisor.stopped] == stopped
    for service, _, _, fault in supervisor.stopped:
        assert (service, fault["trial"], fault["attempt"], fault["share"]) == ("weather", "p1.r1", 1, 1.0)
        assert fault["request"] in faults[0].calls + faults[-1].calls
        assert fault["fault"] in fault["injection"]


def through(lab: Bench, supervisor: Supervisor, wire: Wire) -> None:
    lab.seam.clean = wire
    lab.seam.processes = ProcessFaults(supervisor, system)


def test_a_call_has_its_whole_deadline_after_its_service_was_stopped_and_a_models_process_is_none(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        paused = [lasting("service_paused", 1, paused_s=1.9), lasting("service_down", target="model")]
        async with bench(tmp_path, Plan(1, tuple(paused)), ["weather", "model"]) as lab:
            through(lab, Supervisor(), Wire((1.9, None), (0.1, None)))
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                assert (await lab.get(wanted(1))).status_code == 200
                assert (await lab.client.post("http://model/chat", json={"messages": []})).status_code == 200

    virtually(story)


@pytest.mark.parametrize(("lost", "said"), [("stop", "nobody stops it"), ("end", "it does not come back")])
@pytest.mark.parametrize("fault", ["service_down", "crash_after_effect"])
def test_a_service_that_nobody_stops_or_brings_back_ends_the_run(
    tmp_path: Path, lost: str, said: str, fault: str
) -> None:
    async def story() -> None:
        async with bench(tmp_path, Plan(1, (lasting(fault, 1),)), ["weather"]) as lab:
            through(lab, Supervisor(lost), Wire((0.1, None)))
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                with suppress(httpx.TransportError):
                    await lab.get(wanted(1))
                await lab.seam.end_outages()

    with pytest.raises(LabDown, match=said):
        virtually(story)


def test_an_outage_counts_among_the_faults_at_once_and_a_limit_reads_the_requests_headers(tmp_path: Path) -> None:
    limits = (Limits(at_once=1, tenants={"x-tenant": ("test-*",)}),)
    failing = Injection("errors", (Choice("tool_error", 1.0, {"status": 503}),), ("weather",))
    plan = Plan(1, (lasting("service_down", 2), failing), limits=limits)

    async def story() -> list[int]:
        async with bench(tmp_path, plan, ["weather"]) as lab:
            through(lab, Supervisor(), Wire(*[(0.1, None)] * 9))
            found = []
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                for number, tenant in ((1, "test-a"), (2, "test-a"), (3, "test-a"), (4, "real")):
                    lab.client.headers["x-tenant"] = tenant
                    found.append((await lab.get(wanted(number))).status_code)
                await system.sleep_async(5.0)
                for number, tenant in ((5, "real"), (6, "test-b")):
                    lab.client.headers["x-tenant"] = tenant
                    found.append((await lab.get(wanted(number))).status_code)
            return found

    assert virtually(story) == [503, 200, 200, 200, 200, 503]
