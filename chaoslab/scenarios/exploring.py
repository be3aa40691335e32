"""Searches over a scenario: its agent, its world and its requirements, without its faults."""

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chaoslab.analysis.verdict.exposure import FaultExposure
from chaoslab.analysis.verdict.standing import OPEN_MAX
from chaoslab.base.identity import hash_value
from chaoslab.execution.explore import (
    Exploration,
    ExploreArguments,
    FoundFailure,
    Unconfirmed,
    run_exploration,
    shorten_failing_prompt,
    shrink_trial_in_session,
)
from chaoslab.execution.exploring import SearchSession
from chaoslab.execution.prove import build_proof, make_arguments_for_changed_agent, open_mitigated_session
from chaoslab.execution.trial import Trial
from chaoslab.record.rulings import Rulings, RulingState
from chaoslab.reports.page import format_count
from chaoslab.scenarios._modules import isolate_folder_modules
from chaoslab.scenarios.builder import injection_arguments
from chaoslab.scenarios.lab_agent import LAB, load_lab_agent
from chaoslab.scenarios.load import apply_changes
from chaoslab.scenarios.located import SUFFIXES, ProvesNothing, ScenarioError, read_located_data
from chaoslab.scenarios.running import (
    TrialRules,
    convert_errors_to_one_line,
    import_agent_and_options,
    rule_trial,
    run_scenario,
)
from chaoslab.scenarios.scenario import BUDGET, Scenario
from chaoslab.scenarios.spec import CommandSpec
from chaoslab.scenarios.writing import write_scenario_file
from chaoslab.search import causes
from chaoslab.search.proof import Proof
from chaoslab.search.variation import GOOD, TriedVariation, Variation

SHOWN = 5
"""The most trials that an error names."""
LEAST_S, WAITS = 20.0, 6
"""The deadline of a command: so many seconds at least, or so many waits of a fault."""
FAULT_KEYS = ("faults", "chaos_level", "families", "variants", "explore", "slo", "pass_rate")
"""The keys that a saved failure has none of, or its own."""


@dataclass
class ScenarioSearch:
    """A search over a scenario: its session, its agent and the options of `lab.run`. `left_out`: the requirements that
    the trial without faults does not meet either, and which therefore are asked of no trial."""

    session: SearchSession
    agent: Any
    options: dict[str, Any]
    left_out: list[str] = field(default_factory=list)


@contextmanager
def open_scenario_search(
    scenario: Scenario, *, seed: int | None = None, jobs: int = 1, mitigation: str = ""
) -> Iterator[ScenarioSearch]:
    """A context with a search over a scenario. A trial fails if the scenario's requirements say so. `mitigation`: what
    is tried around the agent's functions. Raises ScenarioError: something of the user's cannot be imported or does not
    fit, or there is no baseline."""
    spec = scenario.spec
    rules = TrialRules(spec.accept, scenario.expect, scenario.by_turn, bool(spec.operations))

    def explain_failure(trial: Trial) -> str:
        ruling = rule_trial(rules, 1, trial)
        if ruling.state is not RulingState.FAILED:
            return ""
        reasons = [] if not ruling.why else [trial.verdict.why if trial.verdict.why in ruling.why else ruling.why]
        return "; ".join([*reasons, *map(str, ruling.missed)])

    seed = spec.seed if seed is None else seed
    standing = [injection for injection in scenario.injections if injection.name == BUDGET]
    with ExitStack() as stack:
        stack.enter_context(convert_errors_to_one_line(scenario))
        if spec.agent == LAB:
            agent, options = LAB, dict[str, Any](seed=seed)
            stack.enter_context(isolate_folder_modules(scenario.folder))
            trials = load_lab_agent().open_search_session(scenario, seed=seed, jobs=jobs, fails=explain_failure)
        else:
            stack.enter_context(isolate_folder_modules(scenario.folder, spec.dotted_names))
            agent, options = import_agent_and_options(scenario, jobs=jobs)
            options |= {"faults": (), "seed": seed}
            if isinstance(spec.agent, CommandSpec):  # in real time a twin acts, so nothing else asks for one
                options["twin"] = spec.effects is None
            arguments = ExploreArguments(agent, scenario.prompt, **options)
            trials = open_mitigated_session(
                arguments, mitigation, jobs=jobs, in_child=True, standing=standing, fails=explain_failure
            )
        search = ScenarioSearch(stack.enter_context(trials), agent, options)
        rules, search.left_out = _keep_rules_met_unfaulted(rules, search.session)
        yield search


