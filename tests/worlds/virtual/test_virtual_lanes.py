"""In a virtual world the wire's faults come over lanes of its own, and are met when arithmetic says."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaoslab.base.clock import system
from chaoslab.base.identity import TrialId
from chaoslab.core import events
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Observation, Reply
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.seams.http.tags import TrialState
from chaoslab.wire.control import ManagerAnswer
from chaoslab.wire.lanes import Health, LabDown
from chaoslab.worlds.virtual.network._context import world
from chaoslab.worlds.virtual.network.lanes import VirtualLanes
from chaoslab.worlds.virtual.network.network import TRIP_S
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World
from tests.seams.lab_parts import Heard, said
from tests.seams.virtual_parts import Bench, bench, site, virtually
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

DEADLINE_S = 2.0
CLEAN_S = 4 * TRIP_S
"""Knock, answer, request, reply."""
LANE_S = 6 * TRIP_S
"""The same with a lane on the way: it dials on while the caller still hears that it is connected."""


@dataclass
class Asking:
    """A seam in a virtual world, and the paths of the requests that reached its services."""

    lab: Bench
    trial: TrialState
    served: list[str]
    asked: int = 0

    async def get(self, target: str) -> str:
        """The outcome of the one attempt of a new request: the body, or the name of the error."""
        self.asked += 1
        try:
            return (await self.lab.get(self.trial.requests.find_or_create(target, "look", {"n": self.asked}))).text
        except httpx.TransportError as error:
            return type(error).__name__


Story = Callable[[Asking], Awaitable[None]]


def played(folder: Path, plan: Plan, story: Story, targets: tuple[str, ...] = ("search",)) -> History:
    """The log of a story in a world with these services."""

    async def main() -> History:
        served: list[str] = []

        def answer(name: str, asked: Heard) -> Reply:
            served.append(asked.path)
            return said({"from": name})

        for name in targets:
            site(name, partial(answer, name))
        async with bench(folder, plan, targets, deadline_s=DEADLINE_S) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1, 1)) as began:
                await story(Asking(lab, began, served))
        return lab.history()

    return virtually(main)


def always(fault: str, *targets: str, chance: float = 1.0, **params: Any) -> Injection:
    return Injection(fault, (Choice(fault, params=params),), targets or ("search",), chance=chance)


def stages(history: History) -> list[str]:
    """The life of the faults in the order of the manager's log."""
    mine = sorted((r for r in history.records if r.writer == "manager"), key=lambda r: r.seq)
    return [r.event.kind.removeprefix("fault_") for r in mine]


def the(kind: type[Event], history: History) -> Any:
    (event,) = (r.event for r in history.records if isinstance(r.event, kind))
    return event


T = TRIP_S
FAULTS: list[tuple[str, dict[str, Any], str, float, bool]] = [
    # the fault, what the caller got, when, and whether the service was asked
    ("latency", {"delay_s": 0.5, "stream": "upstream"}, '{"from": "search"}', LANE_S + 0.5, True),
    ("latency", {"delay_s": 0.5, "stream": "downstream"}, '{"from": "search"}', LANE_S + 0.5, True),
    ("timeout", {"after_s": 0.0, "stream": "upstream"}, "ReadTimeout", DEADLINE_S, False),
    ("timeout", {"after_s": 0.0, "stream": "downstream"}, "ReadTimeout", DEADLINE_S, True),
    ("timeout", {"after_s": 0.6, "stream": "upstream"}, "RemoteProtocolError", 4 * T + 0.6, False),
    ("timeout", {"after_s": 0.6, "stream": "downstream"}, "RemoteProtocolError", 6 * T + 0.6, True),
    ("reset_peer", {"after_s": 0.3, "stream": "upstream"}, "ReadError", 4 * T + 0.3, False),
    ("reset_peer", {"after_s": 0.3, "stream": "downstream"}, "ReadError", 6 * T + 0.3, True),
    ("reset_peer", {"after_s": 0.0, "stream": "upstream"}, "ReadError", 4 * T, False),
    ("refused", {}, "ConnectError", 2 * T, False),
]


@pytest.mark.parametrize(
    ("fault", "params", "outcome", "after_s", "reached"),
    FAULTS,
    ids=[f"{f[0]}-{'-'.join(map(str, f[1].values()))}" for f in FAULTS],
)
def test_each_fault_of_the_wire_is_met_at_its_very_moment(
    tmp_path: Path, fault: str, params: dict[str, Any], outcome: str, after_s: float, reached: bool
) -> None:
    async def story(asking: Asking) -> None:
        assert await asking.get("search") == outcome
        assert asking.served == (["/1"] if reached else [])

    history = played(tmp_path, Plan(1, (always(fault, **params),)), story)
    assert stages(history) == ["scheduled", "armed", "injected", "witnessed", "healed"]
    finished = the(events.CallFinished, history)
    assert (finished.duration_s, finished.via, finished.rolled) == (round(after_s, 6), "lane", [fault])
    armed = the(events.FaultArmed, history)
    assert (armed.lane, armed.took_s) == ("refused" if fault == "refused" else "lane.search.1", 0.0)


