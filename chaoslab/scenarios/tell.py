"""The results of scenarios as text and as plain data."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chaoslab.analysis.measures.idle import describe_triggers
from chaoslab.analysis.measures.intervals import compute_rate
from chaoslab.analysis.verdict.ledger import strip_varying_details
from chaoslab.base.identity import make_nth_trial_id
from chaoslab.core.events import FaultWitnessed
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import HITS, Candidates, Decision, Injection, Plan
from chaoslab.record.history import History
from chaoslab.record.rulings import RulingState
from chaoslab.scenarios.files import is_python_source
from chaoslab.scenarios.lab_agent import LAB, load_lab_agent
from chaoslab.scenarios.running import Result, Ruling
from chaoslab.scenarios.scenario import Scenario

EXAMPLES = 3
"""The most trials of a scenario that are told."""
REQUESTS = 5
"""The first requests to each target whose hits are foreseen."""
SHOWN = 5
"""The most trials that are named."""
STORY_MAX = 30
OF_CALLS = {"changes", "when", "attempts", "on_turn", "between_turns", "window_s", "after"}
"""The triggers of which a request's number says nothing."""


def render_result(result: Result, *, trial: int | None = None, given: Sequence[str] = (), brief: bool = False) -> str:
    """The result in words. `trial`: the only one. `given`: options that its trials depend on, as they were given.
    `brief`: of the trials that failed, the first reason and the command alone."""
    state, scenario = result.state, result.scenario
    passed, judged = result.trial_counts.well, result.trial_counts.judged_count
    share = compute_rate(passed, judged)
    interval_text = f", 95 % interval {share.interval.low:.0%}–{share.interval.high:.0%}" if share is not None else ""
    head = (
        f"{str(state).upper():8} {scenario.name}: {passed} of {judged} trials passed{interval_text}; "
        f"{result.met} met a fault"
    )
    open_as = count_open_trials_by_outcome(result)
    kinds = ", ".join(f"{count} {name}" for name, count in open_as.items())
    lines = [head + (f"; {result.trial_counts.open} open ({kinds})" if open_as else "")]
    if state is RulingState.INVALID:
        lines.append(f"  it proves nothing: {result.unproven_reason}")
    if brief:
        failures = [text for text in render_failures(result, given, most=1) if text.startswith("  ")]
        return "\n".join([*lines, *failures[:1], *failures[-1:]])
    if state is RulingState.PASSED and scenario.spec.found:
        lines.append(f"  fixed: it was found with {scenario.spec.found}")
    lines += [f"  {text}" for text in result.missed_objectives]
    lines += [f"  note: {text}" for text in result.idle.describe_idle_injections()]
    lines += [f"  {text}" for text in render_failures(result, given)]
    if trial is not None and result.rulings:
        lines.append(result.rulings[0].trial.story().rstrip())
    return "\n".join(lines)


def count_open_trials_by_outcome(result: Result) -> dict[str, int]:
    """The open trials by outcome, the most frequent first."""
    rulings = [ruling for ruling in result.rulings if ruling.state is RulingState.INVALID]
    kinds = ("held back" if open_ruling.held else str(open_ruling.trial.verdict.outcome) for open_ruling in rulings)
    return dict(Counter(kinds).most_common())


def render_failures(result: Result, options: Sequence[str] = (), *, most: int = EXAMPLES) -> list[str]:
    """The trials that did not pass, those that failed alike together, harm first, with the faults that all of them met
    and the command that runs again the one that met the fewest. `options`: as in `told`. `most`: the most groups."""
    not_passed = [ruling for ruling in result.rulings if ruling.state is RulingState.FAILED]
    not_passed = not_passed or [ruling for ruling in result.rulings if ruling.state is RulingState.INVALID]
    by_reasons: dict[tuple[str, ...], list[Ruling]] = {}
    for ruling in not_passed:
        by_reasons.setdefault(tuple(map(strip_varying_details, ruling.reasons)), []).append(ruling)
    groups = sorted(by_reasons.values(), key=lambda rulings: (not rulings[0].trial.verdict.harm, -len(rulings)))
    lines = []
    for rulings in groups[:most]:
        simplest = min(rulings, key=lambda ruling: len(_list_faults_met(ruling.trial.history)))
        lines.append(f"{_describe_trial_numbers(rulings)}:")
        lines += [f"  {reason}" for reason in simplest.reasons]
        lines += [f"  {line}" for line in describe_shared_faults([ruling.trial.history for ruling in rulings])]
        lines.append(f"  rerun: {make_rerun_command(result.scenario, simplest, options)}")
    if remaining := sum(map(len, groups[most:])):
        lines.append(f"… and {remaining} more trials, in other ways")
    return lines