def _keep_rules_met_unfaulted(rules: TrialRules, trials: SearchSession) -> tuple[TrialRules, list[str]]:
    """The requirements that the trial without faults meets, since others were made for a fault, and the rest in
    words."""
    # First without faults: what it does not meet nobody can ask of the others.
    ((_, baseline),) = trials.run_variations([Variation()])
    missed = rule_trial(rules, 1, baseline).missed
    missed_keys = {(missed_item.turn, id(missed_item.assertion)) for missed_item in missed}
    # By identity, since two assertions may be equal and of different turns.
    expect = tuple(missed_item for missed_item in rules.expect if (None, id(missed_item)) not in missed_keys)
    by_turn = {
        turn: tuple(missed_item for missed_item in assertions if (turn, id(missed_item)) not in missed_keys)
        for turn, assertions in rules.by_turn.items()
    }
    # An answer that is honest about what could not be done may be all that there is.
    accept = [*dict.fromkeys([*rules.accept, str(baseline.outcome)])] if str(baseline.outcome) in GOOD else rules.accept
    return replace(rules, expect=expect, by_turn=by_turn, accept=accept), [
        str(missed_item.assertion) for missed_item in missed
    ]


def explore_scenario(
    scenario: Scenario, *, seed: int | None = None, jobs: int = 1, changed: Sequence[str] = (), **budget: Any
) -> Exploration:
    """Explores a scenario; one in real time by single faults alone. `changed`: values in place of the file's.
    `budget`: the further arguments of `lab.explore`. Raises ScenarioError: as `open_scenario_search`."""
    with open_scenario_search(scenario, seed=seed, jobs=jobs) as search:
        # The command line counts more than the file.
        own_budget = {} if scenario.spec.explore is None else scenario.spec.explore.stated_arguments
        budget_given = {name: value for name, value in budget.items() if value is not None}
        arguments = ExploreArguments(
            search.agent, scenario.prompt, **{**search.options, **own_budget, **budget_given, "jobs": jobs}
        )
        exploration = run_exploration(
            search.session, arguments, lambda failure: build_rerun_command(scenario, failure, changed=changed)
        )
        exploration.left_out = search.left_out
        return exploration


def explain_unproven_search(trials: Sequence[TriedVariation], unconfirmed: Sequence[Unconfirmed] = ()) -> str:
    """The reason why trials of a search, of which no failure is confirmed, prove nothing: no fault was met, failures
    may be chance, or too many are open; empty if they do."""
    exposure, faulted = FaultExposure(), [tried for tried in trials if tried.variation.injections]
    for tried in faulted:
        exposure.add_trial(met=bool(tried.met), held=tried.held)
    if not faulted:
        called = any(tried.attempt_sites for tried in trials)
        return "no fault was tried" if called else "no call was made that a fault could hit"
    if unconfirmed:
        return f"{format_count(len(unconfirmed), 'failure')} may be chance: {unconfirmed[0]}"
    if exposure.no_proof_reason:
        return exposure.no_proof_reason
    open_ = [tried for tried in faulted if tried.is_inconclusive]
    if len(open_) <= OPEN_MAX * len(faulted):
        return ""
    return f"{len(open_)} of {format_count(len(faulted), 'trial')} with faults are open: {open_[0].why}"


