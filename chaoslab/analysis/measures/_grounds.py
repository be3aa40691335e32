"""The number and share of trials per outcome, the two counts of a run, and the evidence that its verdicts rest on."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chaoslab.analysis.measures.intervals import Rate, rate_flags, rate_shares
from chaoslab.analysis.measures.reliability import count_judged_by_prompt, rate_judged
from chaoslab.analysis.verdict.standing import Count, Standing, stand_by_fact
from chaoslab.analysis.verdict.table import ENDED_OPEN, Basis, Verdict, WorldState


@dataclass(frozen=True)
class Grounds:
    """The verdicts that reach a conclusion, by basis; and the open ones by what became of their world."""

    by_basis: Mapping[Basis, int]
    open: Mapping[str, int]

    @property
    def judged(self) -> int:
        """The verdicts that reach a conclusion."""
        return sum(self.by_basis.values())

    @property
    def said(self) -> str:
        """The sums as a sentence without its full stop; empty if no verdict reaches a conclusion."""
        if not self.judged:
            return ""
        parts = ", ".join(f"{number} by {basis}" for basis, number in self.by_basis.items())
        return f"{self.judged} {'verdict was' if self.judged == 1 else 'verdicts were'} decided: {parts}"

    @property
    def undecided(self) -> str:
        """The open verdicts by their world, as in "3 open: 2 left undone, 1 as asked"; empty if there are none."""
        if not self.open:
            return ""
        total = sum(self.open.values())
        return f"{total} open: " + ", ".join(f"{number} {world}" for world, number in self.open.items())


def summarize_grounds(verdicts: Iterable[Verdict]) -> Grounds:
    """The sums over these verdicts."""
    by_basis: Counter[Basis] = Counter()
    undecided: Counter[str] = Counter()
    for verdict in verdicts:
        if verdict.outcome in ENDED_OPEN:
            undecided[str(verdict.world)] += 1
        else:
            by_basis[verdict.basis] += 1
    return Grounds(dict(by_basis.most_common()), dict(undecided.most_common()))


@dataclass(frozen=True)
class Success:
    """The two figures of a run. `by_outcome`: the outcomes that occurred. `ended`: the trials that ended well.
    `done`: those in which all was done as asked, by ledger and end state, whatever was said; None if nothing was stated
    about effects. `prompts`: by prompt, the trials that ended well and the judged ones. `done_rate`: None if none was
    judged. Trials of which the log has nothing left are open in both."""

    total: int
    by_outcome: dict[str, Rate]
    ended: Count
    prompts: Mapping[Hashable, tuple[int, int]]
    done: Count | None
    done_rate: Rate | None

    @property
    def ended_rate(self) -> Rate | None:
        """The share that ended well of the judged trials; None if none was judged."""
        return rate_shares([*self.prompts.values()])


def summarize_success(
    verdicts: Sequence[Verdict], standings: Sequence[Standing], prompts: Sequence[Hashable], *, lost: int = 0
) -> Success:
    """The counts and the rates. `standings`, `prompts`: one for each verdict. `lost`: the trials that ended and of
    which the log has not even the beginning."""
    outcomes = [str(verdict.outcome) for verdict in verdicts]
    rates = {name: rate_flags((outcome == name for outcome in outcomes), prompts) for name in dict.fromkeys(outcomes)}
    judgeable = [n for n, verdict in enumerate(verdicts) if verdict.world is not WorldState.NOT_STATED]
    done_standings = [stand_by_fact(verdicts[n].done) for n in judgeable]
    return Success(
        len(outcomes),
        {name: share for name, share in rates.items() if share is not None},
        Count.build(standings) + Count(open=lost),
        count_judged_by_prompt(standings, prompts),
        Count.build(done_standings) + Count(open=lost) if judgeable else None,
        rate_judged(done_standings, [prompts[n] for n in judgeable]),
    )
