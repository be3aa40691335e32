"""`chaoslab bisect`: the commit at which a scenario got worse, by work trees and comparisons with both ends."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import ceil, log2
from pathlib import Path

from chaoslab.analysis.verdict.standing import OPEN_MAX
from chaoslab.scenarios.comparing import run_next_pair_batch
from chaoslab.scenarios.located import ProvesNothing, ScenarioError
from chaoslab.scenarios.revisions import SideWork, find_git_root, open_revision_side, resolve_commit, run_git
from chaoslab.scenarios.sides import ComparisonSide, KeptTrials
from chaoslab.search.compared import Comparison
from chaoslab.search.pairs import BETTER, WORSE, Side

Opened = Callable[[SideWork, str], AbstractContextManager[ComparisonSide]]
BATCH = 20
SKIP, UNDECIDED = "skip", "undecided"


@dataclass(frozen=True)
class TriedCommit:
    """One commit that was tried. `verdict`: "worse" than the good end, "better" than the bad one, "undecided" if
    neither is shown, or "skip". `why`: the evidence, or the reason of what was skipped."""

    commit: str
    subject: str
    verdict: str
    pairs: int = 0
    why: str = ""

    def __str__(self) -> str:
        than = {WORSE: " than the good end", BETTER: " than the bad end"}.get(self.verdict, "")
        after = f"{self.pairs} pairs; {self.why}" if self.pairs else self.why
        return f"{self.commit[:10]} {self.verdict}{than} ({after}): {self.subject}"


@dataclass(frozen=True)
class Bisected:
    """`first`: the first worse commits: one, or several if some between were skipped or are undecided, the last first;
    none if the bad end is not shown to be worse. `good`: the last commit that is shown to be well, as far as it is
    known."""

    first: tuple[TriedCommit, ...]
    steps: tuple[TriedCommit, ...]
    good: str = ""


class _CachedSide:
    """A side whose trials are run once and kept. `after`: the number of trials that come before its first."""

    def __init__(self, side: ComparisonSide, after: int = 0) -> None:
        self._side, self._after, self.rows = side, after, dict[int, Side]()

    def run_trials_up_to(self, number: int) -> KeptTrials:
        missing = range(len(self.rows) + 1, number + 1)
        if missing:
            # A side's trials have numbers of their own: those up to `after` were used to find the ends.
            new_sides = self._side.produce_trials([missing_number + self._after for missing_number in missing])
            self.rows.update(zip(missing, new_sides, strict=True))
        return KeptTrials(self.rows, self._side.round_size)


def bisect_commits(
    side_work: SideWork,
    good: str,
    bad: str,
    *,
    trials: int,
    alpha: float,
    open_max: float = OPEN_MAX,
    tell: Callable[[TriedCommit], object] = lambda _: None,
    opened: Opened = open_revision_side,
) -> Bisected:
    """The first commit after `good`, up to `bad`, that is worse than `good`. A commit is bad if it is shown to be worse
    than the good end, and good if it is shown to be better than the bad one: that no difference is shown says nothing.
    One of which neither is shown within so many `trials`, or that does not import, is skipped. `alpha`: the chance that
    the commit that is named is a wrong one, shared by all steps. `opened`: the sides of a commit.

    Raises:
        ScenarioError: one of the two is no revision, `good` is no ancestor of `bad`, or one of them cannot be tried.
        ProvesNothing: no fault was met at the ends."""
    root = find_git_root(side_work.file)
    first, last = resolve_commit(root, good), resolve_commit(root, bad)
    between = _list_commits_between(root, [first], last)
    # The good end may lie on another branch.
    if not between or run_git(root, "merge-base", first, last) != first:
        raise ScenarioError(f"{good} is no ancestor of {bad}: give a good revision that {bad} comes after")
    # Bonferroni's: the chance of a wrong commit is shared by all steps of the search.
    step_alpha = alpha / (1 + ceil(log2(len(between))))
    steps: list[TriedCommit] = []

    def record_step(commit: str, verdict: str, pairs: int, evidence: str) -> TriedCommit:
        steps.append(TriedCommit(commit, _read_commit_subject(root, commit), verdict, pairs, evidence))
        tell(steps[-1])
        return steps[-1]

    with opened(side_work, first) as well_side, opened(side_work, last) as bad_side:
        well_end, bad_end = _CachedSide(well_side), _CachedSide(bad_side)
        ends = Comparison(step_alpha, open_max=open_max)
        while len(ends.pairs) < trials and not ends.is_decided:
            pair_max = min(trials, len(ends.pairs) + BATCH)
            run_next_pair_batch(
                ends, well_end.run_trials_up_to(pair_max), bad_end.run_trials_up_to(pair_max), most=pair_max
            )
        if ends.proves_nothing_reason:
            raise ProvesNothing(f"{good} and {bad} prove nothing: {ends.proves_nothing_reason}")
        worst_step = record_step(
            last, WORSE if ends.verdict == WORSE else UNDECIDED, len(ends.pairs), ends.render_comparison_lines()[0]
        )
        if worst_step.verdict != WORSE:
            return Bisected((), tuple(steps))
        # Fresh trials of both ends: those up to here were stopped where they differed most, so they say too much.
        after = len(ends.pairs) + -len(ends.pairs) % ends.round_size
        well_end, bad_end = _CachedSide(well_side, after), _CachedSide(bad_side, after)
        good_commits, skipped = [first], dict[str, TriedCommit]()
        while len(candidates_left := _list_commits_between(root, good_commits, worst_step.commit)) > 1:
            candidates = [
                commit_left
                for commit_left in candidates_left
                if commit_left != worst_step.commit and commit_left not in skipped
            ]
            if not candidates:
                break
            commit = candidates[0]
            try:
                with opened(side_work, commit) as opened_side:
                    commit_side = _CachedSide(opened_side, after)
                    verdict, pairs, evidence = _judge_commit(
                        well_end, bad_end, commit_side, trials, step_alpha, open_max
                    )
            except ScenarioError as error:
                # Behind the side's name: the error alone.
                verdict, pairs, evidence = SKIP, 0, str(error).partition(": ")[2]
            step = record_step(commit, verdict, pairs, evidence)
            if verdict == WORSE:
                worst_step = step
            elif verdict == BETTER:
                good_commits.append(commit)
            else:
                skipped[commit] = step
    return Bisected(
        (worst_step, *(commit_left for commit_left in skipped.values() if commit_left.commit in candidates_left)),
        tuple(steps),
        good_commits[-1],
    )


def _judge_commit(
    well: _CachedSide, bad: _CachedSide, new: _CachedSide, trials: int, alpha: float, open_max: float
) -> tuple[str, int, str]:
    """The verdict on a commit beside both ends, the pairs that it took, and the evidence."""
    of_well, of_bad = Comparison(alpha, open_max=open_max), Comparison(alpha, open_max=open_max)
    while len(of_well.pairs) < trials:
        pair_max = min(trials, len(of_well.pairs) + BATCH)
        for comparison, end in ((of_well, well), (of_bad, bad)):
            while len(comparison.pairs) < pair_max and not comparison.is_decided:
                run_next_pair_batch(
                    comparison, end.run_trials_up_to(pair_max), new.run_trials_up_to(pair_max), most=pair_max
                )
        if of_well.verdict == WORSE:
            return WORSE, len(of_well.pairs), of_well.render_comparison_lines()[0]
        if of_bad.verdict == BETTER:
            return BETTER, len(of_bad.pairs), of_bad.render_comparison_lines()[0]
        if of_bad.is_decided:  # it is worse than the bad end, and not shown to be worse than the good one
            break
    good_text, bad_text = of_well.render_comparison_lines()[0], of_bad.render_comparison_lines()[0]
    text = f"beside the good end {good_text}; beside the bad end {bad_text}"
    return UNDECIDED, len(of_well.pairs), text


def _list_commits_between(root: Path, well: list[str], bad: str) -> list[str]:
    """The commits up to `bad` that no good one has, the one that halves them best first."""
    # By Git, which knows merges: the middle of a list of commits is no half of a graph.
    output = run_git(root, "rev-list", "--bisect-all", bad, *(f"^{commit}" for commit in well))
    return [commit.split()[0] for commit in output.splitlines()]


def _read_commit_subject(root: Path, commit: str) -> str:
    return run_git(root, "log", "-1", "--format=%s", commit)