def rerun_exploration_on_change(
    scenario: Scenario,
    changed_scenario: Scenario,
    exploration: Exploration,
    *,
    mitigation: str = "",
    seed: int | None = None,
    jobs: int = 1,
) -> Proof:
    """The exploration of a scenario run again on `changed_scenario`, the same with another agent, or with a
    mitigation around its functions. Raises ScenarioError: as `open_scenario_search`."""
    if mitigation and scenario.spec.agent == LAB:
        raise ScenarioError(f"{scenario.name}: mitigations go around functions, and the lab's own agent has services")
    change_text = mitigation or f"{changed_scenario.spec.agent or changed_scenario.spec.fresh}"

    @contextmanager
    def open_changed_search() -> Iterator[SearchSession]:
        with open_scenario_search(changed_scenario, seed=seed, jobs=jobs, mitigation=mitigation) as search:
            yield search.session

    assert exploration.asked is not None
    return build_proof(
        exploration,
        change_text,
        open_changed_search,
        make_arguments_for_changed_agent(exploration, exploration.asked),
    )


def save_failure_scenarios(
    scenario: Scenario, exploration: Exploration, folder: Path, *, changed: Sequence[str] = ()
) -> list[Path]:
    """Writes each root cause as a scenario of one trial, which `chaoslab test` runs. One that is there is left alone:
    it stays when it is fixed. `changed`: values in place of the file's. Raises ScenarioError: the scenario is none of a
    file. OSError: a file cannot be written."""
    if scenario.folder is None:
        raise ScenarioError(
            f"{scenario.name} is made in Python: a failure is saved as a file only of a scenario's file"
        )
    folder.mkdir(parents=True, exist_ok=True)
    full_data = (
        # The file as it was written, so that a saved failure has its words.
        apply_changes(read_located_data(Path(scenario.file)), changed).data
        if _comes_from_file(scenario)
        else _make_scenario_data(scenario)
    )
    data = {key: value for key, value in full_data.items() if key not in FAULT_KEYS}
    # What the trial without faults misses too would fail the saved one for ever.
    if exploration.left_out:
        expectations = zip(scenario.expect, data["expect"], strict=True)
        data["expect"] = [entry for assertion, entry in expectations if str(assertion) not in exploration.left_out]
    paths = []
    for failure in exploration.failures:
        # A digest, since two failures may have one name.
        suffix = hash_value(failure.variation.to_json())[:6]
        root = failure.root
        path = (
            folder
            / f"{_make_slug(scenario.name)}-{_make_slug(f'{root.symptom} {root.operation}')[:60]}-{suffix}.chaos.yml"
        )
        paths.append(path)
        if path.exists():
            continue
        twin = failure.trial.twin
        if isinstance(scenario.spec.agent, CommandSpec) and scenario.spec.effects is None and twin is not None:
            data["effects"] = twin.effects  # in real time no twin is run for a scenario
        write_scenario_file(
            {
                **data,
                # Characters that a file's name or YAML could take for more.
                "name": re.sub(r"[^\w .,()'+-]", " ", f"{scenario.name}, {failure.cause}")[:100].strip(),
                "folder": Path(os.path.relpath(scenario.folder.resolve(), folder.resolve())).as_posix(),
                "found": failure.cause[:300],
                "trials": failure.trial.number if failure.trial.drew else 1,  # the last has its chance
                "seed": failure.trial.seed,
                **(
                    {"order": {str(moment): list(names) for moment, names in failure.variation.order}}
                    if failure.variation.order
                    else {}
                ),
                "faults": [injection_arguments(injection) for injection in failure.variation.injections],
            },
            path,
        )
    return paths


def _make_order_entry(failure: FoundFailure) -> dict[int, list[str]]:
    return {moment: list(names) for moment, names in failure.variation.order or ()}


def _make_prompt_entry(failure: FoundFailure) -> tuple[str, str]:
    """The key of a scenario for what is asked, and its value as JSON."""
    if isinstance(failure.prompt, str):
        return "prompt", json.dumps(failure.prompt, ensure_ascii=False)
    return "turns", json.dumps(_list_turns(failure), ensure_ascii=False)


