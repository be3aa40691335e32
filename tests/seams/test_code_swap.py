"""A function is swapped in place: whoever holds it calls the fake, and nothing else about it changes."""

import asyncio
import functools
import inspect
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from pydantic import validate_call

import chaoslab as lab
from chaoslab.seams.functions import code_swap
from chaoslab.seams.functions.inside import find_enclosed_function
from chaoslab.seams.functions.references import is_library_module


def refund(order: int, *, amount: float = 1.0) -> str:
    """Refunds an order."""
    return f"{order}: {amount:g}"


def doubled(real: Callable[..., Any]) -> Callable[..., Any]:
    """A fake that calls what it replaces, and tells that it was there."""

    def stand_in(*args: Any, **kwargs: Any) -> str:
        return f"<{real(*args, **kwargs)}>"

    return stand_in


def test_whoever_holds_the_function_calls_its_stand_in_and_afterwards_the_function() -> None:
    held: dict[str, Any] = {
        "registry": refund,
        "by rust": validate_call(refund),
        "partly": functools.partial(refund, amount=2),
    }
    code = refund.__code__
    with code_swap.swap_code(refund, doubled):
        assert {name: call(order=17) for name, call in held.items()} == {
            "registry": "<17: 1>", "by rust": "<17: 1>", "partly": "<17: 2>",
        }  # fmt: skip
    assert [call(order=17) for call in held.values()] == ["17: 1", "17: 1", "17: 2"]
    assert refund.__code__ is code
    assert not vars(refund)


def test_signature_kind_and_source_stay() -> None:
    told = inspect.signature(refund), inspect.getsource(refund), refund.__doc__, inspect.unwrap(refund)
    with code_swap.swap_code(refund, doubled):
        assert (inspect.signature(refund), inspect.getsource(refund), refund.__doc__, inspect.unwrap(refund)) == told
        with pytest.raises(TypeError, match=r"refund\(\) missing 1 required positional argument: 'order'"):
            refund()  # type: ignore[call-arg]


def test_a_stated_signature_is_there_again_afterwards() -> None:
    def any_of(*args: Any) -> Any:
        return len(args)

    stated = inspect.signature(refund)
    any_of.__signature__ = stated  # type: ignore[attr-defined]
    with code_swap.swap_code(any_of, doubled):
        assert (inspect.signature(any_of), any_of(1, 2)) == (stated, "<2>")
    assert vars(any_of) == {"__signature__": stated}


def test_what_a_function_closes_over_may_change_meanwhile() -> None:
    count = 0

    def counted() -> Any:
        nonlocal count
        count += 1
        return count

    with code_swap.swap_code(counted, doubled):
        assert (counted(), counted()) == ("<1>", "<2>")
    assert (counted(), count) == (3, 3)


async def later(order: int) -> str:
    await asyncio.sleep(0)
    return str(order)


def parts(order: int) -> Iterator[int]:
    yield order
    yield order + 1


async def parts_later(order: int) -> AsyncIterator[int]:
    yield order
    yield order + 1


def test_a_coroutine_function_and_generators_stay_what_they_are() -> None:
    async def all_of() -> tuple[Any, ...]:
        return await later(1), list(parts(2)), [each async for each in parts_later(3)]

    met: list[str] = []

    def noted(real: Any) -> Callable[..., Any]:
        def stand_in(*args: Any) -> Any:
            met.append(real.__name__)
            return real(*args)

        return stand_in

    with code_swap.swap_code(later, noted), code_swap.swap_code(parts, noted), code_swap.swap_code(parts_later, noted):
        kinds = (inspect.iscoroutinefunction(later), inspect.isgeneratorfunction(parts))
        assert (*kinds, inspect.isasyncgenfunction(parts_later)) == (True, True, True)
        assert asyncio.run(all_of()) == ("1", [2, 3], [3, 4])
    assert met == ["later", "parts", "parts_later"]


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    def refund(self, order: int) -> str:
        return f"{self.name} {order}"

    def __call__(self, order: int) -> str:
        return f"called {self.name} {order}"

    @classmethod
    def of_class(cls, order: int) -> str:
        return f"{cls.__name__} {order}"

    @staticmethod
    def of_none(order: int) -> str:
        return f"none {order}"


class Branch(Shop): ...


def test_a_method_is_swapped_on_its_own_object_alone_however_it_is_called() -> None:
    mine, other = Shop("mine"), Branch("other")
    held = mine.refund
    with code_swap.swap_code(mine.refund, doubled):
        assert [mine.refund(1), held(2), Shop.refund(mine, 3)] == ["<mine 1>", "<mine 2>", "<mine 3>"]
        assert [other.refund(1), Shop.refund(other, order=2)] == ["other 1", "other 2"]
    assert (mine.refund(1), vars(mine)) == ("mine 1", {"name": "mine"})


def test_an_object_that_can_be_called_and_methods_of_a_class() -> None:
    mine, other = Shop("mine"), Shop("other")
    with code_swap.swap_code(mine, doubled):
        assert [mine(1), other(1)] == ["<called mine 1>", "called other 1"]
    with code_swap.swap_code(Shop.of_class, doubled):
        assert [Shop.of_class(1), mine.of_class(1)] == ["<Shop 1>"] * 2
    with code_swap.swap_code(Shop.of_none, doubled), code_swap.swap_code(Shop.refund, doubled):
        assert [mine.of_none(1), other.refund(1)] == ["<none 1>", "<other 1>"]
    assert [mine(1), Shop.of_class(1), mine.of_none(1)] == ["called mine 1", "Shop 1", "none 1"]


