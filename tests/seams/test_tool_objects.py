"""Tools that are no plain functions, of no framework that the lab knows: led to their function, named, or refused."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any

import pytest
from pydantic import BaseModel

import chaoslab as lab
from chaoslab.core.events import CallStarted, FaultWitnessed
from chaoslab.core.exchange import Reply
from chaoslab.seams.functions.wrapped import Returned, WrappedFunction

RAN: list[int] = []


@pytest.fixture(autouse=True)
def none_ran() -> None:
    RAN.clear()


def refund(order: int) -> str:
    RAN.append(order)
    return f"refunded {order}"


class Held:
    """A tool that keeps its function in an attribute, and may be called as an object too."""

    attribute: str

    def __init__(self, attribute: str, function: Any, **more: Any) -> None:
        vars(self).update({attribute: function, "attribute": attribute, **more})

    def __call__(self, **arguments: Any) -> Any:
        return vars(self)[self.attribute](**arguments)

    def execute(self, **arguments: Any) -> Any:
        return vars(self)[self.attribute](**arguments)


class Uncallable:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.name, self.function = "refund", function

    def invoke(self, **arguments: Any) -> Any:
        return self.function(**arguments)

    execute = invoke


class Shop:
    def refund(self, order: int) -> str:
        return refund(order)


class Decorator:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.inner = function
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner(*args, **kwargs)

    execute = __call__


def closing_over(function: Callable[..., Any]) -> Any:
    class Closing:
        name = "refund"

        def __call__(self, **arguments: Any) -> Any:
            return function(**arguments)

        def execute(self, **arguments: Any) -> Any:
            return function(**arguments)

    return Closing()


def wrapped_by_a_library(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        return function(**arguments)

    call.__module__ = pytest.__name__
    return call


LED: dict[str, Callable[[], Any]] = {
    "mirascope's": lambda: Held("fn", refund, name="refund", __name__="refund"),
    "camel's": lambda: Held("func", refund),
    "semantic-kernel's": lambda: Held("method", Shop().refund, name="refund"),
    "haystack's": lambda: Uncallable(refund),
    "a private attribute": lambda: Held("_func", refund),
    "a decorator that is an object": lambda: Decorator(refund),
    "a partial": lambda: Held("fn", partial(refund), name="refund"),
    "one in another": lambda: Held("fn", Held("func", refund), name="refund"),
    "a closure": lambda: closing_over(refund),
    "a library's function in an attribute": lambda: Held("fn", wrapped_by_a_library(refund), name="refund"),
}


@pytest.mark.parametrize("way", ["execute", "__call__"])
@pytest.mark.parametrize("kind", LED)
def test_an_object_is_led_back_to_the_one_function_in_it(kind: str, way: str) -> None:
    tool: Any = LED[kind]()
    if not callable(tool) and way == "__call__":
        way = "invoke"

    def agent(_: str) -> str:
        try:
            return str(getattr(tool, way)(order=17))
        except TimeoutError:
            return str(getattr(tool, way)(order=17))

    wanted = [{"effect": "refund", "order": 17}]
    assert lab.run(agent, "Refund order 17", tools=[tool], effects=wanted).ok
    trial = lab.run(agent, "Refund", tools=[tool], faults=[lab.inject("lost_reply", "refund", calls=[1])])
    assert trial.outcome is lab.Outcome.HARM
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)] == ["lost_reply"]
    assert trial.effects == wanted * 2


class Desk:
    """An object whose call is the work."""

    def __call__(self, order: int) -> str:
        return refund(order)

    def note(self, words: str) -> None: ...


def test_an_object_whose_call_is_its_only_way_in_is_the_tool_itself() -> None:
    desk = Desk()
    trial = lab.run(lambda _: desk(17), "Refund", tools={"refund": desk}, effects=[{"effect": "refund", "order": 17}])
    assert trial.ok


class WithRun:
    name = "refund"

    def __call__(self, order: int) -> Any:
        return self._run(order)

    def _run(self, order: int) -> Any:
        return refund(order)


class Refund:
    def __init__(self, order: int) -> None:
        self.order, self.log = order, [order]

    def run(self) -> str:
        return refund(self.order)


class PayBack:
    def run(self, order: int) -> str:
        return refund(order)


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (Held("handler", refund, name="refund"), "as in tools={'refund': tool.handler}, or tool.__call__ if the agent"),
        (WithRun(), "as in tools={'refund': tool._run}, or tool.__call__ if the agent calls the object itself"),
        (
            Refund,
            "tools has the class Refund in it: give the function that does its work, under the tool's name, as in ",
        ),
        (PayBack, "as in tools={'pay_back': PayBack.run}"),
        (PayBack(), "as in tools={'refund': tool.run}"),
    ],
)
def test_what_may_call_another_function_is_refused_with_the_way_to_give_it(tool: Any, said: str) -> None:
    with pytest.raises(TypeError) as refused:
        lab.run(lambda _: "go", "go", tools=[tool])
    assert said in str(refused.value)
    assert str(refused.value).isprintable()
    with pytest.raises(TypeError):
        lab.run(lambda _: "go", "go", tools={"refund": tool})


def test_a_mapping_names_tools_whose_methods_are_called_alike() -> None:
    desk = PayBack()

    def agent(_: str) -> str:
        return desk.run(17) + Refund(18).run()

    tools = {"pay_back": PayBack.run, "refund": Refund.run}
    trial = lab.run(agent, "Refund", tools=tools, faults=[lab.inject("latency", "refund", delay_s=3)])
    assert trial.effects == [{"effect": "pay_back", "order": 17}, {"effect": "refund", "order": 18}]
    assert (trial.ok, trial.seconds) == (True, 3)
    (run,) = lab.run_many(agent, "Refund", tools=tools, trials=1)
    assert run.effects == trial.effects
    with pytest.raises(
        ValueError, match=r"called 'run': each needs a name of its own, as in tools={'refund': Refund\.run"
    ):
        lab.run(agent, "Refund", tools=list(tools.values()))


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ({17: refund}, "tools has 17 as a name: it should be a text, as in {'refund': refund}"),
        ({"a": refund, "b": refund}, "tools has one function as 'a' and 'b': each name needs a function of its own"),
        (lambda: {"pay": lab.mcp_tool("refund")}, "tools has mcp_tool('refund') as 'pay': it has its name already"),
    ],
)
def test_a_wrong_mapping_is_refused_in_one_line(tools: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        lab.run(lambda _: "go", "go", tools=tools() if callable(tools) else tools)
    assert str(refused.value) == said


class Message(BaseModel):
    """A tool as langroid has it: its arguments are the fields of the object that is handled."""

    order: int
    reason: str = "broken"

    def handle(self) -> str:
        return refund(self.order)


@dataclass(frozen=True)
class Order:
    order: int
    _at: int = 1

    def handle(self) -> str:
        return refund(self.order)


@pytest.mark.parametrize(
    ("kind", "kept"),
    [(Message, {"order": 17, "reason": "broken"}), (Order, {"order": 17, "_at": 1}), (Refund, {"order": 17})],
)
def test_arguments_that_an_object_keeps_are_those_of_its_tool(kind: Any, kept: dict[str, Any]) -> None:
    method = kind.run if kind is Refund else kind.handle

    def agent(_: str) -> Any:
        return getattr(kind(order=17), method.__name__)()

    trial = lab.run(agent, "Refund", tools={"refund": method}, effects=[{"effect": "refund", "order": 17}])
    assert (trial.ok, trial.effects) == (True, [{"effect": "refund", **kept}])
    own = WrappedFunction("refund", method, effect=True, hidden=frozenset({"self"}))
    given = kind(order=17)
    (changed,) = own.replace_arguments((given,), {}, {"order": 18}).values()
    assert (changed.order, given.order, type(changed)) == (18, 17, kind)


def test_two_calls_with_other_objects_are_two_requests() -> None:
    def agent(_: str) -> str:
        return Message(order=17).handle() + Message(order=18).handle() + Message(order=17).handle()

    trial = lab.run(agent, "Refund", reads={"refund": Message.handle})
    requests = [(event.request, event.arguments["order"]) for _, event in trial.history.find_events(CallStarted)]
    assert requests == [(1, 17), (2, 18), (3, 17)]


class Till:
    """A class whose methods have what a tool's function need not have."""

    @staticmethod
    def refund(order: int) -> str:
        return refund(order)