def _list_turns(failure: FoundFailure) -> list[Any]:
    """The turns of the shorter conversation, as a file has them."""
    texts = [{"reply": dict(turn.reply)} if turn.reply else {"say": turn.say} for turn in failure.prompt.turns]
    return [
        {**text, **({"after": turn.after_s} if turn.after_s else {})}
        for text, turn in zip(texts, failure.prompt.turns, strict=True)
    ]


def _comes_from_file(scenario: Scenario) -> bool:
    return Path(scenario.file).suffix in SUFFIXES


def is_agent_given_by_name(scenario: Scenario) -> bool:
    """True for the scenario of an agent that was given as module:name (`make_agent_scenario`)."""
    return bool(scenario.file) and scenario.file in (scenario.spec.agent, scenario.spec.fresh)


def _make_scenario_data(scenario: Scenario) -> dict[str, Any]:
    """The scenario of an agent that was given as module:name or as a command, as a file has it."""
    spec = scenario.spec
    kind, agent = ("agent", spec.agent) if spec.agent else ("fresh", spec.fresh)
    data: dict[str, Any] = {"name": spec.name, kind: agent, "prompt": scenario.prompt}
    if isinstance(spec.agent, CommandSpec):
        data |= {
            **spec.model_dump(include={"agent", "resume_with", "resumes"}, exclude_unset=True),
            "timeout": spec.timeout,
            "deadline": spec.deadline,
            **({"proxy": True} if spec.proxy else {}),  # type: ignore[attr-defined]  # a field that is made of options
        }
    lists = {"tools": [*spec.tools], "reads": [*spec.reads], "upstreams": {**spec.upstreams}}
    return {**data, **{key: names for key, names in lists.items() if names}}


def _make_slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def build_rerun_command(scenario: Scenario, failure: FoundFailure, *, changed: Sequence[str] = ()) -> str:
    """The command that runs a failure again. `changed`: values in place of the file's."""
    if scenario.folder is None or (isinstance(scenario.spec.agent, CommandSpec) and not _comes_from_file(scenario)):
        return ""
    faults = json.dumps([injection_arguments(entry) for entry in failure.variation.injections], ensure_ascii=False)
    arguments = ["chaoslab", "test", scenario.file, "--trial", str(failure.trial.number)]
    arguments += ["--prompt", str(scenario.prompt)] if is_agent_given_by_name(scenario) else []
    arguments += ["--set", f"faults={faults}"]
    own_keys = {"faults", "order", "prompt" if failure.prompt is not None else ""}
    arguments += [word for entry in changed if entry.partition("=")[0] not in own_keys for word in ("--set", entry)]
    if failure.variation.order:
        arguments += ["--set", f"order={json.dumps(_make_order_entry(failure), ensure_ascii=False)}"]
    if failure.prompt is not None:
        arguments += ["--set", "{}={}".format(*_make_prompt_entry(failure))]
    arguments += ["--seed", str(failure.trial.seed)] if failure.trial.seed != scenario.spec.seed else []
    return shlex.join([*arguments, *(["-k", scenario.variant] if scenario.variant else [])])


def exploration_to_json(exploration: Exploration) -> dict[str, Any]:
    """The findings, as JSON values."""
    return {
        "tried": len(exploration.trials),
        "seconds": round(exploration.seconds, 3),
        "ended": exploration.ended,
        "failures": [
            failure_to_json(entry, exploration.commands.get(entry.cause, "")) for entry in exploration.failures
        ],
        "by_itself": [vars(entry) for entry in exploration.by_itself],
        "unconfirmed": [
            {"cause": causes.describe_cause(entry.tried), **vars(entry.contrast)} for entry in exploration.unconfirmed
        ],
        "map": exploration.map.to_json_data(),
    }


