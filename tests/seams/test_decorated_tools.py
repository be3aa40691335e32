"""Tools as people write them: in decorators, partials and generators. Faults are met where the work is done."""

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import tenacity

import chaoslab as lab


def retried(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def again(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TimeoutError:
            time.sleep(1)
            return function(*args, **kwargs)

    return again


def retried_later(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def again(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except TimeoutError:
            await asyncio.sleep(1)
            return await function(*args, **kwargs)

    return again


@retried
def refund(order: int) -> str:
    return f"{order} refunded"


@tenacity.retry(stop=tenacity.stop_after_attempt(2), wait=tenacity.wait_fixed(1))
def by_tenacity(order: int) -> str:
    return f"{order} refunded"


@retried_later
async def soon(order: int) -> str:
    return f"{order} refunded"


class Shop:
    @retried
    def pay(self, order: int) -> str:
        return f"{order} refunded"


SHOP = Shop()


async def answered(call: Callable[[int], Any]) -> str:
    given = call(17)
    return str(await given if asyncio.iscoroutine(given) else given)


@pytest.mark.parametrize(
    ("tool", "call"),
    [(refund, refund), (by_tenacity, by_tenacity), (soon, soon), (SHOP.pay, SHOP.pay), (Shop.pay, SHOP.pay)],
    ids=["own", "tenacity", "async", "method", "method of a class"],
)
def test_a_decorator_that_tries_again_does_so_when_a_reply_is_lost(tool: Any, call: Any) -> None:
    trial = lab.run(
        lambda _: answered(call), "go", tools=[tool], faults=[lab.inject("lost_reply", tool.__name__, calls=[1])]
    )
    assert (trial.answer, trial.seconds) == ("17 refunded", 31)
    assert (trial.outcome, trial.effects) == (lab.Outcome.HARM, [{"effect": tool.__name__, "order": 17}] * 2)
    assert call is not refund or refund(18) == "18 refunded"


def test_the_decorators_within_a_frameworks_tool_are_gone_into_too() -> None:
    from pydantic_ai import Tool

    tool: Any = Tool(by_tenacity)
    trial = lab.run(
        lambda _: tool.function(17), "go", tools=[tool], faults=[lab.inject("lost_reply", "by_tenacity", calls=[1])]
    )
    assert (trial.answer, trial.seconds) == ("17 refunded", 31)
    assert trial.effects == [{"effect": "by_tenacity", "order": 17}] * 2


def kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """A cache as those of libraries are."""
    found: dict[Any, Any] = {}

    @functools.wraps(function)
    def look(*args: Any) -> Any:
        if args not in found:
            found[args] = function(*args)
        return found[args]

    look.cache = found  # type: ignore[attr-defined]
    return look


@kept
def price(order: int) -> int:
    return {17: 30}[order]


def test_a_cache_is_asked_in_each_trial_though_its_function_is_not() -> None:
    trial = lab.run(lambda _: f"It is {price(17)}.", "go", reads=[price], faults=[lab.inject("wrong_value", "price")])
    assert (trial.outcome, trial.warnings) == (lab.Outcome.WRONG, ())


def asked_politely(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def ask(order: int) -> Any:
        return function(order)

    ask.__name__ = "polite"
    return ask


def test_two_tools_may_decorate_one_function() -> None:
    polite = asked_politely(refund)
    faults = [lab.inject("tool_error", "polite", status=500)]

    def agent(_: str) -> str:
        try:
            return str(polite(17))
        except lab.ToolError:
            return str(refund(17))

    trial = lab.run(agent, "go", tools=[polite, refund], faults=faults)
    assert trial.effects == [{"effect": "refund", "order": 17}]


def test_a_partial_has_its_functions_name_and_what_it_holds_is_no_argument() -> None:
    bound = functools.partial(Shop.pay, SHOP)

    def agent(_: str) -> str:
        try:
            return str(bound(17))
        except TimeoutError:
            return str(bound(17))

    trial = lab.run(agent, "go", tools=[bound], faults=[lab.inject("lost_reply", "pay")])
    assert (trial.effects, trial.warnings) == ([{"effect": "pay", "order": 17}] * 2, ())


def test_two_partials_of_one_function_have_the_names_that_they_were_given() -> None:
    def charge(by: str, order: int) -> str:
        return f"{order} by {by}"

    by_card, by_cash = functools.partial(charge, "card"), functools.partial(charge, "cash")
    by_card.__name__, by_cash.__name__ = "card", "cash"  # type: ignore[attr-defined]
    trial = lab.run(
        lambda _: by_card(17) + by_cash(18), "go", tools=[by_card, by_cash], faults=[lab.inject("latency", "cash")]
    )
    assert trial.answer == "17 by card18 by cash"
    assert trial.effects == [{"effect": "card", "order": 17}, {"effect": "cash", "order": 18}]


def rows(query: str) -> Iterator[str]:
    yield query
    yield "b"


async def rows_later(query: str) -> AsyncIterator[str]:
    yield query
    await asyncio.sleep(1)
    yield "b"


async def read(call: Callable[[str], Any]) -> list[str]:
    found = call("a")
    return [row async for row in found] if hasattr(found, "__aiter__") else list(found)


@pytest.mark.parametrize("tool", [rows, rows_later])
@pytest.mark.parametrize(
    ("fault", "items"), [(None, ["a", "b"]), ("empty", []), ("html_instead_of_json", 1), ("latency", ["a", "b"])]
)
def test_a_generator_that_a_fault_answers_for_gives_items(tool: Any, fault: str | None, items: Any) -> None:
    params: dict[str, Any] = {"delay_s": 5.0} if fault == "latency" else {}
    faults = [lab.inject(fault, tool.__name__, **params)] if fault else []
    trial = lab.run(lambda _: read(tool), "go", reads=[tool], faults=faults)
    assert isinstance(trial.answer, list)
    assert trial.answer == items or len(trial.answer) == items


def test_a_late_async_generator_holds_up_nobody_else() -> None:
    async def agent(_: str) -> str:
        async def other() -> float:
            began = time.monotonic()
            await asyncio.sleep(2)
            return time.monotonic() - began

        found, took_s = await asyncio.gather(read(rows_later), other())
        return f"{found} {took_s:g}"

    trial = lab.run(agent, "go", reads=[rows_later], faults=[lab.inject("latency", "rows_later", delay_s=5.0)])
    assert (trial.answer, trial.seconds) == ("['a', 'b'] 2", 6)
