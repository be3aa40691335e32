"""`lab.explore` and `lab.shrink`: the faults that apply at each call, and a cause of each failure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.clock import system
from chaoslab.base.jsonable import repr_one_line
from chaoslab.base.registry import list_plugins, suggest_name
from chaoslab.core.conversation import Conversation
from chaoslab.core.events import CallsOrdered, FaultScheduled
from chaoslab.core.fault import GROUP, get_trait, load_fault
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection
from chaoslab.execution._confirming import BY, CHANCES, FailureConfirmation, make_unconfirmed_result
from chaoslab.execution._confirming import fails_alike as is_alike
from chaoslab.execution.agents.functions import get_function_name
from chaoslab.execution.exploring import SearchSession, make_failure_test, open_agent_search
from chaoslab.execution.journal import SearchJournal
from chaoslab.execution.options import RunArguments, accept_fields_as_arguments, check_number
from chaoslab.execution.trial import NoBaseline, Trial
from chaoslab.search import causes, shrinking, strategies
from chaoslab.search.contrast import LOOKS, Contrast, SelfFailure
from chaoslab.search.map import GOES_ON, INTERRUPTED, Map, group_alike_failures
from chaoslab.search.roots import (
    describe_harm,
    group_by_root,
    has_unnoticeable_root,
    list_failure_places,
    make_failure_sort_key,
    make_root_key,
)
from chaoslab.search.variation import (
    FOR_GOOD,
    GOOD,
    Root,
    SearchKnowledge,
    Site,
    TriedVariation,
    Variation,
    get_injection_site,
    is_lasting_injection,
)

T = TypeVar("T")
TRIALS = 4000
"""The most trials of an exploration, if nothing else is said: all single faults, lasting ones and pairs by kind of ten
calls are fewer."""
SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
MAP_S = 5.0
"""The seconds of real time between two maps of an exploration that goes on, for whoever looks on."""
SEARCH_SHARE = 0.7
"""The share of the budget's seconds for finding failures in real time; the rest is for shrinking and showing them."""
CONFIRM_MAX = 5
"""The most failures of one root cause of which it is asked if they are noise, until one is found that can be shown."""
PATHS_MAX = 8
"""The most faults at one call that are tried on other chance, of those that led the trial another way."""
RERUNS = 500
"""The most trials in which one failure is shrunk."""
BASELINE = "calm"
"""The name, in place of a strategy's, of the trials that come before all others."""
HANGS = ("timeout", "timeout_before_effect")
"""The faults that leave a caller waiting; the first of them that applies to a target shows its timeouts."""


@dataclass(frozen=True)
class SearchProgress:
    """The progress of an exploration. `strategy`: the one at work, or what is done with its failures. `possible`: the
    trials known so far, which a strategy adds to as it learns. `again`: those that were run once more. `left_s`: for
    the rest of those known. `folder`: that of its run, if there are logs."""

    strategy: str
    tried: int
    possible: int
    failures: int
    left_s: float | None
    folder: Path | None = None
    again: int = 0

    def __str__(self) -> str:
        # Not for all: the next trials bring up calls that are not known yet.
        remaining = "" if self.left_s is None else f", about {self.left_s:.0f} s for the rest of these"
        return f"{self.strategy}: {self.progress_text}{remaining}"

    @property
    def progress_text(self) -> str:
        """The tried variations and the failures, in words."""
        plural = "" if self.failures == 1 else "s"
        again_text = f" and {self.again} again" if self.again else ""
        return f"{self.tried} of {self.possible} known{again_text} tried, {self.failures} distinct failure{plural}"


@dataclass
class FoundFailure:
    """A root cause, with a variation that shows it, shrunk as far as the budget went.

    `trial`: the trial of that variation. `others`: the trials that went wrong at the same place, by other faults.
    `reruns`: the trials that shrinking took; `minimal`: without any one of its parts it does not fail alike.
    """

    tried: TriedVariation
    trial: Trial
    others: tuple[TriedVariation, ...]
    reruns: int
    minimal: bool
    prompt: Any = None
    """The conversation, or the text, without what is not needed; None if all of it is."""
    contrast: Contrast | None = None
    """Its trials with its faults and without them, on other chance; None: it was not tried again."""
    shown_fails: bool = True
    """False: `trial` did not fail alike, though it has the same faults, dice and chance."""

    @property
    def outcome(self) -> str:
        return self.tried.outcome

    @property
    def variation(self) -> Variation:
        return self.tried.variation

    @property
    def cause(self) -> str:
        """The cause in one line, as in "exception at a 1 and at b 1: pay twice"."""
        return causes.describe_cause(self.tried)

    @property
    def root(self) -> Root:
        """The symptom, the operation and the line of the user's source at which it goes wrong."""
        return self.tried.root or Root("raises")

    @property
    def places(self) -> list[str]:
        """The lines of the user's source at which it goes wrong; the calls where no line is known."""
        return list_failure_places([self.tried, *self.others])

    @property
    def suffered(self) -> str:
        """The harm to a user of the agent, in a sentence."""
        return describe_harm(self.tried)

    @property
    def faults(self) -> tuple[Injection, ...]:
        """The injections that bring it about, for `lab.run(…, faults=)`."""
        return self.variation.injections

    def story(self) -> str:
        """The trial, line by line."""
        return self.trial.story()

    def test(self) -> str:
        """A test for pytest that is red until this is mended, as text. Raises ValueError: something that `lab.run` was
        given has no name that a test could import."""
        from chaoslab.execution._found_test import render_found_test

        return render_found_test(self.trial, self.variation, causes.describe_variation(self.variation))

    def __str__(self) -> str:
        other_count = len(self.others)
        suffix = f" (and {other_count} more fault{'s' if other_count > 1 else ''} there)" if other_count else ""
        if self.contrast is not None and self.contrast.trials > 1:
            suffix += f" ({self.contrast})"
        if not self.shown_fails:
            suffix += f"; the trial shown did not fail: {self.trial.outcome}"
        return f"{self.outcome}: {self.cause}{suffix}"

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True)
class ExploreArguments(RunArguments):
    """The arguments of `explore`."""

    trials: int = TRIALS
    seconds: float | None = None
    jobs: int = 1
    tries: Sequence[str] = ()
    by: Sequence[str] = ()
    accept: Sequence[str] = GOOD
    tell: Callable[[SearchProgress], object] | None = None
    resume: str | Path | None = None