def test_two_faults_of_the_wire_share_the_calls_lane(tmp_path: Path) -> None:
    there = Injection("there", (Choice("latency", params={"delay_s": 0.2, "stream": "upstream"}),), ("search",))
    back = Injection("back", (Choice("latency", params={"delay_s": 0.3, "stream": "downstream"}),), ("search",))

    async def story(asking: Asking) -> None:
        assert await asking.get("search") == '{"from": "search"}'

    history = played(tmp_path, Plan(1, (there, back)), story)
    assert stages(history) == ["scheduled"] * 2 + ["armed"] * 2 + ["injected", "witnessed", "healed"] * 2
    assert {r.event.lane for r in history.records if isinstance(r.event, events.FaultArmed)} == {"lane.search.1"}
    finished = the(events.CallFinished, history)
    assert (finished.duration_s, finished.rolled) == (round(LANE_S + 0.5, 6), ["there", "back"])


def test_a_fault_that_another_one_cut_off_is_masked(tmp_path: Path) -> None:
    async def story(asking: Asking) -> None:
        assert await asking.get("search") == "ReadError"

    plan = Plan(1, (always("latency", delay_s=1.0, stream="downstream"), always("reset_peer", stream="upstream")))
    history = played(tmp_path, plan, story)
    healed = {r.event.fault: r.event for r in history.records if isinstance(r.event, events.FaultHealed)}
    assert {fault: (e.witnessed, e.masked_by) for fault, e in healed.items()} == {
        "latency": (False, "reset_peer"), "reset_peer": (True, "")
    }  # fmt: skip


def test_a_fault_that_goes_on_stands_on_one_lane_and_keeps_connections(tmp_path: Path) -> None:
    """The second call has its connection already: it takes two trips less than the first."""

    async def story(asking: Asking) -> None:
        for _ in range(3):
            assert await asking.get("search") == '{"from": "search"}'

    slow = Choice("latency", params={"delay_s": 0.5, "stream": "upstream"})
    plan = Plan(1, (Injection("down", (slow,), ("search",), triggers={"persistence": "for_good"}),))
    history = played(tmp_path, plan, story)
    lanes = [r.event.lane for r in history.records if isinstance(r.event, events.FaultArmed)]
    assert lanes == ["lane.search.1"] * 3
    assert stages(history).count("witnessed") == 3
    took = [r.event.duration_s for r in history.records if isinstance(r.event, events.CallFinished)]
    assert took[0] == round(LANE_S + 0.5, 6)
    assert took[1] == took[2] < took[0]


def test_a_call_that_is_spared_goes_straight_there(tmp_path: Path) -> None:
    async def story(asking: Asking) -> None:
        before = len(world().machine.describe_waits())
        assert await asking.get("search") == '{"from": "search"}'
        assert len(world().machine.describe_waits()) == before, "nobody was hired for it"

    history = played(tmp_path, Plan(1, (always("refused", chance=1e-12),)), story)
    assert stages(history) == []
    finished = the(events.CallFinished, history)
    assert (finished.duration_s, finished.via, finished.rolled) == (round(CLEAN_S, 6), "proxy", ["refused"])


def test_calls_side_by_side_do_not_meet_each_others_faults(tmp_path: Path) -> None:
    delays = {f"t{n}": n / 10 for n in range(1, 13)}
    plan = Plan(1, tuple(
        Injection(f"late {name}", (Choice("latency", params={"delay_s": s, "stream": "downstream"}),), (name,))
        for name, s in delays.items()
    ))  # fmt: skip

    async def story(asking: Asking) -> None:
        await asyncio.gather(*(asking.get(name) for name in ("clean", *delays, "clean")))

    history = played(tmp_path, plan, story, targets=("clean", *delays))
    took = {(r.event.target, r.event.request): r.event.duration_s for r in history.records
            if isinstance(r.event, events.CallFinished)}  # fmt: skip
    wanted = {(name, 1): round(LANE_S + s, 6) for name, s in delays.items()}
    assert took == wanted | {("clean", 1): round(CLEAN_S, 6), ("clean", 2): round(CLEAN_S, 6)}
    lanes = [r.event.lane for r in history.records if isinstance(r.event, events.FaultArmed)]
    assert lanes == [f"lane.t{n}.{n}" for n in range(1, 13)]


