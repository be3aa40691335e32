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

from chaoslab.analysis.verdict.exposure import Exposure
from chaoslab.analysis.verdict.standing import OPEN_MAX
from chaoslab.base.identity import digest
from chaoslab.execution.explore import TRIALS, AskedExplore, Exploration, FoundFailure, asking_less, searched, shrunk_in
from chaoslab.execution.exploring import SearchSession
from chaoslab.execution.prove import as_after, opened_with, proof
from chaoslab.execution.trial import Trial
from chaoslab.record.rulings import Rulings, RulingState
from chaoslab.reports.page import count
from chaoslab.scenarios._modules import modules_of
from chaoslab.scenarios.builder import arguments_of
from chaoslab.scenarios.lab_agent import LAB, lab_agent
from chaoslab.scenarios.load import changed_by
from chaoslab.scenarios.located import SUFFIXES, ProvesNothing, ScenarioError, read
from chaoslab.scenarios.running import TrialRules, imported, in_one_line, ruled, run
from chaoslab.scenarios.scenario import BUDGET, Scenario
from chaoslab.scenarios.spec import CommandSpec
from chaoslab.scenarios.writing import write
from chaoslab.search import causes
from chaoslab.search.proof import Proof
from chaoslab.search.variation import GOOD, Tried, Variation

SHOWN = 5
"""The most trials that an error names."""
LEAST_S, WAITS = 20.0, 6
"""The deadline of a command: so many seconds at least, or so many waits of a fault."""
PILOTS = 3
"""The trials without faults that an estimate rests on."""
FAULT_KEYS = ("faults", "chaos_level", "families", "variants", "explore", "slo", "pass_rate")
"""The keys that a saved failure has none of, or its own."""


@dataclass
class OpenedSearch:
    """A search over a scenario: its session, its agent and the options of `lab.run`. `left_out`: the requirements that
    the trial without faults does not meet either, and which therefore are asked of no trial."""

    session: SearchSession
    agent: Any
    options: dict[str, Any]
    left_out: list[str] = field(default_factory=list)


@contextmanager
def opened(
    scenario: Scenario, *, seed: int | None = None, jobs: int = 1, mitigation: str = "", reset: str = ""
) -> Iterator[OpenedSearch]:
    """A context with a search over a scenario. A trial fails if the scenario's requirements say so. `mitigation`: what
    is tried around the agent's functions. `reset`: as in `explore`. Raises ScenarioError: something of the user's
    cannot be imported or does not fit, or there is no baseline."""
    spec = scenario.spec
    rules = TrialRules(spec.accept, scenario.expect, scenario.by_turn, bool(spec.operations))

    def fails(trial: Trial) -> str:
        ruling = ruled(rules, 1, trial)
        if ruling.state is not RulingState.FAILED:
            return ""
        own = [] if not ruling.why else [trial.verdict.why if trial.verdict.why in ruling.why else ruling.why]
        return "; ".join([*own, *map(str, ruling.missed)])

    seed = spec.seed if seed is None else seed
    standing = [each for each in scenario.injections if each.name == BUDGET]
    with ExitStack() as stack:
        stack.enter_context(in_one_line(scenario))
        if spec.agent == LAB:
            agent, options = LAB, dict[str, Any](seed=seed)
            stack.enter_context(modules_of(scenario.folder))
            trials = lab_agent().session(scenario, seed=seed, jobs=jobs, fails=fails)
        else:
            stack.enter_context(modules_of(scenario.folder, spec.dotted))
            agent, options = imported(scenario)
            options |= {"faults": (), "seed": seed}
            if isinstance(spec.agent, CommandSpec):  # in real time a twin acts, so nothing else asks for one
                options["twin"] = spec.effects is None
                agent.reset = reset
            asked = AskedExplore(agent, scenario.prompt, **options)
            trials = opened_with(asked, mitigation, jobs=jobs, apart=True, standing=standing, fails=fails)
        made = OpenedSearch(stack.enter_context(trials), agent, options)
        rules, made.left_out = _met_without_faults(rules, made.session)
        yield made