def describe_shared_faults(histories: Sequence[History]) -> list[str]:
    """A line with the faults that each of these trials met; none if there is no such fault."""
    faults_by_trial = [_list_faults_met(history) for history in histories]
    shared = [
        f"{fault} on {target}"
        for fault, target in faults_by_trial[0]
        if all((fault, target) in history for history in faults_by_trial)
    ]
    return [f"{'each' if histories[1:] else 'it'} met {', '.join(shared)}"] if shared else []


def _list_faults_met(history: History) -> dict[tuple[str, str], None]:
    """The faults that were witnessed, each with its target."""
    return dict.fromkeys((event.fault, event.target) for _, event in history.find_events(FaultWitnessed))


def describe_interruption(results: Sequence[Result], scenarios: int, *, trials: int | None = None) -> str:
    """One line on a run of scenarios that was interrupted in the last of these results. `scenarios`: their number.
    `trials`: of each, in place of its own number."""
    *finished, last = results
    trial_count, trials_planned = len(last.rulings), last.scenario.spec.trials if trials is None else trials
    counts = _describe_state_counts(ruling.state for ruling in last.rulings)
    text = f"interrupted: {trial_count} of {trials_planned} trials of {last.scenario.name} are done{counts}"
    if scenarios > 1:
        text += (
            f"; {len(finished)} of {scenarios} scenarios are "
            f"done{_describe_state_counts(result.state for result in finished)}"
        )
    return text


def _describe_state_counts(states: Iterable[RulingState]) -> str:
    """The states with their numbers, as in ": 3 passed, 1 failed"; empty if there is none."""
    state_counts = Counter(states)
    counts = ", ".join(f"{state_counts[state]} {state}" for state in RulingState if state_counts[state])
    return f": {counts}" if counts else ""


def _describe_trial_numbers(rulings: Sequence[Ruling]) -> str:
    """The trials by number, as in "7 trials (1, 2, 5 …)"."""
    numbers = [str(ruling.number) for ruling in rulings]
    if len(numbers) == 1:
        return f"trial {numbers[0]}"
    return f"{len(numbers)} trials ({', '.join(numbers[:SHOWN])}{' …' if numbers[SHOWN:] else ''})"


def make_rerun_command(scenario: Scenario, ruling: Ruling, given: Sequence[str] = ()) -> str:
    """The command that runs this trial again, with the options that were given; the call, if Python made it."""
    return make_trial_rerun_command(scenario, ruling.number, given)


def make_trial_rerun_command(scenario: Scenario, number: int, options: Sequence[str] = ()) -> str:
    """The same by the trial's number."""
    if scenario.folder is None:
        return f".test({', '.join([f'trial={number}', *options])})"
    arguments = ["chaoslab", "test", scenario.file, "--trial", str(number), *options]
    name_wanted = scenario.name if is_python_source(scenario.file) else scenario.variant
    arguments += ["-k", name_wanted] if name_wanted else []
    return shlex.join(arguments)


def shorten_story(ruling: Ruling) -> list[str]:
    """The trial's story, at most 30 lines."""
    lines = ruling.trial.story().rstrip().splitlines()
    if len(lines) <= STORY_MAX:
        return lines
    half = STORY_MAX // 2
    return [*lines[: half - 1], f"… {len(lines) - STORY_MAX + 1} lines …", *lines[-half:]]


def result_to_json(result: Result, options: Sequence[str] = ()) -> dict[str, Any]:
    """The result as JSON values. `options`: as in `told`."""
    return {
        "name": result.scenario.name,
        "file": result.scenario.file,
        "state": str(result.state),
        "why": result.unproven_reason if result.state is RulingState.INVALID else "",
        "trials": len(result.rulings),
        "passed": result.trial_counts.well,
        "failed": result.trial_counts.bad,
        "open": result.trial_counts.open,
        "open_as": count_open_trials_by_outcome(result),
        "met_a_fault": result.met,
        "hit_nothing": result.idle.describe_idle_injections(),
        "slo": [
            {
                "tool": objective.tool,
                "share": objective.share,
                "within_s": objective.within_s,
                "good": good,
                "calls": calls,
            }
            for objective, (good, calls) in result.calls.items()
        ],
        "opinions": [
            {"trial": ruling.number, **vars(opinion)} for ruling in result.rulings for opinion in ruling.opinions
        ],
        "not_passed": [
            {
                "trial": ruling.number,
                "state": str(ruling.state),
                "outcome": str(ruling.trial.outcome),
                "reasons": ruling.reasons,
                "again": make_rerun_command(result.scenario, ruling, options),
            }
            for ruling in result.rulings
            if ruling.state is not RulingState.PASSED
        ],
    }


