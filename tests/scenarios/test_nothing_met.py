"""Each command that gives a verdict ends with 4 and says why, where faults were held back or none was met."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.analysis.verdict.exposure import FaultExposure, compute_exposure
from chaoslab.base import levers
from chaoslab.record.rulings import Rulings, RulingState
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.running import Result, run_scenario
from tests.cli_parts import Typed
from tests.event_parts import prompt_finished, run_started, story
from tests.verdict.trials import started

SHOP = """
def refund(order: int) -> str:
    return "done"


def never(order: int) -> str:
    return "never"


def naive(prompt):
    for _ in range(3):
        try:
            return refund(17)
        except OSError:
            pass
    return "no"
"""
SCENARIO = """
name: pay
agent: unmet_shop:naive
tools: [unmet_shop:refund, unmet_shop:never]
prompt: Refund 17.
trials: 40
says: {refund: {undone: "no"}}
faults: [{fault: lost_reply, target: refund, chance: 0.5}]
"""
COMMANDS = (
    ["gate", "pay.chaos.yml", "--baseline", "new.json", "--write"],
    ["gate", "pay.chaos.yml", "--baseline", "there.json", "-q"],
    ["compare", "pay.chaos.yml", "--agent", "unmet_shop:naive", "-q", "--trials", "100"],
    ["stress", "pay.chaos.yml", "--iterations", "20", "-q"],
    ["explore", "pay.chaos.yml", "-q"],
    ["shrink", "pay.chaos.yml", "--trial", "2"],
    ["plan", "pay.chaos.yml", "--run", "--budget", "5", "-q"],
    ["test", "pay.chaos.yml"],
)


@pytest.fixture
def shop(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    monkeypatch.setattr(levers, "LEVER", here / "stop")
    (here / "unmet_shop.py").write_text(SHOP)
    (here / "pay.chaos.yml").write_text(SCENARIO)
    return here


def write_baseline(typed: Typed) -> None:
    typed.out("gate", "pay.chaos.yml", "--baseline", "there.json", "--write", "-q")


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:1] + words[4:5]))
def test_with_the_lever_pulled_a_verdict_proves_nothing(words: Sequence[str], shop: Path, typed: Typed) -> None:
    if "there.json" in words:
        write_baseline(typed)
    levers.write_stop_file(shop / "stop", "Ann: late")
    ended = typed(*words)
    assert ended.code == 4, (ended.out, ended.err)
    assert f"lever {shop / 'stop'}: Ann: late" in ended.out + ended.err
    assert not (shop / "new.json").exists()


@pytest.mark.parametrize("words", COMMANDS[:6], ids=lambda words: " ".join(words[:1] + words[4:5]))
def test_in_shadow_a_verdict_proves_nothing(words: Sequence[str], shop: Path, typed: Typed) -> None:
    if "there.json" in words:
        write_baseline(typed)
    (shop / "pay.chaos.yml").write_text(SCENARIO + "limits: {shadow: true}\n")
    ended = typed(*words)
    assert ended.code == 4, (ended.out, ended.err)
    assert "shadow: nothing is hit" in ended.out + ended.err


@pytest.mark.parametrize("words", [*COMMANDS[:1], *COMMANDS[2:3], *COMMANDS[7:]], ids=lambda words: words[0])
def test_where_no_fault_is_met_a_verdict_proves_nothing(words: Sequence[str], shop: Path, typed: Typed) -> None:
    (shop / "pay.chaos.yml").write_text(SCENARIO.replace("target: refund", "target: never"))
    ended = typed(*words)
    assert ended.code == 4, (ended.out, ended.err)
    assert "no trial met a fault" in ended.out + ended.err


def test_an_agent_that_calls_nothing_is_not_explored(shop: Path, typed: Typed) -> None:
    (shop / "unmet_shop.py").write_text(SHOP + "\ndef silent(prompt):\n    return 'Done.'\n")
    (shop / "pay.chaos.yml").write_text(SCENARIO.replace(":naive", ":silent"))
    ended = typed("explore", "pay.chaos.yml", "-q")
    assert (ended.code, "this proves nothing: no call was made that a fault could hit" in ended.out) == (4, True)


def test_a_plan_of_which_all_trials_are_open_is_ruled_so(shop: Path, typed: Typed) -> None:
    unclear = (
        "\ndef unclear(prompt):\n    try:\n        never(1)\n    except OSError:\n        return 'Thanks.'\n"
        "    return 'It is 3.'\n"
    )
    (shop / "unmet_shop.py").write_text(SHOP + unclear)
    scenario = (
        SCENARIO.replace(":naive", ":unclear")
        .replace("tools: [", "reads: [")
        .replace("target: refund", "target: never")
    )
    (shop / "pay.chaos.yml").write_text("\n".join(line for line in scenario.splitlines() if "says" not in line))
    words = ("--tries", "refused", "--target", "never", "--budget", "1", "-q")
    assert typed("plan", "pay.chaos.yml", "--run", *words).code == 4
    rulings = Rulings.read(shop / "logs" / "latest")
    assert rulings is not None
    assert (rulings.state, rulings.why[0][:42]) == (RulingState.INVALID, "1 of 1 trial with faults are open: nothing")


@pytest.mark.usefixtures("no_charts")
@pytest.mark.parametrize(
    "words",
    [["run", "--trials", "3", "--min-correct", "0", "TOXIC_PROB=0.9"], ["run", "--trials", "3", "TOXIC_PROB=0.9"],
     ["sweep", "--trials", "3", "TOXIC_PROB=0,0.9", "-q"]],
    ids=["min-correct", "run", "sweep"],
)  # fmt: skip
def test_runs_of_the_lab_under_the_lever_prove_nothing(words: list[str], shop: Path, typed: Typed) -> None:
    levers.write_stop_file(shop / "stop", "Ann: late")
    ended = typed(*words, "--world", "virtual")
    assert ended.code == 4, (ended.out, ended.err)
    assert f"lever {shop / 'stop'}: Ann: late" in ended.out + ended.err


def test_a_lever_that_is_pulled_half_way_leaves_open_trials(shop: Path) -> None:
    (scenario,) = load_file_scenarios(
        shop / "pay.chaos.yml", changed=["faults=[{fault: refused, target: refund, calls: [1]}]"]
    )
    result = Result(scenario)
    for number, ruling in enumerate(run_scenario(scenario), 1):
        result.add_ruling(ruling)
        if number == 20:
            levers.write_stop_file(shop / "stop", "Ann: late")
    assert (result.trial_counts.well, result.trial_counts.bad, result.trial_counts.open) == (20, 0, 20)
    assert result.unproven_reason.startswith("faults were held back in 20 of 40 trials: lever ")


def test_a_limit_that_thins_faults_out_is_part_of_the_plan(shop: Path, typed: Typed) -> None:
    (shop / "pay.chaos.yml").write_text(SCENARIO + "limits: {faults: 1}\n")
    assert typed(*COMMANDS[2]).code == 0


@pytest.mark.parametrize(
    ("trials", "said"),
    [
        ([], ""),
        ([(None, "")] * 3, ""),
        ([(True, "")] + [(False, "")] * 9, ""),
        ([(False, "")] * 3, "no trial met a fault"),
        ([(False, "lever x")] * 2 + [(True, "")] * 8, "faults were held back in 2 of 10 trials: lever x"),
        (
            [(False, "lever x"), (False, "lease y"), (False, "limit z"), (False, "lever x"), (False, "limit z")],
            "faults were held back in 5 of 5 trials: lever x, limit z",
        ),
        ([(False, "lever x")] + [(True, "")] * 19, ""),
    ],
)
def test_the_exposure_of_trials(trials: Sequence[tuple[bool | None, str]], said: str) -> None:
    found = FaultExposure()
    for met, held in trials:
        found.add_trial(met=met, held=held)
    assert found.no_proof_reason == said


def test_the_plan_of_another_version_is_none_that_could_have_hit() -> None:
    plan = {"seed": 1, "injections": [{"name": "it", "choices": [{"fault": "latency", "weights": 2}], "chance": 1}]}
    assert compute_exposure(story(run_started(plan=plan), started(), prompt_finished())).no_proof_reason == ""


def test_agents_without_faults_may_be_compared() -> None:
    def answer(prompt: str) -> str:
        return f"{prompt} 42"

    def other(prompt: str) -> str:
        return f"{prompt} is 42"

    assert lab.compare(answer, other, "6 * 7?", facts=["42"], trials=40).verdict == "no difference shown"