def _met_without_faults(rules: TrialRules, trials: SearchSession) -> tuple[TrialRules, list[str]]:
    """The requirements that the trial without faults meets, since others were made for a fault, and the rest in
    words."""
    ((_, calm),) = trials.run([Variation()])
    missed = ruled(rules, 1, calm).missed
    lost = {(each.turn, id(each.assertion)) for each in missed}
    expect = tuple(each for each in rules.expect if (None, id(each)) not in lost)
    by_turn = {
        turn: tuple(each for each in asked if (turn, id(each)) not in lost) for turn, asked in rules.by_turn.items()
    }
    accept = [*dict.fromkeys([*rules.accept, str(calm.outcome)])] if str(calm.outcome) in GOOD else rules.accept
    return replace(rules, expect=expect, by_turn=by_turn, accept=accept), [str(each.assertion) for each in missed]


def explore(
    scenario: Scenario, *, seed: int | None = None, jobs: int = 1, changed: Sequence[str] = (), reset: str = "",
    **budget: Any,
) -> Exploration:  # fmt: skip
    """Explores a scenario; one in real time by single faults alone. `changed`: values in place of the file's. `reset`:
    a shell's command before each trial of a command. `budget`: the further arguments of `lab.explore`. Raises
    ScenarioError: as `opened`."""
    with opened(scenario, seed=seed, jobs=jobs, reset=reset) as made:
        own = {} if scenario.spec.explore is None else scenario.spec.explore.budget
        given = {name: value for name, value in budget.items() if value is not None}
        asked = AskedExplore(made.agent, scenario.prompt, **{**made.options, **own, **given, "jobs": jobs})
        found = searched(made.session, asked, lambda failure: command(scenario, failure, changed=changed))
        found.left_out = made.left_out
        return found


def explain_unproven(trials: Sequence[Tried]) -> str:
    """The reason why trials of a search, none of which failed, prove nothing: no fault was met, or too many are open;
    empty if they do."""
    exposure, faulted = Exposure(), [each for each in trials if each.variation.injections]
    for each in faulted:
        exposure.add(met=bool(each.met), held=each.held)
    if not faulted:
        return "no call was made that a fault could hit"
    if exposure.nothing:
        return exposure.nothing
    open_ = [each for each in faulted if each.void]
    if len(open_) <= OPEN_MAX * len(faulted):
        return ""
    return f"{len(open_)} of {count(len(faulted), 'trial')} with faults are open: {open_[0].why}"


def prove(
    scenario: Scenario,
    other: Scenario,
    found: Exploration,
    *,
    mitigation: str = "",
    seed: int | None = None,
    jobs: int = 1,
) -> Proof:
    """The exploration of a scenario run again on `other`, the same with another agent, or with a mitigation around its
    functions. Raises ScenarioError: as `opened`."""
    if mitigation and scenario.spec.agent == LAB:
        raise ScenarioError(f"{scenario.name}: mitigations go around functions, and the lab's own agent has services")
    what = mitigation or f"{other.spec.agent or other.spec.fresh}"

    @contextmanager
    def again() -> Iterator[SearchSession]:
        with opened(other, seed=seed, jobs=jobs, mitigation=mitigation) as made:
            yield made.session

    assert found.asked is not None
    return proof(found.trials, what, again, as_after(found, found.asked))