def render_forecast(
    scenario: Scenario, *, trials: int | None = None, seed: int | None = None, only: int | None = None
) -> Iterator[str]:
    """The first requests that would be hit, in a line for each trial. Nothing is run."""
    hits = forecast_hits(scenario, trials=trials, seed=seed, only=only)
    yield f"{scenario.name}: {hits['trials']} trials, seed {hits['seed']}; nothing is run"
    for number, hit_texts in hits["hits"].items():
        with_ = "".join(f", {name} = {value}" for name, value in hits["drawn"][number].items())
        open_ = hits["depends"][number]
        yield f"  trial {number}: {'; '.join([*hit_texts, *open_]) or 'no fault'}{with_}"


def forecast_hits(
    scenario: Scenario, *, trials: int | None = None, seed: int | None = None, only: int | None = None
) -> dict[str, Any]:
    """The first requests that would be hit if the agent made them with no wait, as JSON values: by trial, from 1.
    `depends`: the faults of which only the calls themselves can tell, since they ask for turns, arguments and so on."""
    spec = scenario.spec
    count = spec.trials if trials is None else trials
    plan = Plan(spec.seed if seed is None else seed, scenario.injections)
    names = [*scenario.function_names, *spec.services, *spec.upstreams]
    names += load_lab_agent().TARGETS if spec.agent == LAB else ()

    def collect_candidates(injections: Sequence[Injection]) -> dict[str, Candidates]:
        return {
            name: Candidates(
                i for i in injections if i.covers(name) and not _hit_depends_on_call(i, name, scenario.function_names)
            )
            for name in names
        }

    concerned = collect_candidates(plan.injections)
    hits_by_trial: dict[int, list[str]] = {}
    open_: dict[int, list[str]] = {}
    drawn: dict[int, Mapping[str, Any]] = {}
    for number in range(count) if only is None else [only - 1]:
        trial_plan = scenario.draw_plan(plan.seed, number)
        if trial_plan.values:
            concerned = collect_candidates(trial_plan.injections)
        open_[number + 1] = [
            f"{drawn_injection.name} at the calls that fit "
            f"{describe_triggers(drawn_injection)}{_describe_chance(drawn_injection)}"
            for drawn_injection in trial_plan.injections
            if drawn_injection.may_hit
            and any(
                drawn_injection.covers(name) and _hit_depends_on_call(drawn_injection, name, scenario.function_names)
                for name in names
            )
        ]
        memory = TrialMemory(replace(plan, injections=trial_plan.injections), make_nth_trial_id("", number, 1).key)
        drawn[number + 1] = trial_plan.values
        hits_by_trial[number + 1] = [
            f"{injection.name} at request {request} of {name}"
            for name, candidates in concerned.items()
            for request in range(1, REQUESTS + 1)
            for injection, decision in _iterate_decisions(memory, candidates, name, request)
            if decision in HITS
        ]
    return {
        "scenario": scenario.name, "trials": count, "seed": plan.seed, "hits": hits_by_trial, "depends": open_,
        "drawn": drawn,
    }  # fmt: skip


def _hit_depends_on_call(injection: Injection, target: str, functions: Sequence[str]) -> bool:
    """True if only a call itself tells whether it would be hit, such as by its turn. A function is the one tool of its
    target."""
    return not OF_CALLS.isdisjoint(injection.triggers) or ("tool" in injection.triggers and target not in functions)


def _describe_chance(injection: Injection) -> str:
    return f", each with a chance of {injection.chance:g}" if injection.chance < 1 else ""


def _iterate_decisions(
    memory: TrialMemory, candidates: Candidates, name: str, request: int
) -> Iterator[tuple[Injection, Decision]]:
    yield from zip(
        candidates,
        memory.decide_hits(candidates, memory.build_occasion(name, name, request, 1, changes=True)),
        strict=False,
    )
