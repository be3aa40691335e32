"""The limits of a plan are kept wherever faults are made, and what is held back is told."""

import asyncio
import json
import os
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.base import levers
from chaoslab.base.clock import SystemClock
from chaoslab.base.identity import TrialId
from chaoslab.campaigns.journal import Journal
from chaoslab.cli import main
from chaoslab.config.limits import VARIABLE, add_environment_limits, list_allowed_hosts
from chaoslab.core.events import CallFinished, FaultHeldBack, FaultScheduled, FaultWitnessed
from chaoslab.core.limits import LimitGuard, Limits, check_targets, parse_limits
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import HITS, Choice, Injection, Plan
from chaoslab.execution.upstreams import check_allowed_hosts
from chaoslab.record.audit import Audit
from chaoslab.record.log import LogLost
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.functions.wrapped import WrappedFunction
from chaoslab.seams.gateway.routes import GatewayRoute
from chaoslab.wire.lane_names import is_lane_expired
from chaoslab.worlds.virtual.world import World
from tests.gateway.parts import history, process_of, shop, standing
from tests.proxy_manager.manager_parts import CALL, always, with_lab
from tests.seams.lab_parts import Bench, eventually

ERROR = Injection("errors", (Choice("server_error"),), ("crm", "mail"))


class Stopped(SystemClock):
    """A clock that stands still until it is moved."""

    now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def utc(self) -> datetime:
        return datetime.fromtimestamp(self.now_s, UTC)

    async def sleep_async(self, delay_s: float) -> None:
        self.now_s += delay_s


