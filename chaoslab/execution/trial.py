"""`run` and `run_many`: trials of a user's agent with faults at its functions and services, and their results."""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from weakref import WeakSet

from chaoslab.analysis.measures.idle import IdleInjections, describe_trial_idle_injections
from chaoslab.analysis.measures.incidents import Incident, find_incidents, severity_key
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base.durations import format_duration
from chaoslab.base.jsonable import to_one_line
from chaoslab.base.terminal import clean_text
from chaoslab.config.settings import load_secret_names
from chaoslab.core import events
from chaoslab.core.plan import Plan
from chaoslab.execution._checked import build_agent_spec
from chaoslab.execution.agents._baseline import NoBaseline as NoBaseline
from chaoslab.execution.agents._baseline import find_answer_text, find_end_state, list_effect_dicts, run_baseline
from chaoslab.execution.agents._case import AgentResult
from chaoslab.execution.agents._run import AgentSpec
from chaoslab.execution.agents._trial_record import STOPPED
from chaoslab.execution.drawn import DrawnPlan, DrawnRun, WrappedRun
from chaoslab.execution.forked import make_executor
from chaoslab.execution.judging import Judge, add_judge_opinions
from chaoslab.execution.options import RunArguments, RunManyArguments, accept_fields_as_arguments, check_number
from chaoslab.execution.pipeline import open_run_folder, run_trials
from chaoslab.execution.spec import REAL_LIMIT_S, Executor, RunSpec, TrialSpec
from chaoslab.execution.trials import Trials
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.record.spoken import JudgeReply

LINE_MAX = 300
"""The longest one-line text of a trial, in characters."""


