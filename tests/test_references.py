"""Wherever a program may hold a function, the stand-in is found there, and afterwards the function again."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from chaoslab.references import References


def real() -> str:
    return "real"


def new() -> Callable[[], str]:
    return lambda: "stand-in"


def by_global() -> str:
    return real()


def through_another() -> str:
    return by_global()


def by_default(tool: Callable[[], str] = real, *, other: Callable[[], str] = real) -> str:
    return f"{tool()} {other()}"


def by_closure() -> Callable[[], str]:
    held = real

    def agent() -> str:
        def inner() -> str:
            return held()

        return inner()

    return agent


class Slotted:
    __slots__ = ("never_set", "tool")

    def __init__(self) -> None:
        self.tool = real

    def __call__(self) -> str:
        return self.tool()


class ByAttribute:
    of_class = staticmethod(real)

    def __init__(self) -> None:
        self.table: dict[str, Any] = {"tools": [("refund", real)], "deep": {"er": (1, (2, real))}}
        self.called = functools.partial(real)

    def __call__(self) -> str:
        listed = self.table["tools"][0][1]()
        return f"{self.of_class()} {listed} {self.table['deep']['er'][1][1]()} {self.called()} {self.by_method()}"

    def by_method(self) -> str:
        return through_another()


@dataclass
class Node:
    tools: list[Any] = field(default_factory=list)
    after: Any = None


def in_a_ring() -> Callable[[], str]:
    first, second = Node(), Node([real])
    first.after, second.after = second, first
    namespace = SimpleNamespace(start=first)
    return lambda: str(namespace.start.after.after.after.tools[0]())


def of_a_module() -> Callable[[], str]:
    module = ModuleType("a_shop")
    vars(module).update(refund=real, __file__="a_shop.py")
    sys.modules["a_shop"] = module

    def agent() -> str:
        import a_shop  # type: ignore[import-not-found]

        return str(a_shop.refund())

    return agent


MAKERS: list[Callable[[], Any]] = [
    lambda: by_global, lambda: through_another, lambda: by_default, by_closure, ByAttribute, Slotted, in_a_ring, of_a_module,
    lambda: functools.partial(functools.partial(by_default), other=real), lambda: ByAttribute().by_method, lambda: ByAttribute().__call__,
]  # fmt: skip


@pytest.mark.parametrize("make", MAKERS)
def test_the_stand_in_is_called_meanwhile_and_never_after(make: Callable[[], Any]) -> None:
    agent = make()
    for _ in range(2):
        before = agent()
        assert set(before.split()) == {"real"}
        with References([agent], [(real, new())]) as swapped:
            assert set(agent().split()) == {"stand-in"}
            assert swapped.count[0] >= 1
        assert agent() == before
    sys.modules.pop("a_shop", None)


def test_what_the_program_cannot_reach_is_left_alone() -> None:
    elsewhere = {"tool": real}
    with References([by_global], [(real, new())]):
        assert elsewhere["tool"]() == "real"


def test_a_program_without_a_way_to_it_counts_none() -> None:
    with References([lambda: "nothing"], [(real, new())]) as swapped:
        assert swapped.count == [0]


class Owner:
    def __init__(self, name: str) -> None:
        self.name = name

    def tool(self) -> str:
        return self.name

    def agent(self) -> str:
        return self.tool()


def test_a_bound_method_is_swapped_on_its_own_object_alone_and_where_it_is_held() -> None:
    mine, other = Owner("real"), Owner("real")
    kept = [mine.tool, other.tool]
    with References([mine.agent, other.agent, kept], [(mine.tool, new())]):
        assert (mine.agent(), other.agent()) == ("stand-in", "real")
        assert [tool() for tool in kept] == ["stand-in", "real"]
    assert (mine.agent(), vars(mine)) == ("real", {"name": "real"})
    assert [tool() for tool in kept] == ["real", "real"]


def test_it_is_undone_when_the_block_raises() -> None:
    def block() -> None:
        with References([by_global], [(real, new())]):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert by_global() == "real"


def test_an_object_that_lies_about_itself_does_no_harm() -> None:
    class Liar:
        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise RuntimeError("no request is being handled")

        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            raise RuntimeError("no request is being handled")

    held: list[Any] = [Liar(), real]
    with References([held], [(real, new())]):
        assert held[1]() == "stand-in"
    assert held[1] is real
