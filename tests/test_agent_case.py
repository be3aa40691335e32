"""The trials of a user's agent as a value: what its options make of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.verdict.seen import Twin
from chaoslab.core.conversation import Conversation, turn
from chaoslab.core.inject import inject
from chaoslab.core.plan import Plan
from chaoslab.execution import _validation as validation
from chaoslab.execution.agents._case import AgentCase
from chaoslab.execution.drawn import DrawnPlan
from chaoslab.execution.forked import AHEAD, ChildDied, ChildExecutor, make_executor
from chaoslab.execution.options import RunOptions


def case(prompt: Any = "go", *, plan: Plan | None = None, **more: Any) -> AgentCase:
    return AgentCase(
        agent=str, prompt=prompt, tools=(len,), reads=(max,), plan=plan or Plan(7), name="run",
        now="2026-06-01T09:00:00Z", deadline_s=100.0, services={"bank": None, "shop": None}, **more,
    )  # fmt: skip


TALK = Conversation((turn("a"), turn("b", after_s=5.0), turn("c", after_s=1.0)))
TWIN = Twin("It is 21.", 9.0, 2)


@pytest.mark.parametrize(
    ("prompt", "waits", "after_s", "deadline_s", "twin_s"),
    [
        (TALK, {2: 30.0}, [0.0, 30.0, 1.0], 125.0, None),
        (TALK, {}, [0.0, 5.0, 1.0], 100.0, 9.0),
        ("go", {2: 30.0}, None, 100.0, 9.0),
    ],
)
def test_a_trial_whose_waits_are_its_own_has_a_deadline_of_its_own(
    prompt: Any, waits: dict[int, float], after_s: Any, deadline_s: float, twin_s: float | None
) -> None:
    order = {1: ["b", "a"]}
    found = case(prompt, twin=TWIN).with_drawn_plan(DrawnPlan((inject("latency", "len"),), {"n": 3}, waits, order))
    assert [choice.fault for each in found.plan.injections for choice in each.choices] == ["latency"]
    assert (found.drawn, found.options.order) == ({"n": 3}, order)
    assert (found.deadline_s, found.twin and found.twin.seconds) == (deadline_s, twin_s)
    assert after_s is None or [each.after_s for each in found.prompt.turns] == after_s
    assert case(prompt).with_drawn_plan(DrawnPlan((), waits=waits)).twin is None
    assert case().with_drawn_plan(DrawnPlan(())).options.order == RunOptions().order


@pytest.mark.parametrize(
    ("budgets", "one_by_one"),
    [([], False), ([{"calls_max": 3}], False), ([{"cost_usd": 1}], True), ([{"calls_max": 3}, {"cost_usd": 1}], True)],
)
def test_only_a_budget_in_dollars_counts_over_a_whole_run(budgets: list[dict[str, Any]], one_by_one: bool) -> None:
    plan = Plan(7, tuple(inject("budget", each, **limits) for each, limits in zip("ab", budgets, strict=False)))
    assert case(plan=plan).is_sequential is one_by_one


@pytest.mark.parametrize(
    ("world", "asked", "settle_s", "limit_s"),
    [
        ("virtual", None, 60.0, 50.0),
        ("virtual", 0.0, 0.0, 50.0),
        ("local", None, 30.0, 150.0),
        ("local", 2.0, 2.0, 150.0),
    ],
)
def test_a_trial_in_real_time_may_take_its_deadline_too(
    world: Any, asked: float | None, settle_s: float, limit_s: float
) -> None:
    found = case(options=RunOptions(world=world, settle_s=asked, real_limit_s=50.0))
    assert (found.settle_s, found.real_time_limit_s) == (settle_s, limit_s)


def test_services_that_no_fault_is_aimed_at_need_not_be_called() -> None:
    plan = Plan(7, (inject("latency", "bank"), inject("latency", "shop", chance=0.0)))
    assert case(plan=plan).callable_names == ("len", "max", "bank")
    assert case().callable_names == ("len", "max")


@pytest.mark.parametrize(("status", "asked"), [(2, True), (15, True), (9, False), (2 << 8, False), (0, False)])
def test_a_child_that_a_signal_of_the_user_s_ended_ends_its_parent(
    status: int, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[int] = []
    monkeypatch.setattr("chaoslab.execution.forked.wait_and_check_interrupt", lambda: checked.append(1))
    ChildDied(status, "").raise_if_interrupted()
    assert bool(checked) is asked


def test_where_order_matters_a_child_has_one_trial_at_once() -> None:
    one, many = make_executor(1, 9.0, at_once=True), make_executor(1, 9.0)
    assert isinstance(one, ChildExecutor)
    assert isinstance(many, ChildExecutor)
    assert (one.ahead, many.ahead, one.limit_s) == (1, AHEAD, 9.0)
    assert [*one.map(Squares(), range(3))] == [*many.map(Squares(), range(3))] == [0, 1, 4]


class Squares:
    def get_work_item_name(self, spec: int) -> str:
        return f"unit {spec}"

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[int], int]]:
        yield lambda spec: spec * spec


@pytest.mark.parametrize(
    ("name", "of_services", "known"),
    [
        ("charge", False, True), ("POST /orders", True, True), ("POST /orders", False, False),
        ("chrge", True, False), ("chrge", False, False), (3, True, False),
    ],
)  # fmt: skip
def test_an_effect_is_a_tool_s_or_a_request_to_a_service(name: Any, of_services: bool, known: bool) -> None:
    refused = pytest.raises(LookupError, match=f"^idempotent has {name!r}: no tool with effects is called so: ")
    with nullcontext() if known else refused:
        validation.check_effect_names("idempotent", ["charge", name], ["charge"], of_services=of_services)


def test_each_of_several_models_is_an_object_of_its_own() -> None:
    one, two, three = (lab.offline_model() for _ in range(3))
    assert validation.parse_model_services(None, {"a": one, "b": two, "c": three}) == ("a", "b", "c")
    with pytest.raises(ValueError, match=r"^services has one model as 'a' and 'c': each needs an object of its own"):
        validation.parse_model_services(None, {"a": one, "b": two, "c": one})
