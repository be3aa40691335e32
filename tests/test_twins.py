"""The twins of a run in real time: they are those of virtual time, and a line tells where there is none."""

from pathlib import Path
from typing import Any

import pytest

from chaoslab.agent import prompts
from chaoslab.agent.config import Config, RealService
from chaoslab.agent.prompts import Prompt
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.seen import Twin
from chaoslab.config.settings import SettingError, Settings
from chaoslab.core.events import PromptStarted
from chaoslab.lab.twins import open_twin_maker
from chaoslab.record.history import History
from tests.cli_parts import chaoslab, free_base
from tests.cli_parts import prompts as prompt_file

REAL = Config(services={"weather": RealService(url="http://127.0.0.1:9")})
OWN = ["What is the average of the temperatures in Rome, Athens and Lisbon?", "Tell Ana that it rains."]
"""A user's own prompts, which state nothing."""


def made(*asked: Prompt, config: Config | None = None, **chosen: Any) -> tuple[list[Twin | None], list[str]]:
    told: list[str] = []
    with open_twin_maker(Settings(**chosen), config or Config(), asked, Path("mine.json"), told.append) as of:
        return [of(number) for number in range(len(asked))], told


def test_each_prompt_has_its_answer_and_one_that_states_nothing_its_effects() -> None:
    stated = Prompt(prompt="Tell Ana that it rains.", effects=[{"effect": "message_sent", "to": "Ana"}])
    found, told = made(*map(Prompt.build, OWN), stated, seed=3, toxic_prob=1.0)
    average, tells, same = found
    assert average is not None
    assert tells is not None
    assert same is not None
    assert average.answer is not None
    assert average.answer.endswith("= 21.08.")
    assert (average.effects, average.seconds) == ([], None), "real seconds are compared with no virtual ones"
    assert [effect["to"] for effect in tells.effects or ()] == ["Ana"]
    assert (same.answer, same.effects) == (tells.answer, None)
    assert told == []


@pytest.mark.parametrize(
    ("real", "why"),
    [
        ({"model_url": "http://127.0.0.1:9/v1"}, "a real model's answers have no twin"),
        ({"groq_api_key": "k"}, "a real model's answers have no twin"),
        ({"config": REAL}, "answers of real services have no twin"),
    ],
)
def test_one_line_names_the_prompts_without_anything_to_judge_by(real: dict[str, Any], why: str) -> None:
    found, told = made(*map(Prompt.build, OWN), Prompt(prompt="What is 6 times 7?", facts=["42"]), **real)
    assert found == [None] * 3
    assert told == [f"prompts 1, 2: nothing to judge the answers by, since no facts or effects are stated and {why}"]


def test_a_prompt_that_states_what_no_service_tells_is_refused() -> None:
    fact = {"tool": "current_wether", "arguments": {}, "path": "x"}
    with pytest.raises(SettingError, match="prompt 1: facts: no tool is called 'current_wether'"):
        made(Prompt.model_validate({"prompt": "Hello?", "facts": [fact]}))


def test_a_run_on_loopback_is_judged_as_in_virtual_time(tmp_path: Path) -> None:
    given = (prompt_file(tmp_path, OWN), "SEED=1", "TOXIC_PROB=0", "ERROR_PROB=0", "HALLUCINATION_PROB=0.7", "TRIALS=6")
    found = []
    for world in ("local", "virtual"):
        done = chaoslab(tmp_path, "lab", f"WORLD={world}", f"BASE_PORT={free_base()}", *given)
        assert done.returncode == 0, done.stderr
        history = History.read(tmp_path / "logs" / "latest")
        assert all(event.stated and event.twin for _, event in history.find_events(PromptStarted))
        found.append({trial: (verdict.outcome, verdict.why) for trial, verdict in judge_all_trials(history).items()})
    assert found[0] == found[1]
    assert {str(outcome) for outcome, _ in found[0].values()} >= {"wrong", "correct"}


def test_the_labs_own_prompts_have_twins() -> None:
    found, told = made(*prompts.load_prompts())
    assert all(found)
    assert told == []