@pytest.fixture(autouse=True)
def lever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's lever; that of a lab is in a place of the test's own too."""
    monkeypatch.setattr(levers, "LEVER", tmp_path / "home" / "stop")
    monkeypatch.setattr(levers, "LAB", tmp_path / "state" / "chaoslab-stop")
    return levers.LEVER


def hits(memory: TrialMemory, target: str, requests: range, **given: object) -> list[int]:
    """The requests that are hit."""
    reach = memory.plan.find_candidates(target)
    found = []
    for request in requests:
        occasion = memory.build_occasion(target, f"{target} tool", request, 1)
        for name, value in given.items():
            setattr(occasion, name, value)
        if any(each in HITS for each in memory.decide_hits(reach, occasion)):
            found.append(request)
    return found


def limited_memory(clock: SystemClock | None = None, **limits: object) -> tuple[TrialMemory, list[FaultHeldBack]]:
    held: list[FaultHeldBack] = []
    plan = Plan(1, (ERROR,), (Limits.build(limits),))
    return TrialMemory(plan, "run.t1", clock=clock or Stopped(), note=held.append), held


@pytest.mark.parametrize("share", [0.001, 0.1, 0.3, 0.5, 0.999])
def test_a_share_is_never_passed_and_is_drawn_by_dice(share: float) -> None:
    firsts = set()
    for trial, target in product(("a", "b", "c", "d"), ("crm", "mail")):
        memory = TrialMemory(Plan(1, (ERROR,), (Limits(share=share),)), trial)
        found = hits(memory, target, range(1, 301))
        assert abs(len(found) - 300 * share) < 1
        assert all(len([each for each in found if each <= n]) <= n * share + 1 for n in (1, 10, 100, 300))
        firsts.add(found[0] if found else 0)
    assert len(firsts) > 1 or share > 0.99


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_retries_take_no_larger_share_than_requests(share: float) -> None:
    """Since at a gateway an equal request of another client is one too, and after a failure each would be hit."""
    memory, _ = limited_memory(share=share)
    reach = memory.plan.find_candidates("crm")
    request = hits(memory, "crm", range(1, 1002))[0]
    hit = 0
    for retry in range(1, 1001):
        hit += memory.decide_hits(reach, memory.build_occasion("crm", "crm", request, retry + 1)).hit
        assert hit <= retry * share
    assert hit == pytest.approx(1000 * share)


@pytest.mark.parametrize(
    ("limits", "given", "found", "says"),
    [
        ({"targets": ["mail"]}, {}, [], "targets mail"),
        ({"targets": "cr*"}, {}, [1, 2, 3, 4], None),
        ({"targets": ["* tool"]}, {}, [1, 2, 3, 4], None),
        ({"tenants": {"X-Tenant": ["test-*"]}}, {}, [], "tenants x-tenant: test-*"),
        ({"tenants": {"X-Tenant": ["test-*"]}}, {"headers": {"x-tenant": "shop"}}, [], "tenants x-tenant: test-*"),
        ({"tenants": {"X-Tenant": ["test-*"]}}, {"headers": {"x-tenant": "test-1"}}, [1, 2, 3, 4], None),
        ({"faults": 2}, {}, [1, 2], "faults 2"),
        ({"at_once": 1}, {}, [1], "at_once 1"),
        ({"at_once": 1}, {"under_way": 1}, [], "at_once 1"),
        ({"shadow": True}, {}, [], "shadow: nothing is hit"),
    ],
)
def test_what_is_beyond_a_limit_is_held_back_and_told(
    limits: dict[str, Any], given: dict[str, Any], found: list[int], says: str | None
) -> None:
    memory, held = limited_memory(**limits)
    assert hits(memory, "crm", range(1, 5), **given) == found
    assert {each.limit for each in held} == ({says} if says else set())
    assert len(held) == 4 - len(found)


def test_faults_at_a_time_are_counted_until_their_attempts_are_over() -> None:
    memory, _ = limited_memory(at_once=1)
    assert hits(memory, "crm", range(1, 3)) == [1]
    memory.guard.end_attempt("crm", 1, 1)
    assert hits(memory, "crm", range(3, 5)) == [3]


def test_an_attempt_that_another_part_may_hit_is_counted_once() -> None:
    memory, _ = limited_memory(at_once=1)
    guard = memory.guard
    assert [guard.count_attempt("crm", 9, 1), guard.count_attempt("crm", 9, 1), guard.active_fault_count] == [
        True,
        False,
        1,
    ]
    assert hits(memory, "crm", range(1, 3)) == []
    guard.end_attempt("crm", 9, 1)
    assert (guard.active_fault_count, hits(memory, "crm", range(1, 3))) == (0, [1])
    assert not LimitGuard().count_attempt("crm", 9, 1)


def test_a_refused_connection_is_over_when_it_is_refused() -> None:
    def agent(prompt: str) -> None:  # noqa: ARG001
        for _ in range(3):
            with suppress(httpx.ConnectError):
                httpx.get("https://crm/x")

    faults = [lab.inject("refused", "crm")]
    trial = lab.run(
        agent, "go", services={"crm": lab.scripted(["x"])}, faults=faults, limits={"at_once": 1}, twin=False
    )
    assert [event.at.attempt for _, event in trial.history.find_events(FaultWitnessed)] == [1, 2, 3]


def streaming(_environ: Any, start: Any) -> list[bytes]:
    start("200 OK", [("Content-Type", "text/event-stream")])
    return [b"data: 1\n\n", b"data: 2\n\n"]


def breaking_off(_environ: Any, start: Any) -> list[bytes]:
    start("200 OK", [("Content-Type", "application/json"), ("Content-Length", "99")])
    return [b'{"order": 17}']


def pay() -> str:
    return "paid"


ENDS: dict[str, tuple[dict[str, Any], lab.Injection, str]] = {
    "a function's result": ({"tools": [pay]}, lab.inject("wrong_value", "pay"), ""),
    "a function's failure": ({"tools": [pay]}, lab.inject("exception", "pay"), ""),
    "an answer": ({"services": {"crm": lab.scripted(["x"] * 3)}}, lab.inject("server_error", "crm"), ""),
    "a stream": ({"services": {"crm": streaming}}, lab.inject("slow_chunks", "crm", delay_s=0.5), ""),
    "an answer that broke off": ({"services": {"crm": breaking_off}}, lab.inject("latency", "crm"), "closed"),
    "a caller that gave up": ({"services": {"crm": streaming}}, lab.inject("latency", "crm", delay_s=9.0), "timed_out"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_slot_is_free_again_after(end: str) -> None:
    """Three calls, one after the other: each may be hit, since the fault before it is over."""
    options, fault, error = ENDS[end]

    def agent(_prompt: str) -> None:
        for _ in range(3):
            with suppress(Exception):
                pay() if "tools" in options else httpx.get("http://crm/x", timeout=5)

    trial = lab.run(agent, "go", faults=[fault], limits={"at_once": 1}, twin=False, **options)
    assert len([*trial.history.find_events(FaultScheduled)]) == 3
    assert not [*trial.history.find_events(FaultHeldBack)]
    if error:
        assert [event.error for _, event in trial.history.find_events(CallFinished)] == [error] * 3


def test_of_two_calls_at_once_one_is_hit() -> None:
    async def agent(_prompt: str) -> None:
        async with httpx.AsyncClient() as client:
            await asyncio.gather(*(client.get("http://crm/x") for _ in range(2)))

    faults = [lab.inject("latency", "crm")]
    trial = lab.run(agent, "go", services={"crm": streaming}, faults=faults, limits={"at_once": 1}, twin=False)
    assert len([*trial.history.find_events(FaultWitnessed)]) == 1
    assert [event.limit for _, event in trial.history.find_events(FaultHeldBack)] == ["at_once 1"]


def test_a_tally_counts_the_faults_of_all_parts(tmp_path: Path) -> None:
    tally = str(tmp_path / "tally")
    parts = [limited_memory(faults=3, tally=tally)[0] for _ in range(3)]
    assert sum(len(hits(each, "crm", range(1, 6))) for each in parts) == 3


def test_several_limits_all_hold() -> None:
    plan = Plan(1, (ERROR,), parse_limits([{"faults": 3}, {"targets": ["crm"]}, {"share": "50%"}]))
    memory = TrialMemory(plan, "t")
    assert hits(memory, "mail", range(1, 20)) == []
    assert len(hits(memory, "crm", range(1, 20))) == 3


def test_a_shadow_hits_nothing_and_counts_as_if_it_did() -> None:
    held: list[FaultHeldBack] = []
    once = replace(ERROR, triggers={"max_times": 2})
    memory = TrialMemory(Plan(1, (once,), (Limits(shadow=True),)), "t", note=held.append)
    assert hits(memory, "crm", range(1, 9)) == []
    assert [each.request for each in held] == [1, 2]


def test_in_a_home_that_is_closed_no_lever_is_pulled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As to a part in a container, which is root's no more: else it would make no fault at all."""
    (tmp_path / "home").mkdir(mode=0)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    child = os.fork()
    if child == 0:
        pulled = "?"
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            pulled = levers.read_stop_reason(levers.get_user_stop_file())
        finally:
            os._exit(1 if pulled else 0)
    assert os.waitpid(child, 0)[1] == 0