@dataclass(frozen=True)
class Unconfirmed:
    """A failure of which no more was seen than its contrast tells: with its faults and without them."""

    tried: TriedVariation
    contrast: Contrast

    def __str__(self) -> str:
        # The figures first, since a terminal's line may end before a long cause does.
        return f"{self.contrast}: {self.tried.outcome}: {causes.describe_cause(self.tried)}"


@dataclass
class Exploration:
    """The findings of an exploration. `failures`: the distinct ones, worst first. `map`: each call with each fault.
    `trials`: all that were tried, as data. `ended`: why it ended before all was tried; empty if it did not. `seconds`:
    of real time."""

    failures: list[FoundFailure]
    map: Map
    trials: list[TriedVariation]
    ended: str
    seconds: float
    folder: Path | None
    asked: ExploreArguments | None
    """The arguments that it was made with."""
    left_out: Sequence[str] = ()
    """The requirements of a scenario that its trial without faults does not meet: no trial was asked for them."""
    by_itself: Sequence[SelfFailure] = ()
    """The failures that happen without faults too, which no fault is the cause of."""
    unconfirmed: Sequence[Unconfirmed] = ()
    """The failures of which nothing shows that their faults bring them about, and that never came without faults."""
    is_noisy: bool = False
    """Something that the lab does not control decides what becomes of its trials."""
    unnoticeable: Sequence[TriedVariation] = ()
    """The failures by faults that no agent could have noticed, unless these were asked for by name."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """By the cause of a failure, the command that runs it again, where there is one."""

    @property
    def untried(self) -> list[Any]:
        """The cells that were not tried, or of which nothing can be said, each with the reason."""
        return self.map.untried

    def __str__(self) -> str:
        from chaoslab.reports.explored import render_exploration

        return render_exploration(self)

    __repr__ = __str__

    def save(self, path: str | Path) -> None:
        """Writes the map as a page (.html) or as data (.json). Raises ValueError: the name ends otherwise. OSError: it
        cannot be written."""
        from chaoslab.reports.explored import save_exploration_map

        save_exploration_map(self, Path(path))


@accept_fields_as_arguments(ExploreArguments)
def explore(arguments: ExploreArguments) -> Exploration:
    """Tries each fault that applies at each call of an agent, at the calls that faults bring up, in pairs, in other
    orders of parallel calls and in plans by dice, in virtual time; then shrinks each distinct failure.

    The options are those of `run`, without `faults`. `tries`: the names of the only faults to try. `trials`, `seconds`:
    the budget, in trials and in real time. `by`: the strategies, of "singles", "lasting", "born", "pairs", "orders" and
    "random_plans"; all of them in virtual time, and "singles" alone in real time. `accept`: the outcomes that are no
    failure. `tell` is called with a `SearchProgress`. `resume`: the folder of an exploration that was broken off, whose
    trials are not run again.

    Raises:
        ValueError, LookupError, TypeError: an argument is invalid; the message is one line.
        NoBaseline: the trial without faults is nothing to compare with, or fails by itself.
    """
    _check_explore_arguments(arguments)
    fails = make_failure_test(arguments.accept)
    with open_agent_search(arguments, jobs=arguments.jobs, fails=fails) as trials:
        return run_exploration(trials, arguments)


def _check_explore_arguments(arguments: ExploreArguments) -> None:
    check_number("trials", arguments.trials, whole=True)
    check_number("jobs", arguments.jobs, whole=True)
    if arguments.seconds is not None:
        check_number("seconds", arguments.seconds)
    if arguments.wishes > 1 and "event_twice" in arguments.tries:
        raise ValueError("tries has event_twice, whose trials share a twin that is asked once: leave wishes out")
    known_by_name = (
        ("tries", arguments.tries, list_plugins(GROUP)),
        ("by", arguments.by, strategies.ORDER),
        ("accept", arguments.accept, [*map(str, Outcome)]),
    )
    for name, names_given, allowed in known_by_name:
        for name_given in [names_given] if isinstance(names_given, str) else names_given:
            if name_given not in allowed:
                raise LookupError(f"{name} has {repr_one_line(name_given)}: {suggest_name(str(name_given), allowed)}")


def split_batches(items: Iterable[T], batch_max: int) -> Iterator[list[T]]:
    """The things in lists of at most so many."""
    remaining = [*items]
    while remaining:
        yield remaining[:batch_max]
        remaining = remaining[batch_max:]


class _Ended(Exception):
    """The budget is spent; the message says which."""


class _Explorer:
    """An exploration under way."""

    def __init__(self, trials: SearchSession, arguments: ExploreArguments, journal: SearchJournal | None) -> None:
        self.trials, self._asked, self._journal = trials, arguments, journal
        self._began_s, self._spent = system.monotonic(), 0
        """The latter: the trials of strategies that were run."""
        self._phase, self._again = "", 0
        """The strategy at work, or what is done with its failures; and the trials that were run once more."""
        recalled = journal.recalled if journal else []
        self.recalled = {tried.variation.key: tried for tried in recalled if tried.by != BY}
        # By their number too: reruns of one variation differ by their chance alone.
        self._recalled_reruns = defaultdict[tuple[str, int], list[TriedVariation]](list)
        for tried in recalled:
            if tried.by == BY:
                self._recalled_reruns[tried.variation.key, tried.chance].append(tried)
        calm, earlier = self._find_baseline()
        self.calm = calm
        probes, self.others = trials.find_applicable_probes(
            [arguments.tries] if isinstance(arguments.tries, str) else arguments.tries
        )
        self.known = SearchKnowledge(calm, probes, seed=arguments.seed, patience_s=arguments.timeout_s)
        self._by = arguments.by or (("singles",) if arguments.world != "virtual" else strategies.ORDER)
        if arguments.world != "virtual":
            # In real time each delay is waited for: twice the timeout is on its other side, and enough.
            self.known.longest_s = 2 * arguments.timeout_s
        else:
            self._probe_timeouts()
        self.possible = 1
        self._drawn_s = self._began_s
        self._failure_kinds: set[str] = set()
        """The ways to fail so far."""
        self.contrasts: dict[str, Contrast] = {}
        """The contrast of each failure that was told from noise, by the key of its variation."""
        self._causes: list[TriedVariation] = []
        self.unconfirmed: dict[str, Unconfirmed] = {}
        """By the key of their variation."""
        self.confirmation = FailureConfirmation(trials, calm, self._rerun_trials, earlier)

    def _find_baseline(self) -> tuple[TriedVariation, list[TriedVariation]]:
        """The trial without faults that is varied, and those that were run to find it: of an agent that fails by itself
        now and then, the first that does not. Raises NoBaseline: all of them fail."""
        (calm,) = self._run_variations([Variation()], BASELINE)
        if not calm.failed:
            return calm, []
        # On other chance where it draws; else the same once more, which something outside of the lab may decide.
        numbers = [self.trials.number + (n if calm.drew else 0) for n in range(1, LOOKS[0])]
        attempts = [calm, *self._rerun_trials([Variation()] * len(numbers), numbers)]
        if (passed := next((tried for tried in attempts if not tried.failed), None)) is None:
            raise NoBaseline(
                f"the trial without faults fails by itself, in {len(attempts)} of {len(attempts)}: {calm.why}"
            )
        self.trials.number = passed.chance
        return replace(passed, by=BASELINE), attempts

    def _probe_timeouts(self) -> None:
        """Has each call of the trial without faults hang once, unless what is asked for begins with that: a delay is
        tried on both sides of the time after which its caller gives up, so that must be known before."""
        fault_names = {probe.fault for probes in self.known.probes.values() for probe in probes}
        if "singles" in self._by and not fault_names.isdisjoint(HANGS):
            return
        hangs, _ = self.trials.find_applicable_probes(HANGS)
        delayed_targets = {
            target
            for target, probes in self.known.probes.items()
            if any(get_trait(load_fault(p.fault), "dose") for p in probes)
        }
        sites = [site for site in self.calm.attempt_sites if site.target in delayed_targets and hangs.get(site.target)]
        for tried in self._run_variations(
            [Variation((hangs[site.target][0].make_injection(site),)) for site in sites], BASELINE
        ):
            self.known.learn_timeouts(tried)

    def run_all_strategies(self) -> None:
        """Goes through all strategies. Raises _Ended: the budget is spent."""
        for name in strategies.ORDER:
            if name not in self._by:
                continue
            for batch in strategies.load_strategy(name)(self.known):
                untried = {
                    variation.key: variation
                    for variation in batch
                    if self.known.find_trial(variation) is None and not variation.kills_agent_twice
                }
                self.possible += len(untried)
                # processes are handed trials ahead, and in real time each takes a second of the budget
                batch_max = len(untried) if self._asked.world == "virtual" else self._asked.jobs
                for chunk in split_batches(untried.values(), batch_max):
                    self._run_batch(chunk, name)

            if name == "singles":
                self._retry_survived_on_other_chance()

    def _run_batch(self, variations: Sequence[Variation], name: str) -> None:
        """Tries these. Raises _Ended: the budget is spent."""
        failed: list[TriedVariation] = []
        self._phase = name
        ended = None
        try:
            for tried in self._run_variations([*variations], name):
                self.known.add_trial(tried)
                failed += [tried] if tried.failed else []
                self._failure_kinds.update([tried.kind] if tried.failed else [])
                self.save_map()
                self.report_progress()
        except _Ended as error:  # what was found is told from noise all the same, but not after Ctrl-C
            ended = error
        for tried in failed:
            self._confirm_failure(tried)
        if ended is not None:
            raise ended

    def _retry_survived_on_other_chance(self) -> None:
        """Tries faults that were survived alone on other chance too, if the agent draws: up to `PATHS_MAX` at each
        call that led the trial another way."""
        self._phase = "singles on other chance"
        by_path: dict[Site, dict[str, TriedVariation]] = defaultdict(dict)
        for tried, injection in self.known.list_single_fault_trials():
            if self.confirmation.is_nondeterministic(tried) and not tried.failed and not tried.is_inconclusive:
                by_path[get_injection_site(injection)].setdefault(tried.path_digest, tried)
        for survived in [tried for at_site in by_path.values() for tried in [*at_site.values()][:PATHS_MAX]]:
            numbers = range(survived.chance + 1, survived.chance + CHANCES)
            if self._spent + len(numbers) > self._asked.trials:
                return
            reruns = self._rerun_trials([survived.variation] * len(numbers), numbers)
            self._spent += len(reruns)
            if (failed := next((rerun for rerun in reruns if rerun.failed), None)) is not None:
                self.known.add_trial(replace(failed, by=survived.by))
                self._confirm_failure(self.known.tried[failed.variation.key])

    def _run_variations(self, variations: list[Variation], by: str) -> Iterator[TriedVariation]:
        """The results of these, in order; those that an earlier exploration tried are not run again."""
        todo = [candidate for candidate in variations if candidate.key not in self.recalled]
        ran = self.trials.assess_variations(todo, by)
        try:
            for variation in variations:
                if (recalled := self.recalled.get(variation.key)) is not None:
                    yield recalled
                    continue
                if by != BASELINE:  # without which nothing can be said
                    if self._spent >= self._asked.trials:
                        raise _Ended(f"the budget of {self._asked.trials} trials was spent")
                    # In real time a part of the budget is kept for shrinking and showing what was found.
                    if self.is_time_spent(SEARCH_SHARE if self._asked.world != "virtual" else 1.0):
                        raise _Ended(f"the budget of {self._asked.seconds:g} s was spent")
                self._spent += 1
                tried, trial = next(ran)
                if self._journal is not None:
                    self._journal.add_trial(tried, trial)
                yield tried
        finally:
            # Else workers would go on with trials that they were handed ahead, which nobody takes.
            ran.close()

    def is_time_spent(self, share: float = 1.0) -> bool:
        """True if this share of the budget's seconds is over."""
        budget_s = self._asked.seconds
        return budget_s is not None and system.monotonic() - self._began_s >= share * budget_s

    def _confirm_failure(self, tried: TriedVariation) -> Contrast | None:
        """Tries a failure again, and returns its contrast. One that its faults do not bring about counts as survived,
        or as unknown; one that holds a cause that is known already shows nothing new, and is not tried."""
        # A known cause is part of it, so that it fails too shows nothing new.
        if any(
            cause.kind == tried.kind and cause.variation.part_texts < tried.variation.part_texts
            for cause in self._causes
        ):
            return None
        fails_by_itself = any(cause.failed and cause.root == tried.root for cause in self.confirmation.calm)
        if not fails_by_itself and any(cause.root == tried.root for cause in self._causes):
            return None  # one way to a root cause is enough, and the one that is shown is tried again at the end
        contrast, reruns = self.confirmation.measure_contrast(tried)
        if contrast.holds or not contrast.trials:
            self.contrasts[tried.variation.key] = contrast
            self.unconfirmed.pop(tried.variation.key, None)
            self._causes += [tried] if contrast.holds else []
            return contrast
        # One that fails without faults too is told as such (`FailureConfirmation.baseline_failures`).
        if not contrast.calm_failed:
            self.unconfirmed[tried.variation.key] = Unconfirmed(tried, contrast)
        self.known.add_trial(make_unconfirmed_result(tried, reruns, contrast))
        return contrast

    def confirm_failure_group(self, group: list[TriedVariation]) -> list[TriedVariation]:
        """The failures of one root cause, the best of those first that are told from noise; none if none is."""
        contrast = None
        for candidate in group[:CONFIRM_MAX]:
            contrast = self.contrasts.get(candidate.variation.key)
            # One more trial decided before it was known that there is noise.
            if contrast is None or (contrast.trials == 1 and self.confirmation.noisy):
                self.contrasts.pop(candidate.variation.key, None)
                self._causes, causes_ = [], self._causes  # even if another way to it is known
                contrast = self._confirm_failure(candidate)
                self._causes = [*causes_, *self._causes]
            if candidate.variation.key in self.contrasts:
                return [candidate, *(member for member in group if member is not candidate)]
        for member in group[CONFIRM_MAX:]:  # no more is known of the others at the same place
            assert contrast is not None
            self.known.add_trial(make_unconfirmed_result(member, (), contrast))
        return []

    def _rerun_trials(self, variations: Sequence[Variation], numbers: Sequence[int]) -> list[TriedVariation]:
        """These trials; none if the time is over. Those of an earlier exploration are not run again."""
        results: list[TriedVariation | None] = []
        for variation, number in zip(variations, numbers, strict=True):
            # In the order in which they were run.
            recalled = self._recalled_reruns[variation.key, number]
            results.append(recalled.pop(0) if recalled else None)
        todo = [n for n, result in enumerate(results) if result is None]
        if todo and self.is_time_spent():
            return []
        ran = self.trials.assess_variations([variations[n] for n in todo], BY, numbers=[numbers[n] for n in todo])
        with closing(ran):
            for n, (tried, trial) in zip(todo, ran, strict=True):
                results[n] = tried
                self._again += 1
                self.report_progress()
                if self._journal is not None:
                    self._journal.add_trial(tried, trial)
        return [result for result in results if result is not None]

    def make_exploration(self, failures: Sequence[FoundFailure], ended: str) -> Exploration:
        """The findings so far."""
        map_ = Map(self.known, self.others, "" if ended == GOES_ON else ended, folds=not self._asked.tries)
        folder = self._journal.folder if self._journal is not None else None
        took_s = system.monotonic() - self._began_s
        exploration = Exploration(
            [*failures], map_, list(self.known.tried.values()), ended, took_s, folder, self._asked
        )
        exploration.by_itself, exploration.unconfirmed = (
            self.confirmation.baseline_failures,
            [*self.unconfirmed.values()],
        )
        return exploration

    def save_map(self, exploration: Exploration | None = None) -> None:
        """Leaves the map beside the log: that of the findings, or now and then that so far."""
        folder = self._journal.folder if self._journal is not None else None
        if folder is None or (exploration is None and system.monotonic() - self._drawn_s < MAP_S):
            return
        from chaoslab.reports.explored import MAP

        self._drawn_s = system.monotonic()
        with suppress(ModuleNotFoundError, OSError):  # Jinja, which only pages need; a page that fails ends nothing
            (exploration or self.make_exploration([], GOES_ON)).save(folder / MAP)

    @property
    def remaining(self) -> int:
        """The known trials that the budget allows and that were not tried."""
        return max(0, min(self.possible, self._asked.trials) - len(self.known.tried))

    def report_progress(self, phase: str = "") -> None:
        """Tells the progress to whoever asked for it. `phase`: what begins, if something does."""
        self._phase = phase or self._phase
        if self._asked.tell is None or not self._phase:
            return
        tried_count = len(self.known.tried)
        took_s = system.monotonic() - self._began_s
        left_s = took_s / (tried_count + self._again) * self.remaining if tried_count and self.remaining else None
        if left_s is not None and self._asked.seconds is not None:
            left_s = min(left_s, max(self._asked.seconds - took_s, 0.0))
        folder = self._journal.folder if self._journal is not None else None
        failures = len(self._failure_kinds)
        self._asked.tell(
            SearchProgress(self._phase, tried_count, self.possible, failures, left_s, folder, again=self._again)
        )