def test_a_static_method_has_no_object_to_leave_out() -> None:
    trial = lab.run(lambda _: Till.refund(17), "Refund", tools=[Till.refund])
    assert trial.effects == [{"effect": "refund", "order": 17}]


def test_a_function_in_c_without_a_signature_is_told_by_the_places_of_its_arguments() -> None:
    told = WrappedFunction("largest", max, effect=True).bind_arguments((17, 4), {"key": None})
    assert told == {"argument 1": 17, "argument 2": 4, "key": None}


def keyed(order: int, amount: float = 1.0, *rest: int, note: str = "", **more: int) -> str:  # noqa: ARG001
    return ""


def plain(order: int, amount: float = 1.0) -> str:  # noqa: ARG001
    return ""


@pytest.mark.parametrize(
    ("function", "hidden", "args", "kwargs", "arguments", "again"),
    [
        (plain, (), (1, 2.0), {}, {"order": 1, "amount": 2.0}, {"order": 9}),
        (plain, (), (1,), {}, {"order": 1, "amount": 1.0}, {"order": 9}),
        (plain, (), (1, 2, 3), {"x": 4}, {"argument 1": 1, "argument 2": 2, "argument 3": 3, "x": 4}, {"order": 9}),
        (plain, ("amount",), (1, 2.0), {}, {"order": 1}, {"order": 9, "amount": 2.0}),
        (keyed, (),
        (1, 2.0, 3, 4), {"a": 5}, {"order": 1, "amount": 2.0, "rest": (3, 4), "note": "", "a": 5}, {"order": 9}),
        (keyed, ("note", "a"),
        (1,), {"a": 5, "b": 6}, {"order": 1, "amount": 1.0, "b": 6}, {"order": 9, "note": "", "a": 5}),
    ],
)  # fmt: skip
def test_the_arguments_of_a_call_have_their_names_and_hidden_ones_are_passed_along(
    function: Any, hidden: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any], arguments: Any, again: Any
) -> None:
    tool = WrappedFunction("pay", function, effect=True, hidden=frozenset(hidden))
    assert tool.bind_arguments(args, kwargs) == arguments
    assert tool.replace_arguments(args, kwargs, {"order": 9}) == again


