"""Runs the trials that a search asks for, and tells it what came of each."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from chaoslab.analysis.verdict.exposure import find_limit_ending_all_faults
from chaoslab.analysis.verdict.table import ENDED_OPEN
from chaoslab.base import interrupts
from chaoslab.base.identity import hash_value
from chaoslab.base.user_line import Raised
from chaoslab.config.settings import load_secret_names
from chaoslab.core import events
from chaoslab.core.limits import Limits
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution._checked import RunTargets, build_agent_spec
from chaoslab.execution.agents._case import AgentResult
from chaoslab.execution.drawn import DrawnPlan, RedrawableRun
from chaoslab.execution.forked import make_executor, open_executors
from chaoslab.execution.options import RunArguments
from chaoslab.execution.spec import Executor, TrialSpec
from chaoslab.execution.trial import Trial, make_trial, run_baseline_twin
from chaoslab.execution.workers import InProcessExecutor, KeptOpenExecutor
from chaoslab.record.history import History, Place
from chaoslab.search import causes
from chaoslab.search.probes import find_applicable_probes
from chaoslab.search.roots import find_root_cause
from chaoslab.search.variation import GOOD, Made, Probe, Site, TriedVariation, Variation

CALLS_FACTOR, CALLS_MIN = 20, 300
"""The calls without a wait, as a multiple of those of the trial without faults, and at least, after which a trial has
hung: ten thousand cost a second each time."""
Fails = Callable[[Trial], str]
"""The reason why a trial counts as a failure, in one line; empty if it does not."""


@dataclass(frozen=True)
class VariedTrial:
    """A trial to run, within these limits too. `number`, `stopped`: as in `TrialSpec`."""

    variation: Variation
    limits: tuple[Limits, ...]
    number: int = 0
    stopped: str = ""


@contextmanager
def silence_output() -> Iterator[None]:
    """A context in which what an agent prints goes nowhere, and the ends of its threads are not told: a search runs
    thousands of trials, most of which are to fail. A file stands in, as an agent may ask for its number or its bytes.
    """
    hook_before, threading.excepthook = threading.excepthook, lambda _: None
    try:
        with (
            # One for each trial, since an agent may close it, as one does that wraps its bytes in another file.
            open(os.devnull, "w", encoding="utf-8") as null_file,
            redirect_stdout(null_file),
            redirect_stderr(null_file),
        ):
            yield
    finally:
        threading.excepthook = hook_before


@dataclass(frozen=True)
class VariedRun:
    """A run whose work is variations of trials, each with the dice and the chance of the trial it varies. `standing`:
    injections that all of them have. `read`: reads each result where its trial runs, if another process asks for it."""

    run: RedrawableRun[Any]
    standing: tuple[Injection, ...]
    read: Callable[[Any], object] | None

    def get_work_item_name(self, spec: VariedTrial) -> str:
        return causes.describe_variation(spec.variation)

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[VariedTrial], Any]]:
        with self.run.open_varied_runner() as trial:

            def run_variation(spec: VariedTrial) -> Any:
                with silence_output():
                    result = trial(self.make_drawn_plan(spec), TrialSpec(spec.number, stopped=spec.stopped))
                if self.read is not None:
                    self.read(result)
                return result

            yield run_variation

    def make_drawn_plan(self, spec: VariedTrial) -> DrawnPlan:
        variation = spec.variation
        order = None if variation.order is None else dict(variation.order)
        return DrawnPlan((*self.standing, *variation.injections), order=order, limits=spec.limits)


@dataclass(frozen=True)
class Subject:
    """The subject of a search. `targets`: what faults can hit. `check` raises ValueError or LookupError for an
    injection that cannot hit there. `trial_of`: the trial of a result, with its plan. `agent`: the object, for a
    digest of its code. `read`: judges a result and reads its events, so that no other process need do so."""

    run: RedrawableRun[Any]
    targets: Sequence[str]
    check: Callable[[Injection], object]
    trial_of: Callable[[Any, Plan], Trial]
    agent: Any = None
    read: Callable[[Any], object] | None = None


class SearchSession:
    """A search's trials of one agent. They vary one trial: they share its twin, its dice and its chance, so that a
    variation does here what its faults do in `lab.run`. `number`: that trial, from 0. `trials`: the number of those
    that were run."""

    def __init__(
        self,
        subject: Subject,
        does: Executor,
        fails: Fails,
        standing: Sequence[Injection],
        *,
        alone: Executor,
        several: bool,
    ) -> None:
        """`alone`: does a trial that nothing can run beside, as most of shrinking. `several`: there are several
        processes, which judge and read what they run."""
        self.subject, self._does, self._alone, self._fails = subject, does, alone, fails
        self._run, self._several = VariedRun(subject.run, tuple(standing), subject.read if several else None), several
        self._seed = subject.run.make_run_started_event(0).seed or 0
        self.trials = self.number = 0

    def run_variations(
        self, variations: Iterable[Variation], limits: tuple[Limits, ...] = (), numbers: Sequence[int] = ()
    ) -> Generator[tuple[Variation, Trial], None, None]:
        """The trials of these variations, in order, within these limits beside the run's own. `numbers`: the trial that
        each varies, if it is another."""
        trial_numbers = numbers or itertools.repeat(self.number)
        varied_trials = [
            # Not strict, since repeat() has no end.
            VariedTrial(variation, limits, number)
            for variation, number in zip(variations, trial_numbers, strict=False)
        ]
        with closing(self._choose_executor(len(varied_trials)).map(self._run, varied_trials)) as trial_results:
            for varied_trial, result in zip(varied_trials, trial_results, strict=True):
                interrupts.check_interrupt()
                self.trials += 1
                yield (
                    varied_trial.variation,
                    self.subject.trial_of(
                        result, self._run.make_drawn_plan(varied_trial).apply_to_plan(Plan(self._seed))
                    ),
                )

    def _choose_executor(self, count: int) -> Executor:
        """The executor of so many trials."""
        if not isinstance(self._alone, KeptOpenExecutor):
            return self._does if count > 1 else self._alone
        if count > 1 and self._several:
            self._alone.close()  # other processes swap the functions themselves, and are sent them by name
            return self._does
        return self._alone

    @contextmanager
    def keep_work_open(self) -> Iterator[None]:
        """A context for many trials of which each is chosen by the one before: what they need is made ready once."""
        usual = self._alone
        # Only work that is opened in this process is worth keeping open: a child keeps its own.
        if not isinstance(usual, InProcessExecutor):
            yield
            return
        with closing(KeptOpenExecutor()) as kept_open:
            self._alone = kept_open
            try:
                yield
            finally:
                self._alone = usual

    def assess_variations(
        self, variations: Iterable[Variation], by: str, limits: tuple[Limits, ...] = (), numbers: Sequence[int] = ()
    ) -> Generator[tuple[TriedVariation, Trial], None, None]:
        """The same with what came of each."""
        for variation, trial in self.run_variations(variations, limits, numbers):
            yield self.assess_trial(variation, trial, by), trial

    def assess_trial(self, variation: Variation, trial: Trial, by: str) -> TriedVariation:
        """The result of a trial."""
        verdict = trial.verdict
        reason = self._fails(trial)
        view: TrialView = getattr(trial._result, "shown", None) or TrialView.build(
            trial.history, _get_calling_lines(trial)
        )
        raised = getattr(trial._result, "raised", Raised())
        return TriedVariation(
            self.trials,
            variation,
            by,
            str(verdict.outcome),
            bool(reason),
            reason or verdict.why,
            causes.describe_failure_kind(verdict, reason) if reason else "",
            met=view.met,
            made=view.made,
            moments=view.moments,
            world=hash_value([view.effects, str(verdict.outcome)]),  # not the words, which differ with each wrong value
            harm=verdict.harm,
            tokens=view.tokens,
            seconds=trial.seconds,
            drew=view.drew,
            chance=trial.number - 1,
            held=view.held,
            root=find_root_cause(variation, verdict, view.made, trial.history, raised) if reason else None,
        )

    def find_applicable_probes(
        self, faults: Sequence[str] = ()
    ) -> tuple[dict[str, list[Probe]], dict[str, dict[str, str]]]:
        """The faults that apply, and why others do not; see `search.probes.applicable`."""
        return find_applicable_probes(self.subject.targets, self.subject.check, faults)


@dataclass(frozen=True)
class TrialView:
    """The content of a trial's events for a search. `met`: injections. `effects`: their names. The others: see
    `TriedVariation`."""

    met: tuple[str, ...]
    made: tuple[Made, ...]
    moments: tuple[tuple[str, ...], ...]
    effects: list[str]
    tokens: int
    drew: bool
    held: str = ""

    @classmethod
    def build(cls, history: History, lines: Sequence[str] = ()) -> TrialView:
        """`lines`: those of the user's source that made the calls."""
        return cls(
            met=tuple(dict.fromkeys(event.injection for _, event in history.find_events(events.FaultWitnessed))),
            made=tuple(_list_call_attempts(history, lines)),
            moments=tuple(tuple(event.calls) for _, event in history.find_events(events.CallsOrdered)),
            effects=[event.effect for _, event in history.find_events(events.Effect)],
            tokens=sum(event.prompt_tokens + event.completion_tokens for _, event in history.find_events(events.Usage)),
            drew=any(event.drew for _, event in history.find_events(events.PromptFinished)),
            held=find_limit_ending_all_faults(event.limit for _, event in history.find_events(events.FaultHeldBack)),
        )