def saved(scenario: Scenario, found: Exploration, folder: Path, *, changed: Sequence[str] = ()) -> list[Path]:
    """Writes each root cause as a scenario of one trial, which `chaoslab test` runs. One that is there is left alone:
    it stays when it is fixed. `changed`: values in place of the file's. Raises ScenarioError: the scenario is none of a
    file. OSError: a file cannot be written."""
    if scenario.folder is None:
        raise ScenarioError(
            f"{scenario.name} is made in Python: a failure is saved as a file only of a scenario's file"
        )
    folder.mkdir(parents=True, exist_ok=True)
    whole = changed_by(read(Path(scenario.file)), changed).data if _is_file(scenario) else _data_of(scenario)
    data = {key: value for key, value in whole.items() if key not in FAULT_KEYS}
    if found.left_out:
        asked = zip(scenario.expect, data["expect"], strict=True)
        data["expect"] = [given for assertion, given in asked if str(assertion) not in found.left_out]
    paths = []
    for failure in found.failures:
        own = digest(failure.variation.to_json())[:6]
        root = failure.root
        path = folder / f"{_slug(scenario.name)}-{_slug(f'{root.symptom} {root.operation}')[:60]}-{own}.chaos.yml"
        paths.append(path)
        if path.exists():
            continue
        twin = failure.trial.twin
        if isinstance(scenario.spec.agent, CommandSpec) and scenario.spec.effects is None and twin is not None:
            data["effects"] = twin.effects  # in real time no twin is run for a scenario
        write(
            {
                **data,
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
                "faults": [arguments_of(each) for each in failure.variation.injections],
            },
            path,
        )
    return paths


def _order(failure: FoundFailure) -> dict[int, list[str]]:
    return {moment: list(names) for moment, names in failure.variation.order or ()}


def _asked(failure: FoundFailure) -> tuple[str, str]:
    """The key of a scenario for what is asked, and its value as JSON."""
    if isinstance(failure.prompt, str):
        return "prompt", json.dumps(failure.prompt, ensure_ascii=False)
    return "turns", json.dumps(_turns(failure), ensure_ascii=False)


def _turns(failure: FoundFailure) -> list[Any]:
    """The turns of the shorter conversation, as a file has them."""
    own = [{"reply": dict(each.reply)} if each.reply else {"say": each.say} for each in failure.prompt.turns]
    return [
        {**one, **({"after": each.after_s} if each.after_s else {})}
        for one, each in zip(own, failure.prompt.turns, strict=True)
    ]


def _is_file(scenario: Scenario) -> bool:
    return Path(scenario.file).suffix in SUFFIXES


def is_named(scenario: Scenario) -> bool:
    """True for the scenario of an agent that was given as module:name (`of_agent`)."""
    return bool(scenario.file) and scenario.file in (scenario.spec.agent, scenario.spec.fresh)


def _data_of(scenario: Scenario) -> dict[str, Any]:
    """The scenario of an agent that was given as module:name or as a command, as a file has it."""
    spec = scenario.spec
    kind, agent = ("agent", spec.agent) if spec.agent else ("fresh", spec.fresh)
    named: dict[str, Any] = {"name": spec.name, kind: agent, "prompt": scenario.prompt}
    if isinstance(spec.agent, CommandSpec):
        named |= {
            "agent": {"command": [*spec.agent.command]},
            "timeout": spec.timeout,
            "deadline": spec.deadline,
        }
    own = {"tools": [*spec.tools], "reads": [*spec.reads], "upstreams": {**spec.upstreams}}
    return {**named, **{key: names for key, names in own.items() if names}}


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def command(scenario: Scenario, failure: FoundFailure, *, changed: Sequence[str] = ()) -> str:
    """The command that runs a failure again. `changed`: values in place of the file's."""
    if scenario.folder is None or (isinstance(scenario.spec.agent, CommandSpec) and not _is_file(scenario)):
        return ""
    faults = json.dumps([arguments_of(each) for each in failure.variation.injections], ensure_ascii=False)
    words = ["chaoslab", "test", scenario.file, "--trial", str(failure.trial.number)]
    words += ["--prompt", str(scenario.prompt)] if is_named(scenario) else []
    words += ["--set", f"faults={faults}"]
    own = {"faults", "order", "prompt" if failure.prompt is not None else ""}
    words += [word for each in changed if each.partition("=")[0] not in own for word in ("--set", each)]
    if failure.variation.order:
        words += ["--set", f"order={json.dumps(_order(failure), ensure_ascii=False)}"]
    if failure.prompt is not None:
        words += ["--set", "{}={}".format(*_asked(failure))]
    words += ["--seed", str(failure.trial.seed)] if failure.trial.seed != scenario.spec.seed else []
    return shlex.join([*words, *(["-k", scenario.variant] if scenario.variant else [])])