def test_a_lane_leaves_nothing_behind(tmp_path: Path) -> None:
    async def story(asking: Asking) -> None:
        for _ in range(3):
            await asking.get("search")
        await asyncio.sleep(1)  # in no time: what was closed is gone by then
        network, sockets = world().network, world().sockets
        assert list(network._listeners) == [(network.find_address("search"), 80)]
        assert sockets._open == {}

    history = played(tmp_path, Plan(1, (always("latency", delay_s=3.0, stream="downstream"),)), story)
    assert stages(history).count("healed") == 3


def test_a_fault_that_nobody_met_is_healed_unwitnessed(tmp_path: Path) -> None:
    async def story(asking: Asking) -> None:
        row, answer = await asking.lab.seam.lanes.request_lane(
            Call("search", "look", "p1.r1", 1, 1), deadline_s=DEADLINE_S
        )
        assert (row, answer.state) == (1, "armed")
        asking.lab.seam.lanes.end_call_with_observation(row, Observation(0.001, DEADLINE_S, None, 200, 10))

    history = played(tmp_path, Plan(1, (always("latency", delay_s=0.5),)), story)
    assert stages(history) == ["scheduled", "armed", "healed"]
    assert the(events.FaultHealed, history).witnessed is False


def test_equal_seeds_give_equal_lanes(tmp_path: Path) -> None:
    kinds = (Choice("latency", params={"jitter_s": 0.2}), Choice("timeout"), Choice("reset_peer"), Choice("refused"))
    plan = Plan(7, (Injection("some", kinds, ("search",), chance=0.5),))

    async def story(asking: Asking) -> None:
        for _ in range(20):
            await asking.get("search")

    def told(folder: Path) -> list[tuple[float, str, Event]]:
        return [(r.t, r.writer, r.event) for r in played(folder, plan, story).records]

    once = told(tmp_path / "a")
    assert once == told(tmp_path / "b")
    assert len({event.fault for _, _, event in once if isinstance(event, events.FaultArmed)}) == 4


def test_a_herd_of_calls_takes_as_long_as_reckoned_each_and_twice_the_same(tmp_path: Path) -> None:
    """200 at once on one service; fewer than 100 of them share the clean transport, whose pool is as large."""
    kinds = (
        Choice("latency", 2.0, {"delay_s": 0.5, "jitter_s": 0.4}),
        Choice("reset_peer", params={"after_s": 0.25, "stream": "upstream"}),
        Choice("refused"),
    )
    plan = Plan(3, (Injection("many", kinds, ("search",), chance=0.6),))

    async def story(asking: Asking) -> None:
        await asyncio.gather(*(asking.get("search") for _ in range(200)))

    history, again = (played(tmp_path / name, plan, story) for name in ("a", "b"))
    assert [(r.t, r.event) for r in history.records] == [(r.t, r.event) for r in again.records]
    scheduled = {r.event.request: r.event for r in history.records if isinstance(r.event, events.FaultScheduled)}
    finished = {r.event.request: r.event for r in history.records if isinstance(r.event, events.CallFinished)}
    assert (len(finished), 100 < len(scheduled) < 140) == (200, True)
    for request, call in finished.items():
        assert call.duration_s == pytest.approx(reckoned_s(scheduled.get(request)), abs=1e-6)
    assert stages(history).count("witnessed") == len(scheduled)


def reckoned_s(fault: events.FaultScheduled | None) -> float:
    if fault is None:
        return CLEAN_S
    after_s: dict[str, float] = {"refused": 2 * T, "reset_peer": 4 * T + 0.25}
    return after_s[fault.fault] if fault.fault in after_s else LANE_S + float(fault.params["delay_s"])


def test_lanes_are_well_until_somebody_gives_them_up(tmp_path: Path) -> None:
    async def story(lanes: VirtualLanes) -> None:
        answer = ManagerAnswer("clear")
        assert await lanes.fetch_health() == Health()
        assert not await lanes.has_lost_proxies(answer)
        with pytest.raises(LabDown, match="its disk is full"):
            lanes.raise_lab_down("its disk is full")
        with pytest.raises(LabDown, match="its disk is full"):
            await lanes.fetch_health()

    async def main() -> None:
        with Run.create(tmp_path, now="2026-06-01T00:00:00Z").open_log("info") as log:
            await story(VirtualLanes(log=log, plan=Plan(1), network=world().network, clock=system, targets={}))

    with Patches():
        World(1, now=datetime(2026, 6, 1, tzinfo=UTC)).run_program_async(main)