def _attach_trial_view(result: AgentResult) -> None:
    result.add_verdict(lines=False).shown = TrialView.build(result.history, result.book.lines or ())


def _get_calling_lines(trial: Trial) -> Sequence[str]:
    """The lines that made its calls; none of the lab's own agent."""
    return getattr(getattr(trial._result, "book", None), "lines", None) or ()


def _list_call_attempts(history: History, lines: Sequence[str]) -> Iterator[Made]:
    """Each attempt of the trial, in the order of beginning. `lines`: those of the user's source that made them."""
    ends: dict[Place, events.CallFinished] = {}
    for _, call_end, place in history.find_attempt_events(events.CallFinished):
        ends.setdefault(place, call_end)
    # One line was noted at each start of a call, so the two are in step.
    effects, line = 0, iter(lines)
    attempts_with_effects = {
        (event.target, event.request, event.attempt) for _, event in history.find_events(events.Effect)
    }
    places = (place for _, _, place in history.find_attempt_events(events.CallStarted))
    for event in (record.event for record in history.records):
        if isinstance(event, events.Effect):
            effects += 1
        elif isinstance(event, events.CallStarted):
            place = next(places)
            end = ends.get(place)
            error = "" if end is None or end.ok else end.error or "failed"
            given_up_s = end.duration_s if end is not None and end.error == "timed_out" else None
            acts = place[1:] in attempts_with_effects
            yield _build_call(*place[1:], event.tool, error, effects, given_up_s, next(line, ""), acts)


