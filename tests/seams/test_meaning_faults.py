"""Faults of meaning end to end: at a function, at a service behind real HTTP, and at a model, where they do no harm."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.base.registry import list_family_plugins
from chaoslab.core.events import FaultInjected, FaultWitnessed
from chaoslab.seams.adapters.mcp import McpReturned
from chaoslab.seams.functions.mcp_result import ToolResult
from tests.faults.meaning_parts import ORDERS
from tests.seams.model_parts import AGENTS, refund
from tests.seams.test_service import CLIENTS
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)
NEW = sorted(
    {*list_family_plugins("faults", "meaning")} - {"wrong_value", "tool_list"}
)  # tool_list hits only a list of tools of MCP
LIST: dict[str, Any] = {**ORDERS, "asked": 17}


def orders(number: int) -> dict[str, Any]:
    return {**LIST, "asked": number, "temp": 20 + number}


def shop(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A shop whose orders are asked for by POST, which is an effect."""
    body = json.dumps(orders(int(environ["PATH_INFO"].rpartition("/")[2]))).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def check(trial: lab.Trial, fault: str, got: list[Any]) -> None:
    """Checks that the second call met the fault and the first did not."""
    assert trial.error is None
    assert [event.fault for _, event in trial.history.find_events(FaultInjected)] == [fault]
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)] == [fault]
    assert json.loads(json.dumps(got[0])) == orders(1)
    assert json.loads(json.dumps(got[1])) != orders(2)
    assert len(trial.effects) == (1 if fault == "silent_no_op" else 2)


@pytest.mark.parametrize("fault", NEW)
def test_each_is_met_at_a_function(fault: str) -> None:
    got: list[Any] = []

    def agent(_: str) -> str:
        got.extend((orders(1), orders(2)))
        return "done"

    trial = lab.run(agent, "go", tools=[orders], faults=[lab.inject(fault, "orders", calls=[2])], effects=[])
    check(trial, fault, got)


@pytest.mark.parametrize("client", ["requests", "httpx, async", "a socket"])
@pytest.mark.parametrize("fault", NEW)
def test_each_is_met_at_a_service(fault: str, client: str) -> None:
    got: list[Any] = []

    def agent(_: str) -> str:
        for number in (1, 2):
            status, value = CLIENTS[client]("POST", f"/orders/{number}", {"number": number}, {})
            assert status == 200
            got.append(value)
        return "done"

    fault_on = lab.inject(fault, "shop", calls=[2])
    check(lab.run(agent, "go", services={"shop": shop}, faults=[fault_on], effects=[]), fault, got)


@pytest.mark.filterwarnings("ignore:.*changed nothing:chaoslab.NothingHit")
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("fault", NEW)
def test_at_a_model_it_does_no_harm(fault: str, agent: str) -> None:
    ask, host = AGENTS[agent]
    model = lab.scripted([lab.call("refund", order=17), "Order 17 is refunded."])
    services = {host: model, "shop.test": shop}  # with another one, since a model alone is refused
    trial = lab.run(ask, "Refund order 17", services=services, tools=[refund], faults=[lab.inject(fault, "*.*")])
    assert (trial.error, trial.answer) == (None, "Order 17 is refunded.")
    assert list(trial.history.find_events(FaultInjected)) == []


@dataclass(frozen=True)
class Receipt:
    order: int
    amount: float


def pay(order: int) -> Receipt:
    return Receipt(order, 30.0)


def note(order: int) -> str:
    return json.dumps({"noted": order})


def close(order: int) -> bool:
    return order > 0


def pays(_: str) -> str:
    return f"{pay(17)} {note(17)} {close(17)}"


def test_a_no_op_is_an_effect_that_is_missing_and_that_nobody_reports() -> None:
    """The judge says so by the effects that were to happen; what the answer says of it is not to be read."""
    honest = lab.run(pays, "Pay", tools=[pay, note, close])
    assert [each["effect"] for each in honest.effects] == ["pay", "note", "close"]
    faults = [lab.inject("silent_no_op", "note", calls=[1]), lab.inject("silent_no_op", "close", calls=[1])]
    trial = lab.run(pays, "Pay", tools=[pay, note, close], faults=faults)
    assert [each["effect"] for each in trial.effects] == ["pay"]
    assert trial.answer == 'Receipt(order=17, amount=30.0) {"ok": true, "order": 17} True'
    assert (trial.ok, trial.verdict.world, trial.outcome, trial.verdict.done) == (False, "left undone", "undone", False)


def test_a_functions_own_class_is_wrong_in_its_fields() -> None:
    faults = [lab.inject("unit_error", "pay", kind="hundred", calls=[1])]
    assert lab.run(pays, "Pay", tools=[pay, note, close], faults=faults).answer == (
        'Receipt(order=17, amount=3000.0) {"noted": 17} True'
    )


def test_an_old_answer_comes_again_after_a_change() -> None:
    stock = {"left": 3}

    def left() -> dict[str, int]:
        return dict(stock)

    def buy() -> str:
        stock["left"] -= 1
        return "bought"

    def agent(_: str) -> str:
        stock["left"] = 3
        before = left()
        buy()
        return f"{before} {left()}"

    trial = lab.run(agent, "Buy", tools=[buy], reads=[left], faults=[lab.inject("stale", "left", calls=[2])])
    assert trial.answer == "{'left': 3} {'left': 3}"
    assert len(trial.effects) == 1


def test_a_no_op_at_a_service_has_no_effect_and_answers_as_the_service_did_before() -> None:
    got: list[Any] = []

    def agent(_: str) -> str:
        for number in (1, 2):
            got.append(CLIENTS["requests"]("POST", f"/orders/{number}", {"number": number}, {}))
        return "done"

    no_op = lab.inject("silent_no_op", "shop", calls=[2])
    trial = lab.run(agent, "go", services={"shop": shop}, faults=[no_op], effects=[])
    assert [status for status, _ in got] == [200, 200]
    assert (got[1][1]["asked"], got[1][1]["temp"]) == (2, 21)  # its own number, and what the first order was told
    assert len(trial.effects) == 1
    first = lab.run(
        agent, "go", services={"shop": shop}, faults=[lab.inject("silent_no_op", "shop", calls=[1])], effects=[]
    )
    assert got[2][1] == {"ok": True, "number": 1}
    assert len(first.effects) == 1


def test_a_no_op_at_an_mcp_tool_is_a_result_of_the_sdks() -> None:
    types = pytest.importorskip("mcp.types")
    made = McpReturned.make_from_value({"ok": True})
    assert isinstance(made.native_result, types.CallToolResult)
    assert (made.value, made.ok, made.native_result.content[0].text) == ({"ok": True}, True, '{"ok": true}')
    assert ToolResult.make_from_value("done").native_result == {"content": [{"type": "text", "text": "done"}]}
