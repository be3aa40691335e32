"""Advice comes from evidence alone: each rule speaks of the trials that show it, and is silent without one."""

import threading
from collections import Counter
from collections.abc import Callable
from html import unescape
from pathlib import Path

import httpx
import pytest

import chaoslab as lab
from chaoslab.analysis.measures.intervals import wilson_interval
from chaoslab.record.history import History
from chaoslab.reports import formats
from chaoslab.reports.contents import Contents


def order(*, amount: int) -> str:
    return f"ordered {amount}"


def price(*, item: str) -> dict[str, int]:
    return {"price": 4 * len(item)}


def careless(_prompt: str) -> str:
    """Tries again as if a timeout meant that nothing was done."""
    for _ in range(2):
        try:
            order(amount=3)
        except TimeoutError:
            continue
        break
    return "Ordered 3."


def boasting(_prompt: str) -> str:
    """Tells a success whatever came of it."""
    try:
        order(amount=3)
    except Exception:  # noqa: BLE001 - the agent's own fault
        return "Ordered 3."
    return "Ordered 3."


def honest(_prompt: str) -> str:
    try:
        order(amount=3)
    except Exception:  # noqa: BLE001
        return "I could not order 3: the shop failed."
    return "Ordered 3."


def trusting(_prompt: str) -> str:
    return f"It costs {price(item='pen')['price']}."


def stubborn(_prompt: str) -> str:
    for _ in range(8):
        try:
            return f"It costs {price(item='pen')['price']}."
        except TimeoutError:
            continue
    return "I could not find the price."


def endless(_prompt: str) -> str:
    try:
        price(item="pen")
    except Exception:  # noqa: BLE001
        threading.Event().wait()
    return "It costs 12."


SAYS = {"*": {"undone": "could not"}}


def contents(agent: Callable[[str], str], fault: str | None) -> Contents:
    faults = [lab.inject(fault, WHERE[agent])] if fault else []
    trial = lab.run(agent, "Do it.", tools=[order], reads=[price], effects=ORDERS.get(agent), faults=faults, says=SAYS)
    return Contents.from_source(trial.history, where="logs/run")


WHERE: dict[Callable[[str], str], str] = {
    careless: "order", boasting: "order", honest: "order", trusting: "price", stubborn: "price", endless: "price",
}  # fmt: skip
ORDERS: dict[Callable[[str], str], list[dict[str, object]]] = {
    agent: [{"effect": "order", "amount": 3}] for agent in (careless, boasting, honest)
}


@pytest.mark.parametrize(
    ("agent", "fault", "said", "remedy"),
    [
        (careless, "lost_reply", "Something was done more often than requested in 1 of 1 judged trial that met lost",
         "Idempotency-Key"),
        (boasting, "tool_error", "The request was not carried out, and the answer did not say so, in 1 of 1",
         "before it reports success"),
        (trusting, "wrong_value", "The answer, an effect or the end state had a wrong value in 1 of 1",
         "plausible range"),
        (honest, "timeout_before_effect", "A call that timed out, broke off or met a 429 or 5xx was not retried",
         "with a growing delay"),
        (stubborn, "timeout", "One request was attempted 6 times or more in 1 of 1 trials, 8 at most.",
         "limit its attempts"),
        (endless, "tool_error", "The agent would not have ended before its deadline, if ever, in 1 of 1",
         "a deadline"),
    ],
)  # fmt: skip
def test_a_rule_speaks_of_the_trials_that_show_it(
    agent: Callable[[str], str], fault: str, said: str, remedy: str
) -> None:
    found = contents(agent, fault)
    (one,) = [one for one in found.advice if remedy in one.do]
    assert one.seen.startswith(said)
    assert one.trials == ("p1.r1",)
    assert one.size.interval == wilson_interval(1, 1)
    for kind in ("html", "json", "markdown"):
        assert any(one.do in unescape(text) for text in formats.render_files(kind, found).values()), kind


@pytest.mark.parametrize("agent", WHERE, ids=lambda agent: agent.__name__)
def test_without_a_fault_there_is_no_advice(agent: Callable[[str], str]) -> None:
    assert contents(agent, None).advice == ()


def test_waiting_longer_stops_no_second_payment_so_it_does_not_come_first(tmp_path: Path) -> None:
    def hasty(_prompt: str) -> str:
        for _ in range(3):
            try:
                return f"Ordered {httpx.post('http://shop/orders', json={'amount': 3}, timeout=5).json()['amount']}."
            except httpx.TransportError:
                continue
        return "I could not order."

    services = {"shop": lambda request: (201, request.json)}
    fault = lab.inject("limit_data", "shop", max_times=1)
    lab.run(hasty, "Order 3.", services=services, faults=[fault], logs=tmp_path)
    first, second, *_ = Contents.from_source(History.read(tmp_path / "latest"), where="x").advice
    assert first.do.startswith("Send the same Idempotency-Key")
    assert second.do.startswith("Back off")


def test_first_comes_the_advice_against_harm(tmp_path: Path) -> None:
    """One order of a wrong amount weighs more than nine wrong answers."""

    def stock(*, item: str) -> int:
        return len(item)

    def guessing(_prompt: str) -> str:
        order(amount=price(item="pen")["price"])
        try:
            return f"Ordered, and {stock(item='pen')} are left."
        except TimeoutError:
            return "Ordered, and 5 are left."

    faults = [lab.inject("wrong_value", "price", chance=0.1), lab.inject("timeout", "stock", chance=0.4)]
    run = lab.run_many(
        guessing, "Order a pen.", trials=20, tools=[order], reads=[price, stock], faults=faults, logs=tmp_path
    )
    assert Counter(str(trial.outcome) for trial in run) == {"correct": 10, "wrong": 9, "harm": 1}
    first, second, *_ = Contents.from_source(History.read(tmp_path / "latest"), where="x").advice
    assert first.seen.endswith("had a wrong value in 1 of 1 judged trial that met wrong_value.")
    assert second.size.count == 9