def plain(found: Exploration) -> dict[str, Any]:
    """The findings, as JSON values."""
    return {
        "tried": len(found.trials),
        "seconds": round(found.seconds, 3),
        "ended": found.ended,
        "failures": [plain_failure(each, found.commands.get(each.cause, "")) for each in found.failures],
        "by_itself": [vars(each) for each in found.by_itself],
        "unconfirmed": [{"cause": causes.cause_text(each.tried), **vars(each.contrast)} for each in found.unconfirmed],
        "map": found.map.data(),
    }  # fmt: skip


def plain_failure(failure: FoundFailure, again: str) -> dict[str, Any]:
    """A failure as JSON values. `again`: the command that runs it again."""
    shares = {"faults": failure.shares, "calls": failure.by_call}
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
        "faults": [arguments_of(one) for one in failure.faults],
        "order": [[moment, list(names)] for moment, names in failure.variation.order or ()],
        "shares": {name: [vars(each) for each in own] for name, own in shares.items()},
        "again": again,
    }


def of_agent(named: str, prompt: str | None, changed: Sequence[str] = ()) -> tuple[Scenario, ...]:
    """The scenario of an agent module:name. Its tools are those that its source calls. Raises ScenarioError: it is no
    such name, nothing is asked, or no tool is found."""
    from chaoslab.scenarios.agent_tools import tools_of
    from chaoslab.scenarios.builder import scenario
    from chaoslab.scenarios.scenario import folders_of
    from chaoslab.scenarios.sources import lost

    if named.count(":") != 1:
        raise ScenarioError(f"{named} is no scenario's file and no module:name of an agent")
    if not prompt:
        raise ScenarioError(f"{named} has to be asked something: give --prompt, or a scenario's file")
    found = tools_of(named, folders_of(None))
    if why := lost(named, folders_of(None)):
        raise ScenarioError(f"{named}: {why}")
    if not found.changes and not found.reads:
        raise ScenarioError(
            f"{named}: its source shows no tool: chaoslab init --agent {named} writes a scenario to fill in"
        )
    made = scenario(named.partition(":")[2].replace("_", " "))
    made = (made.fresh(named) if found.is_factory else made.agent(named)).ask(prompt)
    if found.changes:
        made = made.tools(*found.changes)
    if found.reads:
        made = made.reads(*found.reads)
    return made.within(named, Path()).check(changed=changed)


def of_command(
    words: Sequence[str], routes: Sequence[str], prompt: str | None, *, wait_s: float, changed: Sequence[str] = ()
) -> tuple[Scenario, ...]:
    """The scenario of a command with its services behind a gateway, in real time. `routes`: as in
    "crm=http://127.0.0.1:9000". `wait_s`: the longest wait that a fault may cause in one attempt. Raises ScenarioError:
    a route is none, or something else is wrong."""
    from chaoslab.scenarios.builder import scenario

    if not routes:
        raise ScenarioError("a command is explored at its services: give --route NAME=URL for each")
    made = scenario(Path(words[-1]).stem).agent(command=words).ask(prompt or "Go.")
    for route in routes:
        name, equals, url = route.partition("=")
        if not equals:
            raise ScenarioError(
                f"--route {route[:60]} should be a name and an address, as in crm=http://127.0.0.1:9000"
            )
        made = made.upstream(name, url)
    made = made.set(timeout=wait_s, deadline=max(LEAST_S, WAITS * wait_s))
    return made.within("", Path()).check(changed=changed)


def estimate(scenario: Scenario, *, seed: int | None, trials: int | None, tries: Sequence[str] | None) -> str:
    """The cost of an exploration, in one line: by its trial without faults, run a few times."""
    from chaoslab.base.clock import system
    from chaoslab.core.events import Usage
    from chaoslab.search.variation import Known

    with opened(scenario, seed=seed) as made:
        session = made.session
        began_s = system.monotonic()
        *_, (calm, trial) = session.tried([Variation()] * PILOTS, "calm")
        each_s = (system.monotonic() - began_s) / PILOTS
        probes, _ = session.probes(tries or ())
        known = Known(calm, probes, seed=trial.seed)
        singles = sum(len(known.probes.get(site.target, ())) for site in calm.sites)
        used = [event for _, event in trial.history.of(Usage)]
    most = trials or TRIALS
    text = f"{count(len(calm.sites), 'call')}, {singles} single faults, at most {most} trials; about "
    text += f"{each_s * min(singles, most):.1f} s for the single faults, {each_s * most:.1f} s for all"
    if used:
        tokens = sum(event.prompt_tokens + event.completion_tokens for event in used)
        text += f"; {tokens} tokens a trial, {tokens * most} for all"
        text += ", none of them paid for: no real model answers in virtual time"
    return text


