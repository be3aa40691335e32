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
from chaoslab.base.jsonable import shown
from chaoslab.base.registry import did_you_mean, names
from chaoslab.core.conversation import Conversation
from chaoslab.core.events import CallsOrdered, FaultScheduled
from chaoslab.core.fault import GROUP, load, trait
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection
from chaoslab.execution._confirming import BY, CHANCES, Confirmation, as_survived
from chaoslab.execution._confirming import alike as is_alike
from chaoslab.execution.agents.functions import name_of
from chaoslab.execution.exploring import SearchSession, fails_by_verdict, session
from chaoslab.execution.journal import SearchJournal
from chaoslab.execution.options import RunArguments, check_number, taking
from chaoslab.execution.trial import NoBaseline, Trial
from chaoslab.search import attribution, causes, shrinking, strategies
from chaoslab.search.attribution import Share
from chaoslab.search.contrast import LOOKS, Contrast, SelfFailure
from chaoslab.search.map import GOES_ON, Map, alike
from chaoslab.search.roots import by_root, in_words, is_unnoticed, key_of, places, rank
from chaoslab.search.variation import FOR_GOOD, GOOD, Known, Root, Site, Tried, Variation, lasting, site_of

T = TypeVar("T")
TRIALS = 4000
"""The most trials of an exploration, if nothing else is said: all single faults, lasting ones and pairs by kind of ten
calls are fewer."""
SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
MAP_S = 5.0
"""The seconds of real time between two maps of an exploration that goes on, for whoever looks on."""
SHARE = 0.7
"""The share of the budget's seconds for finding failures in real time; the rest is for shrinking and showing them."""
SHOWN_TRIES = 5
"""The most failures of one root cause of which it is asked if they are noise, until one is found that can be shown."""
WAYS = 8
"""The most faults at one call that are tried on other chance, of those that led the trial another way."""
RERUNS = 500
"""The most trials in which one failure is shrunk."""
CALM = "calm"
"""The name, in place of a strategy's, of the trials that come before all others."""
HANGS = ("timeout", "timeout_before_effect")
"""The faults that leave a caller waiting; the first of them that applies to a target shows its timeouts."""


@dataclass(frozen=True)
class SearchProgress:
    """The progress of an exploration. `strategy`: the one at work. `possible`: the trials known so far. `folder`: that
    of its run, if there are logs."""

    strategy: str
    tried: int
    possible: int
    failures: int
    left_s: float | None
    folder: Path | None = None

    def __str__(self) -> str:
        left = "" if self.left_s is None else f", about {self.left_s:.0f} s left"
        return f"{self.strategy}: {self.tried} of {self.possible} tried, {self.failures} distinct failures{left}"


@dataclass
class FoundFailure:
    """A root cause, with a variation that shows it, shrunk as far as the budget went.

    `trial`: the trial of that variation. `others`: the trials that went wrong at the same place, by other faults.
    `reruns`: the trials that shrinking took; `minimal`: without any one of its parts it does not fail alike. `shares`,
    `by_call`: of a trial that was shrunk, how much each of its faults, and each call that they hit, had to do with it.
    """

    tried: Tried
    trial: Trial
    others: tuple[Tried, ...]
    reruns: int
    minimal: bool
    shares: Sequence[Share] = ()
    by_call: Sequence[Share] = ()
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
        return causes.cause_text(self.tried)

    @property
    def root(self) -> Root:
        """The symptom, the operation and the line of the user's source at which it goes wrong."""
        return self.tried.root or Root("raises")

    @property
    def places(self) -> list[str]:
        """The lines of the user's source at which it goes wrong; the calls where no line is known."""
        return places([self.tried, *self.others])

    @property
    def suffered(self) -> str:
        """The harm to a user of the agent, in a sentence."""
        return in_words(self.tried)

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
        from chaoslab.execution._found_test import text_of

        return text_of(self.trial, self.variation, causes.where(self.variation))

    def __str__(self) -> str:
        others = len(self.others)
        more = f" (and {others} more fault{'s' if others > 1 else ''} there)" if others else ""
        if self.contrast is not None and self.contrast.trials > 1:
            more += f" ({self.contrast})"
        if not self.shown_fails:
            more += f"; the trial shown did not fail: {self.trial.outcome}"
        return f"{self.outcome}: {self.cause}{more}"

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True)
class AskedExplore(RunArguments):
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

    tried: Tried
    contrast: Contrast

    def __str__(self) -> str:
        return f"{self.tried.outcome}: {causes.cause_text(self.tried)} ({self.contrast})"


