"""A fault's parameter that each trial draws from a range or from choices."""

from __future__ import annotations

from pathlib import Path

import chaoslab as lab
from chaoslab.core.events import ValuesDrawn
from chaoslab.execution.scenarios.builder import ScenarioBuilder
from chaoslab.execution.scenarios.tell import foreseen
from chaoslab.record.history import History

DELAY = "latency on order.delay_s"
TIMES = "latency on order.max_times"


def order(number: int) -> str:
    return f"order {number}"


def agent(prompt: str) -> str:
    return f"{prompt}: {order(17)}"


def slow() -> ScenarioBuilder:
    made = lab.scenario("slow").agent(agent).reads(order).ask("What is it?").set(trials=8)
    return made.fault("latency", "order", delay_s={"from": 0.5, "to": 4.0}, max_times={"choices": [1, 2]})


def test_each_trial_draws_its_value_by_seed_and_number(tmp_path: Path) -> None:
    (result,) = slow().run(logs=tmp_path)
    values = [dict(next(ruling.trial.history.of(ValuesDrawn))[1].values) for ruling in result.rulings]
    delays = [each[DELAY] for each in values]
    assert len(set(delays)) == 8
    assert all(0.5 <= delay <= 4 for delay in delays)
    assert {each[TIMES] for each in values} == {1, 2}
    for ruling, delay in zip(result.rulings, delays, strict=True):
        assert abs(ruling.trial.seconds - delay) < 1e-3
        assert ruling.trial.plan.injections[0].choices[0].params["delay_s"] == delay
        assert f"drawn    {DELAY} = {delay}, {TIMES} = " in ruling.trial.story()
    read = History.read(tmp_path / "latest")
    assert [event.values for _, event in read.of(ValuesDrawn)] == values


def test_a_trial_draws_the_same_alone_and_another_seed_draws_others() -> None:
    (scenario,) = slow().check()
    assert scenario.drawn(1, 3) == scenario.drawn(1, 3) != scenario.drawn(2, 3)
    foretold = list(foreseen(scenario, only=4))[1]
    assert foretold.endswith(f"{DELAY} = {scenario.drawn(1, 3)[1][DELAY]}, {TIMES} = {scenario.drawn(1, 3)[1][TIMES]}")


def test_a_range_of_whole_numbers_gives_whole_numbers() -> None:
    (scenario,) = slow().set(faults=[]).fault("lost_reply", "order", every={"from": 1, "to": 3}).check()
    found = {scenario.drawn(1, number)[1]["lost_reply on order.every"] for number in range(60)}
    assert found == {1, 2, 3}


def test_trials_in_other_processes_draw_and_end_alike(tmp_path: Path) -> None:
    def told(jobs: int) -> tuple[list[str], list[bytes]]:
        logs = tmp_path / str(jobs)
        (result,) = slow().run(jobs=jobs, logs=logs)
        files = sorted(path for path in (logs / "latest").rglob("*.log"))
        return [ruling.trial.story() for ruling in result.rulings], [path.read_bytes() for path in files]

    assert told(1) == told(2)
    assert told(1)[1]
