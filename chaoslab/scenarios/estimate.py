"""The cost of scenarios before they start: a pilot where nothing real is asked, else the log of an earlier run."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from chaoslab.execution.estimate import PILOT, CostEstimate, Sample, find_earlier_sample, run_pilot
from chaoslab.execution.spec import is_of_one_process
from chaoslab.record.rulings import Rulings
from chaoslab.scenarios.load import load
from chaoslab.scenarios.running import run
from chaoslab.scenarios.scenario import Scenario


def estimate_scenario(
    scenario: Scenario, *, trials: int | None = None, seed: int | None = None, jobs: int = 1, only: int | None = None,
    logs: Path | None = None,
) -> CostEstimate:  # fmt: skip
    """The cost of a run with these options, as `running.run` has them. In virtual time a few trials are run, without
    judge and assertions, which may ask a model. Raises ScenarioError: the pilot cannot be run."""
    spec = scenario.spec
    real = not is_of_one_process(spec.world)
    count = 1 if only is not None else spec.trials if trials is None else trials
    # In real time a pilot would act on real services.
    sample = _find_earlier(scenario, logs) if real else _run_pilot(scenario, count, seed)
    judges = ["judge"] if spec.judge else []
    judges += [
        assertion.name for assertion in (*scenario.expect, *sum(scenario.by_turn.values(), ())) if assertion.asks
    ]
    notes = [f"not in it: the model that {' and '.join(dict.fromkeys(judges))} may ask"] if judges else []
    if sample is None and real:
        notes.append("no earlier run of it is known: one with -n 1 --logs logs tells what a trial costs")
    limit = spec.budget.dollars if spec.budget is not None else None
    return CostEstimate.build(
        scenario.name, count, sample, real=real, jobs=1 if real else jobs, limit_usd=limit, notes=notes
    )


def estimate_levels(
    path: Path, levels: Sequence[float], trials: int, *, seed: int | None = None, jobs: int = 1,
    logs: Path | None = None,
) -> Iterator[CostEstimate]:  # fmt: skip
    """The cost of each scenario of a file at each level of chaos. Raises ScenarioError: the file is wrong, or a pilot
    cannot be run."""
    for level in levels:
        for scenario in load(path, changed=[f"chaos_level={level:g}"]):
            estimate = estimate_scenario(scenario, trials=trials, seed=seed, jobs=jobs, logs=logs)
            yield replace(estimate, name=f"{scenario.name} at level {level:g}")


def _run_pilot(scenario: Scenario, count: int, seed: int | None) -> Sample | None:
    # They may ask a model, which costs money.
    without_judge = replace(
        scenario, spec=scenario.spec.model_copy(update={"judge": None}), expect=(), by_turn={}, slo=()
    )
    with closing(run(without_judge, trials=min(count, PILOT), seed=seed, apart=True)) as rulings:
        return run_pilot(rulings)


def _find_earlier(scenario: Scenario, logs: Path | None) -> Sample | None:
    def fits(folder: Path) -> bool:
        rulings = Rulings.read(folder)
        return rulings is not None and rulings.scenario == scenario.name

    return find_earlier_sample(logs, fits, world=scenario.spec.world)