@dataclass
class Exploration:
    """The findings of an exploration. `failures`: the distinct ones, worst first. `map`: each call with each fault.
    `trials`: all that were tried, as data. `ended`: why it ended before all was tried; empty if it did not. `seconds`:
    of real time."""

    failures: list[FoundFailure]
    map: Map
    trials: list[Tried]
    ended: str
    seconds: float
    folder: Path | None
    asked: AskedExplore | None
    """The arguments that it was made with."""
    left_out: Sequence[str] = ()
    """The requirements of a scenario that its trial without faults does not meet: no trial was asked for them."""
    by_itself: Sequence[SelfFailure] = ()
    """The failures that happen without faults too, which no fault is the cause of."""
    unconfirmed: Sequence[Unconfirmed] = ()
    """The failures that were seen once, and of which nothing shows that their faults bring them about."""
    unnoticeable: Sequence[Tried] = ()
    """The failures by faults that no agent could have noticed, unless these were asked for by name."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """By the cause of a failure, the command that runs it again, where there is one."""

    @property
    def untried(self) -> list[Any]:
        """The cells that were not tried, or of which nothing can be said, each with the reason."""
        return self.map.untried

    def __str__(self) -> str:
        from chaoslab.reports.explored import text

        return text(self)

    __repr__ = __str__

    def save(self, path: str | Path) -> None:
        """Writes the map as a page (.html) or as data (.json). Raises ValueError: the name ends otherwise. OSError: it
        cannot be written."""
        from chaoslab.reports.explored import save

        save(self, Path(path))


@taking(AskedExplore)
def explore(asked: AskedExplore) -> Exploration:
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
    _check(asked)
    fails = fails_by_verdict(asked.accept)
    with session(asked, jobs=asked.jobs, fails=fails) as trials:
        return searched(trials, asked)


def _check(asked: AskedExplore) -> None:
    check_number("trials", asked.trials, whole=True)
    check_number("jobs", asked.jobs, whole=True)
    if asked.seconds is not None:
        check_number("seconds", asked.seconds)
    known_by_name = (
        ("tries", asked.tries, names(GROUP)),
        ("by", asked.by, strategies.ORDER),
        ("accept", asked.accept, [*map(str, Outcome)]),
    )
    for name, given, known in known_by_name:
        for each in [given] if isinstance(given, str) else given:
            if each not in known:
                raise LookupError(f"{name} has {shown(each)}: {did_you_mean(str(each), known)}")


def batched(given: Iterable[T], most: int) -> Iterator[list[T]]:
    """The things in lists of at most so many."""
    left = [*given]
    while left:
        yield left[:most]
        left = left[most:]


class _Ended(Exception):
    """The budget is spent; the message says which."""


class _Explorer:
    """An exploration under way."""

    def __init__(self, trials: SearchSession, asked: AskedExplore, journal: SearchJournal | None) -> None:
        self.trials, self._asked, self._journal = trials, asked, journal
        self._began_s, self._spent = system.monotonic(), 0
        """The latter: the trials of strategies that were run."""
        recalled = journal.recalled if journal else []
        self.recalled = {each.variation.key: each for each in recalled if each.by != BY}
        self._recalled_again = defaultdict[tuple[str, int], list[Tried]](list)
        for each in recalled:
            if each.by == BY:
                self._recalled_again[each.variation.key, each.chance].append(each)
        calm, before = self._calm()
        self.calm = calm
        probes, self.others = trials.probes([asked.tries] if isinstance(asked.tries, str) else asked.tries)
        self.known = Known(calm, probes, seed=asked.seed, patience_s=asked.timeout_s)
        self._by = asked.by or (("singles",) if asked.world != "virtual" else strategies.ORDER)
        if asked.world != "virtual":
            self.known.longest_s = 2 * asked.timeout_s
        else:
            self._learn_timeouts()
        self.possible = 1
        self._drawn_s = self._began_s
        self._kinds: set[str] = set()
        """The ways to fail so far."""
        self.contrasts: dict[str, Contrast] = {}
        """The contrast of each failure that was told from noise, by the key of its variation."""
        self._causes: list[Tried] = []
        self.unconfirmed: list[Unconfirmed] = []
        self.confirmation = Confirmation(trials, calm, self._tried_again, before)

    def _calm(self) -> tuple[Tried, list[Tried]]:
        """The trial without faults that is varied, and those that were run to find it: of an agent that fails by itself
        now and then, the first that does not. Raises NoBaseline: all of them fail."""
        (calm,) = self._run([Variation()], CALM)
        if not calm.failed:
            return calm, []
        numbers = [self.trials.number + (n if calm.drew else 0) for n in range(1, LOOKS[0])]
        before = [calm, *self._tried_again([Variation()] * len(numbers), numbers)]
        if (well := next((each for each in before if not each.failed), None)) is None:
            raise NoBaseline(f"the trial without faults fails by itself, in {len(before)} of {len(before)}: {calm.why}")
        self.trials.number = well.chance
        return replace(well, by=CALM), before

    def _learn_timeouts(self) -> None:
        """Has each call of the trial without faults hang once, unless what is asked for begins with that: a delay is
        tried on both sides of the time after which its caller gives up, so that must be known before."""
        asked = {each.fault for probes in self.known.probes.values() for each in probes}
        if "singles" in self._by and not asked.isdisjoint(HANGS):
            return
        hangs, _ = self.trials.probes(HANGS)
        late = {
            target for target, probes in self.known.probes.items() if any(trait(load(p.fault), "dose") for p in probes)
        }
        sites = [site for site in self.calm.sites if site.target in late and hangs.get(site.target)]
        for tried in self._run([Variation((hangs[site.target][0].at(site),)) for site in sites], CALM):
            self.known.learn_timeouts(tried)

    def all_batches(self) -> None:
        """Goes through all strategies. Raises _Ended: the budget is spent."""
        for name in strategies.ORDER:
            if name not in self._by:
                continue
            for batch in strategies.load(name)(self.known):
                new = {each.key: each for each in batch if self.known.of(each) is None and not each.dies_often}
                self.possible += len(new)
                # processes are handed trials ahead, and in real time each takes a second of the budget
                most = len(new) if self._asked.world == "virtual" else self._asked.jobs
                for some in batched(new.values(), most):
                    self._batch(some, name)

            if name == "singles":
                self._on_other_chance()

    def _batch(self, new: Sequence[Variation], name: str) -> None:
        """Tries these. Raises _Ended: the budget is spent."""
        failed: list[Tried] = []
        try:
            for tried in self._run([*new], name):
                self.known.add(tried)
                failed += [tried] if tried.failed else []
                self._kinds.update([tried.kind] if tried.failed else [])
                self.draw()
                self._tell(name)
        finally:  # what a batch found is told from noise whatever ended it
            for tried in failed:
                self._tell_from_noise(tried)

    def _on_other_chance(self) -> None:
        """Tries faults that were survived alone on other chance too, if the agent draws: up to `WAYS` at each call that
        led the trial another way."""
        ways: dict[Site, dict[str, Tried]] = defaultdict(dict)
        for tried, injection in self.known.singles():
            if self.confirmation.draws(tried) and not tried.failed and not tried.void:
                ways[site_of(injection)].setdefault(tried.path, tried)
        for survived in [tried for at_site in ways.values() for tried in [*at_site.values()][:WAYS]]:
            numbers = range(survived.chance + 1, survived.chance + CHANCES)
            if self._spent + len(numbers) > self._asked.trials:
                return
            again = self._tried_again([survived.variation] * len(numbers), numbers)
            self._spent += len(again)
            if (failed := next((each for each in again if each.failed), None)) is not None:
                self.known.add(replace(failed, by=survived.by))
                self._tell_from_noise(self.known.tried[failed.variation.key])

    def _run(self, variations: list[Variation], by: str) -> Iterator[Tried]:
        """The results of these, in order; those that an earlier exploration tried are not run again."""
        todo = [each for each in variations if each.key not in self.recalled]
        ran = self.trials.tried(todo, by)
        try:
            for variation in variations:
                if (known := self.recalled.get(variation.key)) is not None:
                    yield known
                    continue
                if by != CALM:  # without which nothing can be said
                    if self._spent >= self._asked.trials:
                        raise _Ended(f"the budget of {self._asked.trials} trials was spent")
                    # In real time a part of the budget is kept for shrinking and showing what was found.
                    if self.late(SHARE if self._asked.world != "virtual" else 1.0):
                        raise _Ended(f"the budget of {self._asked.seconds:g} s was spent")
                self._spent += 1
                tried, trial = next(ran)
                if self._journal is not None:
                    self._journal.add(tried, trial)
                yield tried
        finally:
            ran.close()

    def late(self, share: float = 1.0) -> bool:
        """True if this share of the budget's seconds is over."""
        most_s = self._asked.seconds
        return most_s is not None and system.monotonic() - self._began_s >= share * most_s

    def _tell_from_noise(self, tried: Tried) -> None:
        """Tries a failure again. One that its faults do not bring about counts as survived; one that holds a cause that
        is known already shows nothing new."""
        # A known cause is part of it, so that it fails too shows nothing new.
        if any(each.kind == tried.kind and each.variation.parts < tried.variation.parts for each in self._causes):
            return
        by_itself = any(each.failed and each.root == tried.root for each in self.confirmation.calm)
        if not by_itself and any(each.root == tried.root for each in self._causes):
            return  # one way to a root cause is enough, and the one that is shown is tried again at the end
        contrast, again = self.confirmation.contrast(tried)
        if contrast.holds or not contrast.trials:
            self.contrasts[tried.variation.key] = contrast
            self._causes += [tried] if contrast.holds else []
            return
        if not contrast.calm_failed:
            self.unconfirmed.append(Unconfirmed(tried, contrast))
        self.known.add(as_survived(tried, again))

    def confirmed(self, group: list[Tried]) -> list[Tried]:
        """The failures of one root cause, the best of those first that are told from noise; none if none is."""
        for each in group[:SHOWN_TRIES]:
            if each.variation.key not in self.contrasts:
                self._causes, causes_ = [], self._causes  # even if another way to it is known
                self._tell_from_noise(each)
                self._causes = [*causes_, *self._causes]
            if each.variation.key in self.contrasts:
                return [each, *(other for other in group if other is not each)]
        return []

    def _tried_again(self, variations: Sequence[Variation], numbers: Sequence[int]) -> list[Tried]:
        """These trials; none if the time is over. Those of an earlier exploration are not run again."""
        found: list[Tried | None] = []
        for variation, number in zip(variations, numbers, strict=True):
            known = self._recalled_again[variation.key, number]
            found.append(known.pop(0) if known else None)
        todo = [n for n, each in enumerate(found) if each is None]
        if todo and self.late():
            return []
        ran = self.trials.tried([variations[n] for n in todo], BY, numbers=[numbers[n] for n in todo])
        with closing(ran):
            for n, (tried, trial) in zip(todo, ran, strict=True):
                found[n] = tried
                if self._journal is not None:
                    self._journal.add(tried, trial)
        return [each for each in found if each is not None]

    def found(self, failures: Sequence[FoundFailure], ended: str) -> Exploration:
        """The findings so far."""
        map_ = Map(self.known, self.others, "" if ended == GOES_ON else ended, folds=not self._asked.tries)
        folder = self._journal.folder if self._journal is not None else None
        took_s = system.monotonic() - self._began_s
        made = Exploration([*failures], map_, list(self.known.tried.values()), ended, took_s, folder, self._asked)
        made.by_itself, made.unconfirmed = self.confirmation.by_itself, self.unconfirmed
        return made

    def draw(self, found: Exploration | None = None) -> None:
        """Leaves the map beside the log: that of the findings, or now and then that so far."""
        folder = self._journal.folder if self._journal is not None else None
        if folder is None or (found is None and system.monotonic() - self._drawn_s < MAP_S):
            return
        from chaoslab.reports.explored import MAP

        self._drawn_s = system.monotonic()
        with suppress(ModuleNotFoundError, OSError):  # Jinja, which only pages need; a page that fails ends nothing
            (found or self.found([], GOES_ON)).save(folder / MAP)

    def _tell(self, name: str) -> None:
        if self._asked.tell is None:
            return
        done = len(self.known.tried)
        took_s = system.monotonic() - self._began_s
        left = min(self.possible, self._asked.trials) - done
        left_s = took_s / done * left if done else None
        folder = self._journal.folder if self._journal is not None else None
        self._asked.tell(SearchProgress(name, done, self.possible, len(self._kinds), left_s, folder))


