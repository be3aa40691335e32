"""`agent: lab`: the lab's own agent in a scenario, with its tools and the offline model."""

from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import StoryLeftOut, TurnFinished, ValuesDrawn
from chaoslab.record.history import History
from chaoslab.scenarios.builder import ScenarioBuilder
from chaoslab.scenarios.load import ScenarioErrors, load_file_scenarios
from chaoslab.scenarios.running import Ruling, run_scenario
from chaoslab.scenarios.tell import render_forecast
from tests.cli_parts import Typed

FILE = Path(__file__).parent.parent.parent / "examples" / "lab_agent.chaos.yaml"


def own(**keys: Any) -> ScenarioBuilder:
    return lab.scenario("own").agent("lab").ask('Send Ana the message "hello".').set(**keys)


def told(rulings: list[Ruling]) -> list[tuple[Any, ...]]:
    return [(each.number, str(each.state), each.trial.seconds, str(each.trial.history)) for each in rulings]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Ruling], Path]:
    logs = tmp_path_factory.mktemp("logs")
    (scenario,) = load_file_scenarios(FILE)
    return list(run_scenario(scenario, logs=logs)), logs


def test_the_shipped_example_holds_and_meets_its_faults(shipped: tuple[list[Ruling], Path]) -> None:
    rulings, logs = shipped
    assert [str(each.state) for each in rulings] == ["passed"] * 4
    for each in rulings:
        assert "lost_reply" in each.trial.story()
        assert [effect["effect"] for effect in each.trial.effects] == ["message_sent"]
        assert each.trial.twin is not None
        assert "lost_reply" not in each.trial.twin.story()
    assert len({each.trial.seconds for each in rulings}) > 1
    read = History.read(logs / "latest")
    assert len({event.values["latency on model.delay_s"] for _, event in read.find_events(ValuesDrawn)}) == 4


def test_a_trial_alone_and_in_other_processes_is_as_among_all_others(shipped: tuple[list[Ruling], Path]) -> None:
    rulings, _ = shipped
    (scenario,) = load_file_scenarios(FILE)
    assert told(list(run_scenario(scenario, only=3))) == told(rulings)[2:3]
    assert told(list(run_scenario(scenario, trials=2, jobs=2))) == told(rulings)[:2]


def test_its_logs_may_leave_stories_out(tmp_path: Path) -> None:
    (scenario,) = load_file_scenarios(FILE)
    list(run_scenario(scenario, trials=2, logs=tmp_path / "failed", keep="failed"))
    assert len([*History.read(tmp_path / "failed" / "latest").find_events(StoryLeftOut)]) == 2


def test_a_story_of_the_lab_is_kept_where_the_ruling_is_against_it(tmp_path: Path) -> None:
    """Its outcome is correct, and an assertion does not hold."""
    made = own(trials=1).expect({"called": "current_weather"}).fault("latency", "messaging", delay_s=0.1)
    (scenario,) = load_file_scenarios(made.to_file(tmp_path / "own.chaos.yaml"))
    (ruling,) = run_scenario(scenario, logs=tmp_path / "logs", keep="failed")
    assert (str(ruling.trial.outcome), str(ruling.state)) == ("correct", "failed")
    assert not [*History.read(tmp_path / "logs" / "latest").find_events(StoryLeftOut)]


def test_a_log_with_drawn_parameters_is_not_replayed(shipped: tuple[list[Ruling], Path], typed: Typed) -> None:
    assert "drew parameters of its faults" in typed.refused("replay", shipped[1] / "latest")


def test_an_effect_other_than_the_stated_one_is_harm() -> None:
    (result,) = own(trials=1, effects=[]).fault("latency", "messaging", delay_s=0.1).run()
    (ruling,) = result.rulings
    assert str(ruling.trial.outcome) == "harm"
    assert "not asked for" in ruling.trial.why


def test_a_conversation_with_it_has_turns_waits_and_assertions_and_is_replayed(tmp_path: Path, typed: Typed) -> None:
    made = own(trials=1).ask("What is the weather in Oslo?", after="2h", expect=[{"called": "current_weather"}])
    made = made.fault("latency", "weather", delay_s=0.5, on_turn=[2]).user({"(?i)clear sky": "What is 6 times 7?"})
    (result,) = made.expect({"called_in_order": ["send_message", "calculate"]}).run(logs=tmp_path)
    (ruling,) = result.rulings
    assert (str(ruling.state), result.met) == ("passed", 1)
    assert [event.turn for _, event in ruling.trial.history.find_events(TurnFinished)] == [1, 2, 3]
    assert ruling.trial.seconds > 7200.5
    assert "byte for byte" in typed.out("replay", tmp_path / "latest")


def test_its_services_are_foreseen() -> None:
    (scenario,) = own(trials=1).fault("lost_reply", "messaging", calls=[1]).check()
    assert list(render_forecast(scenario))[1] == "  trial 1: lost_reply on messaging at request 1 of messaging"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"reads": ["a:b"]}, "the agent is the lab's own: it has tools"),
        ({"isolate": "fork"}, "the agent is the lab's own: that is for an agent of yours"),
        ({"state": "a:b"}, "the agent is the lab's own: its services tell their effects"),
        ({"world": "local"}, "leave world out, or use chaoslab lab WORLD=local"),
        ({"faults": [{"fault": "latency", "target": "weather", "on_turn": [2]}]}, "on_turn"),
        ({"effects": [{"effect": "mesage_sent"}]}, "no effect is called 'mesage_sent': did you mean 'message_sent'?"),
        ({"expect": ["same_as_twin"]}, "same_as_twin compares the services' own ids too"),
        ({"faults": [{"fault": "latency", "target": "wether"}]}, "did you mean 'weather'?"),
        ({"faults": [{"fault": "truncate_context", "target": "weather"}]}, "weather is no model"),
        ({"faults": [{"fault": "tls_failure", "target": "weather"}]}, "weather, which speaks no TLS: aim it at model"),
        ({"faults": [{"fault": "cut", "target": "weather"}]}, "weather, which streams no answer: aim it at model"),
        ({"faults": [{"fault": "clock_skew", "target": "weather"}]}, "clock_skew moves the clock of a function"),
        ({"faults": [{"fault": "service_down", "target": "weather"}]}, "service_down stops the process of a service"),
        ({"agent": "labs"}, "module:name, as in shop.agent:answer, or lab for the lab's own"),
    ],
)
def test_what_does_not_go_with_it_is_told_before_anything_runs(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioErrors) as error:
        own(**keys).check()
    assert said in str(error.value)


def test_a_level_and_a_budget_are_of_its_services() -> None:
    (scenario,) = own(chaos_level=1, budget={"tokens": 20_000}).check()
    hit = {target for each in scenario.injections for target in each.targets}
    assert {"weather", "messaging", "model", "*"} <= hit
