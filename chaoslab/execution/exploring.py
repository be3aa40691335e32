"""Runs the trials that a search asks for, and tells it what came of each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

from chaoslab.analysis.verdict.table import UNJUDGED
from chaoslab.base.identity import digest
from chaoslab.config.settings import name_secrets
from chaoslab.core import events
from chaoslab.core.plan import Injection
from chaoslab.execution.agents.case import AgentResult
from chaoslab.execution.agents.run import AgentSpec
from chaoslab.execution.checked import Ground, checked
from chaoslab.execution.drawn import Drawn
from chaoslab.execution.forked import children
from chaoslab.execution.options import Asked
from chaoslab.execution.spec import Executor, TrialSpec
from chaoslab.execution.trial import Trial, compared, trial_of
from chaoslab.execution.workers import executor
from chaoslab.search import causes
from chaoslab.search.probes import applicable
from chaoslab.search.variation import GOOD, Made, Probe, Site, Tried, Variation

Fails = Callable[[Trial], bool]
"""Tells if a trial counts as a failure."""


@dataclass(frozen=True)
class VariedRun:
    """A run whose work is variations instead of numbers: each is the first trial of a run with its faults."""

    run: AgentSpec
    standing: tuple[Injection, ...] = ()
    """Injections that all variations have."""

    def named(self, spec: Variation) -> str:
        return causes.where(spec)

    @contextmanager
    def opened(self) -> Iterator[Callable[[Variation], AgentResult]]:
        def do(spec: Variation) -> AgentResult:
            with self.of(spec).opened() as own:
                return own(TrialSpec(0))

        yield do

    def of(self, spec: Variation) -> AgentSpec:
        """The run of one variation."""
        run = self.run.with_drawn(Drawn((*self.standing, *spec.injections)))
        return run if spec.order is None else replace(run, options=replace(run.options, order=dict(spec.order)))


class Session:
    """A search's trials of one agent. They share one trial without faults, and the dice of a first trial, so that a
    variation does here what its faults do in `lab.run`."""

    def __init__(
        self, spec: AgentSpec, twin: Trial | None, ground: Ground, does: Executor, fails: Fails,
        standing: Sequence[Injection] = (),
    ) -> None:  # fmt: skip
        self.spec, self.twin, self.ground = spec, twin, ground
        self._run, self._does, self._fails = VariedRun(spec, tuple(standing)), does, fails
        self.trials = 0
        """The trials that were run."""

    @property
    def targets(self) -> list[str]:
        return list(self.ground.names)

    def run(self, variations: Iterable[Variation]) -> Generator[tuple[Variation, Trial], None, None]:
        """The trials of these variations, in order."""
        asked = list(variations)
        with closing(self._does.map(self._run, asked)) as done:
            for variation, result in zip(asked, done, strict=True):
                self.trials += 1
                yield variation, trial_of(result, self._run.of(variation).plan, self.twin)

    def tried(self, variations: Iterable[Variation], by: str) -> Generator[tuple[Tried, Trial], None, None]:
        """The same with what came of each."""
        for variation, trial in self.run(variations):
            yield self.read(variation, trial, by), trial

    def read(self, variation: Variation, trial: Trial, by: str) -> Tried:
        """What came of a trial."""
        verdict, history = trial.verdict, trial.history
        failed = self._fails(trial)
        effects = [event.effect for _, event in history.of(events.Effect)]
        return Tried(
            self.trials, variation, by, str(verdict.outcome), failed, verdict.why, causes.kind_of(verdict),
            met=tuple(dict.fromkeys(event.injection for _, event in history.of(events.FaultWitnessed))),
            made=tuple(_made(trial)),
            moments=tuple(tuple(event.calls) for _, event in history.of(events.CallsOrdered)),
            world=digest([effects, str(verdict.outcome)]),  # not the words, which differ with each wrong value
            harm=verdict.harm,
            seconds=trial.seconds,
        )  # fmt: skip

    def probes(self, faults: Sequence[str] = ()) -> tuple[dict[str, list[Probe]], dict[str, dict[str, str]]]:
        """The faults that apply, and why others do not; see `search.probes.applicable`."""
        return applicable(self.targets, lambda injection: self.ground.checked([injection]), faults)


def _made(trial: Trial) -> Iterator[Made]:
    """Each attempt of the trial, in the order of beginning."""
    ended: dict[tuple[str, int, int], events.CallFinished] = {}
    for _, event in trial.history.of(events.CallFinished):
        ended.setdefault((event.target, event.request, event.attempt), event)
    effects = 0
    for record in trial.history.records:
        event = record.event
        if isinstance(event, events.Effect):
            effects += 1
        elif isinstance(event, events.CallStarted):
            end = ended.get((event.target, event.request, event.attempt))
            error = "" if end is None or end.ok else end.error or "failed"
            late = end is not None and end.error == "timed_out"
            site = Site(event.target, event.request, event.attempt, event.tool)
            yield Made(site, error, effects, end.duration_s if late and end is not None else None)


def fails_by_verdict(accept: Sequence[str] = GOOD, *, count_words: bool = False) -> Fails:
    """A trial fails if its outcome is none of these and not unknown. `count_words`: a verdict that rests on words
    counts like a certain one."""

    def fails(trial: Trial) -> bool:
        verdict = trial.verdict
        if str(verdict.outcome) in accept or verdict.outcome in UNJUDGED:
            return False
        return verdict.certain or count_words

    return fails


@contextmanager
def session(
    asked: Asked, *, jobs: int = 1, apart: bool = False, fails: Fails | None = None,
    standing: Sequence[Injection] = (),
) -> Iterator[Session]:  # fmt: skip
    """A context in which the trials of a search run. `asked`: the agent with its options, without faults. `apart`: no
    trial is run in this process. `standing`: injections that every trial has, such as a budget.

    Raises:
        ValueError, LookupError, TypeError: an argument is invalid; the message is one line.
        NoBaseline: the trial without faults is nothing to compare with, or fails by itself.
    """
    if asked.faults:
        raise ValueError("faults= is chosen by the search: name those that it may try in tries=")
    if asked.world != "virtual":
        raise ValueError(f"world is {asked.world!r}: a search runs in virtual time, where equal trials end alike")
    spec, wants_twin, _ = checked(asked)
    if spec.sequential:
        raise ValueError("a budget in dollars counts over a whole run, and the trials of a search have no order")
    ground = Ground.of(spec)
    with ExitStack() as stack:
        name_secrets(spec.options.secret_names or ())
        stack.enter_context(spec.prepared())
        limit_s = spec.limit_s
        alone = children(1, limit_s, at_once=False) if apart and not spec.options.isolate else executor(1)
        twin = None
        if wants_twin:
            twin, spec = compared(spec, alone)
        does = alone if jobs == 1 else children(jobs, limit_s, at_once=False) if apart else executor(jobs)
        yield Session(spec, twin, ground, does, fails or fails_by_verdict(), standing)
