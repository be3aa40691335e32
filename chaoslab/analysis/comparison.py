"""Two runs of the same prompts, trial by trial: what became better, what became worse, and if chance explains it.

A trial of one run is paired with the trial of the other that has the same key and the same prompt. Same seed and same
faults make the pairs alike but for the agent, so that a pair that ends otherwise is the agent's doing. The test is
McNemar's in its exact form (McNemar 1947; the binomial test on the pairs of which one is correct and the other is not,
two-sided): it asks how likely so uneven a split of these pairs would be, if the change made no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

from chaoslab.analysis.judge import Outcome, Verdict
from chaoslab.analysis.measures.success import UNJUDGED
from chaoslab.analysis.run_report import RunReport
from chaoslab.core.events import PromptStarted
from chaoslab.record.history import History

RANK = {outcome: rank for rank, outcome in enumerate(Outcome)}
"""Every outcome, best first, as the judge lists them."""


@dataclass(frozen=True)
class Run:
    """A run to compare: its history, its report, and its name as a command takes it."""

    history: History
    report: RunReport
    where: str

    @classmethod
    def of(cls, history: History, where: str) -> Run:
        return cls(history, RunReport.of(history), where)


@dataclass(frozen=True)
class Pair:
    """A trial in both runs. `better`: 1 if it ends better now, -1 if worse, 0 if alike or if one of them allows no
    conclusion."""

    trial: str
    prompt: str
    before: Verdict
    after: Verdict

    @property
    def better(self) -> int:
        if {str(self.before.outcome), str(self.after.outcome)} & {*UNJUDGED}:
            return 0
        then, now = RANK[self.before.outcome], RANK[self.after.outcome]
        return (then > now) - (then < now)

    @property
    def changed(self) -> bool:
        return self.before.outcome is not self.after.outcome


@dataclass(frozen=True)
class Comparison:
    """The pairs of two runs, in the order of the second.

    `alone`: the numbers of trials that only the first, and only the second run has. `notes`: the reasons why the pairs
    may differ by more than the agent. `gained`, `lost`: the pairs that are correct only now, and only before; `p`: the
    chance of so uneven a split, or a more uneven one, if the change made no difference; None without such pairs.
    """

    before: Run
    after: Run
    pairs: Sequence[Pair]
    alone: tuple[int, int]
    notes: Sequence[str]
    gained: int
    lost: int
    p: float | None

    @property
    def better(self) -> list[Pair]:
        return [pair for pair in self.pairs if pair.better > 0]

    @property
    def worse(self) -> list[Pair]:
        """Those that became worse, worst outcome first."""
        return sorted((pair for pair in self.pairs if pair.better < 0), key=lambda pair: -RANK[pair.after.outcome])

    @property
    def judged(self) -> int:
        """The number of pairs of which both allow a conclusion."""
        return sum(not {str(pair.before.outcome), str(pair.after.outcome)} & {*UNJUDGED} for pair in self.pairs)

    @property
    def moves(self) -> Mapping[tuple[Outcome, Outcome], int]:
        """The number of pairs by their two outcomes, most frequent first; those that are alike are left out."""
        found = Counter((pair.before.outcome, pair.after.outcome) for pair in self.pairs if pair.changed)
        return dict(found.most_common())


def compare(before: Run, after: Run) -> Comparison:
    """The comparison of two runs."""
    then, now = _trials(before), _trials(after)
    pairs = [
        Pair(trial, prompt, then[trial, prompt], verdict)
        for (trial, prompt), verdict in now.items()
        if (trial, prompt) in then
    ]
    judged = [pair for pair in pairs if not {str(pair.before.outcome), str(pair.after.outcome)} & {*UNJUDGED}]
    right = [(pair.before.outcome is Outcome.CORRECT, pair.after.outcome is Outcome.CORRECT) for pair in judged]
    gained, lost = right.count((False, True)), right.count((True, False))
    return Comparison(
        before,
        after,
        pairs,
        alone=(len(then) - len(pairs), len(now) - len(pairs)),
        notes=tuple(_notes(before.report, after.report)),
        gained=gained,
        lost=lost,
        p=mcnemar(gained, lost),
    )


def mcnemar(gained: int, lost: int) -> float | None:
    """The p-value of McNemar's exact test, two-sided; None if no pair differs."""
    pairs = gained + lost
    if not pairs:
        return None
    tail = sum(comb(pairs, k) for k in range(min(gained, lost) + 1)) / 2**pairs
    return float(min(1.0, 2 * tail))


def _trials(run: Run) -> dict[tuple[str, str], Verdict]:
    prompts = {record.trial: event.prompt for record, event in run.history.of(PromptStarted)}
    return {(trial, prompts.get(trial, "")): verdict for trial, verdict in run.report.verdicts.items()}


def _notes(before: RunReport, after: RunReport) -> Iterable[str]:
    then, now = before.started, after.started
    if then is None or now is None:
        yield "the log of one run does not say how it was started"
        return
    for name, one, other in (("seed", then.seed, now.seed), ("world", then.world, now.world)):
        if one != other:
            yield f"the {name} is another: {one} before, {other} now"
    if then.plan != now.plan:
        yield "the faults that were planned are others"
    others = {name for name in {*then.settings, *now.settings} if then.settings.get(name) != now.settings.get(name)}
    if named := sorted(others - {"SEED", "WORLD"}):
        yield f"settings that are not the same: {', '.join(named)}"