@pytest.mark.parametrize(
    ("noted", "value", "answer"),
    [
        (str, {"ä": 1}, '{"ä": 1}'), ("str", {"ä": 1}, '{"ä": 1}'), (str, "x", "x"), (bool, 0, True), ("bool", 0, True),
        (bool, False, False), (None, 3, None), ("None", 3, None), (type(None), 3, None), (list[int], 3, 3), ("", 3, 3),
    ],
)  # fmt: skip
def test_an_answer_of_a_story_has_the_type_that_the_function_is_annotated_with(
    noted: Any, value: Any, answer: Any
) -> None:
    def gives() -> Any: ...

    gives.__annotations__["return"] = noted
    assert WrappedFunction("pay", gives, effect=True).make_typed_result(value).native_result == answer


@pytest.mark.parametrize("function", [lambda: 1, max])
def test_an_answer_of_a_story_is_as_it_is_where_no_type_is_stated(function: Any) -> None:
    assert WrappedFunction("pay", function, effect=True).make_typed_result(3).native_result == 3


def test_equal_results_are_the_same() -> None:
    same = [1.0, 2.0]
    assert Returned(same).same_as(Returned([1.0, 2.0]))
    nan = float("nan")
    assert Returned(nan).same_as(Returned(nan))
    assert not Returned(1).same_as(Returned(2))
    assert not Returned(1).same_as(None)
    assert not Returned(1).same_as(Reply(200, {}, b"1"))
