"""Objects of a program whose own code raises, or lies, when somebody looks at them: their program alone meets it."""

import warnings
from collections.abc import Callable
from typing import Any

import greenlet
import pytest

import chaoslab as lab
from chaoslab.core.events import CallStarted
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


class Boom(Exception):
    pass


def raises(*_: Any, **__: Any) -> Any:
    raise Boom("looked at")


LOOKS: dict[str, dict[str, Any]] = {
    "class": {"__class__": property(raises)},
    "dict": {"__dict__": property(raises)},
    "bool": {"__bool__": raises},
    "len": {"__len__": raises},
    "empty": {"__len__": lambda _: 0},
    "text": {"__str__": raises, "__repr__": raises},
    "equal": {"__eq__": raises, "__hash__": None},
    "attribute": {"__getattribute__": raises},
    "reduce": {"__reduce__": raises},
    "iter": {"__iter__": raises},
}


def refund(order: int) -> str:
    return f"refunded {order}"


def caught(refused: Callable[[], object]) -> Callable[[str], str]:
    def agent(_: str) -> str:
        try:
            return refund(17)
        except OSError:
            refused()
            return "not refunded"

    return agent


ERRORS = [
    *((look, base, None) for look in LOOKS for base in (Exception, BaseException)),
    *((look, Exception, "fork") for look in LOOKS),
    *(("attribute", base, isolate) for base in (greenlet.GreenletExit, GeneratorExit) for isolate in (None, "fork")),
]


@pytest.mark.parametrize(("look", "base", "isolate"), ERRORS)
def test_an_error_that_may_not_be_looked_at_is_the_agents_own(look: str, base: Any, isolate: Any) -> None:
    kind = type("Odd", (base,), dict(LOOKS[look]))

    def fails() -> None:
        raise kind("no rows")

    refused = [lab.inject("refused", "refund")]
    trial = lab.run(caught(fails), "Refund 17", tools=[refund], faults=refused, isolate=isolate)
    assert str(trial.outcome) == "failed"
    assert "Odd" in trial.why
    if isolate is None:
        always = lab.run(lambda _: fails(), "go", faults=refused, tools=[refund], twin=False, anyway=True, effects=[])
        assert "never have ended" not in always.why


def test_a_baseline_that_fails_by_an_error_without_entries_says_which() -> None:
    kind = type("Empty", (Exception,), dict(LOOKS["empty"]))

    def agent(_: str) -> None:
        refund(17)
        raise kind("no rows")

    with pytest.raises(lab.NoBaseline, match="it fails \\(Empty: no rows\\)"):
        lab.run(agent, "go", tools=[refund], faults=[lab.inject("lost_reply", "refund", calls=[1])])


FAULTS = ("wrong_value", "stale", "empty", "silent_no_op", "latency")


@pytest.mark.parametrize("look", LOOKS)
def test_a_result_that_may_not_be_looked_at_passes(look: str) -> None:
    """Each fault is on a tool of its own."""
    odd = type("Odd", (object,), dict(LOOKS[look]))

    def make_tool() -> Callable[[int], Any]:
        def get(order: int) -> Any:
            return odd() if order else None

        return get

    tools = {f"get_{fault}": make_tool() for fault in FAULTS}

    def agent(_: str) -> Any:
        pairs = [(get(1), get(1)) for get in tools.values()]
        return odd() if all(first is not second for first, second in pairs) else "done"

    faults = [lab.inject(fault, f"get_{fault}") for fault in FAULTS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lab.NothingHit)  # there may be nothing to change
        trial = lab.run(agent, "go", tools=tools, faults=faults, anyway=True, twin=False, effects=[])
    assert trial.error is None
    assert len([*trial.history.find_events(CallStarted)]) == 2 * len(FAULTS)


@pytest.mark.parametrize("look", LOOKS)
def test_an_argument_that_may_not_be_looked_at_reaches_its_function(look: str) -> None:
    odds = [type("Odd", (base,), dict(LOOKS[look]))() for base in (object, str, int, float, list, dict)]
    seen: list[int] = []

    def get(order: Any, rows: list[Any]) -> str:
        seen.extend(map(id, (order, *rows)))
        return "done"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lab.NothingHit)
        faults = [lab.inject("latency", "get", calls=[2])]
        options: dict[str, Any] = {"anyway": True, "twin": False, "effects": []}
        trial = lab.run(lambda _: [get(odd, [odd]) for odd in odds][-1], "go", tools=[get], faults=faults, **options)
    assert (trial.error, trial.answer, seen) == (None, "done", [id(odd) for odd in odds for _ in range(2)])