def searched(
    trials: SearchSession, asked: AskedExplore, command: Callable[[FoundFailure], str] = lambda _: ""
) -> Exploration:
    """The exploration of a session. `command`: the one that runs a failure again. Raises ValueError, LookupError,
    TypeError, NoBaseline: as `explore`."""
    _check(asked)
    with ExitStack() as stack:
        journal = None
        if asked.logs is not None or asked.resume is not None:
            journal = stack.enter_context(SearchJournal(trials.subject, asked.logs, asked.resume))
        explorer = _Explorer(trials, asked, journal)
        ended = ""
        try:
            explorer.all_batches()
        except _Ended as error:
            ended = str(error)
        known = explorer.known
        with trials.one_by_one():
            groups = by_root(alike(list(known.tried.values())))
            groups = [told for group in groups if (told := explorer.confirmed(group))]
            unnoticed = [each for group in groups if is_folded(group[0], asked) for each in group]
            shrunk = distinct(_shrunk(explorer, group) for group in groups if not is_folded(group[0], asked))
        again = trials.run([each.tried.variation for each in shrunk], numbers=[each.tried.chance for each in shrunk])
        failures = []
        for each, (_, trial) in zip(shrunk, again, strict=True):  # their stories, which were not kept
            shown = trials.read(each.tried.variation, trial, BY)
            failures.append(replace(each.failure(trial), shown_fails=is_alike(shown, each.tried)))
        found = explorer.found(failures, ended)
        found.unnoticeable = unnoticed
        found.commands = {each.cause: command(each) for each in found.failures}
        explorer.draw(found)
        return found


