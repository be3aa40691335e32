"""The levers of a gateway, the end of its faults, and where its proxy leads, on a clock by hand, without a socket."""

from types import SimpleNamespace
from typing import Any

import pytest

from chaoslab.base.identity import TrialId
from chaoslab.core.inject import inject
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import Plan
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.gateway.controls import PATH, Controls, FailureShare
from chaoslab.seams.gateway.forward import ForwardProxy
from chaoslab.seams.gateway.routes import GatewayRoute
from chaoslab.seams.services.line import ClientEnd
from chaoslab.seams.services.seam import ServiceSeam
from tests.seams.test_service_attempts import ANSWER, NOW, Hand

SLOWLY = inject("latency", "crm", calls=[99], delay_s=1.0)


class Standing:
    """A gateway's seam with two faults, and its levers."""

    def __init__(self, stop_if: tuple[float, float] | None = None, *, levers: bool = True) -> None:
        self.clock, self.told, self.stopped = Hand(), list[str](), list[int]()
        self.plan = Plan(1, (inject("lost_reply", "crm"), inject("tool_error", "crm", chance=0.0), SLOWLY))
        self.seam = ServiceSeam(self.plan, timeout_s=60.0, clock=self.clock)
        book = TrialLog(TrialId("run", 1), began=NOW, clock=self.clock)
        self.seam.begin_trial(book, TrialMemory(self.plan, book.key, clock=self.clock))
        stop = (lambda: self.stopped.append(1)) if levers else None
        self.controls = Controls(self.seam, self.told.append, stop, stop_if, token="t")

    def asked(self, method: str, lever: str, token: str = "t") -> tuple[int, dict[str, Any]]:
        return self.controls.answer_control_request(method, f"{PATH}{token}/{lever}")

    def names(self) -> list[str]:
        return [each.name for each in self.controls.filter_enabled_injections(self.seam.find_injections("crm"))]


LOST, FAILS, SLOW = "lost_reply on crm", "tool_error on crm", "latency on crm"
STATUS = {"paused": False, "ended": "", "faults": 0, "under_way": 0}


@pytest.mark.parametrize(
    ("method", "lever", "status", "answer", "told"),
    [
        ("GET", "status", 200, STATUS, []), ("POST", "pause", 200, {**STATUS, "paused": True}, ["control: paused"]),
        ("POST", "resume", 200, STATUS, ["control: resumed"]), ("POST", "stop", 200, STATUS, ["control: stopped"]),
        ("GET", "faults", 200, {"faults": [{"name": LOST, "on": True, "chance": 1.0, "hits": 0},
                                           {"name": FAILS, "on": True, "chance": 0.0, "hits": 0},
                                           {"name": SLOW, "on": True, "chance": 1.0, "hits": 0}]}, []),
        ("POST", f"faults/{LOST}/off", 200, {"name": LOST, "on": False, "chance": 1.0, "hits": 0},
         [f"control: '{LOST}' is off"]),
        ("POST", f"faults/{LOST}/on", 200, {"name": LOST, "on": True, "chance": 1.0, "hits": 0},
         [f"control: '{LOST}' is on"]),
        ("POST", f"faults/{LOST}/chance/0.5", 200, {"name": LOST, "on": True, "chance": 0.5, "hits": 0},
         [f"control: '{LOST}' has the chance 0.5, after 1"]),
        ("POST", f"faults/{LOST}/chance/1.5", 400, "'1.5' should be a chance from 0 to 1", []),
        ("POST", f"faults/{FAILS}/chance/0.5", 400,
         f"'{FAILS}' has the chance 0 in the plan: begin above it, and pause", []),
        ("POST", "faults/lost/off", 404, "no fault is called 'lost': ", []),
        ("POST", "faults/lost", 404, "POST faults/lost is no lever: ", []),
        ("GET", "pause", 404, "GET pause is no lever: status, faults,", []),
        ("POST", "status", 404, "POST status is no lever", []),
        ("POST", f"faults/{LOST}/maybe", 404, f"POST faults/{LOST}/maybe is no lever", []),
    ],
)  # fmt: skip
def test_a_lever_answers_with_what_is_so_now(
    method: str, lever: str, status: int, answer: Any, told: list[str]
) -> None:
    there = Standing()
    found, said = there.asked(method, lever)
    assert (found, there.told) == (status, told)
    if isinstance(answer, str):
        assert said["error"].startswith(answer)
    else:
        assert said == answer
    assert there.stopped == [1] * (lever == "stop")


def test_levers_need_the_token_and_without_a_stop_there_is_none() -> None:
    there = Standing(levers=False)
    for token in ("", "T", "tt", "\udc80"):
        assert there.asked("GET", "status", token)[0] == 401
    assert there.asked("POST", "stop")[0] == 404
    assert len(Controls(there.seam, print, None).token) == 32


