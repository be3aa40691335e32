"""A fault's parameter that each trial draws from a range or from choices."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import FaultWitnessed, PromptStarted, ValuesDrawn
from chaoslab.record.history import History
from chaoslab.record.steering import steer_run
from chaoslab.scenarios.builder import ScenarioBuilder
from chaoslab.scenarios.load import ScenarioErrors
from chaoslab.scenarios.running import run_scenario
from chaoslab.scenarios.tell import render_forecast

DELAY = "latency on order.delay_s"
TIMES = "latency on order.max_times"


def order(number: int) -> str:
    return f"order {number}"


def agent(prompt: str) -> str:
    return f"{prompt}: {order(17)}"


def asked() -> ScenarioBuilder:
    return lab.scenario("slow").agent(agent).reads(order).ask("What is it?").set(trials=8)


def slow() -> ScenarioBuilder:
    return asked().fault("latency", "order", delay_s={"from": 0.5, "to": 4.0}, max_times={"choices": [1, 2]})


def test_each_trial_draws_its_value_by_seed_and_number(tmp_path: Path) -> None:
    (result,) = slow().run(logs=tmp_path)
    values = [dict(next(ruling.trial.history.find_events(ValuesDrawn))[1].values) for ruling in result.rulings]
    delays = [each[DELAY] for each in values]
    assert len(set(delays)) == 8
    assert all(0.5 <= delay <= 4 for delay in delays)
    assert {each[TIMES] for each in values} == {1, 2}
    for ruling, delay in zip(result.rulings, delays, strict=True):
        assert abs(ruling.trial.seconds - delay) < 1e-3
        assert ruling.trial.plan.injections[0].choices[0].params["delay_s"] == delay
        assert f"drawn    {DELAY} = {delay}, {TIMES} = " in ruling.trial.story()
    read = History.read(tmp_path / "latest")
    assert [event.values for _, event in read.find_events(ValuesDrawn)] == values


def test_a_trial_draws_the_same_alone_and_another_seed_draws_others() -> None:
    (scenario,) = slow().check()
    assert scenario.draw_plan(1, 3) == scenario.draw_plan(1, 3) != scenario.draw_plan(2, 3)
    values = scenario.draw_plan(1, 3).values
    assert list(render_forecast(scenario, only=4))[1].endswith(f"{DELAY} = {values[DELAY]}, {TIMES} = {values[TIMES]}")


def test_a_range_of_whole_numbers_gives_whole_numbers() -> None:
    (scenario,) = slow().set(faults=[]).fault("lost_reply", "order", every={"from": 1, "to": 3}).check()
    found = {scenario.draw_plan(1, number).values["lost_reply on order.every"] for number in range(60)}
    assert found == {1, 2, 3}


def test_trials_in_other_processes_draw_and_end_alike(tmp_path: Path) -> None:
    def told(jobs: int) -> tuple[list[str], list[bytes]]:
        logs = tmp_path / str(jobs)
        (result,) = slow().run(jobs=jobs, logs=logs)
        files = sorted(path for path in (logs / "latest").rglob("*.log"))
        return [ruling.trial.story() for ruling in result.rulings], [path.read_bytes() for path in files]

    assert told(1) == told(2)
    assert told(1)[1]


@pytest.mark.parametrize("of_the_lab", [False, True])
def test_a_fault_that_is_switched_off_meanwhile_hits_nothing_in_the_trials_after_it(
    tmp_path: Path, *, of_the_lab: bool
) -> None:
    made = lab.scenario("own").agent("lab").ask("What is the weather in Oslo?") if of_the_lab else asked()
    target = "weather" if of_the_lab else "order"
    (scenario,) = made.set(trials=3).fault("latency", target, delay_s={"from": 0.5, "to": 4.0}).check()
    done = run_scenario(scenario, logs=tmp_path)
    hit = [next(done).trial.met]
    steer_run((tmp_path / "latest").resolve(), [f"latency on {target}=off"])
    hit += [ruling.trial.met for ruling in done]
    assert [bool(met) for met in hit] == [True, False, False]


def values_of(scenario: ScenarioBuilder, trials: int = 40) -> list[dict[str, Any]]:
    (made,) = scenario.check()
    return [dict(made.draw_plan(1, number).values) for number in range(trials)]


@pytest.mark.parametrize(
    ("triggers", "found"),
    [
        ({"calls": {"from": 1, "to": 3}}, ([1], [2], [3])),
        ({"attempts": {"choices": [1, 3]}}, ([1], [3])),
        ({"calls": [1, {"choices": [4, 5]}]}, ([1, 4], [1, 5])),
        ({"window_s": [{"choices": [0, 1]}, {"choices": [2, 3.5]}]}, ([0, 2], [1, 2], [0, 3.5], [1, 3.5])),
        ({"persistence": {"choices": ["once", "burst 2"]}}, ("once", "burst 2")),
    ],
)
def test_triggers_are_drawn_numbers_of_a_list_too(triggers: dict[str, Any], found: tuple[Any, ...]) -> None:
    ((name, _),) = triggers.items()
    drawn = [each[f"latency on order.{name}"] for each in values_of(asked().fault("latency", "order", **triggers))]
    assert all(value in found for value in drawn)
    assert all(value in drawn for value in found)


def test_the_number_of_the_call_that_is_hit_is_the_drawn_one() -> None:
    def thrice(prompt: str) -> str:
        return " ".join([prompt, *(order(n) for n in range(3))])

    made = asked().agent(thrice).fault("latency", "order", delay_s=1.0, calls={"from": 1, "to": 3})
    for ruling in made.run().results[0].rulings:
        ((_, values),) = ruling.trial.history.find_events(ValuesDrawn)
        (hit,) = (event.request for _, event in ruling.trial.history.find_events(FaultWitnessed))
        assert values.values == {"latency on order.calls": [hit]}


def test_the_time_before_a_turn_is_drawn_and_the_twin_has_no_duration(tmp_path: Path) -> None:
    made = asked().ask("And now?", after={"from": "1min", "to": "2h"}).set(trials=3, deadline=1)
    (result,) = made.fault("latency", "order", delay_s=0.25, on_turn=[2]).run(logs=tmp_path)
    waits = [next(each.trial.history.find_events(ValuesDrawn))[1].values["turn 2.after"] for each in result.rulings]
    assert len(set(waits)) == 3
    assert all(60 <= wait <= 7200 for wait in waits)
    for ruling, wait in zip(result.rulings, waits, strict=True):
        assert str(ruling.state) == "passed"
        assert abs(ruling.trial.seconds - wait - 0.25) < 1e-3
    assert [event.twin_s for _, event in History.read(tmp_path / "latest").find_events(PromptStarted)] == [None] * 3
    assert [each.trial.seconds for each in made.run(jobs=2).results[0].rulings][:1] == [round(waits[0], 6)]


def test_the_level_and_the_budget_are_drawn() -> None:
    made = asked().set(chaos_level={"choices": [0, 0.25, 2]}).budget(calls={"from": 1, "to": 3}, seconds="1min")
    (scenario,) = made.check()
    seen = set()
    for number in range(40):
        drawn = scenario.draw_plan(1, number)
        chances = {each.chance for each in drawn.injections if each.name.startswith("level network")}
        (budget,) = (each for each in drawn.injections if each.name == "budget")
        assert budget.choices[0].params["calls_max"] == drawn.values["budget.calls_max"]
        assert drawn.injections[-1] == budget
        seen.add((drawn.values["chaos_level"], len(chances), drawn.values["budget.calls_max"]))
    assert {level for level, *_ in seen} == {0, 0.25, 2}
    assert {calls for *_, calls in seen} == {1, 2, 3}
    assert all(bool(level) == bool(chances) for level, chances, _ in seen)


def test_an_operation_waits_for_a_drawn_time() -> None:
    made = lab.scenario("o").reads(order).call("order", {"number": 1}).set(trials=4)
    (result,) = made.call("order", {"number": 2}, after={"choices": [5, 9]}).run()
    assert {each.trial.seconds for each in result.rulings} == {5, 9}


@pytest.mark.parametrize("calls", [[{"choices": [*range(1, 11)]}] * 2, [{"choices": [*range(1, 101)]}]])
def test_a_hundred_values_may_be_drawn_from(calls: list[Any]) -> None:
    assert asked().set(faults=[{"fault": "latency", "target": "order", "calls": calls}]).check()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"trials": {"from": 1, "to": 5}}, "trials is the same in all trials: give it one value, or several as"),
        ({"prompt": {"choices": ["a"]}}, "prompt is the same in all trials: give it one value, or several as"),
        ({"budget": {"dollars": {"from": 1, "to": 5}}}, "dollars is the same in all trials: give it one value"),
        ({"budget": {"calls": {"from": 5, "to": 1}}}, "calls is {'from': 5, 'to': 1}: it should be a range from a"),
        ({"budget": {"calls": {"from": 0, "to": 1}}}, "from is 0: it should be 1 or more"),
        ({"budget": {"calls": {"from": 1, "til": 9}}}, "'til' is not known here: known are choices, from, to"),
        ({"chaos_level": {"choices": [0, 11]}}, "choices is 11: it should be a number from 0 to 10"),
        ({"chaos_level": {"from": 0, "to": 1}}, "chaos_level is {'from': 0, 'to': 1}: it should be a level, as in 0.5"),
        ({"turns": ["a", {"say": "b", "after": {"choices": ["x"]}}]}, "choices is 'x': it should be a duration"),
        ({"faults": [{"fault": "latency", "target": {"choices": ["a"]}}]}, "target is the same in all trials"),
        ({"faults": [{"fault": "latency", "target": "order", "calls": [{"from": 0, "to": 2}]}]}, "calls of latency"),
        ({"faults": [{"fault": "latency", "target": "order", "window_s": [{"from": 0, "to": 9}, 5]}]}, "window_s of"),
        ({"faults": [{"fault": "latency", "target": "order", "calls": [{"choices": [*range(1, 50)]}] * 3}]},
         "its entries have 117649 combinations: 100 at most"),
    ],
)  # fmt: skip
def test_what_no_trial_can_draw_is_told(keys: dict[str, Any], said: str) -> None:
    scenario = asked()
    if "turns" in keys:
        scenario = replace(scenario, data={key: value for key, value in scenario.data.items() if key != "prompt"})
    with pytest.raises(ScenarioErrors) as error:
        scenario.set(**keys).check()
    assert said in str(error.value)