class Shrunk(NamedTuple):
    """The smallest trial that failed like others; the fields are those of `FoundFailure`."""

    tried: Tried
    reruns: int
    minimal: bool
    others: tuple[Tried, ...] = ()
    contrast: Contrast | None = None

    def failure(self, trial: Trial) -> FoundFailure:
        return FoundFailure(self.tried, trial, self.others, self.reruns, self.minimal, contrast=self.contrast)


def distinct(shrunk: Iterable[Shrunk]) -> list[Shrunk]:
    """Those with a root cause of their own, worst first: plans may shrink to one."""
    found: dict[Root, Shrunk] = {}
    for each in shrunk:
        assert each.tried.root is not None  # it failed
        root = key_of(each.tried.root)
        known = found.get(root)
        found[root] = each if known is None else known._replace(others=(*known.others, each.tried, *each.others))
    return sorted(found.values(), key=lambda each: rank(each.tried))


def is_folded(tried: Tried, asked: AskedExplore) -> bool:
    """True of a failure that no agent could have noticed, unless its faults were asked for."""
    return is_unnoticed(tried) and not asked.tries


def _shrunk(explorer: _Explorer, group: Sequence[Tried]) -> Shrunk:
    """The smallest of trials that failed alike at the same calls, shrunk as far as the smaller one is a cause too."""
    smallest, *others = group
    known, confirmation = explorer.known, explorer.confirmation
    contrast = explorer.contrasts.get(smallest.variation.key)
    asked = next((each.moments for each in known.tried.values() if each.variation.order == ()), ())
    fails = Alike(explorer.trials, smallest, confirmation, known, late=explorer.late)
    found = shrunk_to(fails, smallest, asked)
    if found.tried.variation.key != smallest.variation.key:
        smaller, _ = confirmation.contrast(found.tried)
        if smaller.trials and not smaller.holds:
            found = Shrunk(smallest, found.reruns, minimal=False)
        else:
            contrast = smaller if smaller.trials else contrast
    return found._replace(others=tuple(others), contrast=contrast if contrast is not None and contrast.trials else None)