def test_a_lever_that_cannot_be_read_counts_as_pulled(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert levers.read_stop_reason(tmp_path / "file/stop") == "it cannot be read: Not a directory"


@pytest.mark.parametrize("tally", [".", "/dev/full"])
def test_without_a_tally_no_fault_is_made(tally: str, tmp_path: Path) -> None:
    assert not levers.reserve_fault(tmp_path / tally, 9)


LIVE = {
    "lever": {"lever": "{folder}/stop"},
    "until": {"until": "1970-01-01T00:16:46Z"},
    "lease": {"lease": "{folder}/lease", "lease_s": "5s"},
    "machine": {},
}
"""Limits that end faults within six seconds of the clock's start, or when somebody pulls the lever."""


@pytest.mark.parametrize("what", LIVE)
def test_faults_end_with_lever_window_and_lease(what: str, tmp_path: Path, lever: Path) -> None:
    clock = Stopped()
    levers.renew_lease(tmp_path / "lease", clock=clock)
    memory, held = limited_memory(clock, **{name: said.format(folder=tmp_path) for name, said in LIVE[what].items()})
    assert hits(memory, "crm", range(1, 3)) == [1, 2]
    if what in ("lever", "machine"):
        levers.write_stop_file(lever if what == "machine" else tmp_path / "stop", "Ann: the shop is down", clock=clock)
    clock.now_s += 1 if what in ("lever", "machine") else 6
    assert hits(memory, "crm", range(3, 5)) == []
    assert held[0].limit.startswith("lever" if what == "machine" else what)
    if what == "machine":
        assert "Ann: the shop is down" in held[0].limit
        assert levers.remove_stop_file(lever)
        assert not levers.remove_stop_file(lever)
        clock.now_s += 1
        assert hits(memory, "crm", range(5, 6)) == [5]


@pytest.mark.parametrize("fault", ["lost_reply", "timeout_before_effect"])
def test_a_lasting_wait_ends_with_its_lease(fault: str, tmp_path: Path) -> None:
    """It waits for ever; the reply comes as soon as nobody answers for the fault any more."""
    clock = Stopped()
    lease = tmp_path / "lease"
    levers.renew_lease(lease, clock=clock)
    plan = Plan(1, (replace(ERROR, choices=(Choice(fault),)),), (Limits(lease=str(lease), lease_s=5),))
    seam = FunctionSeam(plan, timeout_s=600.0, clock=clock)
    seam.begin_trial(TrialLog(TrialId("run", 1), began=datetime(2026, 6, 1, tzinfo=UTC)))

    async def crm() -> str:
        return "done"

    began_s = clock.now_s
    assert asyncio.run(seam.make_fake_function(WrappedFunction("crm", crm, effect=True))()) == "done"
    assert 5 < clock.now_s - began_s < 6


def test_a_fault_that_lasts_is_watched_in_real_time_and_under_limits_alone() -> None:
    def watches() -> list[bool]:
        return [LimitGuard(limits).can_end_faults for limits in ((), (Limits(share=0.5),))]

    assert (watches(), World(1, now=datetime(2026, 6, 1, tzinfo=UTC)).run_program(watches)) == (
        [False, True],
        [False, False],
    )


def test_a_plan_without_limits_has_the_bytes_that_it_had() -> None:
    plain = Plan(1, (ERROR,))
    assert "limits" not in plain.to_json()
    limits = parse_limits([{"share": "10%", "hosts": [], "tenants": {"x-t": ["a"]}, "lease": "l", "lease_s": "5m"}])
    made = replace(plain, limits=limits)
    assert Plan.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert made.to_json()["limits"] == [
        {"share": 0.1, "hosts": [], "tenants": {"x-t": ["a"]}, "lease": "l", "lease_s": 300.0}
    ]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"share": "0%"}, "share of limits is '0%': it should be a share above 0 up to 1, as in 0.1 or 10%"),
        ({"share": True}, "share of limits is True: it should be a share"),
        ({"targets": 3}, "targets of limits is 3: it should be a name or a list of names or patterns"),
        ({"targets": ["a", ""]}, "targets of limits is ['a', '']: it should be a name or a list"),
        ({"targets": []}, "targets of limits is []: it should be a name or a list"),
        ({"hosts": [3]}, "hosts of limits is [3]: it should be a name or a list"),
        ({"tenants": {"x": ["a"], "": ["a"]}}, "tenants of limits is {'x': ['a'], '': ['a']}: it should be"),
        ({"opens": "now"}, "opens of limits is 'now': it should be a moment like 2026-06-01T09:00:00Z"),
        ({"until": 3}, "until of limits is 3: it should be a moment like"),
        ({"lease": ""}, "lease of limits is '': it should be a file"),
        ({"lever": "a\0"}, "lever of limits is 'a\\x00': it should be a file"),
        ({"lease_s": True}, "lease_s of limits is True: it should be a time above 0"),
        ({"lease_s": []}, "lease_s of limits is []: it should be a time above 0"),
        ({"at_once": 10**9 + 1}, "at_once of limits is 1000000001: it should be a whole number from 1"),
        ({"shadow": "yes"}, "shadow of limits is 'yes': it should be true or false"),
        ({"share": 2}, "share of limits is 2: it should be a share"),
        ({"share": "ten"}, "share of limits is 'ten': it should be a share"),
        ({"share": "x%"}, "share of limits is 'x%': it should be a share"),
        ({"lease_s": "5 minutes"}, "lease_s of limits is '5 minutes': it should be a duration, as in 90s, 5min or 2h"),
        ({"lease_s": 0}, "lease_s of limits is 0: it should be a time above 0"),
        ({"faults": 0}, "faults of limits is 0: it should be a whole number from 1"),
        ({"faults": True}, "faults of limits is True: it should be a whole number"),
        ({"tenants": ["a"]}, "tenants of limits is ['a']: it should be patterns by header"),
        ({"until": "tomorrow"}, "until of limits is 'tomorrow': it should be a moment"),
        ({"opens": "2026-06-02", "until": "2026-06-01"}, "until of limits is 2026-06-01T00:00:00Z: it should be later"),
        ({"shares": 1}, "limits has no key 'shares': did you mean 'share'?"),
        ("10%", "limits is '10%': it should be a mapping"),
    ],
)
def test_a_wrong_limit_is_one_line(given: object, says: str) -> None:
    with pytest.raises((ValueError, LookupError)) as error:
        parse_limits(given)
    assert str(error.value.args[0]).startswith(says)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"lease_s": "5m"}, {"lease_s": 300.0}), ({"lease_s": "0.2s"}, {"lease_s": 0.2}),
        ({"lease_s": 7}, {"lease_s": 7.0}), ({"lease_s": 0.5}, {"lease_s": 0.5}),
        ({"share": " 5 %"}, {"share": 0.05}), ({"share": "100%"}, {}),
        ({"share": 1}, {}), ({"targets": "a"}, {"targets": ["a"]}), ({"targets": ("a", "b")}, {"targets": ["a", "b"]}),
        ({"hosts": ()}, {"hosts": []}), ({"tenants": {"X-T": "a"}}, {"tenants": {"x-t": ["a"]}}),
        ({"at_once": 1, "faults": 10**9}, {"at_once": 1, "faults": 10**9}), ({"shadow": False}, {}),
        ({"opens": "2026-06-01", "until": "2026-06-02"},
         {"opens": "2026-06-01T00:00:00Z", "until": "2026-06-02T00:00:00Z"}),
        ({"until": "2026-06-01"}, {"until": "2026-06-01T00:00:00Z"}), ({"lease": "a", "lever": "b", "tally": "c"},) * 2,
    ],
)  # fmt: skip
def test_a_limit_is_read_from_what_a_user_writes(given: dict[str, Any], found: dict[str, Any]) -> None:
    made = Limits.build(given)
    assert made.to_json() == found
    assert Limits.build(found) == made