def run_exploration(
    trials: SearchSession, arguments: ExploreArguments, command: Callable[[FoundFailure], str] = lambda _: ""
) -> Exploration:
    """The exploration of a session. `command`: the one that runs a failure again. Raises ValueError, LookupError,
    TypeError, NoBaseline: as `explore`."""
    _check_explore_arguments(arguments)
    with ExitStack() as stack:
        journal = None
        if arguments.logs is not None or arguments.resume is not None:
            journal = stack.enter_context(SearchJournal(trials.subject, arguments.logs, arguments.resume))
        # Ready for all trials: to look for the functions again takes as long as a trial.
        stack.enter_context(trials.keep_work_open())
        explorer = _Explorer(trials, arguments, journal)
        try:
            exploration = _explore_and_shrink(explorer, arguments)
            exploration.commands = {entry.cause: command(entry) for entry in exploration.failures}
            explorer.save_map(exploration)
        except KeyboardInterrupt:
            ended = f"{INTERRUPTED}, {explorer.remaining} of the known trials left"
            explorer.save_map(explorer.make_exploration([], ended))
            raise
        return exploration


def _explore_and_shrink(explorer: _Explorer, arguments: ExploreArguments) -> Exploration:
    """Goes through all strategies as far as the budget goes, and shrinks what fails."""
    ended = ""
    try:
        explorer.run_all_strategies()
    except _Ended as error:
        ended = str(error)
    failures, unnoticeable = _confirm_and_show_failures(explorer, arguments)
    if not explorer.confirmation.noisy and not all(failure.shown_fails for failure in failures):
        # An equal trial ended otherwise: one more trial was not enough to tell these from noise.
        explorer.confirmation.noisy = True
        failures, unnoticeable = _confirm_and_show_failures(explorer, arguments)
    exploration = explorer.make_exploration(failures, ended)
    exploration.unnoticeable, exploration.is_noisy = unnoticeable, explorer.confirmation.noisy
    return exploration


