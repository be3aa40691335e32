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
from chaoslab.analysis.measures.idle import Idle
from chaoslab.analysis.opinion import Opinion, Unjudged
from chaoslab.analysis.verdict.exposure import Exposure, first_hold
from chaoslab.analysis.verdict.ledger import events_of
from chaoslab.analysis.verdict.standing import Count, Standing, decide_share, stand_by_outcome
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base import interrupts
from chaoslab.base.boundary import let_through
from chaoslab.base.clock import system
from chaoslab.base.jsonable import describe_error, line
from chaoslab.base.parsers import closest
from chaoslab.base.registry import BrokenPlugin
from chaoslab.core.events import FaultHeldBack, FaultsOff
from chaoslab.core.fault import BrokenFault
from chaoslab.execution.asking import ask
from chaoslab.execution.judging import Judge, judged
from chaoslab.execution.options import RunArguments, key_of, keys
from chaoslab.execution.trial import Trial, numbered
from chaoslab.record.rulings import RulingsFile, RulingState, TrialRuling
from chaoslab.scenarios._modules import modules_of
from chaoslab.scenarios._operations import ToolStep, failed_one, makes, words
from chaoslab.scenarios.command_agent import CommandAgent
from chaoslab.scenarios.lab_agent import LAB, lab_agent
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.scenario import BUDGET, Scenario
from chaoslab.worlds.virtual.context import Unsupported

if TYPE_CHECKING:
    from chaoslab.scenarios.spec import CommandSpec

WHY = 300
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
        of_turns = [f"{each} in turn {turn}" for turn, asserted in self.by_turn.items() for each in asserted]
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
        where = f" ({self.where})" if self.where else ""
        return f"{self.assertion}{turn}: {self.miss.text}{where}"


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
    def met(self) -> bool | None:
        """A fault was witnessed; None if the trial has none, but for its budget."""
        if all(each.name == BUDGET for each in self.trial.plan.injections):
            return None
        return bool({*self.trial.met} - {BUDGET})


def held_in(trial: Trial) -> str:
    """The limit by which the trial's faults were held back, such as a lever; empty if they were not."""
    if not trial.calls_known or (trial.met and not trial.plan.limits):
        return ""  # A lever is looked at once a trial, so it holds all faults back, or none.
    return first_hold([event.limit for _, event in trial.history.of(FaultHeldBack)])


@dataclass
class Result:
    """All trials of a scenario so far."""

    scenario: Scenario
    rulings: list[Ruling] = field(default_factory=list)
    met: int = 0
    """The trials in which a fault was witnessed."""
    exposure: Exposure = field(default_factory=Exposure)
    idle: Idle = field(default_factory=Idle)
    """The faults that have hit nothing so far."""
    calls: dict[Slo, tuple[int, int]] = field(default_factory=dict)
    """The good calls and all calls, by objective; those of trials that prove nothing are left out."""
    took_s: float = 0.0
    """The real time up to the latest ruling, in seconds."""
    _began_s: float = field(default_factory=system.monotonic)

    def add(self, ruling: Ruling) -> None:
        self.rulings.append(ruling)
        self.took_s = system.monotonic() - self._began_s
        self.exposure.add(met=ruling.met, held=ruling.held)
        names = {*ruling.trial.met}
        self.met += bool(names - {BUDGET} if self.scenario.faults else names)
        own = [each for each in ruling.trial.plan.injections if each.name != BUDGET]
        if ruling.trial.calls_known and self.idle.wants(own):
            self.idle.take(ruling.trial.history, own)
        for each in self.scenario.slo if ruling.trial.verdict.outcome is not Outcome.INVALID else ():
            ended = [
                event
                for _, event, _ in FinishedTrial(ruling.trial.history, ruling.trial.key, ruling.trial.verdict).ended(
                    each.tool
                )
            ]
            good, all_ = self.calls.get(each, (0, 0))
            self.calls[each] = (good + sum(map(each.good, ended)), all_ + len(ended))

    @property
    def reasons(self) -> list[str]:
        """The reasons why the whole has not passed, one line each."""
        state = self.state
        if state is not RulingState.FAILED:
            return [self.invalid] if state is RulingState.INVALID else []
        least = self.scenario.spec.pass_rate
        asked = f"{least:.4g} of them should" if least < 1 else "all should"
        missed = decide_share(self.standings, least, open_max=self.scenario.spec.invalid_rate) is Standing.BAD
        return [*([f"{self.standings} trials passed, {asked}"] if missed else []), *self.below]

    @property
    def below(self) -> list[str]:
        """The objectives that were missed, one line each."""
        found = []
        for each, (good, all_) in self.calls.items():
            if all_ and good / all_ < each.share:
                found.append(
                    f"{each}: {good} of {all_} calls were good ({good / all_:.1%}), asked for {each.share:.1%}"
                )
        return found

    def count(self, state: RulingState) -> int:
        return sum(ruling.state is state for ruling in self.rulings)

    @property
    def standings(self) -> Count:
        """The trials that passed, failed, and are open."""
        return count_rulings(self.rulings)

    @property
    def state(self) -> RulingState:
        """FAILED if too few trials passed; INVALID if that cannot be told."""
        spec = self.scenario.spec
        standing = decide_share(self.standings, spec.pass_rate, open_max=spec.invalid_rate)
        if standing is Standing.BAD or self.below:
            return RulingState.FAILED
        return RulingState.INVALID if self.invalid else RulingState.PASSED

    @property
    def invalid(self) -> str:
        """The reason why the scenario proves nothing; empty if it does."""
        if not self.rulings:
            return "no trial was run"
        if why := self.exposure.nothing:
            names = ", ".join(each.name for each in self.scenario.faults)
            return why if self.exposure.held else f"{why} ({line(names, 100)})"
        if why := unproven(self.rulings, self.scenario.spec.pass_rate, self.scenario.spec.invalid_rate):
            return why
        empty = next((each for each in self.scenario.slo if not self.calls.get(each, (0, 0))[1]), None)
        return f"{empty}: there was no such call" if empty is not None else ""