def test_two_objects_of_one_class_and_a_recursion_are_kept_apart() -> None:
    first, second, third = Shop("first"), Shop("second"), Shop("third")
    with code_swap.swap_code(first.refund, doubled), code_swap.swap_code(second.refund, lambda _: str):
        assert [shop.refund(1) for shop in (first, second, third)] == ["<first 1>", "1", "third 1"]

    def down(n: int) -> str:
        return "0" if n == 0 else down(n - 1)

    with code_swap.swap_code(down, doubled):
        assert down(2) == "<<<0>>>"


def test_a_partial_is_swapped_where_it_is_and_its_function_is_not() -> None:
    fixed = functools.partial(refund, amount=3)
    held = [fixed]
    assert code_swap.can_swap(fixed)
    with code_swap.swap_code(fixed, doubled):
        assert (held[0](order=1), refund(1)) == ("<1: 3>", "1: 1")
    assert (held[0](order=1), fixed.func, fixed.args, fixed.keywords) == ("1: 3", refund, (), {"amount": 3})


@pytest.mark.parametrize("thing", [len, str.upper, Shop, functools.lru_cache(refund), inspect.signature])
def test_what_has_no_code_of_its_own_or_is_the_labs_too_is_not_swapped(thing: Any) -> None:
    assert not code_swap.can_swap(thing)
    with pytest.raises(TypeError, match="has no code in Python"), code_swap.swap_code(thing, doubled):
        raise AssertionError


def fails(order: int) -> str:
    return str(order / 0)


async def fails_later(order: int) -> str:
    await asyncio.sleep(0)
    return fails(order)


@pytest.mark.parametrize("fault", [None, "refused", "tool_error"])
@pytest.mark.parametrize("tool", [fails, fails_later])
def test_the_traceback_of_a_tools_error_shows_no_file_of_the_lab(tool: Any, fault: str | None) -> None:
    told: list[str] = []

    async def agent(_: str) -> str:
        try:
            answer = tool(17)
            return str(await answer if inspect.isawaitable(answer) else answer)
        except Exception:  # noqa: BLE001 - whatever it is, a framework shows it to the model
            told.append(traceback.format_exc())
            return "failed"

    faults = [] if fault is None else [lab.inject(fault, tool.__name__)]
    lab.run(agent, "go", tools=[tool], faults=faults, twin=False, effects=[])
    kinds = {None: "ZeroDivisionError", "refused": "ConnectionRefusedError", "tool_error": "ToolError"}
    assert kinds[fault] in told[0]
    assert "chaoslab/" not in told[0].replace("chaoslab.seams.functions.seam.ToolError", "")
    assert f"in {tool.__name__}" in told[0]


class Remembering:
    def __init__(self, name: str) -> None:
        self.name = name

    @functools.lru_cache(8)  # noqa: B019 - as people write it
    def refund(self, order: int) -> str:
        return f"{self.name} {order}"


def test_a_method_behind_a_cache_is_met_on_its_own_object() -> None:
    mine, other = Remembering("mine"), Remembering("other")
    trial = lab.run(
        lambda _: [mine.refund(17), mine.refund(17), other.refund(17)], "go", tools=[mine.refund], anyway=True
    )
    assert (trial.answer, trial.warnings) == (["mine 17", "mine 17", "other 17"], ())
    assert trial.effects == [{"effect": "refund", "order": 17}] * 2
    assert isinstance(vars(Remembering)["refund"], type(functools.lru_cache(refund)))


def test_an_error_of_the_functions_own_keeps_its_cause() -> None:
    def wrapped() -> None:
        try:
            fails(1)
        except ZeroDivisionError as error:
            raise LookupError("no such order") from error

    with code_swap.swap_code(wrapped, lambda real: lambda: real()), pytest.raises(LookupError) as raised:
        wrapped()
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_threads_may_call_it_while_it_is_swapped() -> None:
    with code_swap.swap_code(refund, doubled), ThreadPoolExecutor(4) as pool:
        assert set(pool.map(cast("Any", refund), [7] * 200)) == {"<7: 1>"}


@pytest.mark.parametrize(
    ("module", "there"),
    [("json.decoder", True), ("chaoslab.any", True), ("pytest", True), (__name__, False), ("no", False)],
)
def test_a_module_of_python_the_lab_or_a_package_is_none_of_the_user_s(module: str, there: bool) -> None:
    assert is_library_module(module) is there


def test_a_function_is_found_in_its_decorators_but_for_the_labs_own() -> None:
    def refund() -> None: ...

    def around(inner: Any) -> Any:
        @functools.wraps(inner)
        def outer(*args: Any) -> Any:
            return inner(*args)

        return outer

    assert (
        code_swap.find_inner_function(around(around(refund)))
        is find_enclosed_function(around(around(refund)))
        is refund
    )
    of_lab = around(code_swap.can_swap)
    assert code_swap.find_inner_function(of_lab) is of_lab
