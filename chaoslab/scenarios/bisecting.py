"""`chaoslab bisect`: the commit at which a scenario became worse, by work trees and comparisons with the good one."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from chaoslab.scenarios.comparing import advance
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.revisions import SideWork, git, resolved, revision, root_of
from chaoslab.scenarios.sides import KeptTrials, Sides
from chaoslab.search.compared import Comparison
from chaoslab.search.pairs import FEW, WORSE, Side

Opened = Callable[[SideWork, str], AbstractContextManager[Sides]]
BATCH = 20
SKIP = "skip"


@dataclass(frozen=True)
class TriedCommit:
    """One commit that was tried. `verdict`: of the comparison, or "skip". `why`: of what was skipped."""

    commit: str
    subject: str
    verdict: str
    pairs: int = 0
    why: str = ""

    def __str__(self) -> str:
        after = self.why or f"{self.pairs} pairs"
        return f"{self.commit[:10]} {self.verdict} ({after}): {self.subject}"


@dataclass(frozen=True)
class Bisected:
    """`first`: the first worse commits: one, or several if commits between them were skipped; none if the bad one is
    not shown to be worse."""

    first: tuple[TriedCommit, ...]
    steps: tuple[TriedCommit, ...]


class _Base:
    """The good side, whose trials are run once and kept."""

    def __init__(self, side: Sides) -> None:
        self._side, self.rows = side, dict[int, Side]()

    def upto(self, number: int) -> KeptTrials:
        missing = range(len(self.rows) + 1, number + 1)
        if missing:
            self.rows.update(zip(missing, self._side.take(missing), strict=True))
        return KeptTrials(self.rows)


def bisect(
    what: SideWork, good: str, bad: str, *, trials: int, alpha: float,
    tell: Callable[[TriedCommit], object] = lambda _: None,
    opened: Opened = revision,
) -> Bisected:  # fmt: skip
    """The first commit after `good`, up to `bad`, that is worse than `good`. A commit that does not import, or of which
    too little is known, is skipped. `opened`: the sides of a commit. Raises ScenarioError: one of the two is no
    revision, `good` is no ancestor of `bad`, or one of them cannot be tried."""
    root = root_of(what.file)
    first, last = resolved(root, good), resolved(root, bad)
    between = _between(root, [first], last)
    if not between or git(root, "merge-base", first, last) != first:
        raise ScenarioError(f"{good} is no ancestor of {bad}: give a good revision that {bad} comes after")
    steps: list[TriedCommit] = []
    with opened(what, first) as side:
        base = _Base(side)

        def tried(commit: str, *, needed: bool = False) -> TriedCommit:
            try:
                with opened(what, commit) as new:
                    found = _compared(base, new, trials, alpha)
                why = "too few judged pairs" if found.verdict == FEW else ""
                step = TriedCommit(
                    commit, _subject(root, commit), SKIP if why else found.verdict, len(found.pairs), why
                )
            except ScenarioError as error:
                if needed:
                    raise
                step = TriedCommit(commit, _subject(root, commit), SKIP, 0, str(error).partition(": ")[2])
            steps.append(step)
            tell(step)
            return step

        worst = tried(last, needed=True)
        if worst.verdict != WORSE:
            return Bisected((), tuple(steps))
        well, skipped = [first], dict[str, TriedCommit]()
        while len(left := _between(root, well, worst.commit)) > 1:
            candidates = [each for each in left if each != worst.commit and each not in skipped]
            if not candidates:
                break
            step = tried(candidates[0])
            if step.verdict == SKIP:
                skipped[step.commit] = step
            elif step.verdict == WORSE:
                worst = step
            else:
                well.append(step.commit)
    return Bisected((worst, *(each for each in skipped.values() if each.commit in left)), tuple(steps))


def _compared(base: _Base, new: Sides, trials: int, alpha: float) -> Comparison:
    found = Comparison(alpha)
    while len(found.pairs) < trials and not found.decided and not found.hopeless(trials - len(found.pairs)):
        most = min(trials, len(found.pairs) + BATCH)
        advance(found, base.upto(most), new, most=most)
    return found


def _between(root: Path, well: list[str], bad: str) -> list[str]:
    """The commits up to `bad` that no good one has, the one that halves them best first."""
    told = git(root, "rev-list", "--bisect-all", bad, *(f"^{each}" for each in well))
    return [each.split()[0] for each in told.splitlines()]


def _subject(root: Path, commit: str) -> str:
    return git(root, "log", "-1", "--format=%s", commit)
