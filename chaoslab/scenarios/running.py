"""Runs scenarios and rules on their trials."""

import importlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.assertions import Assertion, FinishedTrial, Miss
from chaoslab.analysis.assertions.calls import Slo
from chaoslab.analysis.measures.idle import IdleInjections
from chaoslab.analysis.opinion import Opinion, Unjudged
from chaoslab.analysis.verdict.exposure import FaultExposure, find_limit_ending_all_faults
from chaoslab.analysis.verdict.ledger import describe_event_positions
from chaoslab.analysis.verdict.standing import Standing, StandingCount, classify_share, get_outcome_standing
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base import interrupts
from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.clock import system
from chaoslab.base.jsonable import describe_error, to_one_line
from chaoslab.base.parsers import find_closest
from chaoslab.base.registry import BrokenPlugin
from chaoslab.core.events import FaultHeldBack, FaultsOff
from chaoslab.core.fault import BrokenFault
from chaoslab.execution.asking import ask_judge_model
from chaoslab.execution.judging import Judge, add_judge_opinions
from chaoslab.execution.options import RunArguments, get_scenario_key, iterate_scenario_options
from chaoslab.execution.trial import Trial, run_numbered_trials
from chaoslab.record.rulings import RulingsFile, RulingState, TrialRuling
from chaoslab.scenarios._modules import isolate_folder_modules
from chaoslab.scenarios._operations import (
    ToolStep,
    describe_failed_operation,
    describe_operation,
    make_tool_agent_factory,
)
from chaoslab.scenarios.command_agent import CommandAgent
from chaoslab.scenarios.lab_agent import LAB, load_lab_agent
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.scenario import BUDGET, Scenario
from chaoslab.worlds.virtual.machine.context import Unsupported

if TYPE_CHECKING:
    from chaoslab.scenarios.spec import ResumeSpec

REASON_MAX = 300
"""The most characters of a reason."""


@dataclass(frozen=True)
class TrialRules:
    """The requirements on a trial. `accept`: the names of outcomes. `by_turn`: assertions about one turn, by its
    number."""

    accept: Sequence[str] = ("correct", "degraded")
    expect: Sequence[Assertion] = ()
    by_turn: Mapping[int, Sequence[Assertion]] = field(default_factory=dict)
    operations: bool = False
    """There is no agent, but operations, and one that fails has failed, whatever could be said of an answer."""

    @property
    def requirements(self) -> list[str]:
        """The requirements as texts."""
        of_turns = [f"{assertion} in turn {turn}" for turn, asserted in self.by_turn.items() for assertion in asserted]
        return [f"outcome: {' or '.join(self.accept)}", *map(str, self.expect), *of_turns]


@dataclass(frozen=True)
class Missed:
    """An assertion that does not hold. `turn`: the turn that it is about; None for the whole trial. `where`: the events
    that show it; empty if none does."""

    assertion: Assertion
    miss: Miss
    turn: int | None = None
    where: str = ""

    def __str__(self) -> str:
        turn = "" if self.turn is None else f" in turn {self.turn}"
        location = f" ({self.where})" if self.where else ""
        return f"{self.assertion}{turn}: {self.miss.text}{location}"


