"""The options of a run stand in one place, from which signatures, help, scenario files and the plug-in take them."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.execution._checked import NAMED, NOT_NAMED
from chaoslab.execution.options import RunOptions, get_scenario_key, iterate_scenario_options
from chaoslab.scenarios.running import import_agent_and_options
from chaoslab.scenarios.spec import ScenarioSpec
from chaoslab.surfaces.pytest_plugin import Chaos

OPTIONS = [each.name for each in fields(RunOptions)]


def agent(prompt: str) -> str:
    return prompt


@pytest.mark.parametrize("function", [lab.run, lab.run_many])
def test_signature_and_help_have_every_option(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    assert list(parameters)[:2] == ["agent", "prompt"]
    assert list(parameters)[-len(OPTIONS) :] == OPTIONS
    for each in fields(RunOptions):
        assert (parameters[each.name].default, parameters[each.name].annotation) == (each.default, each.type)


def test_the_help_of_run_explains_every_argument_under_its_heading() -> None:
    lines = (inspect.getdoc(lab.run) or "").splitlines()
    said = [line.split("`")[1] for line in lines if line.startswith("    `")]
    assert said == ["agent", "prompt", *OPTIONS]
    assert [lines[n - 2] for n, line in enumerate(lines) if line.startswith(("    `agent`", "    `faults`"))] == [
        "The agent and its functions:",
        "The faults and the world:",
    ]
    assert max(map(len, lines)) <= 116


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: lab.run(agent, "x", timout_s=3),  # type: ignore[call-arg]
        lambda: lab.run_many(agent, "x", trials=1, timout_s=3),  # type: ignore[call-arg]
    ],
)
def test_an_option_that_is_none_is_refused(mistake: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"^run(_many)?\(\) got an .* 'timout_s'. Did you mean 'timeout_s'\?$"):
        mistake()


def test_the_plug_in_refuses_it_too(chaos: Chaos) -> None:
    with pytest.raises(
        pytest.fail.Exception, match=r"^chaos: run\(\) got an .* 'timout_s'. Did you mean 'timeout_s'\?$"
    ):
        chaos.run(agent, "x", timout_s=3)


def test_types_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^keep= is about logs, and none are written: give logs= too$"):
        lab.run(agent, "x", keep="failed")
    with pytest.raises(ValueError, match="seed is 'one'"):
        lab.run(agent, "x", seed="one")  # type: ignore[arg-type]


def test_a_scenarios_file_has_the_options_with_a_key() -> None:
    assert {get_scenario_key(each) for each in iterate_scenario_options()} <= set(ScenarioSpec.model_fields)
    for each in iterate_scenario_options():
        default = ScenarioSpec.model_fields[get_scenario_key(each)].get_default(call_default_factory=True)
        assert default == each.default or not (default or each.default), each.name


def test_a_run_gets_all_of_them() -> None:
    made = lab.scenario("x").agent(agent).ask("x").set(elsewhere="unreachable", calls_max=7, isolate="fork")
    (scenario,) = made.check()
    _, options = import_agent_and_options(scenario)
    assert set(options) == {each.name for each in iterate_scenario_options()}
    assert (options["elsewhere"], options["calls_max"], options["isolate"]) == ("unreachable", 7, "fork")


def test_the_runs_name_has_every_option_in_one_way() -> None:
    assert not NAMED & NOT_NAMED
    assert set(OPTIONS) >= NAMED | NOT_NAMED


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("ordered", [True, False], [1, None, "true"]),
        ("logs", [None, "logs", Path("a")], [3, "", "a\0b"]),
        ("now", [None, "2026-12-31T23:59:58Z"], [3, "now", "soon"]),
        ("secret_names", [None, [], ["x-pass", "-csrf"], ("a1",)], ["x", ["x", 3], [3], ["-", "a"], ["a", "--"], 3]),
        ("limits", [None, []], ["x", [3]]),
        ("order", ["asked", "seeded", {}, {1: ["b", "a"], 2: []}],
         ["x", None, 3, {0: ["a"]}, {True: ["a"]}, {1: "ab"}, {1: 3}, {1: ["a", 3]}, {1: ["a", "a"]}, {"2": []}]),
    ],
)  # fmt: skip
def test_a_value_that_alone_is_wrong_is_one_line_that_names_its_option(
    name: str, right: list[Any], wrong: list[Any]
) -> None:
    (found,) = (each for each in fields(RunOptions) if each.name == name)
    check = found.metadata["check"]
    for value in right:
        check(name, value)
    for value in wrong:
        with pytest.raises((TypeError, ValueError)) as told:
            check(name, value)
        assert "\n" not in str(told.value)
        assert name == "limits" or str(told.value).startswith(f"{name} is ")