# A search keeps the calls of thousands of trials, most of which are equal: one object for all of these.
@lru_cache(maxsize=4096)
def _build_call(
    target: str,
    request: int,
    attempt: int,
    tool: str,
    error: str,
    effects: int,
    given_up_s: float | None,
    line: str,
    acts: bool,
) -> Made:
    return Made(Site(target, request, attempt, tool), error, effects, given_up_s, line, acts)


def make_failure_test(accept: Sequence[str] = GOOD) -> Fails:
    """A trial fails if its outcome is none of these and not open."""

    def explain_failure(trial: Trial) -> str:
        verdict = trial.verdict
        return "" if str(verdict.outcome) in accept or verdict.outcome in ENDED_OPEN else verdict.why

    return explain_failure


@contextmanager
def open_subject_search(
    subject: Subject, fails: Fails, standing: Sequence[Injection] = (), *, jobs: int, limit_s: float | None
) -> Iterator[SearchSession]:
    """A context with the trials of a search. `limit_s`: the most seconds of real time for each, none of which is run in
    this process; None: with one job they are."""
    with open_executors(jobs, limit_s) as (does, alone):
        yield SearchSession(subject, does, fails, standing, alone=alone, several=jobs > 1)


@contextmanager
def open_agent_search(
    arguments: RunArguments,
    *,
    jobs: int = 1,
    in_child: bool = False,
    fails: Fails | None = None,
    standing: Sequence[Injection] = (),
    mitigation: str = "",
) -> Iterator[SearchSession]:
    """A context in which the trials of a search run. `arguments`: the agent with its options, without faults.
    `in_child`: no
    trial is run in this process. `standing`: injections that every trial has, such as a budget. `mitigation`: what is
    tried around the agent's functions. Raises ValueError, LookupError, TypeError: an argument is invalid; the message
    is one line; NoBaseline: the trial without faults is nothing to compare with, or fails by itself."""
    if arguments.faults:
        raise ValueError("faults= is chosen by the search: name those that it may try in tries=")
    if arguments.world != "virtual" and not arguments.upstreams:
        raise ValueError(f"world is {arguments.world!r}: a search runs in virtual time, where equal trials end alike")
    spec, wants_twin, _ = build_agent_spec(arguments)
    # Lines of the user's source tell root causes apart.
    spec = replace(spec, mitigation=mitigation, finds_lines=True)
    if spec.is_sequential:
        raise ValueError("a budget in dollars counts over a whole run, and the trials of a search have no order")
    limit_s = spec.real_time_limit_s
    # A run with isolate= makes a child for each trial by itself.
    alone = make_executor(1, limit_s if in_child and not spec.options.isolate else None)
    within_s = limit_s if in_child and (jobs > 1 or not spec.options.isolate) else None
    with ExitStack() as stack:
        load_secret_names(spec.options.secret_names or ())
        stack.enter_context(spec.prepare_world())
        twin = None
        if wants_twin:
            with silence_output():
                twin, spec = run_baseline_twin(spec, alone)
            calls_limit = CALLS_FACTOR * len([*twin.history.find_events(events.CallStarted)])
            spec = replace(
                spec, options=replace(spec.options, calls_max=min(spec.options.calls_max, max(CALLS_MIN, calls_limit)))
            )
        ground = RunTargets.from_spec(spec)
        subject = Subject(
            spec,
            ground.names,
            lambda injection: ground.check_injections([injection]),
            lambda result, plan: make_trial(result, plan, twin, asked=arguments),
            arguments.agent,
            _attach_trial_view,
        )
        yield stack.enter_context(
            open_subject_search(subject, fails or make_failure_test(), standing, jobs=jobs, limit_s=within_s)
        )
