"""Compares two sides on the same trials: the same seeds and the same faults, pair by pair; or two runs by
their logs, where trials of the same prompt and the same repetition are a pair."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from chaoslab.analysis.measures.trace_diff import Story, tell
from chaoslab.analysis.verdict.exposure import plans_faults
from chaoslab.analysis.verdict.standing import OPEN_MAX, Standing
from chaoslab.execution.options import RunArguments, RunOptions, check_number, taking
from chaoslab.record.trial_stream import stories
from chaoslab.reports.changes import differences, keyed
from chaoslab.reports.contents import Contents
from chaoslab.reports.page import count
from chaoslab.reports.places import find
from chaoslab.scenarios.builder import ScenarioBuilder, load_scenario
from chaoslab.scenarios.located import SUFFIXES, ScenarioError
from chaoslab.scenarios.running import TrialRules
from chaoslab.scenarios.scenario import Scenario
from chaoslab.scenarios.sides import OfAgent, OfScenario, SeveralSides, Sides
from chaoslab.search.compared import Comparison
from chaoslab.search.comparing import ALPHA
from chaoslab.search.pairs import BETTER, WORSE, Pair, Side

PAIRS = 200
"""The most pairs, if nothing else is said."""
BATCH, BATCH_MAX = 10, 80
"""The pairs of the first round, and the most of one: each has as many as all rounds before it."""
PLACES = ("faults", "prompt", "turns", "user", "operations", "chaos_level", "families", "budget", "world", "timeout",
          "order", "now")  # fmt: skip
"""The keys in which both sides have to agree: their trials are not the same else."""
SHRUNK = 3
"""The most pairs that became worse, and better, whose cause is looked for."""
Tell = Callable[[Comparison], object]


def differing(base: Scenario, new: Scenario, places: Sequence[str] = PLACES) -> list[str]:
    """The keys in which both scenarios differ, of these."""
    return [key for key in places if getattr(base.spec, key, None) != getattr(new.spec, key, None)]


def of_scenarios(
    bases: Sequence[Scenario], news: Sequence[Scenario], *, seed: int | None = None, new_seed: int | None = None,
    jobs: int = 1, but: Sequence[str] = (),
) -> tuple[Sides, Sides]:  # fmt: skip
    """The sides of two scenarios, or of their variants in turns. `new_seed`: of the new side, for one that is compared
    with itself. `but`: the keys in which they are meant to differ. Raises ScenarioError: they do not have the same
    trials."""
    if len(bases) != len(news) or not bases:
        raise ScenarioError(
            f"the sides have {len(bases)} and {len(news)} scenarios, so their trials cannot be paired: choose with -k"
        )
    for base, new in zip(bases, news, strict=True):
        if found := [key for key in differing(base, new) if key not in but]:
            raise ScenarioError(
                f"{base.name}: the sides differ in {', '.join(found)}, so their trials cannot be paired"
            )
    seeds = [base.spec.seed if seed is None else seed for base in bases]
    sides: list[list[Sides]] = [
        [OfScenario(each, own, jobs) for each, own in zip(scenarios, own_seeds, strict=True)]
        for scenarios, own_seeds in ((bases, seeds), (news, seeds if new_seed is None else [new_seed] * len(news)))
    ]
    one, other = (each[0] if len(each) == 1 else SeveralSides(each) for each in sides)
    return one, other


def advance(found: Comparison, base: Sides, new: Sides, *, most: int) -> None:
    """Tries one batch of pairs more. `most`: the pairs that there may be in all."""
    done = len(found.pairs)
    if not done:
        found.period = new.period
    size = min(max(BATCH, done), BATCH_MAX, most - done)
    numbers = range(done + 1, done + size + 1)
    for number, one, other in zip(numbers, base.take(numbers), new.take(numbers), strict=True):
        found.add(Pair(number, one, other, one.prompt))
        # Evidence that may be looked at after each pair: the rest of the batch would only cost time.
        if found.decided:
            return


def paired(
    base: Sides, new: Sides, *, trials: int, alpha: float, tell: Tell = lambda _: None, shrink: bool = False,
    name: str = "", open_max: float = OPEN_MAX,
) -> Comparison:  # fmt: skip
    """The comparison of two sides, which ends as soon as it is decided. `trials`: the most pairs, less those of a round
    that would not be whole. `shrink`: a cause of the first pairs that changed is looked for."""
    found = Comparison(alpha, name=name, open_max=open_max)
    trials = max(trials - trials % new.period, new.period)
    while len(found.pairs) < trials and not found.decided:
        advance(found, base, new, most=trials)
        tell(found)
    for change, side in ((WORSE, new), (BETTER, base)):
        for each in [each for each in found.pairs if each.change == change][: SHRUNK if shrink else 0]:
            found.pairs[each.number - 1] = replace(each, cause=side.cause(each.number))
    return found


def against_itself(
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

    def once(one: int, other: int, most: int) -> Comparison:
        sides = of_scenarios(scenarios, scenarios, seed=one, new_seed=other, jobs=jobs)
        return paired(*sides, trials=most, alpha=alpha, open_max=open_max)

    found = [once(seed + 2 * n, seed + 2 * n + 1, trials) for n in range(1, times + 1)]
    same = once(seed, seed, min(trials, BATCH))
    return sum(each.verdict == WORSE for each in found), [
        each.number for each in same.pairs if each.change or each.base.outcome != each.new.outcome
    ]


@dataclass(frozen=True)
class AskedCompare(RunOptions):
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


@taking(AskedCompare)
def compare(asked: AskedCompare) -> Comparison:
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
    kinds = [_kind(asked.base), _kind(asked.base if asked.new is None else asked.new)]
    if kinds[0] != kinds[1]:
        raise TypeError(f"one side is {kinds[0]} and the other {kinds[1]}: give two of one kind")
    settings: dict[str, Any] = {
        "trials": asked.trials, "alpha": asked.alpha, "shrink": asked.shrink, "open_max": asked.open_max,
    }  # fmt: skip
    settings["tell"] = asked.tell or (lambda _: None)
    if kinds[0] == AGENT:
        return paired(*_agents(asked), **settings)
    own = ("seed", "base", "new", "trials", "alpha", "open_max", "jobs", "changed", "revisions", "shrink", "tell")
    given = [each.name for each in fields(asked) if each.name not in own and _stated(each, getattr(asked, each.name))]
    if given:
        raise ValueError(f"{given[0]} goes with agents, and {kinds[0]} has its own: leave it out")
    if kinds[0] == RUN:
        if asked.new is None:
            raise ValueError("there is one run: give the new one too")
        return of_runs(str(asked.base), str(asked.new), alpha=asked.alpha, open_max=asked.open_max)
    seed = None if asked.seed == RunOptions().seed else asked.seed
    if asked.revisions:
        from chaoslab.scenarios.revisions import SideWork, revisions

        if not isinstance(asked.base, str | Path) or asked.new is not None:
            raise ValueError("revisions= takes one scenario's file, whose agent is tried as each of them has it")
        with revisions(SideWork(Path(asked.base), seed=seed, jobs=asked.jobs), asked.revisions) as (base, new):
            return paired(base, new, **settings)
    return paired(*_scenarios(asked, seed), **settings)


AGENT, SCENARIO, RUN = "an agent", "a scenario", "a run"


def _kind(given: Any) -> str:
    if isinstance(given, ScenarioBuilder):
        return SCENARIO
    if isinstance(given, str | Path):
        return SCENARIO if Path(given).suffix in SUFFIXES else RUN
    return AGENT


def _stated(option: Any, value: Any) -> bool:
    default = option.default if option.default is not MISSING else None
    return bool(value != default)


def _agents(asked: AskedCompare) -> tuple[Sides, Sides]:
    if asked.prompts is None or asked.prompts == []:
        raise ValueError("the agents have to be asked something: give prompts=")
    if asked.new is None and not asked.changed:
        raise ValueError("both sides are the same: give the new agent, or changed= with its options")
    prompts = asked.prompts if isinstance(asked.prompts, list | tuple) else [asked.prompts]
    rules = TrialRules(asked.accept)
    options = {each.name: getattr(asked, each.name) for each in fields(RunOptions)} | {"logs": None}
    other = {**options, **(asked.changed or {})}
    if wrong := [key for key in ("faults", "seed", "world", "timeout_s") if options[key] != other[key]]:
        raise ValueError(f"the sides differ in {wrong[0]}, so their trials cannot be paired")
    sides = [
        [OfAgent(RunArguments(agent, prompt, **own), rules, asked.jobs) for prompt in prompts]
        for agent, own in ((asked.base, options), (asked.base if asked.new is None else asked.new, other))
    ]
    one, two = (each[0] if len(each) == 1 else SeveralSides(each) for each in sides)
    return one, two


def _scenarios(asked: AskedCompare, seed: int | None) -> tuple[Sides, Sides]:
    made = [each if isinstance(each, ScenarioBuilder) else load_scenario(each)
            for each in (asked.base, asked.base if asked.new is None else asked.new)]  # fmt: skip
    changed = [f"{key}={json.dumps(value)}" for key, value in (asked.changed or {}).items()]
    if asked.new is None and not changed:
        raise ValueError("both sides are the same: give the new scenario, changed= or revisions=")
    prompts = {"prompt", "turns"} & {*(asked.changed or {})}
    return of_scenarios(
        made[0].check(), made[1].check(changed=changed), seed=seed, jobs=asked.jobs, but=sorted(prompts)
    )


WELL = {Standing.WELL: True, Standing.BAD: False, Standing.OPEN: None}


def of_runs(base: str, new: str, *, alpha: float, open_max: float = OPEN_MAX) -> Comparison:
    """The comparison of two runs, named as for `chaoslab show`. All their pairs are looked at. Raises LookupError:
    there is no such run; ScenarioError: they have other seeds, plans or prompts, so their trials are not the same."""
    one, other = (Contents.read(name, where=name) for name in (base, new))
    begun = [each.report.started for each in (one, other)]
    for what in ("seed", "plan"):
        if len({str(getattr(each, what, None)) for each in begun}) > 1:
            said = "faults" if what == "plan" else what
            raise ScenarioError(f"{base} and {new} differ in {said}, so their trials cannot be paired")
    before, after = keyed(one), keyed(other)
    both = [key for key in before if key in after]
    if not both:
        raise ScenarioError(f"{base} and {new} differ in prompts: no trial of one has its pair in the other")
    notes = [text.rstrip(".") for text in differences(*begun)]
    found = Comparison(alpha, notes=notes, open_max=open_max, period=len(both))  # looked at once
    if alone := len(before) + len(after) - 2 * len(both):
        found.notes.append(f"{count(alone, 'trial')} of one run alone, which count for nothing")
    sides = [dict(_sides(each, name)) for each, name in ((one, base), (other, new))]
    for number, key in enumerate(both, 1):
        found.add(Pair(number, sides[0][before[key].trial], sides[1][after[key].trial], key[0]))
    return found


def _sides(run: Contents, name: str) -> Iterator[tuple[str, Side]]:
    """The side of each trial, by its key."""
    report = run.report
    figures, planned = report.figures.value.by_key, plans_faults(report.started)
    for row in run.all_rows:
        of = figures[row.trial]
        yield row.trial, Side(
            WELL[row.standing], str(row.outcome), row.in_words, row.calls, row.seconds or 0.0, of.tokens,
            bool(row.harm), None if of.unpriced else float(of.usd), report.verdicts[row.trial].done,
            bool(row.met) if planned else None, prompt=row.prompt, story=partial(_story, name, row.trial),
        )  # fmt: skip


def _story(name: str, trial: str) -> Story:
    return tell(stories(find(name), [trial]).records, trial)
