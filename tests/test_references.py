"""A fake is found in every place where a program may hold a function, and afterwards the function again."""

import functools
import sys
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import pytest

from chaoslab.seams.functions.references import References


def real() -> str:
    return "real"


def new() -> Callable[[], str]:
    return lambda: "fake"


def by_global() -> str:
    return real()


def by_held() -> str:
    return held()  # type: ignore[name-defined,no-any-return]  # noqa: F821 - the globals are each test's


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
    lambda: by_global, lambda: through_another, lambda: by_default, by_closure, ByAttribute, Slotted, in_a_ring,
    of_a_module,
    lambda: functools.partial(functools.partial(by_default), other=real), lambda: ByAttribute().by_method,
    lambda: ByAttribute().__call__,
]  # fmt: skip


@pytest.mark.parametrize("make", MAKERS)
def test_the_stand_in_is_called_meanwhile_and_never_after(make: Callable[[], Any]) -> None:
    agent = make()
    for _ in range(2):
        before = agent()
        assert set(before.split()) == {"real"}
        with References([agent], [(real, new())]) as swapped:
            assert set(agent().split()) == {"fake"}
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
        assert held[1]() == "fake"
    assert held[1] is real


def other() -> str:
    return "other"


def other_new() -> Callable[[], str]:
    return lambda: "other fake"


@pytest.mark.parametrize("make", [list, deque])
def test_in_a_list_that_the_program_changed_only_the_stand_ins_are_exchanged_wherever_they_are(make: Any) -> None:
    turned, emptied = make([other, real]), make([real])
    with References([[turned, emptied, by_global]], [(real, new()), (other, other_new())]):
        assert [tool() for tool in turned] == ["other fake", "fake"]
        turned.reverse()
        turned.insert(0, "note")
        turned.append(turned[1])
        emptied.pop()
    assert (list(turned), list(emptied)) == (["note", real, other, real], [])
    assert by_global() == "real"


def test_what_the_program_deleted_stays_deleted_and_what_it_put_in_its_place_stays_there() -> None:
    table: dict[str, Any] = {"gone": real, "replaced": real, "moved": real, "in a tuple": ("a", real), "left": real}
    holder, ring = SimpleNamespace(tool=real, left=real), Slotted()
    with References([[table, holder, ring]], [(real, new())]):
        del table["gone"]
        table["replaced"] = "a note"
        table["there"] = table.pop("moved")
        holder.tool = ring.tool = other
    assert table == {"replaced": "a note", "there": real, "in a tuple": ("a", real), "left": real}
    assert (vars(holder), ring.tool) == ({"tool": other, "left": real}, other)


bound_anew: Callable[[], str] = real


def test_a_global_and_a_closed_over_name_that_the_program_bound_anew_stay_as_it_bound_them() -> None:
    held: Callable[[], str] = real

    def agent() -> str:
        global bound_anew  # noqa: PLW0603 - an agent may bind names anew
        nonlocal held
        before = f"{held()} {bound_anew()}"
        held = bound_anew = other
        return before

    with References([agent], [(real, new())]):
        assert agent() == "fake fake"
    assert (held, bound_anew) == (other, other)


class Refusing(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError("read only")

    def items(self) -> Any:
        raise RuntimeError("not to be listed")


class RefusingList(list[Any]):
    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("read only")

    def __iter__(self) -> Any:
        raise RuntimeError("not to be listed")


class RefusingType(type):
    def __setattr__(cls, name: str, value: Any) -> None:
        raise TypeError("read only")


class OfRefusingType(metaclass=RefusingType):
    tool = staticmethod(real)


class KindWithoutHash(type):
    def __eq__(cls, other: object) -> bool:
        raise TypeError("not to be compared")

    __hash__ = None  # type: ignore[assignment]


class OfKindWithoutHash(Slotted, metaclass=KindWithoutHash): ...


@dataclass(frozen=True, slots=True)
class Frozen:
    tool: Callable[[], str]


class Hidden:
    __slots__ = ("__tool",)

    def __init__(self) -> None:
        self.__tool = real

    def call(self) -> str:
        return self.__tool()


HOLDERS: list[tuple[Any, Callable[[Any], str]]] = [
    (Refusing(tool=real), lambda held: held["tool"]()), (OrderedDict(tool=real), lambda held: held["tool"]()),
    (RefusingList([real]), lambda held: held[0]()), (OfRefusingType, lambda held: held.tool()),
    (Frozen(real), lambda held: held.tool()), (OfKindWithoutHash(), OfKindWithoutHash.__call__),
    (Hidden(), Hidden.call),
]  # fmt: skip


@pytest.mark.parametrize(("held", "call"), HOLDERS)
def test_a_holder_with_a_will_of_its_own_is_not_asked(held: Any, call: Callable[[Any], str]) -> None:
    with References([held], [(real, new())]):
        assert call(held) == "fake"
    assert call(held) == "real"


class Alarm(BaseException): ...


class Ringing(Slotted):
    armed = False

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        if self.armed:
            raise Alarm
        return {}


def test_when_one_place_cannot_be_put_back_all_others_are_and_then_it_is_said() -> None:
    first, rings, last = [real], Ringing(), [real]

    def block() -> None:
        with References([first, rings, last], [(real, new())]):
            assert (first[0](), rings(), last[0]()) == ("fake",) * 3
            Ringing.armed = True

    with pytest.raises(Alarm):
        block()
    assert (first, last) == ([real], [real])


def test_what_functools_tells_of_a_wrapped_function_is_no_way_to_it() -> None:
    cached = functools.lru_cache(real)
    with References([lambda: cached()], [(real, new())]) as swapped:
        assert (swapped.count, cached()) == ([0], "real")

    def logged(tool: Callable[[], str]) -> Callable[[], str]:
        return functools.wraps(tool)(lambda: tool())

    wrapper = logged(real)
    with References([lambda: wrapper()], [(real, new())]) as swapped:
        assert (swapped.count, wrapper()) == ([1], "fake")
    assert wrapper() == "real"


def test_what_a_cached_function_calls_is_reached_through_it() -> None:
    cached = functools.lru_cache(by_global)
    with References([lambda: cached()], [(real, new())]):
        assert cached() == "fake"


class Decorated:
    """A wrapper of the program's own calls what it names `__wrapped__`."""

    def __init__(self, function: Callable[[], str]) -> None:
        self.__wrapped__ = function

    def __call__(self) -> str:
        return self.__wrapped__()


def test_a_wrapper_written_in_python_may_call_what_it_says_it_wraps() -> None:
    tool = Decorated(real)
    with References([lambda: tool()], [(real, new())]) as swapped:
        assert (swapped.count, tool()) == ([1], "fake")


def test_of_the_lab_only_the_module_of_its_own_program_is_followed() -> None:
    """An agent of the lab's own, such as one that makes the operations of a scenario, may come upon a fake of the
    virtual world, which keeps the real thing in a global. Python 3.13 has one in each dataclass's `__repr__`."""

    def in_module(name: str, held: Callable[[], str]) -> Callable[[], str]:
        return FunctionType(by_held.__code__, {"__name__": name, "held": held})

    keeper = in_module("chaoslab.worlds.virtual.stand_in", held=real)
    agent = in_module("chaoslab.execution.agent", held=keeper)
    with References([agent], [(real, new())]) as swapped:
        assert (swapped.count, agent()) == ([0], "real")
    own = in_module("chaoslab.execution.agent", held=real)
    with References([own], [(real, new())]) as swapped:
        assert (swapped.count, own()) == ([1], "fake")
