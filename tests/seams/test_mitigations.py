"""A mitigation that a search tries: what it changes of a call, sync and async, once and again."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from chaoslab.base.clock import system
from chaoslab.seams.functions.mitigations import KINDS
from chaoslab.seams.functions.wrapped import WrappedFunction


class Client:
    """An agent's calls of one function through a mitigation. The errors are of what lies between it and the service;
    `lost`: the service has done the work before."""

    def __init__(self, kind: str, monkeypatch: pytest.MonkeyPatch, *, effect: bool = True, later: bool = False) -> None:
        self.kind, self.worked, self.waits = KINDS[kind](), list[Any](), list[float]()
        self.errors: list[str] = []
        monkeypatch.setattr(type(system), "sleep", lambda _, delay_s: self.waits.append(delay_s))

        async def sleep_async(_: Any, delay_s: float) -> None:
            self.waits.append(delay_s)

        monkeypatch.setattr(type(system), "sleep_async", sleep_async)

        def pay(order: int) -> int:
            self.worked.append(order)
            return len(self.worked)

        async def pay_later(order: int) -> int:
            return pay(order)

        tool = WrappedFunction("pay", pay_later if later else pay, effect=effect)
        inner = self.kind.wrap_service_side(tool)
        self.keyed = inner.keyed
        work: Callable[..., Any] = inner.function

        def made(order: int) -> Any:
            error = self.errors.pop(0) if self.errors else ""
            if error == "refused":
                raise ConnectionError(error)
            result = work(order)
            if error == "lost":
                raise TimeoutError(error)
            return result

        async def made_later(order: int) -> Any:
            error = self.errors.pop(0) if self.errors else ""
            if error == "refused":
                raise ConnectionError(error)
            result = await work(order)
            if error == "lost":
                raise TimeoutError(error)
            return result

        around = self.kind.wrap_client_side(tool, made_later if later else made)
        self.call: Callable[[int], Any] = around
        if later:
            self.call = lambda order: asyncio.run(around(order))

    def tells(self, *orders: int, errors: str = "") -> list[Any]:
        self.errors = errors.split()
        found = list[Any]()
        for order in orders:
            try:
                found.append(self.call(order))
            except (ConnectionError, TimeoutError) as error:
                found.append(str(error))
        return found


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("kind", "effect", "errors", "found", "worked", "waits"),
    [
        ("key", True, "lost", ["lost", 1, 1, 2], [7, 8], []),
        ("key", True, "refused", ["refused", 1, 1, 2], [7, 8], []),
        ("key", False, "lost", ["lost", 2, 3, 4], [7, 7, 7, 8], []),
        ("no-retry", True, "lost", ["lost", "lost", "lost", 2], [7, 8], []),
        ("no-retry", True, "refused", ["refused", "refused", "refused", 1], [8], []),
        ("no-retry", False, "lost", ["lost", 2, 3, 4], [7, 7, 7, 8], []),
        ("read-first", True, "lost", ["lost", 1, 1, 2], [7, 8], []),
        ("read-first", True, "refused", ["refused", 1, 1, 2], [7, 8], []),
        ("read-first", True, "", [1, 2, 3, 4], [7, 7, 7, 8], []),
        ("read-first", False, "lost", ["lost", 2, 3, 4], [7, 7, 7, 8], []),
        ("backoff", True, "lost lost refused", ["lost", "lost", "refused", 3], [7, 7, 8], [1.0, 2.0, 4.0]),
        ("backoff", False, "refused", ["refused", 1, 2, 3], [7, 7, 8], [1.0]),
    ],
)  # fmt: skip
def test_a_mitigation_changes_what_a_failed_call_does_again(
    kind: str, effect: bool, errors: str, found: list[Any], worked: list[int], waits: list[float], later: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    client = Client(kind, monkeypatch, effect=effect, later=later)
    assert client.tells(7, 7, 7, 8, errors=errors) == found
    assert (client.worked, client.waits) == (worked, waits)
    assert client.keyed == (kind == "key" and effect)
    client.kind.forget_last_trial()  # another trial has none of it
    before = len(client.worked)
    assert client.tells(7) == [before + 1]
    assert client.waits == waits


def test_waits_grow_to_a_minute_and_a_generator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client("backoff", monkeypatch)
    client.tells(*[7] * 9, errors="refused " * 9)
    assert client.waits == [1, 2, 4, 8, 16, 32, 60, 60]

    def items() -> Any:
        yield 1

    tool = WrappedFunction("items", items, effect=True)
    for kind in KINDS.values():
        assert kind().wrap_service_side(tool) is tool
        assert kind().wrap_client_side(tool, items) is items


@pytest.mark.parametrize("kind", KINDS)
def test_the_functions_own_stop_iteration_reaches_its_caller(kind: str) -> None:
    def run_dry(_: int) -> Any:
        return next(iter([]))

    tool = WrappedFunction("take", run_dry, effect=True)
    mitigation = KINDS[kind]()
    with pytest.raises(StopIteration):
        mitigation.wrap_client_side(tool, mitigation.wrap_service_side(tool).function)(1)