def _confirm_and_show_failures(
    explorer: _Explorer, arguments: ExploreArguments
) -> tuple[list[FoundFailure], list[TriedVariation]]:
    """The root causes that are told from noise, each shrunk and with its trial, and the failures that no agent could
    have noticed."""
    trials = explorer.trials
    explorer.report_progress("confirming the failures")
    groups = group_by_root(group_alike_failures(list(explorer.known.tried.values())))
    groups = [confirmed for group in groups if (confirmed := explorer.confirm_failure_group(group))]
    unnoticeable = [entry for group in groups if is_unnoticeable_to_agent(group[0], arguments) for entry in group]
    noticeable = [group for group in groups if not is_unnoticeable_to_agent(group[0], arguments)]
    shrunk = merge_by_root_cause(
        _shrink_failure_group(explorer, group, f"shrinking failure {n} of {len(noticeable)}")
        for n, group in enumerate(noticeable, 1)
    )
    reruns = trials.run_variations(
        [entry.tried.variation for entry in shrunk], numbers=[entry.tried.chance for entry in shrunk]
    )
    failures = []
    for entry, (_, trial) in zip(shrunk, reruns, strict=True):  # their stories, which were not kept
        shown_result = trials.assess_trial(entry.tried.variation, trial, BY)
        failures.append(replace(entry.make_found_failure(trial), shown_fails=is_alike(shown_result, entry.tried)))
    return failures, unnoticeable