def test_faults_wait_until_their_window_opens() -> None:
    clock = Stopped()
    memory, held = limited_memory(clock, opens="1970-01-01T00:16:46Z")
    assert hits(memory, "crm", range(1, 2)) == []
    assert held[0].limit == "opens 1970-01-01T00:16:46Z"
    clock.now_s += 6
    assert hits(memory, "crm", range(2, 3)) == [2]


def test_limits_name_targets_that_there_are() -> None:
    check_targets([Limits(targets=("cr*", "mail"))], ["crm", "mail"])
    with pytest.raises(LookupError, match=r"targets of limits names 'crn': did you mean 'crm'\?"):
        check_targets([Limits(targets=("mail", "crn"))], ["crm", "mail"])


def test_limits_of_a_run_hold_and_are_logged(tmp_path: Path) -> None:
    def refund(order: int) -> str:
        return f"done {order}"

    def agent(_: str) -> str:
        done = 0
        for order in range(10):
            try:
                done += bool(refund(order))
            except lab.ToolError:
                continue
        return str(done)

    asked: dict[str, Any] = {"tools": [refund], "faults": [lab.inject("server_error", "refund")], "anyway": True}
    assert lab.run(agent, "go", limits={"share": "30%"}, logs=tmp_path, **asked).answer == "7"
    held = history(tmp_path).find_events(FaultHeldBack)
    assert [each.limit for _, each in held] == ["share 0.3"] * 7
    with pytest.warns(match="hit nothing: held back by tenants x: a \\(10 times\\)"):
        lab.run(agent, "go", limits={"tenants": {"x": "a"}}, **asked)
    with pytest.raises(LookupError, match="targets of limits names 'refunt': did you mean 'refund'"):
        lab.run(agent, "go", limits={"targets": ["r*", "refunt"]}, **asked)
    with pytest.raises(ValueError, match="share of limits"):
        lab.run(agent, "go", limits={"share": 0}, **asked)


