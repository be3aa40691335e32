"""The cost of a run is told before it starts, and what nobody knows is unknown."""

import json
from pathlib import Path

import pytest

from chaoslab.cli import main
from chaoslab.core.events import PromptFinished, PromptStarted, RunStarted, Usage, UsageUnstated
from chaoslab.execution.estimate import Estimate, pilot
from chaoslab.record.rulings import RulingsFile, State, TrialRuling
from chaoslab.record.runs import Run
from chaoslab.scenarios.estimate import estimated
from chaoslab.scenarios.load import load

VIRTUAL = """\
name: refund
fresh: tests.scenarios.shop_parts:careful
tools: [tests.scenarios.shop_parts:refund]
prompt: Refund order 17.
faults: [{fault: lost_reply, target: refund, chance: 0.4}]
"""
REAL = """\
name: by command
agent: {command: [python, agent.py]}
upstreams: {openai: "https://api.openai.com"}
models: [openai]
prompt: Refund order 17.
facts: [refunded]
trials: 100
budget: {dollars: 0.5}
"""
Said = pytest.CaptureFixture[str]


def run_of(logs: Path, *, priced: bool = True, unstated: bool = False, world: str = "local") -> None:
    """A run of two trials of the scenario `by command`: 3 s, 500 tokens and 1 cent each."""
    run = Run(
        f"20261126-09000{len(list(logs.glob('*')))}", logs / f"20261126-09000{len(list(logs.glob('*')))}", 0.0, ""
    )
    told = RulingsFile(run.folder, "by command", [], 2)
    cost = 0.01 if priced else None
    with run.log("info") as info:
        now = "2026-06-01T09:00:00Z"
        info.write(RunStarted(seed=1, settings={}, plan={}, prompts=2, now=now, model="m", world=world))
        for trial in ("p1.r1", "p1.r2"):
            info.write(PromptStarted(prompt_index=1, prompt="x"), trial=trial)
            kind = UsageUnstated if unstated else Usage
            info.write(kind(model="m", request=1, prompt_tokens=400, completion_tokens=100, cost_usd=cost), trial=trial)
            info.write(
                PromptFinished(prompt_index=1, prompt="x", status="ok", answer="y", attempts=1, duration_s=3.0),
                trial=trial,
            )
            told.add(trial, TrialRuling(State.PASSED))


def real(folder: Path) -> Estimate:
    (folder / "a.chaos.yaml").write_text(REAL)
    (scenario,) = load(folder / "a.chaos.yaml")
    return estimated(scenario, logs=folder / "logs")


def test_in_virtual_time_a_pilot_tells_the_time_and_nothing_costs_money(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "refund.chaos.yaml").write_text(VIRTUAL)
    assert main(["test", "--estimate", "-n", "200"]) == 0
    name, time, model = capsys.readouterr().out.splitlines()
    assert name == "refund: 200 trials"
    assert time.startswith("  time     about ")
    assert time.endswith(" s, by a pilot of 6 trials")
    assert model == "  model    no tokens and no dollars: no real model is asked"
    assert not (tmp_path / "logs").exists()


def test_in_real_time_the_log_of_an_earlier_run_tells(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    run_of(logs)
    run_of(logs, priced=False, world="virtual")  # another world's
    found = real(tmp_path)
    assert (found.trials, found.tokens, found.limit_usd) == (100, 50_000, 0.5)
    assert "  dollars  about $1; the limit is $0.5" in found.lines()
    assert found.source == f"the 2 trials of {logs / '20261126-090000'}"
    run_of(logs, unstated=True)
    assert real(tmp_path).tokens == 50_000, "estimated by the length"


def test_what_is_not_known_is_unknown(tmp_path: Path) -> None:
    nothing = real(tmp_path)
    assert (nothing.seconds, nothing.tokens, nothing.dollars) == (None, None, None)
    assert nothing.notes == ("no earlier run of it is known: one with -n 1 --logs logs tells what a trial costs",)
    run_of(tmp_path / "logs", priced=False)
    assert (real(tmp_path).tokens, real(tmp_path).dollars) == (50_000, None)


def test_a_model_that_judges_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.chaos.yaml").write_text(
        f"{VIRTUAL}judge: model\nexpect: [{{judged_by: {{statement: It is polite.}}}}]\n"
    )
    (scenario,) = load(tmp_path / "a.chaos.yaml")
    assert estimated(scenario, only=1).notes == ("not in it: the model that judge and judged_by may ask",)


def test_the_lab_and_the_levels_of_stress_are_estimated_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--estimate", "--json", "TRIALS=10", "GROQ_API_KEY=gsk_none", "COST_LIMIT_USD=2"]) == 0
    (of_lab,) = json.loads(capsys.readouterr().out)["estimates"]
    assert (of_lab["trials"], of_lab["dollars"], of_lab["limit_usd"]) == (10, None, 2.0)
    (tmp_path / "refund.chaos.yaml").write_text(VIRTUAL)
    assert main(["stress", "refund.chaos.yaml", "--estimate", "--levels", "0,1", "--iterations", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["estimates"]] == ["refund at level 0", "refund at level 1"]
    assert (told["sum"]["trials"], told["sum"]["dollars"]) == (4, 0.0)


def test_a_pilot_ends_early_and_parts_the_beginning_from_the_trials() -> None:
    taken = iter(range(100))
    found = pilot(taken)
    assert found is not None
    assert (found.trials, next(taken)) == (6, 6)
    assert pilot([]) is None