@dataclass(frozen=True)
class Ruling:
    """One trial of a scenario. `number`: from 1. `why`: the reason if it has not passed and no assertion tells it."""

    number: int
    trial: Trial
    state: RulingState
    why: str
    missed: tuple[Missed, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    """The opinions of a model as the judge, if one was asked."""
    held: str = ""
    """The limit by which its faults were held back; empty if they were not."""

    @property
    def reasons(self) -> list[str]:
        """The reasons why it has not passed, one line each."""
        return [*([self.why] if self.why else []), *map(str, self.missed)]

    @property
    def has_met_fault(self) -> bool | None:
        """A fault was witnessed; None if the trial has none, but for its budget."""
        if all(injection.name == BUDGET for injection in self.trial.plan.injections):
            return None
        return bool({*self.trial.met} - {BUDGET})


def find_limit_that_held_back(trial: Trial) -> str:
    """The limit by which the trial's faults were held back, such as a lever; empty if they were not."""
    if not trial.calls_known or (trial.met and not trial.plan.limits):
        return ""  # A lever is looked at once a trial, so it holds all faults back, or none.
    return find_limit_ending_all_faults([event.limit for _, event in trial.history.find_events(FaultHeldBack)])


@dataclass
class Result:
    """All trials of a scenario so far."""

    scenario: Scenario
    rulings: list[Ruling] = field(default_factory=list)
    met: int = 0
    """The trials in which a fault was witnessed."""
    exposure: FaultExposure = field(default_factory=FaultExposure)
    idle: IdleInjections = field(default_factory=IdleInjections)
    """The faults that have hit nothing so far."""
    calls: dict[Slo, tuple[int, int]] = field(default_factory=dict)
    """The good calls and all calls, by objective; those of trials that prove nothing are left out."""
    took_s: float = 0.0
    """The real time up to the latest ruling, in seconds."""
    _began_s: float = field(default_factory=system.monotonic)

    def add_ruling(self, ruling: Ruling) -> None:
        self.rulings.append(ruling)
        self.took_s = system.monotonic() - self._began_s
        self.exposure.add_trial(met=ruling.has_met_fault, held=ruling.held)
        names = {*ruling.trial.met}
        self.met += bool(names - {BUDGET} if self.scenario.faults else names)
        own_injections = [objective for objective in ruling.trial.plan.injections if objective.name != BUDGET]
        if ruling.trial.calls_known and self.idle.register_injections(own_injections):
            self.idle.add_trial(ruling.trial.history, own_injections)
        for objective in self.scenario.slo if ruling.trial.verdict.outcome is not Outcome.INVALID else ():
            ended = [
                event
                for _, event, _ in FinishedTrial(
                    ruling.trial.history, ruling.trial.key, ruling.trial.verdict
                ).list_ends_with_attempt_number(objective.tool)
            ]
            good, all_ = self.calls.get(objective, (0, 0))
            self.calls[objective] = (good + sum(map(objective.is_good_call, ended)), all_ + len(ended))

    @property
    def reasons(self) -> list[str]:
        """The reasons why the whole has not passed, one line each."""
        state = self.state
        if state is not RulingState.FAILED:
            return [self.unproven_reason] if state is RulingState.INVALID else []
        min_share = self.scenario.spec.pass_rate
        expected = f"{min_share:.4g} of them should" if min_share < 1 else "all should"
        missed = classify_share(self.trial_counts, min_share, open_max=self.scenario.spec.invalid_rate) is Standing.BAD
        return [*([f"{self.trial_counts} trials passed, {expected}"] if missed else []), *self.missed_objectives]

    @property
    def missed_objectives(self) -> list[str]:
        """The objectives that were missed, one line each."""
        misses = []
        for objective, (good, all_) in self.calls.items():
            if all_ and good / all_ < objective.share:
                misses.append(
                    f"{objective}: {good} of {all_} calls were good ({good / all_:.1%}), asked for "
                    f"{objective.share:.1%}"
                )
        return misses

    def count_trials_in_state(self, state: RulingState) -> int:
        return sum(ruling.state is state for ruling in self.rulings)

    @property
    def trial_counts(self) -> StandingCount:
        """The trials that passed, failed, and are open."""
        return count_rulings(self.rulings)

    @property
    def state(self) -> RulingState:
        """FAILED if too few trials passed; INVALID if that cannot be told."""
        spec = self.scenario.spec
        standing = classify_share(self.trial_counts, spec.pass_rate, open_max=spec.invalid_rate)
        if standing is Standing.BAD or self.missed_objectives:
            return RulingState.FAILED
        return RulingState.INVALID if self.unproven_reason else RulingState.PASSED

    @property
    def unproven_reason(self) -> str:
        """The reason why the scenario proves nothing; empty if it does."""
        if not self.rulings:
            return "no trial was run"
        if reason := self.exposure.no_proof_reason:
            names = ", ".join(entry.name for entry in self.scenario.faults)
            return reason if self.exposure.held else f"{reason} ({to_one_line(names, 100)})"
        if reason := explain_unproven_rulings(
            self.rulings, self.scenario.spec.pass_rate, self.scenario.spec.invalid_rate
        ):
            return reason
        empty = next((entry for entry in self.scenario.slo if not self.calls.get(entry, (0, 0))[1]), None)
        return f"{empty}: there was no such call" if empty is not None else ""


def run_scenario(
    scenario: Scenario,
    *,
    trials: int | None = None,
    seed: int | None = None,
    jobs: int = 1,
    only: int | Sequence[int] | None = None,
    logs: Path | None = None,
    again: Callable[[Ruling], str] | None = None,
    apart: bool = False,
    keep: str = "all",
) -> Generator[Ruling, None, None]:
    """Runs the trials of a scenario, each when the iterator is advanced. `trials`, `seed`: in place of the scenario's
    own. `only`: this trial alone, or these, from 1. `again`: the command that runs a trial again, for the logs.
    `apart`: see `numbered`. `keep`: see `RunOptions`.

    Raises:
        WorkerLost: the process that does a trial ended.
        ScenarioError: something of the user's cannot be imported, does not fit, or did what no virtual world has.
        OSError: the logs cannot be written.
    """
    spec = scenario.spec
    count = spec.trials if trials is None else trials
    numbers_wanted = [only] if isinstance(only, int) else only
    numbers: Sequence[int] = range(count) if numbers_wanted is None else [number - 1 for number in numbers_wanted]
    rules = TrialRules(spec.accept, scenario.expect, scenario.by_turn, bool(spec.operations))
    seed = spec.seed if seed is None else seed
    drawn = partial(scenario.draw_plan, seed) if scenario.spaces else None
    result = Result(scenario)
    book = RulingsBook(scenario.name, rules, len(numbers), asked=map(str, scenario.slo))
    try:
        with ExitStack() as stack:
            stack.enter_context(convert_errors_to_one_line(scenario))
            if spec.agent == LAB:
                stack.enter_context(
                    isolate_folder_modules(scenario.folder, [*filter(None, [spec.judge_function_name])])
                )
                of_lab = load_lab_agent().run_trials(
                    scenario, numbers, seed=seed, jobs=jobs, logs=logs, apart=apart, keep=keep
                )
                # the judge of the lab's own agent
                named = scenario.spec.judge_function_name
                trial_results = add_judge_opinions(
                    of_lab,
                    Judge.from_option(_import_dotted(scenario, "judge", named) if named else scenario.spec.judge),
                )
            else:
                stack.enter_context(isolate_folder_modules(scenario.folder, spec.dotted_names))
                agent, options = import_agent_and_options(scenario, jobs=jobs)
                arguments = RunArguments(
                    agent, scenario.prompt, **{**options, "seed": seed, "logs": logs, "keep": keep}
                )
                trial_results = run_numbered_trials(arguments, numbers, jobs=jobs, drawn=drawn, apart=apart)
            stack.enter_context(closing(trial_results))
            for number, trial in zip(numbers, trial_results, strict=True):
                interrupts.check_interrupt()  # before the ruling, since it may have struck in the trial
                ruling = rule_trial(rules, number + 1, trial)
                if ruling.state is not RulingState.PASSED:
                    # Before the next trial is taken: with keep="failed" its story would be left out else.
                    trial.want()
                if logs is not None:
                    result.add_ruling(ruling)
                    book.add_ruling(ruling, again(ruling) if again is not None else "")
                yield ruling
    finally:
        if result.rulings:
            book.add_final_ruling(result.state, result.reasons)


@contextmanager
def convert_errors_to_one_line(scenario: Scenario) -> Iterator[None]:
    """A context in which whatever is wrong with the user's agent or world becomes one line that names the scenario.
    Raises ScenarioError: something is."""
    try:
        yield
    except ScenarioError:
        raise
    except (LookupError, ValueError, TypeError, BrokenFault, Unsupported) as error:
        raise ScenarioError(f"{scenario.file or scenario.name}: {error}") from error


def rule_trial(rules: TrialRules, number: int, trial: Trial) -> Ruling:
    """The ruling on a finished trial. One whose faults were held back has passed nothing."""
    hold_limit, ruling = find_limit_that_held_back(trial), _rule_by_requirements(rules, number, trial)
    if not hold_limit:
        return ruling
    if ruling.state is not RulingState.PASSED:
        return replace(ruling, held=hold_limit)
    return replace(
        ruling,
        held=hold_limit,
        state=RulingState.INVALID,
        why=to_one_line(f"faults were held back: {hold_limit}", REASON_MAX),
    )


def _rule_by_requirements(rules: TrialRules, number: int, trial: Trial) -> Ruling:
    verdict = trial.verdict
    if verdict.outcome is Outcome.INVALID and "invalid" not in rules.accept:
        return Ruling(number, trial, RulingState.INVALID, to_one_line(verdict.why, REASON_MAX))
    opinions: list[Opinion] = []
    try:
        missed = tuple(find_missed_assertions(rules, trial, opinions))
    except Unjudged as error:
        return Ruling(number, trial, RulingState.INVALID, to_one_line(str(error), REASON_MAX), opinions=tuple(opinions))
    reason = (
        "" if str(verdict.outcome) in rules.accept else to_one_line(f"{verdict.outcome}: {verdict.why}", REASON_MAX)
    )
    is_open = get_outcome_standing(str(verdict.outcome)) is Standing.OPEN
    state = RulingState.PASSED if not reason else RulingState.INVALID if is_open else RulingState.FAILED
    if missed:
        state = RulingState.FAILED
    # Without an agent nobody answers, so an operation that failed is what failed.
    of_operations = state is not RulingState.FAILED and rules.operations and "failed" not in rules.accept
    if of_operations and (failed := describe_failed_operation(trial.history)):
        return Ruling(number, trial, RulingState.FAILED, to_one_line(failed, REASON_MAX), missed, tuple(opinions))
    return Ruling(number, trial, state, reason, missed, tuple(opinions))


_STANDINGS = {
    RulingState.PASSED: Standing.WELL, RulingState.FAILED: Standing.BAD, RulingState.INVALID: Standing.OPEN,
}  # fmt: skip


def count_rulings(rulings: Sequence[Ruling]) -> StandingCount:
    """The trials that passed, failed, and are open."""
    return StandingCount.from_standings(_STANDINGS[ruling.state] for ruling in rulings)


def explain_unproven_rulings(rulings: Sequence[Ruling], min_share: float, open_max: float) -> str:
    """The reason why these trials together prove nothing; empty if they do. `min_share`: the share that should pass.
    `open_max`: the share that may be open."""
    count = count_rulings(rulings)
    if classify_share(count, min_share, open_max=open_max) is not Standing.OPEN:
        return ""
    first = next((ruling.why for ruling in rulings if ruling.state is RulingState.INVALID), "")
    return f"{count.open} of {count.total} trials prove nothing: {first}"


def find_missed_assertions(rules: TrialRules, trial: Trial, opinions: list[Opinion]) -> Iterator[Missed]:
    """The assertions that do not hold. Adds the opinions that they asked for. Raises Unjudged: an assertion asks a
    judge who gives no verdict."""
    twin = trial.twin.history if trial.twin is not None else None
    for turn, assertions in ((None, rules.expect), *rules.by_turn.items()):
        finished_trial = FinishedTrial(
            trial.history, trial.key, trial.verdict, twin, turn, opinions, ask_judge_model, trial
        )
        for assertion in assertions:
            if miss := _find_assertion_miss(assertion, finished_trial):
                yield Missed(assertion, miss, turn, describe_event_positions(trial.history, miss.lines))


def _find_assertion_miss(assertion: Assertion, finished_trial: FinishedTrial) -> Miss | None:
    try:
        return assertion.check(finished_trial)
    except Unjudged:
        raise
    except BaseException as error:
        reraise_unless_foreign(error)
        owner = getattr(assertion, "function", type(assertion)).__module__
        raise BrokenPlugin(
            f"the assertion {assertion.name} of {owner} raised {to_one_line(describe_error(error), REASON_MAX)}"
        ) from error


class RulingsBook:
    """Writes the rulings on a run beside its logs, with the opinions that they rest on; nothing if it has no logs."""

    def __init__(self, name: str, rules: TrialRules, trials: int, *, asked: Iterable[str] = ()) -> None:
        """`trials`: the number of trials to come. `asked`: what is required of all of them together."""
        self._name, self._asked, self._trials = name, [*rules.requirements, *asked], trials
        self._file: RulingsFile | None = None

    def add_ruling(self, ruling: Ruling, again: str) -> None:
        """Adds the ruling on a trial. `again`: the command that runs it again. Raises OSError: it cannot be written."""
        passed, folder = ruling.state is RulingState.PASSED, ruling.trial.folder
        if passed or next(ruling.trial.history.find_events(FaultsOff), None) is not None:
            again = ""  # nothing to run again, or no command does: faults were switched off meanwhile
        if folder is None:
            return
        if self._file is None:
            self._file = RulingsFile(folder, self._name, self._asked, self._trials)
        self._file.add_ruling(
            ruling.trial.key, TrialRuling(ruling.state, tuple(ruling.reasons), again, bool(ruling.trial.verdict.harm))
        )
        for opinion in ruling.opinions:
            with (folder / "judge.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps({"trial": ruling.trial.key, **vars(opinion)}, ensure_ascii=False) + "\n")

    def add_final_ruling(self, state: RulingState, reasons: Sequence[str]) -> None:
        """Adds the ruling on the whole, if there is one on a trial. Raises OSError: it cannot be written."""
        if self._file is not None:
            self._file.write_final_ruling(state, reasons)


def import_agent_and_options(scenario: Scenario, *, jobs: int = 1) -> tuple[Any, dict[str, Any]]:
    """The agent, and the options of `lab.run`, with everything imported that the scenario names, within
    `isolate_folder_modules`. Raises ScenarioError: something cannot be imported, or trials in several processes cannot
    have it."""
    from chaoslab.execution.agents.functions import fresh

    spec = scenario.spec
    # The services are one set, which two trials at once would disturb.
    if jobs > 1 and getattr(spec.agent, "reset", None):
        raise ScenarioError(
            f"{scenario.file or scenario.name}: reset sets the services back for one trial at a time: leave jobs out"
        )

    def import_named(key: str, dotted: str) -> Any:
        return _import_dotted(scenario, key, dotted)

    # Before the agent, since the SDK of that may ask for a key when it is imported, which my_model.py sets.
    services = {host: import_named("services", dotted) for host, dotted in spec.services.items()}
    functions = [(key, name, import_named(key, dotted)) for key, _, name, dotted in spec.function_entries]

    def import_agent(key: str, named: "str | ResumeSpec") -> Any:
        return import_named(key, named) if isinstance(named, str) else _make_command_agent(scenario, named)

    def list_functions_of_key(key: str) -> Any:
        of_key = [(name, function) for function_key, name, function in functions if function_key == key]
        return dict(of_key) if of_key and of_key[0][0] else [function for _, function in of_key]

    if spec.operations:
        by_name = dict(zip(scenario.function_names, [function for _, _, function in functions], strict=True))
        agent: Any = fresh(
            make_tool_agent_factory(
                [ToolStep(by_name[entry.tool], entry.tool, entry.args) for entry in spec.operations]
            )
        )
    else:
        agent = import_agent("agent", spec.agent) if spec.agent else fresh(import_named("fresh", spec.fresh or ""))
    values = {
        "tools": list_functions_of_key("tools"),
        "reads": list_functions_of_key("reads"),
        "services": services,
        "files": None if spec.files is None else str(Path(scenario.folder or "", spec.files)),
        "faults": scenario.injections,
        "resume_with": import_agent("resume_with", spec.resume_with) if spec.resume_with else None,
        "state": import_named("state", spec.state) if spec.state else None,
        "judge": import_named("judge", spec.judge_function_name) if spec.judge_function_name else spec.judge,
        "says": import_named("says", spec.says) if isinstance(spec.says, str) else spec.says,
    }
    calls = [describe_operation(entry) for entry in spec.operations]
    if len({*calls}) < len(calls):
        values["anyway"] = True  # the user's own calls repeat an effect
    return agent, {
        entry.name: values.get(entry.name, getattr(spec, get_scenario_key(entry)))
        for entry in iterate_scenario_options()
    }


def _make_command_agent(scenario: Scenario, spec: "ResumeSpec") -> CommandAgent:
    try:
        return CommandAgent(
            spec.command,
            folder=scenario.folder,
            deadline_s=scenario.spec.deadline,
            in_copy=scenario.spec.files is not None,
            reset=getattr(spec, "reset", None) or "",
        )
    except LookupError as error:
        raise ScenarioError(f"{scenario.file or scenario.name}: {error.args[0]}") from None


def _import_dotted(scenario: Scenario, key: str, dotted: str) -> Any:
    if dotted in scenario.objects:
        return scenario.objects[dotted]
    module, _, path = dotted.partition(":")
    try:
        value: Any = importlib.import_module(module)
        for attribute in path.split("."):
            value = getattr(value, attribute)
    except BaseException as error:
        reraise_unless_foreign(error)
        message = to_one_line(describe_error(error), REASON_MAX)
        if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
            names = [name for name in vars(error.obj) if not name.startswith("_")]
            suggestion = find_closest(error.name or "", names)
            message += f"; did you mean '{suggestion}'?" if suggestion else ""
        raise ScenarioError(
            f"{scenario.file or scenario.name}: {key} {dotted} cannot be imported: {message}"
        ) from error
    return value
