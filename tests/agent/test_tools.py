"""The tools as a careful client: one id for every try, patience where the service asks for it, words for the model."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.tools import ToolException

from chaoslab.agent.config import Config, RealService
from chaoslab.agent.tools import Toolbox, discover_services
from chaoslab.base.clock import SystemClock
from chaoslab.base.identity import TrialId
from chaoslab.config.settings import SettingError, Settings
from chaoslab.config.topology import Ports
from chaoslab.core import events
from chaoslab.core.exchange import Reply
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.core.service_spec import ServiceSpec
from chaoslab.flask_tools import calculator, calendar, messaging, movies, search, translator, weather
from tests.seams.lab_parts import Bench, Heard, bench, embedded, said, site
from tests.told import Story, told_by

SERVICES: dict[str, ServiceSpec] = {
    module.SERVICE.name: module.SERVICE
    for module in (calculator, calendar, messaging, movies, search, translator, weather)
}
FINE = said({"expression": "6*7", "result": 42, "text": "42"})
BROKEN = said({"error": {"type": "internal", "message": "broken"}}, 500)
QUIET = Plan(1)


def always(fault: str, *targets: str) -> Plan:
    return Plan(1, (Injection("wire", (Choice(fault),), targets),))


@dataclass
class Hasty(SystemClock):
    """A clock whose naps are written down and not taken."""

    naps: list[float] = field(default_factory=list)

    async def sleep_async(self, delay_s: float) -> None:
        self.naps.append(delay_s)


@dataclass
class Desk:
    """A tool at hand: the lab, its toolbox, and what the service heard."""

    lab: Bench
    toolbox: Toolbox
    heard: list[Heard]
    clock: Hasty
    name: str

    async def use(self, tool: str, **arguments: Any) -> str:
        service = SERVICES[self.name]
        found = next(t for t in service.tools if t.name == tool)
        return await self.toolbox.call_tool(service, found, arguments)

    async def fails(self, tool: str, **arguments: Any) -> str:
        with pytest.raises(ToolException) as failure:
            await self.use(tool, **arguments)
        return str(failure.value)

    def of(self, kind: Any) -> list[Any]:
        return [event for _, event in self.lab.history().find_events(kind)]

    @property
    def keys(self) -> list[str]:
        return [heard.headers["idempotency-key"] for heard in self.heard]


def with_tool(
    folder: Path,
    name: str,
    answers: list[Reply],
    story: Callable[[Desk], Awaitable[None]],
    *,
    plan: Plan = QUIET,
    key: str = "",
    retry_after_max_s: float = 5.0,
    **chosen: Any,
) -> None:
    """A service that gives these answers in turn, the last one for ever."""
    left = list(answers)

    def answer(_: Heard) -> Reply:
        return left.pop(0) if len(left) > 1 else left[0]

    @contextlib.asynccontextmanager
    async def desk(url: str, address: str, heard: list[Heard]) -> AsyncIterator[Desk]:
        service = SERVICES[name]
        real = {name: RealService(url=f"http://{address}", key=key)} if key else {}
        config = Config(services=real, retry_wait_s=0.01, retry_after_max_s=retry_after_max_s)
        clock = Hasty()
        async with bench(folder, url, plan, {name: address}, errors=service.errors, failed_if=service.failed_if) as lab:
            toolbox = Toolbox(
                lab.client, lab.seam.targets, {name: service}, config, Settings(**chosen), lab.seam.log, clock
            )
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                yield Desk(lab, toolbox, heard, clock, name)

    async def run(url: str, address: str, heard: list[Heard]) -> None:
        async with desk(url, address, heard) as at_hand:
            await story(at_hand)

    with embedded() as url, site(answer) as made:
        asyncio.run(run(url, made.address, made.heard))


def at_desk(name: str, *answers: Reply, **given: Any) -> Callable[[Story], Callable[..., None]]:
    @told_by
    def test_of(story: Story, *, tmp_path: Path) -> None:
        with_tool(tmp_path, name, [*answers], story, **given)

    return test_of


@at_desk("calculator", BROKEN, BROKEN, BROKEN, FINE, tool_limit=3)
async def test_a_retry_is_another_attempt_of_one_request(desk: Desk) -> None:
    assert await desk.use("calculate", expression="6*7") == '{"expression":"6*7","result":42,"text":"42"}'
    assert len(desk.keys) == 4
    assert len(set(desk.keys)) == 1
    calls = desk.of(events.CallFinished)
    found = [(c.request, c.attempt, c.ok) for c in calls]
    assert found == [(1, 1, False), (1, 2, False), (1, 3, False), (1, 4, True)]
    assert {c.request_id for c in calls} == set(desk.keys)
    assert desk.clock.naps == [0.01, 0.02, 0.04]
    retries = desk.of(events.Retry)
    assert [(r.attempt, r.wait_s) for r in retries] == [(1, 0.01), (2, 0.02), (3, 0.04)]
    assert retries[0].reason.startswith("Error: calculator answered 500")


@at_desk("calculator", FINE)
async def test_the_same_wish_once_answered_is_a_new_request(desk: Desk) -> None:
    for _ in range(2):
        await desk.use("calculate", expression="6*7")
    assert len(set(desk.keys)) == 2
    assert [(c.request, c.attempt) for c in desk.of(events.CallFinished)] == [(1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("said_s", "most_s", "waited_s"), [("3", 5.0, 3.0), ("60", 5.0, 5.0), ("soon", 5.0, 0.01), ("²", 5.0, 0.01)]
)
def test_retry_after_is_kept_up_to_a_bound(tmp_path: Path, said_s: str, most_s: float, waited_s: float) -> None:
    async def story(desk: Desk) -> None:
        await desk.use("calculate", expression="6*7")
        assert desk.clock.naps == [waited_s]

    busy = said({"error": {"type": "rate_limited", "message": "slow down"}}, 429, **{"Retry-After": said_s})
    with_tool(tmp_path, "calculator", [busy, FINE], story, retry_after_max_s=most_s)


@at_desk("calculator", said({"error": {"message": "no budget"}}, 429, **{"x-should-retry": "false"}), FINE)
async def test_no_retry_where_the_service_asks_for_none(desk: Desk) -> None:
    assert "answered 429" in await desk.fails("calculate", expression="6*7")
    assert len(desk.heard) == 1


@at_desk("calculator", FINE, plan=always("refused", "calculator"), tool_limit=1)
async def test_the_fallback_goes_around_the_proxy_and_is_written_down(desk: Desk) -> None:
    assert '"result":42' in await desk.use("calculate", expression="6*7")
    calls = desk.of(events.CallFinished)
    found = [(c.attempt, c.via, c.error) for c in calls]
    assert found == [(1, "lane", "refused"), (2, "lane", "refused"), (3, "direct", None)]
    (fallback,) = desk.of(events.Fallback)
    assert (fallback.attempt, fallback.request_id) == (3, desk.keys[0])
    assert fallback.address == desk.lab.seam.targets["calculator"].url
    assert len(desk.heard) == 1


@at_desk("calculator", FINE, plan=always("refused", "calculator"), fallback="none")
async def test_without_a_fallback_the_last_failure_is_the_models_to_read(desk: Desk) -> None:
    assert (
        await desk.fails("calculate", expression="6*7")
        == "Error: calculator did not answer: All connection attempts failed"
    )
    assert desk.heard == []
    assert desk.of(events.Fallback) == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_what_another_try_cannot_mend_is_neither_retried_nor_sent_around(tmp_path: Path, status: int) -> None:
    async def story(desk: Desk) -> None:
        text = await desk.fails("calculate", expression="6*7")
        assert text == f'Error: calculator answered {status}: {{"error":{{"message":"no"}}}}'
        assert len(desk.heard) == 1
        assert desk.of(events.Fallback) == desk.of(events.Retry) == []

    with_tool(tmp_path, "calculator", [said({"error": {"message": "no"}}, status)], story, tool_limit=3)


@at_desk(
    "messaging",
    said({"ok": True}),
    plan=Plan(1, (Injection("errors", (Choice("tool_error", 1.0, {"status": 404}),), ("messaging",)),)),
)
async def test_a_planned_error_comes_in_the_services_own_words(desk: Desk) -> None:
    words = json.dumps(messaging.SERVICE.errors[404].body, separators=(",", ":"))
    assert await desk.fails("send_message", to="Ana", text="Hi") == f"Error: messaging answered: {words}"
    (call,) = desk.of(events.CallFinished)
    assert (call.via, call.ok, call.status) == ("none", False, messaging.SERVICE.errors[404].status)
    assert [f.fault for f in desk.of(events.FaultWitnessed)] == ["tool_error"]
    assert desk.heard == []


@at_desk("messaging", said({"ok": False, "error": "channel_not_found"}))
async def test_slacks_200_with_ok_false_is_an_error(desk: Desk) -> None:
    text = await desk.fails("send_message", to="nobody", text="Hi")
    assert text == 'Error: messaging answered: {"ok":false,"error":"channel_not_found"}'
    (call,) = desk.of(events.CallFinished)
    assert (call.ok, call.status, call.error) == (False, 200, "channel_not_found")


@pytest.mark.parametrize("arguments", [{}, {"expression": "1", "precision": 3}, {"expression": ["1"]}])
@at_desk("calculator", FINE)
async def test_bad_arguments_become_a_message_and_no_call(desk: Desk, *, arguments: Mapping[str, Any]) -> None:
    (tool,) = desk.toolbox.build_tools()
    assert str(await tool.ainvoke(dict(arguments))).startswith("Error: bad arguments for calculate: ")
    assert desk.heard == []


@at_desk("calculator", said({"error": {"message": "division by zero"}}, 400))
async def test_a_failure_reaches_the_model_as_a_message(desk: Desk) -> None:
    (tool,) = desk.toolbox.build_tools()
    assert "answered 400" in await tool.ainvoke({"expression": "1/0"})


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "search": ("search_web", {"query": "tides & moon", "count": 3}),
    "weather": ("current_weather", {"city": "São Paulo"}),
    "movies": ("search_movies", {"query": "Solaris"}),
    "calendar": ("list_events", {}),
    "messaging": ("send_message", {"to": "Ana", "text": "Hi"}),
    "translator": ("translate", {"text": "Hello", "target": "fr"}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_key_goes_where_its_service_wants_it_and_into_no_log(tmp_path: Path, name: str) -> None:
    secret = "very-secret-0123"

    async def story(desk: Desk) -> None:
        tool, arguments = CALLS[name]
        await desk.use(tool, **arguments)
        (heard,) = desk.heard
        auth = SERVICES[name].auth
        assert auth is not None
        value = auth.get("prefix", "") + secret
        if auth["in"] == "query":
            assert httpx.URL(heard.path).params[auth["name"]] == value
        elif auth["in"] == "header":
            assert heard.headers[auth["name"].lower()] == value
        else:
            assert heard.json[auth["name"]] == value
        sent = (heard.path, str(heard.headers), heard.body.decode())
        assert sum(secret in part for part in sent) == 1
        assert secret not in desk.lab.text()

    with_tool(tmp_path, name, [said({"ok": True})], story, key=secret)


@at_desk("weather", FINE, key="very-secret-0123", plan=always("reset_peer", "weather"), fallback="none")
async def test_a_failing_service_that_wants_a_key_leaks_none(desk: Desk) -> None:
    assert "secret" not in await desk.fails("current_weather", city="Lima")
    assert "secret" not in desk.lab.text()


@at_desk("calendar", Reply(204, {}, b""))
async def test_arguments_cannot_leave_their_place_in_the_path(desk: Desk) -> None:
    await desk.use("delete_event", event_id="../../x?y=1#z")
    (heard,) = desk.heard
    assert heard.path == f"{calendar.SERVICE.tools[0].path}/..%2F..%2Fx%3Fy%3D1%23z"


@at_desk("weather", said({"main": {"temp": 21}}), plan=always("refused", "weather"))
async def test_truth_is_asked_around_the_proxy_in_a_trial_of_its_own(desk: Desk) -> None:
    trial = TrialId(desk.lab.run.name, 1)
    assert await desk.toolbox.fetch_value_past_proxies("current_weather", {"city": "Lima"}, trial) == {
        "main": {"temp": 21}
    }
    (heard,) = desk.heard
    assert heard.headers["x-trial"] == f"{trial.header}.truth"
    assert desk.of(events.CallStarted) == []


@at_desk("weather", said({"message": "busy"}, 503))
async def test_a_truth_that_the_service_does_not_tell_is_none(desk: Desk) -> None:
    assert (
        await desk.toolbox.fetch_value_past_proxies("current_weather", {"city": "Lima"}, TrialId(desk.lab.run.name, 1))
        is None
    )


def test_tools_are_learnt_from_the_services_themselves() -> None:
    async def ask() -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            with pytest.raises(SettingError, match="search does not say what it offers at"):
                await discover_services(client, Config(), Ports(1))

    asyncio.run(ask())
