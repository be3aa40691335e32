"""Chaos by level: one number for how often a call meets a fault, over families of faults."""

import contextlib
from collections import Counter
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.base.registry import list_family_plugins
from chaoslab.core.events import FaultWitnessed
from chaoslab.core.fault import load_fault
from chaoslab.core.levels import FAMILIES

CALLS = 1000


@pytest.mark.parametrize(
    ("value", "share"), [(0, 0), (0.25, 0.025), (0.75, 0.075), (1, 0.1), (2, 0.2), (7.5, 0.75), (10, 1)]
)
@pytest.mark.parametrize("families", [("tool",), ("network", "tool", "meaning")])
def test_a_call_meets_a_fault_as_often_as_the_level_says(value: float, share: float, families: tuple[str, ...]) -> None:
    injections = lab.level(value, "get_order", families=families)
    assert len(injections) == (len(families) + ("network" in families) if value else 0)
    calm = 1.0
    for injection in injections:
        calm *= 1 - injection.chance
    assert abs(1 - calm - share) < 1e-5


def test_a_trial_has_about_so_many_and_each_family_has_its_part() -> None:
    met: list[int] = []

    def get_order(number: int) -> dict[str, Any]:
        return {"number": number, "total": 12.5, "lines": [{"item": "tea"}]}

    def agent(_: str) -> str:
        for number in range(CALLS):
            try:
                get_order(number)
            except Exception:  # noqa: BLE001 - whichever fault it was
                met.append(number)
        return "done"

    trial = lab.run(agent, "all", reads=[get_order], faults=lab.level(2, "get_order"), twin=False, deadline_s=10**8)
    assert trial.error is None
    counts = {line.injection: line.scheduled for line in _counts(trial)}
    counts["level network on get_order"] += counts.pop("level network (refused) on get_order")
    assert set(counts) == {f"level {name} on get_order" for name in ("network", "tool", "meaning")}
    assert 150 < sum(counts.values()) < 250  # 200 are due, with a standard deviation of 13
    assert all(45 < count < 95 for count in counts.values())  # 71 each, and a few masked
    assert met


def _counts(trial: lab.Trial) -> list[Any]:
    from tests.measure_parts import by_injection

    return by_injection(trial.history)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_draws_from_all_its_faults_that_need_nothing_of_their_own(name: str) -> None:
    choices = [
        choice for injection in lab.level(1, "model", families=[name], of_bytes=True) for choice in injection.choices
    ]
    drawn = [choice.fault for choice in choices]
    assert sorted(drawn) == sorted(
        fault for fault in list_family_plugins("faults", name) if not load_fault(fault).conditional
    )
    assert {choice.weight for choice in choices} == {1.0}


def test_a_service_meets_each_fault_of_the_network_alike() -> None:
    """A refused connection is decided on before there is a request, and must not take the place of all others."""
    import httpx

    def agent(prompt: str) -> str:
        for _ in range(CALLS):
            with contextlib.suppress(httpx.HTTPError):
                httpx.get("http://shop/stock", timeout=5)
        return prompt

    trial = lab.run(
        agent, "all", services={"shop": lambda _: {"left": 3}}, twin=False, deadline_s=10**8,
        faults=lab.level(2, "shop", families=["network"], of_bytes=True),
    )  # fmt: skip
    assert trial.error is None
    met = Counter(event.fault for _, event in trial.history.find_events(FaultWitnessed))
    assert set(met) == {
        fault for fault in list_family_plugins("faults", "network") if not load_fault(fault).conditional
    }
    due = 0.2 * CALLS / len(met)
    assert all(0.5 * due < count < 1.6 * due for count in met.values()), met


def test_functions_meet_no_fault_of_bytes_unless_it_is_asked_for() -> None:
    injection, _ = lab.level(1, "get_order", families=["network"])
    assert not any(load_fault(choice.fault).of_bytes for choice in injection.choices)
    assert {"latency", "timeout"} <= {choice.fault for choice in injection.choices}


@pytest.mark.parametrize(("given", "line"), [
    ({"value": 11}, "the level is 11: it should be a number from 0 to 10"),
    ({"value": True}, "the level is True: it should be"),
    ({"families": ["netwrok"]}, "families has 'netwrok': did you mean 'network'?"),
    ({"families": []}, r"families is \[\]: it should name one or more, each once"),
    ({"families": ["tool", "tool"]}, "families is .*: it should name one or more, each once"),
    ({"target": ""}, "the level has the target '': it should be the name of a function or service"),
    ({"target": ()}, "the level has the target .*: it should be the name of a function or service"),
])  # fmt: skip
def test_what_makes_no_sense_is_said_in_a_line(given: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        lab.level(**{"value": 1, "target": "get_order", **given})