def test_faults_that_are_off_or_paused_hit_nothing_and_a_chance_is_another() -> None:
    there = Standing()
    whole = there.seam.find_injections("crm")
    assert there.controls.filter_enabled_injections(whole) is whole
    there.asked("POST", f"faults/{LOST}/off")
    assert there.names() == [SLOW]
    assert there.controls.filter_enabled_injections(whole) is there.controls.filter_enabled_injections(whole)
    there.asked("POST", f"faults/{LOST}/on")
    assert there.controls.filter_enabled_injections(whole) is whole
    there.asked("POST", f"faults/{LOST}/chance/0.25")
    assert [each.chance for each in there.controls.filter_enabled_injections(whole)] == [0.25, 1.0]
    there.asked("POST", f"faults/{LOST}/chance/0.5")
    assert there.told[-1].endswith("has the chance 0.5, after 0.25")
    assert [each.chance for each in there.controls.filter_enabled_injections(whole)] == [0.5, 1.0]
    there.asked("POST", "pause")
    assert there.names() == []
    there.asked("POST", "resume")
    assert there.names() == [LOST, SLOW]


def test_faults_end_when_too_many_of_the_last_requests_failed() -> None:
    there = Standing((0.5, 20.0))
    bad = [ClientEnd(None, (400, [], b""), 1), ClientEnd("reset", ANSWER, 1), ClientEnd("left", None, 0)]
    good = [ClientEnd(None, (399, [], b""), 1), ClientEnd(None, ANSWER, 1)]
    for seen in (*bad, *good, *bad, *good):  # 6 of 10
        assert there.names() == [LOST, SLOW]
        there.controls.record_request_end(seen)
    assert there.names() == []
    why = "60% of the requests failed (--stop-if error_rate > 0.5 over 20 s)"
    assert there.told == [f"no more faults: {why}"]
    assert there.asked("GET", "status")[1]["ended"] == why
    there.controls.record_request_end(bad[0])
    assert len(there.told) == 1
    Standing().controls.record_request_end(bad[0])


def test_a_rate_needs_ten_requests_and_forgets_what_is_older_than_its_time() -> None:
    rate = FailureShare(20.0)
    assert [rate.add_request(0.0, failed=True) for _ in range(10)] == [0.0] * 9 + [1.0]
    assert rate.add_request(20.0, failed=False) == pytest.approx(10 / 11)
    assert rate.add_request(20.5, failed=False) == 0.0  # only two are left
    assert [rate.add_request(21.0, failed=n == 0) for n in range(8)][-1] == pytest.approx(0.1)


# Where the proxy leads.


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (GatewayRoute("a.test:443", "https", "a.test", 443), "https://a.test"),
        (GatewayRoute("a.test:80", "http", "a.test", 80), "http://a.test"),
        (GatewayRoute("b.test:8080", "http", "b.test", 8080), "http://other:9"),
        (GatewayRoute("c.test:443", "https", "c.test", 443), "https://c.test"),
        (GatewayRoute("c.test:80", "http", "c.test", 80), None),
        (GatewayRoute("127.0.0.1:7000", "http", "127.0.0.1", 7000), 508),
        (GatewayRoute("127.0.0.1:7001", "http", "127.0.0.1", 7001), 508),
        (GatewayRoute("localhost:7002", "http", "localhost", 7002), 508),
        (GatewayRoute("far:7000", "http", "far", 7000), None),
        (GatewayRoute("127.0.0.1:7003", "http", "127.0.0.1", 7003), None),
    ],
)  # fmt: skip
def test_a_host_is_its_route_or_passes_or_is_refused(
    asked: GatewayRoute, found: str | int | None, passes: bool
) -> None:
    told = list[str]()
    routes = {
        "a.test": GatewayRoute("a.test", "https", "a.test", 443),
        "b.test:8080": GatewayRoute("b.test:8080", "http", "other", 9),
        "mine": GatewayRoute("mine", "https", "c.test", 443),
    }  # fmt: skip
    gateway: Any = SimpleNamespace(
        routes=routes, address="http://127.0.0.1:7001", addresses={"x": "http://127.0.0.1:7002"},
        warn_of_routing_loop=lambda name: f"{name} leads back", warn_once=lambda words, **_: told.append(words),
    )  # fmt: skip
    listener: Any = SimpleNamespace(getsockname=lambda: ("127.0.0.1", 7000))
    proxy = ForwardProxy(gateway, listener, "pass" if passes else "refuse")
    assert gateway.proxy == "http://127.0.0.1:7000"
    route = proxy.find_route(asked)
    if found is None and passes:
        assert (route, told) == (None, [f"{asked.name} is no route: what goes there passes unread"])
    elif found is None:
        assert isinstance(route, tuple)
        assert (route[0], told) == (403, [route[1]])
        assert route[1].startswith(f"the host {asked.host} is no route: name it with --route {asked.host}")
    elif isinstance(found, int):
        assert (route, told) == ((508, f"{asked.name} leads back"), [])
    else:
        assert isinstance(route, GatewayRoute)
        assert (route.url, told) == (found, [])
        assert route.name in routes