def test_the_limits_of_whoever_started_a_process_hold_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "limits.json"
    monkeypatch.setenv(VARIABLE, str(file))
    with pytest.raises(ValueError, match=f"{VARIABLE}=.*cannot be read"):
        add_environment_limits(Plan(1))
    monkeypatch.setenv(VARIABLE, '{"faults": 0}')
    with pytest.raises(ValueError, match=f"{VARIABLE}=.*: faults of limits is 0"):
        add_environment_limits(Plan(1))
    monkeypatch.setenv(VARIABLE, str(file))
    file.write_text('{"faults": 3}')
    assert add_environment_limits(Plan(1, limits=(Limits(share=0.5),))).limits == (Limits(share=0.5), Limits(faults=3))


def test_hosts_are_loopback_and_those_that_every_limit_names() -> None:
    assert list_allowed_hosts([]) is None
    assert list_allowed_hosts([Limits(faults=1)]) == frozenset()
    assert list_allowed_hosts([Limits(hosts=("a", "b")), Limits(hosts=("b",)), Limits()]) == frozenset("b")


def test_a_gateway_with_limits_breaks_no_foreign_host(tmp_path: Path) -> None:
    faults = {"fault": "server_error", "target": "crm"}
    with shop() as server:
        far, near = "crm=http://203.0.113.7:9", f"crm={server.url}"
        for route, hosts, allowed in ((near, (), True), (far, (), False), (far, ("203.0.113.7",), True)):
            with (
                nullcontext() if allowed else pytest.raises(ValueError, match=r"would hit 203\.0\.113\.7"),
                standing(tmp_path, [route], faults, limits=(Limits(hosts=hosts),)),
            ):
                assert allowed