class Shrunk(NamedTuple):
    """The smallest trial that failed like others; the fields are those of `FoundFailure`."""

    tried: TriedVariation
    reruns: int
    minimal: bool
    others: tuple[TriedVariation, ...] = ()
    contrast: Contrast | None = None

    def make_found_failure(self, trial: Trial) -> FoundFailure:
        return FoundFailure(self.tried, trial, self.others, self.reruns, self.minimal, contrast=self.contrast)


def merge_by_root_cause(shrunk: Iterable[Shrunk]) -> list[Shrunk]:
    """Those with a root cause of their own, worst first: plans may shrink to one."""
    by_root: dict[Root, Shrunk] = {}
    for entry in shrunk:
        assert entry.tried.root is not None  # it failed
        root = make_root_key(entry.tried.root)
        earlier = by_root.get(root)
        by_root[root] = (
            entry if earlier is None else earlier._replace(others=(*earlier.others, entry.tried, *entry.others))
        )
    return sorted(by_root.values(), key=lambda entry: make_failure_sort_key(entry.tried))


def is_unnoticeable_to_agent(tried: TriedVariation, arguments: ExploreArguments) -> bool:
    """True of a failure that no agent could have noticed, unless its faults were asked for."""
    return has_unnoticeable_root(tried) and not arguments.tries


