"""The cost of a run is told before it starts, and what nobody knows is unknown."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaoslab.base.clock import SystemClock
from chaoslab.core.events import PromptFinished, PromptStarted, RunStarted, Usage, UsageUnstated
from chaoslab.execution import estimate
from chaoslab.execution.estimate import CostEstimate, Sample, run_pilot, sum_estimates
from chaoslab.record.rulings import RulingsFile, RulingState, TrialRuling
from chaoslab.record.runs import Run
from chaoslab.scenarios.estimate import estimate_scenario
from chaoslab.scenarios.load import load
from tests.cli_parts import Typed

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
FREE = "  model    no tokens and no dollars: no real model is asked"


class Stepped(SystemClock):
    """A clock that moves when it is told."""

    now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def step(self, by_s: float) -> None:
        self.now_s += by_s


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
            told.add(trial, TrialRuling(RulingState.PASSED))


def real(folder: Path) -> CostEstimate:
    (folder / "a.chaos.yaml").write_text(REAL)
    (scenario,) = load(folder / "a.chaos.yaml")
    return estimate_scenario(scenario, logs=folder / "logs")


def test_in_virtual_time_a_pilot_tells_the_time_and_nothing_costs_money(here: Path, typed: Typed) -> None:
    (here / "refund.chaos.yaml").write_text(VIRTUAL)
    name, time, model = typed.out("test", "--estimate", "-n", "200").splitlines()
    assert name == "refund: 200 trials"
    assert time.startswith("  time     about ")
    assert time.endswith(" s, by a pilot of 6 trials")
    assert model == FREE
    assert not (here / "logs").exists()


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
    assert estimate_scenario(scenario, only=1).notes == ("not in it: the model that judge and judged_by may ask",)


def test_the_lab_and_the_levels_of_stress_are_estimated_too(here: Path, typed: Typed) -> None:
    (of_lab,) = json.loads(
        typed.out("run", "--estimate", "--json", "TRIALS=10", "GROQ_API_KEY=gsk_none", "COST_LIMIT_USD=2")
    )["estimates"]
    assert (of_lab["trials"], of_lab["dollars"], of_lab["limit_usd"]) == (10, None, 2.0)
    (here / "refund.chaos.yaml").write_text(VIRTUAL)
    told = json.loads(
        typed.out("stress", "refund.chaos.yaml", "--estimate", "--levels", "0,1", "--iterations", "2", "--json")
    )
    assert [one["name"] for one in told["estimates"]] == ["refund at level 0", "refund at level 1"]
    assert (told["sum"]["trials"], told["sum"]["dollars"]) == (4, 0.0)


@pytest.mark.parametrize(
    ("sample", "options", "said"),
    [
        (None, {}, ["a: 10 trials", "  time     unknown", "  tokens   unknown", "  dollars  unknown"]),
        (None, {"real": False}, ["a: 10 trials", "  time     unknown", FREE]),
        (
            Sample("a log", 4, 2.0, 3.0, 100, 0.5),
            {"limit_usd": 0.5, "notes": ["Not all."]},
            ["a: 10 trials", "  time     about 23 s, by a log", "  tokens   about 250",
             "  dollars  about $1.2; the limit is $0.5", "  Not all."],
        ),
        (Sample("a log", 4, 2.0, 3.0, 100, 0.5), {"real": False, "jobs": 2},
         ["a: 10 trials", "  time     about 13 s, by a log", FREE]),
        (Sample("a log", 4, 2.0, 3.0, 100), {"trials": 1, "jobs": 2},
         ["a: 1 trial", "  time     about 5 s, by a log", "  tokens   about 25", "  dollars  unknown"]),
        (Sample("a log", 1, 0.5, 0.0, None, 7.0), {"trials": 4000},
         ["a: 4,000 trials", "  time     about 33 min 20 s, by a log", "  tokens   unknown",
          "  dollars  about $2.8e+04"]),
    ],
)  # fmt: skip
def test_an_estimate_is_told_with_what_is_not_known(
    sample: Sample | None, options: dict[str, Any], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    more = {"real": True, **options}
    assert [*CostEstimate.build("a", more.pop("trials", 10), sample, **more).lines()] == said


def test_a_sum_is_not_known_where_one_is_not() -> None:
    one, other, unknown = (
        CostEstimate("a", 1, 1.0, 5, 0.1),
        CostEstimate("b", 2, 2.0, 0, 0.0),
        CostEstimate("c", 3, None, 1, None),
    )
    assert sum_estimates([one, other]) == CostEstimate("in all", 3, 3.0, 5, 0.1)
    assert sum_estimates([one, unknown]) == CostEstimate("in all", 4, None, 6, None)
    assert "no real model" not in "".join(sum_estimates([replace(one, tokens=0), other]).lines())


@pytest.mark.parametrize(
    ("steps_s", "count", "each_s", "once_s"),
    [
        ([5], 1, 5, 0), ([5, 1], 2, 1, 4), ([5, 1, 1], 2, 1, 4), ([1, 3], 2, 3, 0), ([1, 3, 1, 1], 3, 2, 0),
        ([1, 4, 1], 2, 4, 0), ([0.5, *[0.25] * 7], 6, 0.25, 0.25),
    ],
)  # fmt: skip
def test_a_pilot_measures_the_trials_and_what_they_take_once(
    steps_s: list[float], count: int, each_s: float, once_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Stepped()
    monkeypatch.setattr(estimate, "system", clock)
    found = run_pilot(map(clock.step, steps_s))
    assert found == Sample(f"a pilot of {count} trial{'s' if count > 1 else ''}", count, each_s, once_s)


def test_a_pilot_ends_early_and_parts_the_beginning_from_the_trials() -> None:
    taken = iter(range(100))
    found = run_pilot(taken)
    assert found is not None
    assert (found.trials, next(taken)) == (6, 6)
    assert run_pilot([]) is None