def failure_to_json(failure: FoundFailure, rerun_command: str) -> dict[str, Any]:
    """A failure as JSON values. `rerun_command`: the command that runs it again."""
    return {
        "outcome": failure.outcome,
        "cause": failure.cause,
        "symptom": failure.root.symptom,
        "operation": failure.root.operation,
        "places": failure.places,
        "suffered": failure.suffered,
        "why": failure.tried.why,
        "minimal": failure.minimal,
        "reruns": failure.reruns,
        "contrast": failure.contrast and vars(failure.contrast),
        "shown_fails": failure.shown_fails,
        "others": len(failure.others),
        "faults": [injection_arguments(injection) for injection in failure.faults],
        "order": [[moment, list(names)] for moment, names in failure.variation.order or ()],
        "again": rerun_command,
    }


def make_agent_scenario(dotted: str, prompt: str | None, changed: Sequence[str] = ()) -> tuple[Scenario, ...]:
    """The scenario of an agent module:name. Its tools are those that its source calls. Raises ScenarioError: it is no
    such name, nothing is asked, or no tool is found."""
    from chaoslab.scenarios.agent_tools import find_tools
    from chaoslab.scenarios.builder import scenario
    from chaoslab.scenarios.scenario import list_module_folders
    from chaoslab.scenarios.sources import explain_missing_module, find_function_name

    if dotted.count(":") != 1:
        raise ScenarioError(f"{dotted} is no scenario's file and no module:name of an agent")
    if not prompt:
        raise ScenarioError(f"{dotted} has to be asked something: give --prompt, or a scenario's file")
    if reason := explain_missing_module(dotted, list_module_folders(None)):
        raise ScenarioError(f"{dotted}: {reason}")
    try:
        find_function_name(dotted, list_module_folders(None))
        agent_tools = find_tools(dotted, list_module_folders(None))
    except LookupError as error:
        raise ScenarioError(f"{dotted}: {error}") from None
    except SyntaxError as error:  # of its module, or of one that it imports
        raise ScenarioError(f"{dotted}: SyntaxError: {error}") from None
    if not agent_tools.changes and not agent_tools.reads:
        raise ScenarioError(
            f"{dotted}: its source shows no tool: chaoslab init --agent {dotted} writes a scenario to fill in"
        )
    builder = scenario(dotted.partition(":")[2].replace("_", " "))
    builder = (builder.fresh(dotted) if agent_tools.is_factory else builder.agent(dotted)).ask(prompt)
    if agent_tools.changes:
        builder = builder.tools(*agent_tools.changes)
    if agent_tools.reads:
        builder = builder.reads(*agent_tools.reads)
    return builder.with_source_file(dotted, Path()).check(changed=changed)


def make_command_scenario(
    command: Sequence[str],
    routes: Sequence[str],
    prompt: str | None,
    *,
    wait_s: float,
    proxy: bool = False,
    reset: str = "",
    resume: Sequence[str] = (),
    resumes: int = 1,
    changed: Sequence[str] = (),
) -> tuple[Scenario, ...]:
    """The scenario of a command with its services behind a gateway, in real time. `routes`: as in
    "crm=http://127.0.0.1:9000". `wait_s`: the longest wait that a fault may cause in one attempt. `proxy`: see
    `RunOptions`. `reset`: a shell's command before each trial. `resume`: what goes on, at most `resumes` times, when
    a fault has killed the command. Raises ScenarioError: a route is none, or something else is wrong."""
    from chaoslab.scenarios.builder import scenario

    if not routes:
        raise ScenarioError("a command is explored at its services: give --route NAME=URL for each")
    builder = scenario(Path(command[-1]).stem).agent(command=command, reset=reset).ask(prompt or "Go.")
    if resume:
        builder = builder.resume_with(command=resume, resumes=resumes)
    elif not resumes:
        builder = builder.set(resumes=resumes)
    for route in routes:
        name, equals, url = route.partition("=")
        if not equals:
            raise ScenarioError(
                f"--route {route[:60]} should be a name and an address, as in crm=http://127.0.0.1:9000"
            )
        builder = builder.upstream(name, url)
    # A fault may make it wait at several calls.
    builder = builder.set(timeout=wait_s, deadline=max(LEAST_S, WAITS * wait_s), proxy=proxy)
    return builder.with_source_file("", Path()).check(changed=changed)