def _shrink_failure_group(explorer: _Explorer, group: Sequence[TriedVariation], phase: str) -> Shrunk:
    """The smallest of trials that failed alike at the same calls, shrunk as far as the smaller one is a cause too.
    `phase`: the words for it in the progress."""
    explorer.report_progress(phase)
    smallest, *rest = group
    tried_so_far, confirmation = explorer.known, explorer.confirmation
    contrast = explorer.contrasts.get(smallest.variation.key)
    moments = next((tried.moments for tried in tried_so_far.tried.values() if tried.variation.order == ()), ())
    fails = LikenessTest(explorer.trials, smallest, confirmation, tried_so_far, late=explorer.is_time_spent)
    result = _shrink_confirmed_failure(fails, smallest, moments, confirmation, contrast)
    return result._replace(others=tuple(rest))


def _shrink_confirmed_failure(
    fails: LikenessTest,
    failing: TriedVariation,
    moments: Sequence[Sequence[str]],
    confirmation: FailureConfirmation,
    contrast: Contrast | None,
) -> Shrunk:
    """The smallest trial that fails alike and is told from noise as the given one was, with its contrast."""
    result = find_smallest_variation(fails, failing, moments)
    if result.tried.variation.key != failing.variation.key:
        # Shrinking looked for equal failures, which chance may have made.
        smaller, _ = confirmation.measure_contrast(result.tried)
        if smaller.trials and not smaller.holds:
            result = Shrunk(failing, result.reruns, minimal=False)
        else:
            contrast = smaller if smaller.trials else contrast
    return result._replace(contrast=contrast if contrast is not None and contrast.trials else None)


