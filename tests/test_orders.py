"""A twin whose result depends on the order of its parallel calls is called that, and its trials are held against the
result in each order."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import permutations
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import TwinReordered
from chaoslab.execution.agents._orders import iterate_groups_to_hold_back
from chaoslab.record.history import History

account = {"balance": 0, "made": 0}
READ, WRITE = "read_balance", "write_balance"


async def read_balance(who: str) -> int:  # noqa: ARG001
    found = account["balance"]
    await asyncio.sleep(0.05)
    return found


async def write_balance(who: str, value: int) -> None:  # noqa: ARG001
    await asyncio.sleep(0.05)
    account["balance"] = value


def deposits(*, at_once: bool, tries: int = 1) -> Any:
    """Two deposits, of 5 and 10 to a balance of 100, each of which reads it and writes it."""

    def make() -> Callable[[str], Any]:
        account.update(balance=100, made=account["made"] + 1)

        async def deposit(who: str, amount: int) -> None:
            for _ in range(tries):
                with suppress(OSError):
                    return await write_balance(who, await read_balance(who) + amount)
            return None

        async def agent(prompt: str) -> str:  # noqa: ARG001
            if at_once:
                await asyncio.gather(deposit("a", 5), deposit("b", 10))
            else:
                await deposit("a", 5)
                await deposit("b", 10)
            return "Both are made."

        return agent

    account["made"] = 0
    return lab.fresh(make)


def trial(fault: Any, *, at_once: bool = True, tries: int = 1, **options: Any) -> lab.Trial:
    return lab.run(
        deposits(at_once=at_once, tries=tries),
        "Deposit 5 and 10.",
        reads=[read_balance, write_balance],
        faults=[fault],
        state=lambda: {"balance": account["balance"]},
        **options,
    )


def late(call: int) -> Any:
    return lab.inject("latency", READ, calls=[call], delay_s=1.0, stream="upstream")


@pytest.mark.parametrize("call", [1, 2])
def test_the_balance_that_the_twin_lost_an_update_of_is_right(call: int) -> None:
    found = trial(late(call))
    assert found.outcome == "correct"
    assert "depends on when read_balance 1 begins" in found.why
    assert found.warnings == (
        "the trial without faults has another result if read_balance 1 begins after the calls beside it: a race of the "
        "agent's",
    )
    states = {event.state["balance"] for _, event in found.history.find_events(TwinReordered)}
    assert 115 in states


def test_the_last_update_of_either_is_right_too() -> None:
    assert trial(lab.inject("refused", READ, calls=[1]), tries=3).outcome == "correct"


@pytest.mark.parametrize(
    ("fault", "tries", "outcome"),
    [
        (lab.inject("lost_reply", WRITE, calls=[2]), 3, "harm"),  # 120: in no order is it paid in three times
        (lab.inject("refused", WRITE), 1, "false_success"),
    ],
)
def test_what_is_wrong_in_each_order_is_wrong(fault: Any, tries: int, outcome: str) -> None:
    assert trial(fault, tries=tries).outcome == outcome


def test_no_further_trial_runs_where_calls_follow_each_other_or_the_trial_is_right() -> None:
    assert trial(lab.inject("wrong_value", READ, calls=[1]), at_once=False).outcome == "harm"
    assert account["made"] == 3  # twice without faults, once with them
    assert trial(lab.inject("latency", WRITE, calls=[2], delay_s=0.01)).outcome == "correct"
    assert account["made"] == 3


@pytest.mark.parametrize("many", [9, 16, 21])
def test_of_any_two_of_many_calls_each_once_begins_after_the_other(many: int) -> None:
    calls = [("", "pay", number) for number in range(many)]
    runs = [*iterate_groups_to_hold_back(calls)]
    assert len(runs) == 2 * (many - 1).bit_length()
    assert all(any(one in run and other not in run for run in runs) for one, other in permutations(calls, 2))


def test_where_not_each_order_was_tried_none_that_fits_is_open() -> None:
    async def pays(prompt: str) -> str:  # noqa: ARG001
        async def deposit(amount: int) -> None:
            await write_balance("a", await read_balance("a") + amount)

        await asyncio.gather(*map(deposit, range(1, 10)))
        return "All are made."

    def make() -> Callable[[str], Any]:
        account.update(balance=100)
        return pays

    found = lab.run(
        lab.fresh(make), "Deposit.", reads=[read_balance, write_balance], faults=[lab.inject("wrong_value", READ)],
        state=lambda: {"balance": account["balance"]},
    )  # fmt: skip
    assert any(event.together for _, event in found.history.find_events(TwinReordered))
    assert (found.outcome, found.verdict.done) == ("unknown", None), (found.why, account)


def test_the_log_alone_tells_the_same(tmp_path: Any) -> None:
    found = trial(late(1), logs=tmp_path)
    assert found.folder is not None
    assert (
        len(list(History.read(found.folder).find_events(TwinReordered)))
        == len(list(found.history.find_events(TwinReordered)))
        > 0
    )
    assert str(lab.load(found.folder).trials.iloc[0]["outcome"]) == "correct"