def run(
    scenario: Scenario, *, trials: int | None = None, seed: int | None = None, jobs: int = 1,
    only: int | Sequence[int] | None = None, logs: Path | None = None,
    again: Callable[[Ruling], str] | None = None, apart: bool = False, keep: str = "all",
) -> Generator[Ruling, None, None]:  # fmt: skip
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
    wanted = [only] if isinstance(only, int) else only
    numbers: Sequence[int] = range(count) if wanted is None else [number - 1 for number in wanted]
    rules = TrialRules(spec.accept, scenario.expect, scenario.by_turn, bool(spec.operations))
    seed = spec.seed if seed is None else seed
    drawn = partial(scenario.drawn, seed) if scenario.spaces else None
    result = Result(scenario)
    book = Book(scenario.name, rules, len(numbers), asked=map(str, scenario.slo))
    try:
        with ExitStack() as stack:
            stack.enter_context(in_one_line(scenario))
            if spec.agent == LAB:
                stack.enter_context(modules_of(scenario.folder, [*filter(None, [spec.judge_named])]))
                of_lab = lab_agent().trials(scenario, numbers, seed=seed, jobs=jobs, logs=logs, apart=apart, keep=keep)
                # the judge of the lab's own agent
                named = scenario.spec.judge_named
                done = judged(of_lab, Judge.of(_imported(scenario, "judge", named) if named else scenario.spec.judge))
            else:
                stack.enter_context(modules_of(scenario.folder, spec.dotted))
                agent, options = imported(scenario)
                asked = RunArguments(agent, scenario.prompt, **{**options, "seed": seed, "logs": logs, "keep": keep})
                done = numbered(asked, numbers, jobs=jobs, drawn=drawn, apart=apart)
            stack.enter_context(closing(done))
            for number, trial in zip(numbers, done, strict=True):
                interrupts.check()  # before the ruling, since it may have struck in the trial
                ruling = ruled(rules, number + 1, trial)
                if ruling.state is not RulingState.PASSED:
                    # Before the next trial is taken: with keep="failed" its story would be left out else.
                    trial.want()
                if logs is not None:
                    result.add(ruling)
                    book.add(ruling, again(ruling) if again is not None else "")
                yield ruling
    finally:
        if result.rulings:
            book.end(result.state, result.reasons)