def shrink(scenario: Scenario, number: int, *, seed: int | None = None) -> FoundFailure:
    """A cause of a trial of the scenario that fails, shrunk. `number`: from 1. Raises ScenarioError: it does not
    fail, or does not happen again with its faults stated one by one."""
    (ruling,) = run(scenario, seed=seed, only=number, apart=True)
    if ruling.held and ruling.state is not RulingState.FAILED:
        raise ProvesNothing(f"{scenario.name}: trial {number} proves nothing: its faults were held back: {ruling.held}")
    if ruling.state is not RulingState.FAILED:
        why = f", {ruling.reasons[0]}" if ruling.reasons else ""
        raise ScenarioError(f"{scenario.name}: trial {number} is no failure to shrink: it is {ruling.state}{why}")
    with opened(scenario, seed=seed) as made:
        found = shrunk_in(made.session, ruling.trial)
    if scenario.by_turn:  # they name turns by number
        return found

    @contextmanager
    def again(prompt: Any) -> Iterator[SearchSession]:
        with opened(replace(scenario, prompt=prompt), seed=seed) as made:
            yield made.session

    return asking_less(found, scenario.prompt, again)


def again_of(folder: Path, trial: str) -> list[str]:
    """The words of the command that runs a trial of a run again, after `chaoslab test`. `trial`: its key or number;
    empty for the first that failed. Raises ScenarioError: no scenario made the run, or the trial did not fail."""
    rulings = Rulings.read(folder)
    if rulings is None:
        raise ScenarioError(f"{folder}: no scenario made this run: give a scenario's file, and --trial")
    key = f"p1.r{trial}" if trial.isdecimal() else trial
    failed = {name: each for name, each in rulings.by_trial.items() if each.again}
    if key and key not in failed:
        there = f": there are {', '.join([*failed][:SHOWN])}" if failed else ", and no other did"
        raise ScenarioError(f"{folder}: {key} is no trial that failed{there}")
    if not failed:
        raise ScenarioError(f"{folder}: every trial of this run passed: there is nothing to shrink")
    words = shlex.split(failed[key or next(iter(failed))].again)
    if words[:2] != ["chaoslab", "test"]:
        raise ScenarioError(f"{folder}: it was run from Python, as {shlex.join(words)}: use lab.shrink there")
    return words[2:]


def pytest_of(scenario: Scenario, failure: FoundFailure, *, changed: Sequence[str] = ()) -> str:
    """A test for pytest that is red until the failure is mended, as text."""
    name = re.sub(r"[^a-z0-9]+", "_", causes.where(failure.variation).lower()).strip("_")[:70]
    given: dict[str, Any] = {key: value for key, _, value in (each.partition("=") for each in changed)}
    lines = ["import chaoslab as lab", "", "", f"def test_{name}():", "    faults = ["]
    lines += [f"        {arguments_of(each)!r}," for each in failure.faults]
    lines.append("    ]")
    if failure.variation.order:
        given["order"] = _order(failure)
    if failure.prompt is not None:
        key, value = _asked(failure)
        given[key] = json.loads(value)
    more = "".join(f", {key}={value!r}" for key, value in given.items())
    trials = failure.trial.number if failure.trial.drew else 1  # the last has its chance
    lines.append(f"    scenario = lab.load_scenario({Path(scenario.file).as_posix()!r})")
    lines.append(f"    scenario = scenario.set(faults=faults, trials={trials}, seed={failure.trial.seed}{more})")
    return "\n".join([*lines, "    scenario.test()", ""])