@dataclass
class Trial:
    """The result of one trial.

    `answer`: the agent's return value. `error`: the exception it raised. `seconds`: its duration, in the world's time.
    `twin`: the same trial without faults, if there was one. `plan`: the faults that could happen. `folder`: the folder
    of its run's logs, if they are written.
    """

    key: str
    answer: Any
    error: BaseException | None
    seconds: float
    plan: Plan
    twin: Trial | None
    _result: Any
    """Its result with `history`, `buffered_events`, `ok` and `warnings`: an `AgentResult`, or the lab's agent's."""
    folder: Path | None = None
    opinion: JudgeReply | None = None
    """The opinion of `judge` on its answer, and what it cost; None if it was not asked."""
    asked: RunArguments | None = field(default=None, repr=False)
    """The arguments that it was made with, if it was made by `run` or `run_many`."""

    def want(self) -> None:
        """Has the logs keep the story, also with `keep="failed"`; to be called before the next trial is taken."""
        self._result.is_story_requested = True

    def forget(self) -> None:
        """Lets go of the trial's events, for whoever holds many trials. The verdict and what it met stay; there is no
        story any more."""
        self._result = SimpleNamespace(verdict=self.verdict, met=self.met, warnings=self._result.warnings)
        # The history, which `cached_property` keeps under its name, would hold all events.
        vars(self).pop("history", None)

    @property
    def seed(self) -> int:
        """The seed of the faults' dice."""
        return self.plan.seed

    @property
    def number(self) -> int:
        """Its place among the trials of one prompt, from 1: with the seed it tells its chance."""
        return int(self.key.rpartition("r")[2])

    @property
    def drew(self) -> bool:
        """True if the agent, or a program that it calls, drew chance of its own (in virtual time)."""
        return any(event.drew for _, event in self.history.find_events(events.PromptFinished))

    def _iterate_events(self) -> Iterator[events.Event]:
        """The events without records, which the history makes of them: to be read once, and instead of it."""
        event_iterator: Iterator[events.Event] = self._result.book.iterate_events()
        return event_iterator

    @cached_property
    def history(self) -> History:
        """The trial's events as records in time order; it prints as the story."""
        from chaoslab.reports.show import Story

        return Story.from_history(self._result.history)

    @cached_property
    def verdict(self) -> Verdict:
        """The outcome, the reason for it, and a text for each harm."""
        verdict_there: Verdict | None = getattr(self._result, "verdict", None)
        # The verdict that came with the result was reached where the trial ran, without the judge.
        return (
            verdict_there if verdict_there is not None and self.opinion is None else judge_trial(self.history, self.key)
        )

    @property
    def met(self) -> tuple[str, ...]:
        """The injection of each fault that was witnessed, in order."""
        witnessed_there: tuple[str, ...] | None = getattr(self._result, "met", None)
        if witnessed_there is not None:
            return witnessed_there
        return tuple(event.injection for _, event in self.history.find_events(events.FaultWitnessed))

    @property
    def outcome(self) -> Outcome:
        """The outcome, a member of `lab.Outcome`."""
        return self.verdict.outcome

    @property
    def why(self) -> str:
        """The reason for the outcome, in one line."""
        return self.verdict.why

    @property
    def said(self) -> str | None:
        """The answer as the text that is judged; None if the agent gave none."""
        return find_answer_text(self.history)

    @property
    def ok(self) -> bool:
        """True if the outcome is correct: `assert trial.ok, trial.story()`."""
        return self.outcome is Outcome.CORRECT

    def story(self) -> str:
        """The whole trial, line by line, with the verdict and the warnings."""
        from chaoslab.reports import show

        warnings = (f"warning: {warning}\n" for warning in self.warnings)
        return clean_text("".join([show.render_stories(self.history), *warnings]))

    # Else `assert trial` would pass whatever came of it.
    def __bool__(self) -> NoReturn:
        raise TypeError("a Trial is neither true nor false: ask trial.ok, or trial.outcome")

    @property
    def effects(self) -> list[dict[str, Any]]:
        """The agent's effects, each as `{"effect": <function>, <parameter>: <argument>, …}`, like those given as
        `effects=`. An effect of a service is named after the request, as in "POST /orders"."""
        return list_effect_dicts(self.history, self.key)

    @property
    def end_state(self) -> Any:
        """The JSON value that `state` returned at the end; None without `state`, or if it failed."""
        return find_end_state(self.history)

    @property
    def recovery(self) -> dict[str, Incident]:
        """The incident of each target that met a fault, with its time, its duration and its ending. Of several it is
        the worst: one with harm, then one that never recovered, then the longest."""
        return {incident.target: incident for incident in sorted(self.incidents, key=severity_key)}

    @property
    def incidents(self) -> list[Incident]:
        """An incident for each request that met a fault, in the order in which they began."""
        return find_incidents(self.history)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the trial, such as functions that could not be watched, or faults that hit nothing."""
        result_warnings = self._result.warnings
        if not self.calls_known:
            return tuple(result_warnings)
        return (*result_warnings, *describe_trial_idle_injections(self.history, self.plan.injections))

    @property
    def calls_known(self) -> bool:
        """False if the trial was ended with its process, so that its calls are not known."""
        return STOPPED not in self._result.warnings

    def __str__(self) -> str:
        """The outcome and its reason in one line; `story` has the details."""
        return to_one_line(f"{self.key} {self.outcome} after {format_duration(self.seconds)}: {self.why}", LINE_MAX)

    def __repr__(self) -> str:
        return to_one_line(f"Trial({self.key}, {self.outcome}: {self.why}", LINE_MAX - 1) + ")"


@accept_fields_as_arguments(RunArguments)
def run(arguments: RunArguments) -> Trial:
    """Runs one trial of an agent, and returns its result even if the agent fails. The agent's code is not edited: its
    functions are swapped during the trial.

    The options are the fields of `chaoslab.execution.options.RunOptions`.

    The twin runs first. Its effects are the expected ones, to the letter, unless `effects` are given, and its answer
    the right one, beside `facts` if it shows them all. An answer with other numbers, dates or names is wrong. An answer
    that cannot be compared by its words is unknown. If only `effects` are given and `twin` is not True, the answer is
    not judged.

    Agent and functions must keep no state between trials. In virtual time the twin runs twice. If the two runs differ,
    in their answer, effects or end state, it is no baseline; with `anyway` what differs is not compared, and `warnings`
    names it. `agent=lab.fresh(make)` makes a new agent for each trial. None for a list or a mapping means the same as
    leaving it out.

    Raises:
        ValueError, LookupError, TypeError: an argument is invalid; the message is one line.
        RuntimeError: another trial is under way in this process.

    Warns:
        NothingHit: a fault hit or changed nothing, as in `Trial.warnings`.
    """
    (trial,) = run_numbered_trials(arguments, range(1))
    for message in describe_trial_idle_injections(trial.history, trial.plan.injections) if trial.calls_known else ():
        # 3: the line that called `run`, behind `accept_fields_as_arguments`.
        warnings.warn(message, NothingHit, stacklevel=3)
    return trial


class NothingHit(UserWarning):
    """A fault that had to hit has hit or changed nothing in any trial, such as one whose `tool=` fits no call."""


@accept_fields_as_arguments(RunManyArguments)
def run_many(arguments: RunManyArguments) -> Trials[Trial]:
    """Runs `trials` trials of an agent, each when the iterator is advanced; `.frame()` makes one table of all. The
    options are those of `run`.

    Each trial has its own dice for the faults, and in virtual time its own chance for the agent (`random`, `secrets`,
    `uuid4`, …), drawn from the seed and its key: p1.r1, p1.r2 and so on. One twin serves all trials if it draws none;
    else each trial has its own. `jobs`: the number of processes.

    Raises:
        NotPicklable: a TypeError; this process has other threads, so workers cannot be forked, and an argument cannot
            be pickled.
    """
    check_number("trials", arguments.trials, whole=True)
    check_number("jobs", arguments.jobs, whole=True)
    return Trials(
        _yield_with_idle_warnings(run_numbered_trials(arguments, range(arguments.trials), jobs=arguments.jobs)),
        arguments.trials,
    )


def _yield_with_idle_warnings(trials: Generator[Trial, None, None]) -> Generator[Trial, None, None]:
    """The trials, with a warning after the last about each fault that hit nothing in all of them."""
    idle_injections = IdleInjections()
    with closing(trials):
        for trial in trials:
            if trial.calls_known and idle_injections.register_injections(trial.plan.injections):
                idle_injections.add_trial(trial.history, trial.plan.injections)
            yield trial
    for message in idle_injections.describe_idle_injections(called=True):
        warnings.warn(message, NothingHit, stacklevel=3)


def run_numbered_trials(
    arguments: RunArguments,
    numbers: Sequence[int],
    *,
    jobs: int = 1,
    drawn: Callable[[int], DrawnPlan] | None = None,
    apart: bool = False,
) -> Generator[Trial, None, None]:
    """The same for the trials with these numbers, from 0: each is as it is among all others. `drawn`: the plan of a
    trial by its number, in place of the faults. `apart`: no trial, nor the twin, is run in this process, so that the
    end of its process is not the end of this one. Raises WorkerLost: `apart`, and the process that does a trial
    ended."""
    spec, wants_twin, logs = build_agent_spec(arguments)
    judge = Judge.from_option(arguments.judge)
    raw_trials = _run_all_trials(spec, numbers, jobs, wants_twin=wants_twin, logs=logs, drawn=drawn, apart=apart)
    trials = add_judge_opinions(_attach_run_arguments(arguments, raw_trials), judge)
    _running.add(trials)
    return trials


def _attach_run_arguments(
    arguments: RunArguments, trials: Generator[Trial, None, None]
) -> Generator[Trial, None, None]:
    with closing(trials):
        for trial in trials:
            trial.asked = arguments
            yield trial


_running: WeakSet[Generator[Trial, None, None]] = WeakSet()


@atexit.register
def _close_running_trials() -> None:
    """Ends the trials that nobody has ended, while there is an interpreter to do it."""
    for trials in list(_running):
        with suppress(ValueError):  # the process ends within one of them
            trials.close()


def _run_all_trials(
    spec: AgentSpec,
    numbers: Sequence[int],
    jobs: int,
    *,
    wants_twin: bool,
    logs: Path | None,
    drawn: Callable[[int], DrawnPlan] | None = None,
    apart: bool = False,
) -> Generator[Trial, None, None]:
    twin, jobs = None, 1 if spec.is_sequential else jobs
    at_once = spec.is_sequential or spec.options.world == "local"
    limit_s = spec.real_time_limit_s
    if spec.options.real_limit_s != REAL_LIMIT_S and not (apart or spec.options.isolate):
        raise ValueError(
            f"real_limit_s is {spec.options.real_limit_s:g}: only a process of its own can be ended: give "
            "isolate='fork' too, or run it by `chaoslab test`"
        )
    alone = make_executor(1, limit_s if apart and not spec.options.isolate else None, at_once=at_once)
    with ExitStack() as stack:
        load_secret_names(spec.options.secret_names or ())
        stack.enter_context(spec.prepare_world())  # forked workers inherit it
        if wants_twin:
            twin, spec = run_baseline_twin(spec, alone)
        book = folder = None
        if logs is not None:
            run_folder = Run.create(logs, now=spec.now, name=spec.name)
            run_folder.link_as_latest()
            folder = run_folder.folder
            book = stack.enter_context(open_run_folder(spec, len(numbers), folder, keep=spec.options.keep))
        run: RunSpec[AgentResult] = spec if drawn is None else DrawnRun(spec, drawn)
        if jobs > 1:
            # Judged where it ran: else this process would read the events of all others.
            run = JudgedRun(run, lines=book is not None)
        pool = alone if jobs == 1 else make_executor(jobs, limit_s if apart else None)
        trial_results = stack.enter_context(closing(run_trials(run, numbers, executor=pool, book=book)))
        for number, result in zip(numbers, trial_results, strict=True):
            plan = spec.plan if drawn is None else replace(spec.plan, injections=drawn(number).injections)
            yield make_trial(result, plan.with_injections_off(result.off), twin, folder)


@dataclass(frozen=True)
class JudgedRun(WrappedRun[RunSpec[AgentResult]]):
    """A run whose trials are judged in the process that does them, so that the process which takes them only counts.
    `lines`: the lines of the run's log are spelled out there too."""

    lines: bool

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[TrialSpec], AgentResult]]:
        with self.run.open_runner() as do:
            yield lambda spec: do(spec).add_verdict(lines=self.lines)


def make_trial(
    result: AgentResult, plan: Plan, twin: Trial | None, folder: Path | None = None, asked: RunArguments | None = None
) -> Trial:
    """The trial of a result. `twin`: that of its run, for a trial without one of its own."""
    key = result.book.trial.key
    if result.twin is not None:
        twin = make_trial(result.twin, Plan(plan.seed), None)
    return Trial(key, result.answer, result.error, result.seconds, plan, twin, result, folder, asked=asked)


def run_baseline_twin(spec: AgentSpec, alone: Executor) -> tuple[Trial, AgentSpec]:
    """The run's twin without faults, and the spec beside it. `alone`: does one trial after the other. Raises
    NoBaseline: the twin is nothing to compare with, and the trials are not to run anyway."""
    twin, beside = run_baseline(spec, alone)
    return make_trial(twin, Plan(spec.plan.seed), None), beside