@contextmanager
def in_one_line(scenario: Scenario) -> Iterator[None]:
    """A context in which whatever is wrong with the user's agent or world becomes one line that names the scenario.
    Raises ScenarioError: something is."""
    try:
        yield
    except ScenarioError:
        raise
    except (LookupError, ValueError, TypeError, BrokenFault, Unsupported) as error:
        raise ScenarioError(f"{scenario.file or scenario.name}: {error}") from error


def ruled(rules: TrialRules, number: int, trial: Trial) -> Ruling:
    """The ruling on a finished trial. One whose faults were held back has passed nothing."""
    held, found = held_in(trial), _ruled(rules, number, trial)
    if not held:
        return found
    if found.state is not RulingState.PASSED:
        return replace(found, held=held)
    return replace(found, held=held, state=RulingState.INVALID, why=line(f"faults were held back: {held}", WHY))


def _ruled(rules: TrialRules, number: int, trial: Trial) -> Ruling:
    verdict = trial.verdict
    if verdict.outcome is Outcome.INVALID and "invalid" not in rules.accept:
        return Ruling(number, trial, RulingState.INVALID, line(verdict.why, WHY))
    opinions: list[Opinion] = []
    try:
        missed = tuple(missing(rules, trial, opinions))
    except Unjudged as error:
        return Ruling(number, trial, RulingState.INVALID, line(str(error), WHY), opinions=tuple(opinions))
    why = "" if str(verdict.outcome) in rules.accept else line(f"{verdict.outcome}: {verdict.why}", WHY)
    is_open = stand_by_outcome(str(verdict.outcome)) is Standing.OPEN
    state = RulingState.PASSED if not why else RulingState.INVALID if is_open else RulingState.FAILED
    if missed:
        state = RulingState.FAILED
    # Without an agent nobody answers, so an operation that failed is what failed.
    of_operations = state is not RulingState.FAILED and rules.operations and "failed" not in rules.accept
    if of_operations and (failed := failed_one(trial.history)):
        return Ruling(number, trial, RulingState.FAILED, line(failed, WHY), missed, tuple(opinions))
    return Ruling(number, trial, state, why, missed, tuple(opinions))


_STANDINGS = {
    RulingState.PASSED: Standing.WELL, RulingState.FAILED: Standing.BAD, RulingState.INVALID: Standing.OPEN,
}  # fmt: skip


def count_rulings(rulings: Sequence[Ruling]) -> Count:
    """The trials that passed, failed, and are open."""
    return Count.of(_STANDINGS[ruling.state] for ruling in rulings)


def unproven(rulings: Sequence[Ruling], least: float, open_max: float) -> str:
    """The reason why these trials together prove nothing; empty if they do. `least`: the share that should pass.
    `open_max`: the share that may be open."""
    count = count_rulings(rulings)
    if decide_share(count, least, open_max=open_max) is not Standing.OPEN:
        return ""
    first = next((ruling.why for ruling in rulings if ruling.state is RulingState.INVALID), "")
    return f"{count.open} of {count.total} trials prove nothing: {first}"


def missing(rules: TrialRules, trial: Trial, opinions: list[Opinion]) -> Iterator[Missed]:
    """The assertions that do not hold. Adds the opinions that they asked for. Raises Unjudged: an assertion asks a
    judge who gives no verdict."""
    twin = trial.twin.history if trial.twin is not None else None
    for turn, assertions in ((None, rules.expect), *rules.by_turn.items()):
        seen = FinishedTrial(trial.history, trial.key, trial.verdict, twin, turn, opinions, ask, trial)
        for assertion in assertions:
            if miss := _miss(assertion, seen):
                yield Missed(assertion, miss, turn, events_of(trial.history, miss.lines))


def _miss(assertion: Assertion, seen: FinishedTrial) -> Miss | None:
    try:
        return assertion.check(seen)
    except Unjudged:
        raise
    except BaseException as error:
        let_through(error)
        owner = getattr(assertion, "function", type(assertion)).__module__
        raise BrokenPlugin(
            f"the assertion {assertion.name} of {owner} raised {line(describe_error(error), WHY)}"
        ) from error