def test_a_gateway_keeps_to_a_share_of_one_tenants_requests_and_writes_an_audit(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    limits = (Limits.build({"share": "50%", "tenants": {"x-tenant": ["test-*"]}}),)
    audit = Audit(file, why="CHG-17")
    with (
        shop() as server,
        standing(
            tmp_path, [f"crm={server.url}"], {"fault": "server_error", "target": "crm"}, limits=limits, audit=audit
        ) as running,
    ):
        codes = {
            tenant: [
                httpx.get(f"{running.make_route_url('crm')}/{n}", headers={"x-tenant": tenant}).status_code
                for n in range(8)
            ]
            for tenant in ("shop", "test-1")
        }
    assert codes["shop"] == [200] * 8
    assert sum(code >= 500 for code in codes["test-1"]) == 4
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [each["what"] for each in lines].count("made") == [each["what"] for each in lines].count("met") == 4
    assert all(each["why"] == "CHG-17" and each["pid"] == os.getpid() and each["run"] for each in lines)
    assert {each.get("limit") for each in lines} == {None, "share 0.5", "tenants x-tenant: test-*"}


def test_a_gateway_keeps_to_a_share_of_requests_that_are_all_alike(tmp_path: Path) -> None:
    limits = (Limits.build({"share": "10%"}),)
    with (
        shop() as server,
        standing(tmp_path, [f"crm={server.url}"], {"fault": "server_error", "target": "crm"}, limits=limits) as running,
    ):
        codes = [httpx.get(f"{running.make_route_url('crm')}/health").status_code for _ in range(40)]
    assert 1 <= sum(code >= 500 for code in codes) <= 5


def test_a_shadow_at_a_gateway_hits_nothing_and_says_what_it_would(tmp_path: Path) -> None:
    with (
        shop() as server,
        standing(
            tmp_path, [f"crm={server.url}"], {"fault": "server_error", "target": "crm"}, limits=(Limits(shadow=True),)
        ) as running,
    ):
        assert httpx.get(f"{running.make_route_url('crm')}/1").status_code == 200
    assert [each.limit for _, each in history(tmp_path).find_events(FaultHeldBack)] == ["shadow: nothing is hit"]


def test_no_fault_is_made_that_cannot_be_audited(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit")
    audit.close()
    audit._file = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
    at = FaultHeldBack(injection="i", at=CALL.attempt_ref, tool="t", limit="l")
    with pytest.raises(LogLost, match=r"audit .* cannot be written .*so no fault is made"):
        audit.write_fault_line(at)
    audit.close()


def test_a_manager_keeps_to_limits_and_ends_a_lane_with_its_lever(tmp_path: Path) -> None:
    lever = tmp_path / "stop"
    plan = replace(always("latency", delay_s=0.05), limits=(Limits(at_once=1, lever=str(lever)),))

    async def story(lab: Bench) -> None:
        _, first = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        _, second = await lab.seam.lanes.request_lane(replace(CALL, request=2), deadline_s=2.0)
        assert (first.state, second.state, second.rolled) == ("armed", "clear", ["wire"])
        levers.write_stop_file(lever, "enough")
        eventually(lambda: not lab.lanes_left())
        _, third = await lab.seam.lanes.request_lane(replace(CALL, request=3), deadline_s=2.0)
        assert third.state == "clear"

    with_lab(tmp_path, plan, story)


def test_a_lane_says_until_when_its_maker_answers_for_it() -> None:
    assert is_lane_expired("lane.crm.20260601.3.1000", 1001)
    assert not is_lane_expired("lane.crm.20260601.3.1000", 999)
    assert not any(
        is_lane_expired(name, 10**12) for name in ("crm", "lane.crm", "lane.crm.x.3.soon", "lanes.crm.r.3.1000")
    )


@pytest.mark.filterwarnings("ignore:.* hit nothing")
@pytest.mark.parametrize("ends", ["machine", "lab", "lease"])
def test_a_trial_in_virtual_time_looks_at_levers_and_leases_of_the_machine(ends: str, tmp_path: Path) -> None:
    def crm() -> str:
        return "Ann"

    def agent(_: str) -> str:
        return crm()

    def held() -> list[str]:
        limits = {"lease": str(lease), "lease_s": "60s"}
        faults = [lab.inject("empty", "crm", calls=[1])]
        trial = lab.run(agent, "go", reads=[crm], faults=faults, limits=limits, anyway=True)
        found = [event.limit.partition(" ")[0] for _, event in trial.history.find_events(FaultHeldBack)]
        assert ("is for request 1 of crm, where it was held back: " in trial.verdict.why) == bool(found)
        return found

    levers.renew_lease(lease := tmp_path / "lease")
    assert held() == []
    if ends == "lease":
        lease.unlink()
    else:
        levers.write_stop_file(levers.LEVER if ends == "machine" else levers.LAB, "stop")
    assert held() == [ends.replace("machine", "lever").replace("lab", "lever")]


def test_the_lever_of_a_lab_is_pulled_and_released_with_that_of_the_user(capsys: pytest.CaptureFixture[str]) -> None:
    """Its parts in containers share the lab's state with the machine, and no home."""
    both = (levers.LEVER, levers.LAB)
    assert main(["stop", "--all"]) == 0
    assert [bool(levers.read_stop_reason(each)) for each in both] == [True, False]  # there is no lab
    levers.LAB.parent.mkdir()
    levers.LAB.with_name("state.db").touch()
    assert main(["stop", "--all", "--why", "late orders"]) == 0
    assert all("late orders" in levers.read_stop_reason(each) for each in both)
    assert main(["stop", "--status"]) == 1
    assert main(["stop", "--release"]) == 0
    assert main(["stop", "--status"]) == 0
    assert not any(map(levers.read_stop_reason, both))
    assert str(levers.LAB) in capsys.readouterr().out


def test_a_gateway_that_a_campaign_has_left_is_named_at_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with process_of(tmp_path / "campaigns" / "shop") as group:
        for name, kind in (("shop", "left"), ("bank", "ended step")):
            (folder := tmp_path / "campaigns" / name).mkdir(parents=True)
            journal = Journal(folder)
            journal.append_entry("begun", digest="", pid=1)
            journal.append_entry("step", round=1, step=1, name="the gateway", level=None)
            journal.append_entry("process", group=group)
            journal.append_entry(kind, group=group)
        assert main(["stop", "--all"]) == 0
    told = capsys.readouterr().out
    assert f"the gateway of the campaign shop passes traffic on, without faults (process {group})" in told
    assert "bank" not in told


@pytest.mark.parametrize(
    ("limits", "host", "target", "refused"),
    [
        ((), "shop.test", "shop", False),
        ((Limits(share=0.5),), "shop.test", "shop", True),
        ((Limits(share=0.5),), "127.0.0.1", "shop", False),
        ((Limits(share=0.5),), "shop.test", "other", False),
        ((Limits(hosts=("shop.test",)),), "shop.test", "shop", False),
        ((Limits(hosts=("bank.test",)),), "shop.test", "shop", True),
        ((Limits(hosts=()), Limits(shadow=True)), "shop.test", "shop", False),
    ],
)
def test_limits_allow_loopback_and_the_hosts_that_they_name(
    limits: tuple[Limits, ...], host: str, target: str, refused: bool
) -> None:
    plan = Plan(1, (Injection("late", (Choice("latency", 1.0, {}),), (target,)),), limits)
    told = pytest.raises(ValueError, match=f"'late' would hit {host}, and limits allow") if refused else nullcontext()
    with told:
        check_allowed_hosts(plan, {"shop": GatewayRoute("shop", "https", host, 443)})