def shrink_failing_trial(scenario: Scenario, number: int, *, seed: int | None = None) -> FoundFailure:
    """A cause of a trial of the scenario that fails, shrunk. `number`: from 1. Raises ScenarioError: it does not
    fail, or does not happen again with its faults stated one by one."""
    (ruling,) = run_scenario(scenario, seed=seed, only=number, apart=True)
    if ruling.held and ruling.state is not RulingState.FAILED:
        raise ProvesNothing(f"{scenario.name}: trial {number} proves nothing: its faults were held back: {ruling.held}")
    if ruling.state is not RulingState.FAILED:
        reason = f", {ruling.reasons[0]}" if ruling.reasons else ""
        raise ScenarioError(f"{scenario.name}: trial {number} is no failure to shrink: it is {ruling.state}{reason}")
    with open_scenario_search(scenario, seed=seed) as search:
        failure = shrink_trial_in_session(search.session, ruling.trial)
    if scenario.by_turn:  # they name turns by number
        return failure

    @contextmanager
    def open_with_prompt(prompt: Any) -> Iterator[SearchSession]:
        with open_scenario_search(replace(scenario, prompt=prompt), seed=seed) as search:
            yield search.session

    return shorten_failing_prompt(failure, scenario.prompt, open_with_prompt)


def find_rerun_arguments(folder: Path, trial: str) -> list[str]:
    """The words of the command that runs a trial of a run again, after `chaoslab test`. `trial`: its key or number;
    empty for the first that failed. Raises ScenarioError: no scenario made the run, or the trial did not fail."""
    rulings = Rulings.read(folder)
    if rulings is None:
        raise ScenarioError(f"{folder}: no scenario made this run: give a scenario's file, and --trial")
    key = f"p1.r{trial}" if trial.isdecimal() else trial
    failed = {name: ruling for name, ruling in rulings.by_trial.items() if ruling.again}
    if key and key not in failed:
        hint = f": there are {', '.join([*failed][:SHOWN])}" if failed else ", and no other did"
        raise ScenarioError(f"{folder}: {key} is no trial that failed{hint}")
    if not failed:
        raise ScenarioError(f"{folder}: every trial of this run passed: there is nothing to shrink")
    arguments = shlex.split(failed[key or next(iter(failed))].again)
    if arguments[:2] != ["chaoslab", "test"]:
        raise ScenarioError(f"{folder}: it was run from Python, as {shlex.join(arguments)}: use lab.shrink there")
    return arguments[2:]


def render_pytest(scenario: Scenario, failure: FoundFailure, *, changed: Sequence[str] = ()) -> str:
    """A test for pytest that is red until the failure is mended, as text."""
    name = re.sub(r"[^a-z0-9]+", "_", causes.describe_variation(failure.variation).lower()).strip("_")[:70]
    keys: dict[str, Any] = {key: value for key, _, value in (entry.partition("=") for entry in changed)}
    lines = ["import chaoslab as lab", "", "", f"def test_{name}():", "    faults = ["]
    lines += [f"        {injection_arguments(entry)!r}," for entry in failure.faults]
    lines.append("    ]")
    if failure.variation.order:
        keys["order"] = _make_order_entry(failure)
    if failure.prompt is not None:
        key, value = _make_prompt_entry(failure)
        keys[key] = json.loads(value)
    suffix = "".join(f", {key}={value!r}" for key, value in keys.items())
    trials = failure.trial.number if failure.trial.drew else 1  # the last has its chance
    lines.append(f"    scenario = lab.load_scenario({Path(scenario.file).as_posix()!r})")
    lines.append(f"    scenario = scenario.set(faults=faults, trials={trials}, seed={failure.trial.seed}{suffix})")
    return "\n".join([*lines, "    scenario.test()", ""])
