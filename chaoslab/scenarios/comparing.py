"""Compares two sides on the same trials: the same seeds and the same faults, pair by pair; or two runs by
their logs, where trials of the same prompt and the same repetition are a pair."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

from chaoslab.analysis.measures.trace_diff import Story, build_story
from chaoslab.analysis.verdict.standing import OPEN_MAX
from chaoslab.execution.options import RunArguments, RunOptions, accept_fields_as_arguments, check_number
from chaoslab.record.trial_stream import read_trial_history
from chaoslab.reports.changes import compare_run_pairs
from chaoslab.reports.contents import Contents
from chaoslab.reports.places import find_run_folder
from chaoslab.scenarios.builder import ScenarioBuilder, load_scenario
from chaoslab.scenarios.located import SUFFIXES, ScenarioError
from chaoslab.scenarios.running import TrialRules
from chaoslab.scenarios.scenario import Scenario
from chaoslab.scenarios.sides import AgentSide, ComparisonSide, ScenarioSide, SeveralSides
from chaoslab.search.compared import Comparison
from chaoslab.search.comparing import ALPHA
from chaoslab.search.pairs import BETTER, WORSE, Pair

PAIRS = 200
"""The most pairs, if nothing else is said."""
BATCH, BATCH_MAX = 10, 80
"""The pairs of the first round, and the most of one: each has as many as all rounds before it."""
SHARED_KEYS = (
    "faults",
    "prompt",
    "turns",
    "user",
    "operations",
    "chaos_level",
    "families",
    "budget",
    "world",
    "timeout",
    "order",
    "now",
)
"""The keys in which both sides have to agree: their trials are not the same else."""
SHRUNK_MAX = 3
"""The most pairs that got worse, and better, whose cause is looked for."""
Tell = Callable[[Comparison], object]


def list_differing_keys(base: Scenario, new: Scenario, places: Sequence[str] = SHARED_KEYS) -> list[str]:
    """The keys in which both scenarios differ, of these."""
    return [key for key in places if getattr(base.spec, key, None) != getattr(new.spec, key, None)]


def open_scenario_sides(
    bases: Sequence[Scenario],
    news: Sequence[Scenario],
    *,
    seed: int | None = None,
    new_seed: int | None = None,
    jobs: int = 1,
    but: Sequence[str] = (),
) -> tuple[ComparisonSide, ComparisonSide]:
    """The sides of two scenarios, or of their variants in turns. `new_seed`: of the new side, for one that is compared
    with itself. `but`: the keys in which they are meant to differ. Raises ScenarioError: they do not have the same
    trials."""
    if len(bases) != len(news) or not bases:
        raise ScenarioError(
            f"the sides have {len(bases)} and {len(news)} scenarios, so their trials cannot be paired: choose with -k"
        )
    for base, new in zip(bases, news, strict=True):
        if differing_names := [key for key in list_differing_keys(base, new) if key not in but]:
            raise ScenarioError(
                f"{base.name}: the sides differ in {', '.join(differing_names)}, so their trials cannot be paired"
            )
    seeds = [base.spec.seed if seed is None else seed for base in bases]
    sides: list[list[ComparisonSide]] = [
        [ScenarioSide(scenario, own_seed, jobs) for scenario, own_seed in zip(scenarios, own_seeds, strict=True)]
        for scenarios, own_seeds in ((bases, seeds), (news, seeds if new_seed is None else [new_seed] * len(news)))
    ]
    base_side, new_side = (scenario[0] if len(scenario) == 1 else SeveralSides(scenario) for scenario in sides)
    return base_side, new_side


def run_next_pair_batch(comparison: Comparison, base: ComparisonSide, new: ComparisonSide, *, most: int) -> None:
    """Tries one batch of pairs more. `most`: the pairs that there may be in all."""
    pair_count = len(comparison.pairs)
    if not pair_count:
        comparison.round_size = new.round_size
    size = min(max(BATCH, pair_count), BATCH_MAX, most - pair_count)
    numbers = range(pair_count + 1, pair_count + size + 1)
    for number, base_trial, new_trial in zip(
        numbers, base.produce_trials(numbers), new.produce_trials(numbers), strict=True
    ):
        comparison.add(Pair(number, base_trial, new_trial, base_trial.prompt))
        # Evidence that may be looked at after each pair: the rest of the batch would only cost time.
        if comparison.is_decided:
            return


def compare_sides(
    base: ComparisonSide,
    new: ComparisonSide,
    *,
    trials: int,
    alpha: float,
    tell: Tell = lambda _: None,
    shrink: bool = False,
    name: str = "",
    open_max: float = OPEN_MAX,
) -> Comparison:
    """The comparison of two sides, which ends as soon as it is decided. `trials`: the most pairs, less those of a round
    that would not be whole. `shrink`: a cause of the first pairs that changed is looked for."""
    comparison = Comparison(alpha, name=name, open_max=open_max)
    # Rounds are whole, so that each prompt has as many pairs.
    trials = max(trials - trials % new.round_size, new.round_size)
    while len(comparison.pairs) < trials and not comparison.is_decided:
        run_next_pair_batch(comparison, base, new, most=trials)
        tell(comparison)
    for change, side in ((WORSE, new), (BETTER, base)):
        for pair in [pair for pair in comparison.pairs if pair.change_kind == change][: SHRUNK_MAX if shrink else 0]:
            # Only of the first few, since each search for a cause takes many trials.
            comparison.pairs[pair.number - 1] = replace(pair, cause=side.explain_cause(pair.number))
    return comparison


def compare_with_itself(
    scenarios: Sequence[Scenario],
    times: int,
    *,
    trials: int,
    seed: int,
    jobs: int = 1,
    alpha: float,
    open_max: float = OPEN_MAX,
) -> tuple[int, list[int]]:
    """The times that a side is called worse than itself with other seeds, and the trials that differ with the same
    seed, which a deterministic one has none of."""

    def compare_seeds(base_seed: int, new_seed: int, pair_max: int) -> Comparison:
        sides = open_scenario_sides(scenarios, scenarios, seed=base_seed, new_seed=new_seed, jobs=jobs)
        return compare_sides(*sides, trials=pair_max, alpha=alpha, open_max=open_max)

    # Two seeds for each comparison, none of them used twice.
    comparisons = [compare_seeds(seed + 2 * n, seed + 2 * n + 1, trials) for n in range(1, times + 1)]
    with_same_seed = compare_seeds(seed, seed, min(trials, BATCH))
    return sum(comparison.verdict == WORSE for comparison in comparisons), [
        comparison.number
        for comparison in with_same_seed.pairs
        if comparison.change_kind or comparison.base.outcome != comparison.new.outcome
    ]


@dataclass(frozen=True)
class CompareArguments(RunOptions):
    """The arguments of `compare`."""

    base: Any
    new: Any = None
    prompts: Any = None
    _: KW_ONLY
    trials: int = PAIRS
    alpha: float = ALPHA
    open_max: float = OPEN_MAX
    jobs: int = 1
    changed: Mapping[str, Any] | None = None
    revisions: Sequence[str] = ()
    accept: Sequence[str] = ("correct", "degraded")
    shrink: bool = False
    tell: Tell | None = None


@accept_fields_as_arguments(CompareArguments)
def compare(asked: CompareArguments) -> Comparison:
    """Tries two sides on the same trials, until it is shown which is worse: two agents, two scenarios, or two runs that
    lie in logs/.

    The options are those of `run`, for agents. `prompts`: what both are asked, one or a list. `changed`: the options,
    or the keys of the scenario, that the new side has in place of these. `trials`: the most pairs. `alpha`: the chance
    of a false verdict. `open_max`: the share of pairs that may be open beside those that decide. `revisions`: for a
    scenario's file, one or two Git revisions whose code is tried, the second of which is the work tree if it is left
    out. `accept`: the outcomes that are well, of agents. `shrink`: a cause of pairs that changed is looked
    for. `tell` is called with the `Comparison` as it grows.

    Raises:
        ValueError, LookupError, TypeError: an argument is invalid; the message is one line.
        NoBaseline: the trial without faults of one side is nothing to compare with.
    """
    check_number("trials", asked.trials, whole=True)
    check_number("jobs", asked.jobs, whole=True)
    if not isinstance(asked.alpha, float) or not 0 < asked.alpha < 1:
        raise ValueError(f"alpha is {asked.alpha!r:.40}: it should be a number between 0 and 1, as in 0.05")
    if isinstance(asked.open_max, bool) or not isinstance(asked.open_max, int | float) or not 0 <= asked.open_max <= 1:
        raise ValueError(f"open_max is {asked.open_max!r:.40}: it should be a share from 0 to 1, as in 0.05")
    if asked.logs is not None:
        raise ValueError("compare writes no logs: give lab.run_many logs=, and compare the two runs")
    kinds = [_classify_side(asked.base), _classify_side(asked.base if asked.new is None else asked.new)]
    if kinds[0] != kinds[1]:
        raise TypeError(f"one side is {kinds[0]} and the other {kinds[1]}: give two of one kind")
    settings: dict[str, Any] = {
        "trials": asked.trials, "alpha": asked.alpha, "shrink": asked.shrink, "open_max": asked.open_max,
    }  # fmt: skip
    settings["tell"] = asked.tell or (lambda _: None)
    if kinds[0] == AGENT:
        return compare_sides(*_open_agent_sides(asked), **settings)
    own_names = ("seed", "base", "new", "trials", "alpha", "open_max", "jobs", "changed", "revisions", "shrink", "tell")
    stated_names = [
        option_field.name
        for option_field in fields(asked)
        if option_field.name not in own_names and _differs_from_default(option_field, getattr(asked, option_field.name))
    ]
    if stated_names:
        raise ValueError(f"{stated_names[0]} goes with agents, and {kinds[0]} has its own: leave it out")
    if kinds[0] == RUN:
        if asked.new is None:
            raise ValueError("there is one run: give the new one too")
        return compare_runs(str(asked.base), str(asked.new), alpha=asked.alpha, open_max=asked.open_max)
    # The default is none that was asked for: a scenario has a seed of its own.
    seed = None if asked.seed == RunOptions().seed else asked.seed
    if asked.revisions:
        from chaoslab.scenarios.revisions import SideWork, open_revision_sides

        if not isinstance(asked.base, str | Path) or asked.new is not None:
            raise ValueError("revisions= takes one scenario's file, whose agent is tried as each of them has it")
        with open_revision_sides(SideWork(Path(asked.base), seed=seed, jobs=asked.jobs), asked.revisions) as (
            base,
            new,
        ):
            return compare_sides(base, new, **settings)
    return compare_sides(*_open_builder_sides(asked, seed), **settings)


AGENT, SCENARIO, RUN = "an agent", "a scenario", "a run"


def _classify_side(side: Any) -> str:
    if isinstance(side, ScenarioBuilder):
        return SCENARIO
    if isinstance(side, str | Path):
        return SCENARIO if Path(side).suffix in SUFFIXES else RUN
    return AGENT


def _differs_from_default(option: Any, value: Any) -> bool:
    default = option.default if option.default is not MISSING else None
    return bool(value != default)


def _open_agent_sides(arguments: CompareArguments) -> tuple[ComparisonSide, ComparisonSide]:
    if arguments.prompts is None or arguments.prompts == []:
        raise ValueError("the agents have to be asked something: give prompts=")
    if arguments.new is None and not arguments.changed:
        raise ValueError("both sides are the same: give the new agent, or changed= with its options")
    prompts = arguments.prompts if isinstance(arguments.prompts, list | tuple) else [arguments.prompts]
    rules = TrialRules(arguments.accept)
    options = {entry.name: getattr(arguments, entry.name) for entry in fields(RunOptions)} | {"logs": None}
    new_options = {**options, **(arguments.changed or {})}
    # These decide which trials there are; other options are what is compared.
    if wrong := [key for key in ("faults", "seed", "world", "timeout_s") if options[key] != new_options[key]]:
        raise ValueError(f"the sides differ in {wrong[0]}, so their trials cannot be paired")
    sides = [
        [AgentSide(RunArguments(agent, prompt, **side_options), rules, arguments.jobs) for prompt in prompts]
        for agent, side_options in (
            (arguments.base, options),
            (arguments.base if arguments.new is None else arguments.new, new_options),
        )
    ]
    base_side, new_side = (entry[0] if len(entry) == 1 else SeveralSides(entry) for entry in sides)
    return base_side, new_side


def _open_builder_sides(arguments: CompareArguments, seed: int | None) -> tuple[ComparisonSide, ComparisonSide]:
    builders = [source if isinstance(source, ScenarioBuilder) else load_scenario(source)
            for source in (arguments.base, arguments.base if arguments.new is None else arguments.new)]  # fmt: skip
    changed = [f"{key}={json.dumps(value)}" for key, value in (arguments.changed or {}).items()]
    if arguments.new is None and not changed:
        raise ValueError("both sides are the same: give the new scenario, changed= or revisions=")
    prompts = {"prompt", "turns"} & {*(arguments.changed or {})}
    return open_scenario_sides(
        builders[0].check(), builders[1].check(changed=changed), seed=seed, jobs=arguments.jobs, but=sorted(prompts)
    )


def compare_runs(base: str, new: str, *, alpha: float, open_max: float = OPEN_MAX) -> Comparison:
    """The comparison of two runs, named as for `chaoslab show`. All their pairs are looked at. Raises LookupError:
    there is no such run; ScenarioError: they have other seeds, plans or prompts, so their trials are not the same."""
    runs = [Contents.from_run_name(name, where=name) for name in (base, new)]
    for field_name, noun in (("seed", "seed"), ("plan", "faults")):
        if len({str(getattr(run.report.started, field_name, None)) for run in runs}) > 1:
            raise ScenarioError(f"{base} and {new} differ in {noun}, so their trials cannot be paired")
    comparison = compare_run_pairs(*runs, alpha=alpha, open_max=open_max, load_story=_load_story)
    if not comparison.pairs:
        raise ScenarioError(f"{base} and {new} differ in prompts: no trial of one has its pair in the other")
    return comparison


def _load_story(run: Contents, trial: str) -> Story:
    return build_story(read_trial_history(find_run_folder(run.where), [trial]).records, trial)