class Alike:
    """Tells of a variation if it fails like a given one, by a trial of it; where the agent draws, by several on other
    chance, of which half as many must fail. `reruns`: the trials that this took. `bounded`: after RERUNS of them, or
    when it is late, every other variation counts as one that does not, so that shrinking ends."""

    def __init__(
        self, trials: SearchSession, failing: Tried, confirmation: Confirmation, known: Known | None = None,
        late: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._trials, self._failing, self.reruns, self.bounded = trials, failing, 0, True
        self._late, self.complete = late, True
        self.cache = {**({} if known is None else known.tried), failing.variation.key: failing}
        numbers = range(failing.chance, failing.chance + LOOKS[0]) if confirmation.draws(failing) else ()
        self._others = [*numbers][1:] if confirmation.calm_drew or failing.drew else [failing.chance] * len(numbers[1:])
        self._told: dict[str, bool] = {}
        self._least = 1
        if self._others:
            self._least = max(1, -(-self._count(failing.variation, LOOKS[0]) // 2))
            self._told[failing.variation.key] = True

    def __call__(self, variation: Variation) -> bool:
        if variation.key in self._told:
            return self._told[variation.key]
        if variation.key not in self.cache and self.bounded and (self.reruns >= RERUNS or self._late()):
            self.complete = False
            return False
        self._told[variation.key] = self._count(variation, self._least) >= self._least
        return self._told[variation.key]

    def _count(self, variation: Variation, most: int) -> int:
        """The trials of the variation that fail alike, counted up to `most`. The first of them is kept in the cache."""
        count, seen = 0, None
        numbers = [self._failing.chance, *self._others]
        for n, number in enumerate(numbers):
            if count >= most or count + len(numbers) - n < self._least:
                break
            tried = self.cache.get(variation.key) if not n else None
            if tried is None or tried.chance != number:
                self.reruns += 1
                ((tried, _),) = self._trials.tried([variation], "shrink", numbers=[number])
            if is_alike(tried, self._failing):
                count, seen = count + 1, seen or tried
            self.cache.setdefault(variation.key, tried)
        if seen is not None:
            self.cache[variation.key] = seen
        return count


def shrunk_to(fails: Alike, failing: Tried, moments: Sequence[Sequence[str]]) -> Shrunk:
    """The smallest trial that fails alike. `moments`: the calls of each moment, in the order of asking."""
    smallest = _driven(shrinking.passes(failing.variation, moments), fails)
    minimal = not any(fails(each) for each in shrinking.without_one(smallest)) and fails.complete
    return Shrunk(fails.cache[smallest.key], fails.reruns, minimal)


def _driven(search: Generator[Variation, bool, T], holds: Callable[[Variation], bool]) -> T:
    """The result of a search whose questions are answered by `holds`."""
    try:
        variation = next(search)
        while True:
            variation = search.send(holds(variation))
    except StopIteration as ended:
        found: T = ended.value
        return found


def shrink(trial: Trial, *, accept: Sequence[str] = GOOD) -> FoundFailure:
    """Shrinks a trial of `run` or `run_many` that failed to a cause that fails alike: fewer faults, plainer
    triggers and parameters, shorter delays, fewer swaps of parallel calls.

    Its faults are first stated as they hit, call by call, with the values that were drawn.

    Raises:
        ValueError: it is no failure, was not made by `run` or `run_many` in virtual time, or
            does not happen again with its faults stated one by one.
    """
    fails = fails_by_verdict(accept)
    if trial.asked is None:
        raise ValueError("this trial holds no agent to run again: give one of lab.run or lab.run_many")
    if not fails(trial):
        raise ValueError(f"the trial is {trial.verdict.outcome}, which is no failure")
    asked = replace(trial.asked, faults=(), logs=None)
    with session(asked, fails=fails) as trials:
        found = shrunk_in(trials, trial)
    found = asking_less(found, asked.prompt, lambda prompt: session(replace(asked, prompt=prompt), fails=fails))
    prompt, called = found.prompt or asked.prompt, {site.target for site in found.tried.sites}
    needed = {name: _needed(getattr(asked, name), called) for name in ("tools", "reads")}
    with suppress(NoBaseline), session(replace(asked, prompt=prompt, **needed), fails=fails) as trials:
        trials.number = trial.number - 1
        ((tried, own),) = trials.tried([found.variation], "shrink")
        if tried.failed and tried.kind == found.tried.kind:
            found = replace(found, tried=tried, trial=own, reruns=found.reruns + 1)
    return found


def _needed(given: Any, called: Collection[str]) -> Any:
    """The functions that were called."""
    if isinstance(given, Mapping):
        return {name: function for name, function in given.items() if name in called}
    return [function for function in given or () if name_of(function) in called]


def asking_less(
    failure: FoundFailure, prompt: Any, opened: Callable[[Any], AbstractContextManager[SearchSession]]
) -> FoundFailure:
    """The failure with fewer turns of its conversation, or fewer sentences of its prompt, as far as it fails alike.
    `opened`: the session of a prompt, which has a trial without faults of its own."""
    while True:
        for shorter in _shorter(prompt):
            try:
                with opened(shorter) as trials:
                    trials.number = failure.trial.number - 1
                    ((tried, trial),) = trials.tried([failure.variation], "shrink")
            except NoBaseline:
                continue
            failure.reruns += 1
            if tried.failed and tried.kind == failure.tried.kind:
                failure, prompt = replace(failure, tried=tried, trial=trial, prompt=shorter), shorter
                break
        else:
            return failure


def _shorter(prompt: Any) -> Iterator[Any]:
    """The conversation without each of its turns, or the text without each of its sentences."""
    if isinstance(prompt, Conversation):
        yield from prompt.shorter()
    elif isinstance(prompt, str) and len(parts := SENTENCES.split(prompt.strip())) > 1:
        for n in reversed(range(len(parts))):
            yield " ".join(parts[:n] + parts[n + 1 :])


def shrunk_in(trials: SearchSession, trial: Trial) -> FoundFailure:
    """A cause of a trial of this session's agent, shrunk. Raises ValueError: it does not happen again."""
    trials.number = trial.number - 1
    with trials.one_by_one():
        return _shrunk_in(trials, trial)


def _shrunk_in(trials: SearchSession, trial: Trial) -> FoundFailure:
    stated = Variation(tuple(hits(trial)), _order_of(trial))
    wanted = trials.read(stated, trial, "given")
    ((again, _),) = trials.tried([stated], "given")
    if not again.failed or again.kind != wanted.kind:
        raise ValueError(
            f"it does not happen again with its faults stated one by one: {again.outcome}, {again.why}, and it was "
            f"{wanted.outcome}, {wanted.why}"
        )
    ((asked, _),) = trials.tried([Variation(order=())], "orders") if stated.order else ((None, None),)
    ((calm, _),) = trials.tried([Variation()], CALM)
    confirmation = Confirmation(trials, calm)
    contrast, _ = confirmation.contrast(again)
    if not contrast.holds and (is_alike(calm, again) or contrast.calm_failed):
        raise ValueError(f"it fails by itself, and no fault is the cause: {contrast}")
    fails = Alike(trials, again, confirmation)
    shrunk = shrunk_to(fails, again, asked.moments if asked is not None else ())
    if shrunk.tried.variation.key != stated.key:
        contrast, _ = confirmation.contrast(shrunk.tried)
    ((_, own),) = trials.run([shrunk.tried.variation], numbers=[shrunk.tried.chance])
    fails.bounded = False  # a share may rest on no answer that was not looked for
    few = 0 < len(stated.injections) <= attribution.MOST
    ways = (attribution.over_injections, attribution.over_calls) if few else ()
    shares, by_call = [_driven(way(stated, seed=trial.seed), fails) for way in ways] or ([], [])
    found = replace(shrunk.failure(own), shares=shares, by_call=by_call, contrast=contrast)
    return replace(found, shown_fails=is_alike(trials.read(found.variation, own, "shrink"), shrunk.tried))


def hits(trial: Trial) -> Iterator[Injection]:
    """An injection for each hit of a fault in the trial, at its attempt and with the values that were drawn for it. One
    that goes on for good is one injection, from its first hit."""
    for_good = {each.name for each in trial.plan.injections if lasting(each)}
    begun: set[str] = set()
    for _, event in trial.history.of(FaultScheduled):
        if event.injection in begun:
            continue
        more: dict[str, Any] = {} if event.attempt == 1 else {"attempts": [event.attempt]}
        if event.injection in for_good:
            begun.add(event.injection)
            more["persistence"] = FOR_GOOD
        own: dict[str, Any] = {
            key: value for key, value in event.params.items() if isinstance(value, bool | int | float | str)
        }
        yield inject(event.fault, event.target, calls=[event.request], **more, **own)


def _order_of(trial: Trial) -> Any:
    moments = [tuple(event.calls) for _, event in trial.history.of(CallsOrdered)]
    return tuple(enumerate(moments, 1)) or None