class LikenessTest:
    """Tells of a variation if it fails like a given one, by a trial of it; where the agent draws, by several on other
    chance, of which half as many must fail. `reruns`: the trials that this took. After RERUNS of them, or when
    it is late, every other variation counts as one that does not, so that shrinking ends."""

    def __init__(
        self,
        trials: SearchSession,
        failing: TriedVariation,
        confirmation: FailureConfirmation,
        tried_so_far: SearchKnowledge | None = None,
        late: Callable[[], bool] = lambda: False,
    ) -> None:
        self._trials, self._failing, self.reruns = trials, failing, 0
        self._late, self.complete = late, True
        self.cache = {**({} if tried_so_far is None else tried_so_far.tried), failing.variation.key: failing}
        numbers = range(failing.chance, failing.chance + LOOKS[0]) if confirmation.is_nondeterministic(failing) else ()
        self._other_numbers = (
            [*numbers][1:] if confirmation.calm_drew or failing.drew else [failing.chance] * len(numbers[1:])
        )
        self._told: dict[str, bool] = {}
        self._least = 1
        if self._other_numbers:
            # Half of them, rounded up.
            self._least = max(1, -(-self._count_alike_failures(failing.variation, LOOKS[0]) // 2))
            self._told[failing.variation.key] = True

    def __call__(self, variation: Variation) -> bool:
        if variation.key in self._told:
            return self._told[variation.key]
        if variation.key not in self.cache and (self.reruns >= RERUNS or self._late()):
            self.complete = False
            return False
        self._told[variation.key] = self._count_alike_failures(variation, self._least) >= self._least
        return self._told[variation.key]

    def _count_alike_failures(self, variation: Variation, count_max: int) -> int:
        """The trials of the variation that fail alike, counted up to `count_max`. The first of them is kept in the
        cache."""
        count, failing_trial = 0, None
        numbers = [self._failing.chance, *self._other_numbers]
        for n, number in enumerate(numbers):
            # No more trials than decide it: enough of them failed alike, or too few are left.
            if count >= count_max or count + len(numbers) - n < self._least:
                break
            tried = self.cache.get(variation.key) if not n else None
            if tried is None or tried.chance != number:
                self.reruns += 1
                ((tried, _),) = self._trials.assess_variations([variation], "shrink", numbers=[number])
            if is_alike(tried, self._failing):
                count, failing_trial = count + 1, failing_trial or tried
            self.cache.setdefault(variation.key, tried)
        if failing_trial is not None:
            self.cache[variation.key] = failing_trial
        return count


def find_smallest_variation(fails: LikenessTest, failing: TriedVariation, moments: Sequence[Sequence[str]]) -> Shrunk:
    """The smallest trial that fails alike. `moments`: the calls of each moment, in the order of asking."""
    smallest = _run_search_generator(shrinking.shrink_by_all_passes(failing.variation, moments), fails)
    # Not minimal if time ran out: then a variation that was never tried counted as one that does not fail.
    minimal = (
        not any(fails(variation) for variation in shrinking.iterate_without_each_part(smallest)) and fails.complete
    )
    return Shrunk(fails.cache[smallest.key], fails.reruns, minimal)


def _run_search_generator(search: Generator[Variation, bool, T], holds: Callable[[Variation], bool]) -> T:
    """The result of a search whose questions are answered by `holds`."""
    try:
        variation = next(search)
        while True:
            variation = search.send(holds(variation))
    except StopIteration as ended:
        result: T = ended.value
        return result


def shrink(trial: Trial, *, accept: Sequence[str] = GOOD) -> FoundFailure:
    """Shrinks a trial of `run` or `run_many` that failed to a cause that fails alike: fewer faults, plainer
    triggers and parameters, shorter delays, fewer swaps of parallel calls.

    Its faults are first stated as they hit, call by call, with the values that were drawn.

    Raises:
        ValueError: it is no failure, was not made by `run` or `run_many` in virtual time, or
            does not happen again with its faults stated one by one.
    """
    fails = make_failure_test(accept)
    if trial.asked is None:
        raise ValueError("this trial holds no agent to run again: give one of lab.run or lab.run_many")
    if not fails(trial):
        raise ValueError(f"the trial is {trial.verdict.outcome}, which is no failure")
    arguments = replace(trial.asked, faults=(), logs=None)
    with open_agent_search(arguments, fails=fails) as trials:
        failure = shrink_trial_in_session(trials, trial)
    failure = shorten_failing_prompt(
        failure, arguments.prompt, lambda prompt: open_agent_search(replace(arguments, prompt=prompt), fails=fails)
    )
    prompt, called = failure.prompt or arguments.prompt, {site.target for site in failure.tried.attempt_sites}
    needed = {name: _select_called_functions(getattr(arguments, name), called) for name in ("tools", "reads")}
    # NoBaseline: without a function that it never calls in this trial the agent may not even begin.
    with suppress(NoBaseline), open_agent_search(replace(arguments, prompt=prompt, **needed), fails=fails) as trials:
        # Trials are numbered from 1 in their keys, from 0 in a session.
        trials.number = trial.number - 1
        ((tried, smallest_trial),) = trials.assess_variations([failure.variation], "shrink")
        if tried.failed and tried.kind == failure.tried.kind:
            failure = replace(failure, tried=tried, trial=smallest_trial, reruns=failure.reruns + 1)
    return failure


def _select_called_functions(functions: Any, called: Collection[str]) -> Any:
    """The functions that were called."""
    if isinstance(functions, Mapping):
        return {name: function for name, function in functions.items() if name in called}
    return [function for function in functions or () if get_function_name(function) in called]


def shorten_failing_prompt(
    failure: FoundFailure, prompt: Any, open_prompt_session: Callable[[Any], AbstractContextManager[SearchSession]]
) -> FoundFailure:
    """The failure with fewer turns of its conversation, or fewer sentences of its prompt, as far as it fails alike.
    `open_prompt_session`: the session of a prompt, which has a trial without faults of its own."""
    # From the beginning again: what was needed before may not be any more.
    while True:
        for shorter in _iterate_shorter_prompts(prompt):
            try:
                with open_prompt_session(shorter) as trials:
                    trials.number = failure.trial.number - 1
                    ((tried, trial),) = trials.assess_variations([failure.variation], "shrink")
            except NoBaseline:
                continue
            failure.reruns += 1
            if tried.failed and tried.kind == failure.tried.kind:
                failure, prompt = replace(failure, tried=tried, trial=trial, prompt=shorter), shorter
                break
        else:
            return failure


def _iterate_shorter_prompts(prompt: Any) -> Iterator[Any]:
    """The conversation without each of its turns, or the text without each of its sentences."""
    if isinstance(prompt, Conversation):
        yield from prompt.iterate_without_turn()
    elif isinstance(prompt, str) and len(sentences := SENTENCES.split(prompt.strip())) > 1:
        for n in reversed(range(len(sentences))):
            yield " ".join(sentences[:n] + sentences[n + 1 :])


def shrink_trial_in_session(trials: SearchSession, trial: Trial) -> FoundFailure:
    """A cause of a trial of this session's agent, shrunk. Raises ValueError: it does not happen again."""
    trials.number = trial.number - 1
    with trials.keep_work_open():
        return _shrink_trial(trials, trial)


def _shrink_trial(trials: SearchSession, trial: Trial) -> FoundFailure:
    variation = Variation(tuple(build_hit_injections(trial)), _find_call_order(trial))
    expected = trials.assess_trial(variation, trial, "given")
    ((rerun, _),) = trials.assess_variations([variation], "given")
    if not rerun.failed or rerun.kind != expected.kind:
        raise ValueError(
            f"it does not happen again with its faults stated one by one: {rerun.outcome}, {rerun.why}, and it was "
            f"{expected.outcome}, {expected.why}"
        )
    # What is a swap shows only beside the order of asking, which a trial without swaps tells.
    ((asking_order, _),) = (
        trials.assess_variations([Variation(order=())], "orders") if variation.order else ((None, None),)
    )
    ((baseline, _),) = trials.assess_variations([Variation()], BASELINE)
    confirmation = FailureConfirmation(trials, baseline)
    contrast, _ = confirmation.measure_contrast(rerun)
    _require_cause(contrast, fails_by_itself=is_alike(baseline, rerun))
    fails = LikenessTest(trials, rerun, confirmation)
    moments = asking_order.moments if asking_order is not None else ()
    shrunk = _shrink_confirmed_failure(fails, rerun, moments, confirmation, contrast)
    ((_, smallest_trial),) = trials.run_variations([shrunk.tried.variation], numbers=[shrunk.tried.chance])
    shown_result = trials.assess_trial(shrunk.tried.variation, smallest_trial, "shrink")
    shown_fails = is_alike(shown_result, shrunk.tried)
    if not shown_fails and not confirmation.noisy:
        # An equal trial ended otherwise: one more trial was not enough to tell it from noise.
        confirmation.noisy = True
        contrast, _ = confirmation.measure_contrast(shrunk.tried)
        _require_cause(contrast)
        shrunk = shrunk._replace(contrast=contrast, minimal=False)
    return replace(shrunk.make_found_failure(smallest_trial), shown_fails=shown_fails)


def _require_cause(contrast: Contrast, *, fails_by_itself: bool = False) -> None:
    """Raises ValueError: the contrast does not show that the faults bring the failure about."""
    if contrast.holds:
        return
    if fails_by_itself or contrast.calm_failed:
        raise ValueError(f"it fails by itself, and no fault is the cause: {contrast}")
    raise ValueError(f"chance may be the cause as well as its faults: {contrast}")


def build_hit_injections(trial: Trial) -> Iterator[Injection]:
    """An injection for each hit of a fault in the trial, at its attempt and with the values that were drawn for it. One
    that goes on for good is one injection, from its first hit."""
    for_good = {injection.name for injection in trial.plan.injections if is_lasting_injection(injection)}
    lasting_seen: set[str] = set()
    for _, event in trial.history.find_events(FaultScheduled):
        if event.injection in lasting_seen:
            continue
        triggers: dict[str, Any] = {} if event.attempt == 1 else {"attempts": [event.attempt]}
        if event.injection in for_good:
            lasting_seen.add(event.injection)
            triggers["persistence"] = FOR_GOOD
        parameters: dict[str, Any] = {
            key: value for key, value in event.params.items() if isinstance(value, bool | int | float | str)
        }
        yield inject(event.fault, event.target, calls=[event.request], **triggers, **parameters)


def _find_call_order(trial: Trial) -> Any:
    moments = [tuple(event.calls) for _, event in trial.history.find_events(CallsOrdered)]
    return tuple(enumerate(moments, 1)) or None
