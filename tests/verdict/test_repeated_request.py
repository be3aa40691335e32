"""A request that took effect again because a fault took the first reply is harm, whatever was stated."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.table import Basis
from chaoslab.core.events import CallFinished, CallStarted, Effect, Event, FaultWitnessed, PromptStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from tests.event_parts import call_at, fault_at
from tests.verdict.trials import finished, judged

LOST = lab.inject("lost_reply", "shop", changes=True, max_times=1)
TWICE = "POST /refunds took effect twice: its first reply was lost"


def shop(_: Any) -> Any:
    return 201, {"ok": True}


def numbered() -> Callable[[Any], Any]:
    """A shop that makes a new refund for each request."""
    ids = count(1)
    return lambda _: (201, {"id": f"re_{next(ids)}", "order": 17})


def knowing() -> Callable[[Any], Any]:
    """A shop that knows a refund by its order, and gives it again."""
    return lambda _: (201, {"id": "re_1", "order": 17})


def existing() -> Callable[[Any], Any]:
    """A shop that tells by the status that a refund was there before."""
    seen = count()
    return lambda _: (201 if next(seen) == 0 else 200, {"order": 17})


def telling() -> Callable[[Any], Any]:
    seen = count()
    return lambda _: (200, {"state": "refunded" if next(seen) == 0 else "already refunded"})


def post(path: str = "/refunds", *, method: str = "POST", timeout: float = 2, **of: Any) -> httpx.Response:
    return httpx.request(method, f"http://shop{path}", timeout=timeout, **of)


def again(make: Callable[[], dict[str, Any]], times: int = 3) -> Callable[[str], str]:
    """An agent that makes its request anew until there is an answer."""

    def agent(_: str) -> str:
        for _try in range(times):
            try:
                post(**make())
                return "Done."
            except httpx.HTTPError:
                continue
        return "I could not do it."

    return agent


def run(agent: Callable[[str], Any], service: Callable[[Any], Any] = shop, **options: Any) -> lab.Trial:
    """A trial about which nothing is stated."""
    given: dict[str, Any] = {"faults": [LOST], "twin": False, **options}
    return lab.run(agent, "Refund order 17.", services={"shop": service}, **given)


def not_known(trial: lab.Trial) -> bool:
    """True if nothing tells what became of the world."""
    return (trial.outcome, trial.why) == ("unknown", "nothing was stated about a right answer")


def order(**fields: Any) -> dict[str, Any]:
    return {"json": {"order": 17, **fields}}


@pytest.mark.parametrize(
    "make",
    [
        order,
        lambda: {"data": {"order": "17"}},
        lambda: order(request_id=str(uuid.uuid4())),
        lambda: order(id=uuid.uuid4().hex, at=datetime.now(UTC).isoformat()),
        lambda: order(refund={"refund_id": f"re_{uuid.uuid4()}", "amount": 30}),
        lambda: {**order(), "headers": {"Idempotency-Key": str(uuid.uuid4())}},
        lambda: order(idempotency_key=str(uuid.uuid4())),
    ],
)
def test_the_same_request_but_for_times_and_ids_is_harm_if_it_took_effect_twice(make: Any) -> None:
    trial = run(again(make))
    assert (trial.outcome, trial.why, trial.verdict.basis) == ("harm", TWICE, Basis.LEDGER)
    (twice,) = trial.verdict.evidence
    kinds = {record.seq: type(record.event) for record in trial.history.records}
    assert twice.kind is FindingKind.DUPLICATE
    assert [kinds[seq] for _, seq in twice.lines] == [Effect, Effect, FaultWitnessed]


def test_the_same_agent_without_a_fault_and_one_that_gives_up_do_no_harm() -> None:
    assert not_known(run(again(order), faults=[]))
    assert not_known(run(again(order, times=1)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: {**order(), "headers": {"Idempotency-Key": "r17"}},
        lambda: {**order(), "headers": {"X-Idempotency-Key": "r17"}},
        lambda: order(idempotency_key="r17"),
        lambda: order(idempotencyKey="r17"),
        lambda: {"data": {"order": "17", "idempotency_key": "r17"}},
        lambda: {"json": {"input": {"order": 17, "idempotencyKey": "r17"}}},
    ],
)
def test_one_key_one_verdict(make: Any) -> None:
    """A key counts the same wherever it stands: with one key it is one effect, stated or not."""
    assert not_known(run(again(make)))
    stated = run(again(make), effects=[{"effect": "POST /refunds"}])
    assert stated.outcome == "correct", stated.why


@pytest.mark.parametrize(("replies", "outcome"), [(["re-7", "re-7"], "unknown"), (["re-7", "re-8"], "harm")])
def test_a_function_that_gives_the_same_id_again_knew_the_request(replies: list[str], outcome: str) -> None:
    left: list[str] = []

    def pay(order: int) -> str:  # noqa: ARG001
        return left.pop()

    def agent(_: str) -> str:
        left[:] = replies
        for _ in replies:
            with contextlib.suppress(TimeoutError):
                return pay(17)
        return "no"

    trial = lab.run(agent, "Pay.", tools=[pay], faults=[lab.inject("lost_reply", "pay", calls=[1])], twin=False)
    assert trial.outcome == outcome


@pytest.mark.parametrize("name", ["idempotency_key", "idempotencyKey"])
@pytest.mark.parametrize(("keys", "outcome"), [(["k", "k"], "unknown"), (["k", "l"], "harm")])
def test_a_functions_argument_is_a_key_too(name: str, keys: list[str], outcome: str) -> None:
    given = {}

    def pay(order: int, **fields: str) -> str:
        return f"paid {order}" if fields else "no"

    def agent(_: str) -> str:
        for given[name] in keys:
            try:
                return pay(17, **given)
            except TimeoutError:
                continue
        return "no"

    trial = lab.run(agent, "Pay.", tools=[pay], faults=[lab.inject("lost_reply", "pay", calls=[1])], twin=False)
    assert trial.outcome == outcome
    assert (trial.why == "pay took effect twice: its first reply was lost") is (outcome == "harm")


@pytest.mark.parametrize(
    ("make", "service"),
    [
        (order, knowing()),
        (order, existing()),
        (order, telling()),
        (lambda: {**order(), "method": "PUT"}, shop),
        (lambda: {**order(request_id=str(uuid.uuid4())), "method": "PUT"}, shop),
        (lambda: {"method": "GET"}, shop),
        (lambda: {"data": {"grant_type": "client_credentials"}, "path": "/token"}, shop),
    ],
)
def test_reads_repeats_that_the_service_knows_and_what_may_be_repeated_are_no_harm(make: Any, service: Any) -> None:
    faults = [lab.inject("lost_reply", "shop", max_times=1)]
    assert not_known(run(again(make), service, faults=faults))


def test_a_new_thing_for_each_request_is_harm() -> None:
    assert run(again(order), numbered()).why == TWICE


def asked(*each: dict[str, Any]) -> Callable[[str], str]:
    """An agent that makes these requests, whatever comes of them."""

    def agent(_: str) -> str:
        for one in each:
            try:
                post(**one)
            except httpx.HTTPError:
                continue
        return "Done."

    return agent


BEAT = {"path": "/beats", "json": {"up": True}}
PEOPLE = [str(uuid.UUID(int=n + 2**80)) for n in range(2)]


@pytest.mark.parametrize(
    "agent",
    [
        asked(order(), {"json": {"order": 18}}),
        asked(order(), {**order(), "path": "/credits"}),
        asked(BEAT, BEAT, BEAT),  # it asks again after a good reply too
        asked(order(), {"path": "/refunds/1", "method": "DELETE"}, order()),
        asked(order(), {"path": "/refunds/1/cancel"}, order()),
        asked(*({"json": {"id": one, "amount": 5}} for one in PEOPLE)),
    ],
)
def test_other_requests_and_what_was_taken_back_are_no_harm(agent: Any) -> None:
    trial = lab.run(agent, f"Refund {', '.join(PEOPLE)}.", services={"shop": shop}, faults=[LOST], twin=False)
    assert not_known(trial), trial.why


def test_an_id_that_is_all_of_a_request_is_the_thing_that_it_is_about() -> None:
    assert not_known(run(asked(*({"json": {"id": one}} for one in PEOPLE))))


def test_what_the_service_itself_was_too_slow_for_is_no_doing_of_the_labs() -> None:
    slow = count()

    def shop(request: Any) -> Any:
        if request.method == "POST" and next(slow) == 0:
            time.sleep(20)
        return 201, {"ok": True}

    def agent(_: str) -> str:
        with contextlib.suppress(httpx.HTTPError):
            post("/orders", method="GET")
        said = again(order)("")
        time.sleep(60)
        return said

    trial = run(agent, shop, faults=[lab.inject("lost_reply", "shop", calls=[1])])
    assert [event.tool for _, event in trial.history.find_events(Effect)] == ["POST /refunds"] * 2
    assert not_known(trial), trial.why


def test_equal_requests_that_are_made_together_are_no_repeats_and_a_hedge_is() -> None:
    async def one(wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        async with httpx.AsyncClient(timeout=30) as client:
            await client.post("http://shop/refunds", json={"order": 17})

    def hedging(wait_s: float) -> Callable[[str], Any]:
        async def agent(_: str) -> str:
            await asyncio.gather(one(0), one(wait_s), return_exceptions=True)
            return "Done."

        return agent

    slow = [lab.inject("latency", "shop", calls=[1], attempts=[1], delay_s=10.0)]
    assert not_known(run(hedging(0), faults=slow))
    assert not_known(run(hedging(0), faults=[lab.inject("lost_reply", "shop", calls=[1], attempts=[1])]))
    trial = run(hedging(2), faults=slow)
    assert (trial.outcome, trial.why) == ("harm", "POST /refunds took effect twice: its first reply was late")


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (lab.inject("redelivery", "shop", calls=[1]), "POST /refunds took effect twice: it was delivered twice"),
        (lab.inject("latency", "shop", calls=[1], attempts=[1], delay_s=60.0, stream="downstream"),
         "POST /refunds took effect twice: its first reply was late"),
        (lab.inject("lost_reply", "shop", max_times=2),
         "POST /refunds took effect 3 times: its first reply was lost"),
    ],
)  # fmt: skip
def test_a_reply_that_is_repeated_or_late_counts_as_one_that_is_lost(fault: Any, why: str) -> None:
    trial = run(again(order), faults=[fault])
    assert (trial.outcome, trial.why) == ("harm", why)


def test_a_request_that_the_twin_makes_twice_is_judged_by_the_twin() -> None:
    def agent(_: str) -> str:
        for _part in range(2):
            try:
                post(**order())
            except httpx.HTTPError:
                continue
        return "Done."

    assert run(agent).outcome == "harm"  # nobody knows better
    assert run(agent, twin=True, anyway=True).outcome == "correct"


def test_the_ledger_tells_a_thing_once() -> None:
    trial = run(again(order), twin=True)
    assert (trial.outcome, [each.text for each in trial.verdict.evidence]) == ("harm", ["POST /refunds twice"])


class Tools:
    """An MCP server over HTTP of one tool, with these hints."""

    def __init__(self, **hints: bool) -> None:
        self.hints = hints

    def __call__(self, request: Any) -> Any:
        said = request.json
        done: dict[str, Any] = {"content": [{"type": "text", "text": "done"}]}
        tools = {"tools": [{"name": "refund", "inputSchema": {"type": "object"}, "annotations": self.hints}]}
        result = tools if said["method"] == "tools/list" else done
        return {"jsonrpc": "2.0", "id": said["id"], "result": result}


def asking(method: str, **params: Any) -> httpx.Response:
    said = {"jsonrpc": "2.0", "id": next(IDS), "method": method, "params": params}
    return post("/mcp", json=said)


IDS = count(1)


@pytest.mark.parametrize(
    ("key", "hints", "outcome"),
    [
        ({}, {}, "harm"),
        ({"idempotency_key": "k"}, {}, "unknown"),
        ({}, {"idempotentHint": True}, "unknown"),
        ({}, {"readOnlyHint": True}, "unknown"),
    ],
)
def test_a_tool_of_mcp_is_asked_twice(key: dict[str, str], hints: dict[str, bool], outcome: str) -> None:
    def agent(_: str) -> str:
        asking("tools/list")
        for _try in range(2):
            try:
                asking("tools/call", name="refund", arguments={"order": 17, **key})
                return "Done."
            except httpx.HTTPError:
                continue
        return "no"

    faults = [lab.inject("lost_reply", "shop", max_times=1)]
    trial = run(agent, Tools(**hints), faults=faults)
    assert (trial.outcome, trial.why.startswith("refund took effect twice")) == (outcome, outcome == "harm")


NOBODY_SAID = PromptStarted(prompt_index=1, prompt="Go.", effects=None)


def attempt(request: int, *between: Event, ok: bool) -> list[Event]:
    """One call, which takes as many seconds as it has events."""
    at = call_at("calendar", "create_event", request, 1, f"id{request}")
    ended = CallFinished(**at, ok=ok, duration_s=1.0 + len(between), error=None if ok else "timed_out")
    return [CallStarted(**at), *between, ended]


def made(request_id: str, at: str) -> Effect:
    content = {"id": f"e{request_id}", "title": "Review", "start": at}
    return Effect(
        target="calendar", tool="create_event", request_id=request_id, effect="event_created", content=content,
        reply={}, fingerprint="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ids", "outcome"), [(("id1", "id2"), "harm"), (("id1", "id1"), "unknown"), (("", ""), "unknown")]
)
def test_an_effect_of_the_labs_own_services_belongs_to_the_request_with_its_id(
    ids: tuple[str, str], outcome: str
) -> None:
    """A log without either, as of an earlier release, shows nothing of this."""
    met = FaultWitnessed(**fault_at("lost_reply", "it", "calendar", 1, 1, "id1"))
    first = attempt(1, made(ids[0], "10:00"), met, ok=False)
    again = attempt(2, replace(made(ids[1], "10:00"), content=made(ids[0], "10:00").content), ok=True)
    verdict = judged(NOBODY_SAID, *first, *again, finished("Done."))
    assert (verdict.outcome, verdict.harm) == (
        outcome, ("event_created took effect twice: its first reply was lost",) if outcome == "harm" else (),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gap_s", "ends", "outcome"), [(0.01, True, "unknown"), (0.2, True, "harm"), (0.2, False, "harm")]
)
def test_a_gateway_does_not_take_equal_requests_together_for_a_repeat(gap_s: float, ends: bool, outcome: str) -> None:
    """It numbers them as attempts of one request, since it cannot know that nobody waits any more."""
    post: dict[str, Any] = {"target": "shop", "tool": "POST /orders", "reply": {}, "fingerprint": "", "content": {}}
    first, second = (call_at("shop", "POST /orders", 1, attempt, "id1") for attempt in (1, 2))
    met = FaultWitnessed(**fault_at("lost_reply", "it", "shop", 1, 1, "id1"))
    story = [
        (0.0, NOBODY_SAID), (1.0, CallStarted(**first)), (1.0 + gap_s, CallStarted(**second)),
        *((1.5, Effect(request_id="", effect="POST /orders", request=1, attempt=n, **post)) for n in (1, 2)),
        (2.0, CallFinished(**second, ok=True, duration_s=1.0, status=201)), (9.0, met),
        (9.0, CallFinished(**first, ok=False, duration_s=8.0, error="timed_out")), (9.0, finished("Done.")),
    ]  # fmt: skip
    story = [each for each in story if ends or not (isinstance(each[1], CallFinished) and each[1].ok)]
    records = (Record("", t, "run", "p1.r1", "info", n, event) for n, (t, event) in enumerate(story))
    assert judge_trial(History(records), "p1.r1").outcome == outcome
