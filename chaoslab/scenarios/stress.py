"""A scenario at rising levels of chaos: the share of trials that pass, and the level at which it breaks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from chaoslab.analysis.measures.intervals import Rate, compute_rate
from chaoslab.analysis.verdict.exposure import FaultExposure
from chaoslab.analysis.verdict.standing import OPEN_MAX, Standing, StandingCount, classify_share
from chaoslab.core.levels import level_to_chance
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.running import Result, run_scenario
from chaoslab.scenarios.tell import make_rerun_command, render_failures

BAR = 20
"""The width of a full bar, in characters."""
GROUPS_MAX = 2
"""The most ways to fail that are told of a level."""


@dataclass(frozen=True)
class StressLevel:
    """One level of one scenario. `count`: its trials that passed, failed and are open. `exposure`: the faults that they
    met. `least`: the share that the scenario asks for. `open_max`: the share that may be open. `faults`: the number of
    faults of its own. `folder`: the logs of its run, if they are written. `failed`: lines on the trials that did not
    pass, at a level that breaks it."""

    scenario: str
    level: float
    count: StandingCount
    exposure: FaultExposure
    least: float
    open_max: float = OPEN_MAX
    faults: int = 0
    folder: Path | None = None
    failed: Sequence[str] = ()

    def __str__(self) -> str:
        passed = f"{self.count} trials passed"
        return f"{self.scenario} at level {self.level:g}: {passed}; {self.exposure.met} met a fault"

    @property
    def pass_rate(self) -> Rate | None:
        """The share of judged trials that passed; None if none was judged."""
        return compute_rate(self.count.well, self.count.judged_count)

    @property
    def standing(self) -> Standing:
        """Bad if less than asked for passed; open if that is not known."""
        return classify_share(self.count, self.least, open_max=self.open_max)

    @property
    def is_broken(self) -> bool:
        """True if less than asked for passed."""
        return self.standing is Standing.BAD


def run_stress_levels(
    path: Path,
    levels: Sequence[float],
    trials: int,
    *,
    seed: int | None = None,
    jobs: int = 1,
    logs: Path | None = None,
    keep: str = "all",
) -> Iterator[StressLevel]:
    """The scenarios of a file at each level, which comes to their own faults. The same trial has the same dice at each
    level. `logs`: a folder that gets a run for each step. `keep`: see `RunOptions`. Raises ScenarioError: the
    file is wrong, or something of the user's cannot be imported."""
    for level in levels:
        for scenario in load_file_scenarios(path, changed=[f"chaos_level={level:g}"]):
            # The same trial has the same dice at each level, so the levels can be compared.
            result = Result(scenario)
            seed_options = [] if seed is None else ["--seed", str(seed)]
            options = [*seed_options, "--set", f"chaos_level={level:g}"]
            command = partial(make_rerun_command, scenario, given=options)
            for ruling in run_scenario(
                scenario,
                trials=trials,
                seed=seed,
                jobs=jobs,
                logs=logs,
                again=command,
                apart=True,
                keep=keep,
            ):
                result.add_ruling(ruling)
            folder = result.rulings[0].trial.folder if result.rulings else None
            step = StressLevel(
                scenario.name,
                level,
                result.trial_counts,
                result.exposure,
                scenario.spec.pass_rate,
                scenario.spec.invalid_rate,
                len(scenario.spec.faults),
                folder,
            )
            yield replace(step, failed=render_failures(result, options, most=GROUPS_MAX)) if step.is_broken else step


