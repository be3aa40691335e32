"""Variants, budgets and objectives of a scenario."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import chaoslab as lab
from chaoslab.cli import main
from chaoslab.scenarios.builder import ScenarioBuilder
from tests.scenarios.shop_parts import BOOK, careful, hears, naive, refund, state


def refunding(trials: int = 6) -> ScenarioBuilder:
    return (
        lab.scenario("refund").fresh(naive).tools(refund).state(state).judge(hears).ask("Refund order 17.")
        .set(trials=trials)
        .fault("lost_reply", "refund", chance=0.5)
    )  # fmt: skip


def thrice() -> Callable[[str], str]:
    BOOK.clear()
    return lambda _: "".join(refund(17 + number) for number in range(3))


def test_named_variants_replace_any_key_and_each_is_a_row() -> None:
    made = refunding().variant("careful", fresh="tests.scenarios.shop_parts:careful").variant("as it is")
    made = made.variant("calm", faults=[], trials=2)
    results = made.run()
    assert {name: str(each) for name, each in results.states.items()} == {
        "refund, careful": "passed", "refund, as it is": "failed", "refund, calm": "passed"
    }  # fmt: skip
    assert [len(result.rulings) for result in results] == [6, 6, 2]


def test_a_matrix_is_the_product_of_its_lists() -> None:
    lists: dict[str, list[Any]] = {"lost_reply.chance": [0.1, 0.9], "seed": [1, 2]}
    scenarios = refunding().matrix(**lists).check()
    assert [each.variant for each in scenarios] == [
        "lost_reply.chance=0.1, seed=1", "lost_reply.chance=0.1, seed=2",
        "lost_reply.chance=0.9, seed=1", "lost_reply.chance=0.9, seed=2",
    ]  # fmt: skip
    assert [(each.injections[0].chance, each.spec.seed) for each in scenarios] == [
        (0.1, 1), (0.1, 2), (0.9, 1), (0.9, 2)
    ]  # fmt: skip


def test_each_variant_is_a_case_of_junit(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = refunding().variant("careful", fresh="tests.scenarios.shop_parts:careful").variant("as it is")
    path = made.variant("never", **{"lost_reply.chance": 1e-9}).to_file(here / "a.chaos.yaml")
    assert main(["test", str(path), "--junit", str(here / "out.xml")]) == 1
    (suite,) = ElementTree.parse(here / "out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    found = {case.get("name"): [each.tag for each in case if each.tag != "properties"] for case in suite}
    assert found == {"careful": [], "as it is": ["failure"], "never": ["error"]}
    virtual = [float(one.get("value", "")) for one in suite.iter("property") if one.get("name") == "virtual_seconds"]
    assert sum(virtual) > 60
    assert 0 < float(suite.get("time", "")) < 60, "real seconds"
    capsys.readouterr()
    assert main(["test", str(path), "--junit", str(here / "no" / "out.xml")]) == 2
    said = capsys.readouterr()
    assert (said.out, "there is no folder" in said.err) == ("", True)


def test_a_hard_budget_refuses_and_a_soft_one_lets_pass() -> None:
    calm = refunding(2).fresh(thrice).set(faults=[], accept=["correct"], anyway=True)
    assert calm.run().passed
    hard = calm.budget(calls=2).run()
    assert str(hard.results[0].state) == "failed"
    assert hard.results[0].met == 2
    assert calm.budget(calls=2, mode="soft").run().passed
    assert calm.budget(calls=3).run().passed  # a budget that is kept is no fault that was not met


def test_a_budget_does_not_stand_for_the_faults_that_were_not_met() -> None:
    made = refunding(2).fresh(careful).set(faults=[{"fault": "lost_reply", "target": "refund", "chance": 1e-9}])
    (result,) = made.budget(calls=1).run()
    assert result.unproven_reason == "no trial met a fault (lost_reply on refund)"


def test_an_objective_is_over_all_trials() -> None:
    made = refunding(10).fresh(careful).set(accept=["correct", "degraded"])
    (result,) = made.slo(0.2, tool="refund").run()
    ((good, calls),) = result.calls.values()
    assert (str(result.state), calls) == ("passed", 10)
    assert good == sum(
        ruling.trial.error is None and "could not" not in ruling.trial.answer for ruling in result.rulings
    )
    missed = made.slo(0.95, tool="refund").run()
    assert f"slo(share=0.95, within_s=31536000.0, tool='refund'): {good} of 10 calls were good" in str(missed)
    assert str(missed.results[0].state) == "failed"
    (nothing,) = made.slo(0.95, tool="search").run()
    assert (str(nothing.state), nothing.unproven_reason.endswith("there was no such call")) == ("invalid", True)