class Book:
    """Writes the rulings on a run beside its logs, with the opinions that they rest on; nothing if it has no logs."""

    def __init__(self, name: str, rules: TrialRules, trials: int, *, asked: Iterable[str] = ()) -> None:
        """`trials`: the number of trials to come. `asked`: what is required of all of them together."""
        self._name, self._asked, self._trials = name, [*rules.requirements, *asked], trials
        self._file: RulingsFile | None = None

    def add(self, ruling: Ruling, again: str) -> None:
        """Adds the ruling on a trial. `again`: the command that runs it again. Raises OSError: it cannot be written."""
        passed, folder = ruling.state is RulingState.PASSED, ruling.trial.folder
        if passed or next(ruling.trial.history.of(FaultsOff), None) is not None:
            again = ""  # nothing to run again, or no command does: faults were switched off meanwhile
        if folder is None:
            return
        if self._file is None:
            self._file = RulingsFile(folder, self._name, self._asked, self._trials)
        self._file.add(
            ruling.trial.key, TrialRuling(ruling.state, tuple(ruling.reasons), again, bool(ruling.trial.verdict.harm))
        )
        for opinion in ruling.opinions:
            with (folder / "judge.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps({"trial": ruling.trial.key, **vars(opinion)}, ensure_ascii=False) + "\n")

    def end(self, state: RulingState, reasons: Sequence[str]) -> None:
        """Adds the ruling on the whole, if there is one on a trial. Raises OSError: it cannot be written."""
        if self._file is not None:
            self._file.end(state, reasons)


def imported(scenario: Scenario) -> tuple[Any, dict[str, Any]]:
    """The agent, and the options of `lab.run`, with everything imported that the scenario names, within `modules_of`.
    Raises ScenarioError: something cannot be imported."""
    from chaoslab.execution.agents.functions import fresh
    from chaoslab.scenarios.spec import CommandSpec

    spec = scenario.spec

    def named(where: str, dotted: str) -> Any:
        return _imported(scenario, where, dotted)

    # Before the agent, since the SDK of that may ask for a key when it is imported, which my_model.py sets.
    services = {host: named("services", dotted) for host, dotted in spec.services.items()}
    functions = [(key, given, named(key, dotted)) for key, _, given, dotted in spec.functions]

    def listed(key: str) -> Any:
        own = [(given, function) for of, given, function in functions if of == key]
        return dict(own) if own and own[0][0] else [function for _, function in own]

    if spec.operations:
        by_name = dict(zip(scenario.functions, [function for _, _, function in functions], strict=True))
        agent: Any = fresh(makes([ToolStep(by_name[each.tool], each.tool, each.args) for each in spec.operations]))
    elif isinstance(spec.agent, CommandSpec):
        agent = _command(scenario, spec.agent)
    else:
        agent = named("agent", spec.agent) if spec.agent else fresh(named("fresh", spec.fresh or ""))
    made = {
        "tools": listed("tools"),
        "reads": listed("reads"),
        "services": services,
        "faults": scenario.injections,
        "resume_with": named("resume_with", spec.resume_with) if spec.resume_with else None,
        "state": named("state", spec.state) if spec.state else None,
        "judge": named("judge", spec.judge_named) if spec.judge_named else spec.judge,
        "says": named("says", spec.says) if isinstance(spec.says, str) else spec.says,
    }
    calls = [words(each) for each in spec.operations]
    if len({*calls}) < len(calls):
        made["anyway"] = True  # the user's own calls repeat an effect
    return agent, {each.name: made.get(each.name, getattr(spec, key_of(each))) for each in keys()}


def _command(scenario: Scenario, given: "CommandSpec") -> CommandAgent:
    try:
        return CommandAgent(given.command, folder=scenario.folder, deadline_s=scenario.spec.deadline)
    except LookupError as error:
        raise ScenarioError(f"{scenario.file or scenario.name}: {error.args[0]}") from None


def _imported(scenario: Scenario, where: str, dotted: str) -> Any:
    if dotted in scenario.objects:
        return scenario.objects[dotted]
    module, _, path = dotted.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except BaseException as error:
        let_through(error)
        said = line(describe_error(error), WHY)
        if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
            names = [name for name in vars(error.obj) if not name.startswith("_")]
            near = closest(error.name or "", names)
            said += f"; did you mean '{near}'?" if near else ""
        raise ScenarioError(f"{scenario.file or scenario.name}: {where} {dotted} cannot be imported: {said}") from error
    return found