def render_levels(steps: Sequence[StressLevel], *, brief: bool = False) -> str:
    """The steps as a table with bars, and the breaking point of each scenario. `brief`: that point alone."""
    lines = []
    for name, scenario_steps in group_by_scenario(steps).items():
        if brief:
            lines.append(f"{name}: {_describe_breaking_point(scenario_steps)}")
            continue
        faults = scenario_steps[0].faults
        suffix = f", beside its own {'fault' if faults == 1 else f'{faults} faults'}" if faults else ""
        lines.append(f"{name}: {scenario_steps[0].count.total} trials at each level{suffix}")
        lines.append("level  a call is hit  passed  95 % interval  met a fault        open")
        for step in scenario_steps:
            share, chance = step.pass_rate, level_to_chance(step.level)
            figures = (
                "no trial could be judged"
                if share is None
                else (
                    f"{share.value:6.0%}  {f'{share.interval.low:.0%}–{share.interval.high:.0%}':>13}"
                    f"  {step.exposure.met:>11}  {step.count.open:>10}  {'█' * round(BAR * share.value)}"
                )
            )
            lines.append(f"{step.level:<5g}  {f'{chance * 100:g} %':>13}  {figures}")
        lines.append(_describe_breaking_point(scenario_steps))
        lines += [f"  {line}" for line in next((step.failed for step in scenario_steps if step.is_broken), ())]
    return "\n".join(lines)


def explain_unproven_levels(steps: Sequence[StressLevel]) -> str:
    """The reason why the levels of a scenario do not show if it breaks: no fault was met at any, or one is open and
    none breaks it; empty if they do."""
    exposure = FaultExposure()
    for step in steps:
        exposure += step.exposure
    if exposure.no_proof_reason:
        return exposure.no_proof_reason
    return "" if any(step.is_broken for step in steps) else _describe_undecided_level(steps)


def _describe_undecided_level(steps: Iterable[StressLevel]) -> str:
    """The first level of which it is not known if it breaks the scenario; empty if there is none."""
    first = next((step for step in steps if step.standing is Standing.OPEN), None)
    return (
        "" if first is None else f"{first.count.open} of {first.count.total} trials are open at level {first.level:g}"
    )


def group_by_scenario(steps: Sequence[StressLevel]) -> dict[str, list[StressLevel]]:
    """The steps of each scenario."""
    names = dict.fromkeys(step.scenario for step in steps)
    return {name: [step for step in steps if step.scenario == name] for name in names}


def _describe_breaking_point(scenario_steps: Sequence[StressLevel]) -> str:
    """The breaking point of a scenario."""
    if reason := explain_unproven_levels(scenario_steps):
        return f"it proves nothing: {reason}"
    broken = next((step for step in scenario_steps if step.is_broken), None)
    if broken is None:
        return f"it was not seen to break up to level {scenario_steps[-1].level:g}"
    # A level before it that is open may have broken it already.
    open_ = _describe_undecided_level(takewhile(lambda step: not step.is_broken, scenario_steps))
    earlier = f", or before, since {open_}" if open_ else ""
    return f"it breaks at level {broken.level:g}{earlier}: less than {broken.least:.0%} of its trials pass"


def levels_to_json(steps: Sequence[StressLevel]) -> dict[str, Any]:
    """The steps as JSON values."""
    return {
        "chaoslab": 1,
        "steps": [
            {
                "scenario": step.scenario, "level": step.level, "passed": step.count.well,
                "judged": step.count.judged_count, "open": step.count.open, "met_a_fault": step.exposure.met,
                "held_back": dict(step.exposure.held), "breaks": step.is_broken, "standing": str(step.standing),
                "failed": list(step.failed),
                "interval": None if step.pass_rate is None else [step.pass_rate.interval.low,
                    step.pass_rate.interval.high],
            }
            for step in steps
        ],
    }  # fmt: skip


def draw_pass_rate_chart(steps: Sequence[StressLevel], path: Path) -> None:
    """Draws the share that passes over the level, with its intervals: a picture (.png, .svg). Raises OSError: the file
    cannot be written."""
    from chaoslab.reports.charts import save_chart
    from chaoslab.reports.charts.sweep import draw_pass_rate
    from chaoslab.reports.levels import PassRate

    lines = [
        PassRate(name, [(step.level, share) for step in scenario_steps if (share := step.pass_rate) is not None])
        for name, scenario_steps in group_by_scenario(steps).items()
    ]
    save_chart(draw_pass_rate(lines), path)
