"""Every fault of the plan is delivered, no other is, and nothing is left on the server."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaoslab.analysis.measures.intervals import clopper_pearson_interval
from chaoslab.base.identity import Request, Requests, TrialId
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import Settings
from chaoslab.core import events
from chaoslab.core.chain import ActiveFault, nest_flows, run_flow
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Failure, Observation, Reply, UserActs
from chaoslab.core.plan import Plan
from chaoslab.record.history import History
from tests.plan_parts import roll
from tests.seams import virtual_parts
from tests.seams.lab_parts import SERVERS, Bench, Heard, bench, said, site

Met = tuple[str, str, int, int, str]
"""(trial, target, request, attempt, fault)"""

ALL = (("latency", 1.0), ("timeout", 1.0), ("reset_peer", 1.0), ("refused", 1.0))
HARSH = Settings(
    seed=7,
    toxic_prob=0.3,
    toxics=ALL,
    latency_ms=10,
    jitter_ms=4,
    timeout_ms=20,
    error_prob=0.2,
    errors=(("tool_error", 9.0), ("lost_reply", 1.0)),  # each lost reply lasts for the whole deadline
)
DEADLINE_S = 3.0
"""So long that a busy machine is not taken for a fault."""


@dataclass
class Ideal:
    """A world in which nothing happens that was not planned, in a time of its own."""

    deadline_s: float
    now_s: float = 0.0
    sent: Call | None = None
    active: list[ActiveFault] = field(default_factory=list)

    async def send(self, call: Call) -> Reply:
        self.sent = call
        return Reply(200, {}, b'{"ok": true}')

    async def wait(self, delay_s: float) -> None:
        self.now_s = min(self.now_s + delay_s, self.deadline_s)
        if self.now_s == self.deadline_s:
            raise Failure("timed_out")

    def advance_clock(self, by_s: float) -> str:  # noqa: ARG002
        return ""

    def perform_user_act(self, step: UserActs) -> bool:  # noqa: ARG002
        return False

    def log_flow_event(self, event: Event) -> None:
        """Nobody reads it here."""

    async def meet(self, plan: Plan, call: Call) -> tuple[bool, set[str]]:
        """True if this call is answered well, and the faults that its caller witnesses."""
        error, reply = None, None
        reach = [lambda c, i=i: roll(plan, i, c) for i in plan.find_candidates(call.target)]
        try:
            reply = await run_flow(nest_flows(reach, call, self.active.append), self)
        except Failure as failure:
            error = failure.kind
        met = set()
        for active in self.active:
            status = reply.status if reply else None
            seen = Observation(
                self.now_s, self.deadline_s, error, status, sent=self.sent, reply=reply, changed_call=active.call,
                changed_reply=active.reply,
            )  # fmt: skip
            if active.fault.witnessed(seen):
                met.add(active.fault_name)
        return reply is not None and reply.status < 400, met


async def ideally(plan: Plan, *, trials: int, requests: int, targets: list[str]) -> tuple[set[Met], int]:
    """The faults that must be witnessed, and the number of calls."""
    met: set[Met] = set()
    calls = 0
    for trial in (TrialId("any", n).key for n in range(1, trials + 1)):
        for target in targets:
            for request in range(1, requests + 1):
                for attempt in (1, 2):
                    calls += 1
                    ok, faults = await Ideal(DEADLINE_S).meet(plan, Call(target, "look", trial, request, attempt))
                    met |= {(trial, target, request, attempt, fault) for fault in faults}
                    if ok:
                        break
    return met, calls


async def really(lab: Bench | virtual_parts.Bench, *, trials: int, requests: int, at_once: int) -> None:
    """The same calls, each tried again once when it failed."""
    gate = asyncio.Semaphore(at_once)

    async def one(trial: TrialId, request: Request) -> None:
        async with gate:
            with lab.seam.open_trial(trial):
                for attempt in (1, 2):
                    try:
                        response = await lab.get(request, attempt=attempt)
                    except httpx.HTTPError:
                        continue
                    if response.status_code < 400:
                        return

    work = []
    for n in range(1, trials + 1):
        trial = TrialId(lab.run.name, n)
        book = Requests(trial)
        wanted = [
            book.find_or_create(target, f"look_at_{target}", n) for target in lab.seam.targets for n in range(requests)
        ]
        work += [one(trial, request) for request in wanted]
    await asyncio.gather(*work)


def met(history: History, kind: Any) -> set[Met]:
    return {(str(record.trial), e.target, e.request, e.attempt, e.fault) for record, e in history.find_events(kind)}


def ok(_: Heard) -> Reply:
    return said({"ok": True})


def check(history: History, planned: set[Met], calls: int) -> None:
    """The log holds what was planned, each stage of it, and nothing else."""
    witnessed, armed, injected = (
        met(history, kind) for kind in (events.FaultWitnessed, events.FaultArmed, events.FaultInjected)
    )
    finished = [e for _, e in history.find_events(events.CallFinished)]
    assert witnessed == planned
    assert len(finished) == calls
    on_the_wire = {each for each in witnessed if each[4] in dict(ALL)}
    assert on_the_wire == armed
    assert witnessed == injected
    assert {each[4] for each in witnessed} == {*dict(ALL), "tool_error", "lost_reply"}
    eligible = sum("wire" in call.rolled for call in finished)
    interval = clopper_pearson_interval(len(on_the_wire), eligible, confidence=0.999)
    assert interval is not None
    assert HARSH.toxic_prob in interval


@pytest.mark.parametrize("server", SERVERS)
def test_what_was_delivered_is_what_was_planned(tmp_path: Path, server: str) -> None:
    plan, trials, requests = plan_from_settings(HARSH), 12, 11

    async def run(url: str, sites: dict[str, str]) -> None:
        async with bench(tmp_path, url, plan, sites, deadline_s=DEADLINE_S) as lab:
            await really(lab, trials=trials, requests=requests, at_once=24)
            history = lab.history()
            assert lab.lanes_left() == []
        check(history, *await ideally(plan, trials=trials, requests=requests, targets=list(sites)))

    with SERVERS[server]() as url, site(ok) as weather, site(ok) as search:
        asyncio.run(run(url, {"weather": weather.address, "search": search.address}))


def test_over_a_thousand_calls_in_virtual_time_as_well(tmp_path: Path) -> None:
    plan, trials, requests = plan_from_settings(HARSH), 35, 11

    async def story() -> History:
        targets = ("weather", "search")
        for name in targets:
            virtual_parts.site(name, ok)
        async with virtual_parts.bench(tmp_path, plan, targets, deadline_s=DEADLINE_S) as lab:
            await really(lab, trials=trials, requests=requests, at_once=24)
        return lab.history()

    history = virtual_parts.virtually(story)
    planned, calls = asyncio.run(ideally(plan, trials=trials, requests=requests, targets=["weather", "search"]))
    assert calls > 1000
    check(history, planned, calls)
