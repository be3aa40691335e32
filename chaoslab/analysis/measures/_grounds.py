"""The number and share of trials per outcome, the two counts of a run, and the evidence that its verdicts rest on."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chaoslab.analysis.measures.intervals import Rate, compute_flag_rate, compute_pooled_rate
from chaoslab.analysis.measures.reliability import compute_ended_well_rate, count_well_by_prompt
from chaoslab.analysis.verdict.standing import Standing, StandingCount, get_fact_standing
from chaoslab.analysis.verdict.table import ENDED_OPEN, Basis, Verdict, WorldState


@dataclass(frozen=True)
class VerdictBasisCounts:
    """The verdicts that reach a conclusion, by basis; and the open ones by what became of their world."""

    by_basis: Mapping[Basis, int]
    open: Mapping[str, int]

    @property
    def judged_count(self) -> int:
        """The verdicts that reach a conclusion."""
        return sum(self.by_basis.values())

    @property
    def summary_sentence(self) -> str:
        """The sums as a sentence without its full stop; empty if no verdict reaches a conclusion."""
        if not self.judged_count:
            return ""
        parts = ", ".join(f"{number} by {basis}" for basis, number in self.by_basis.items())
        return f"{self.judged_count} {'verdict was' if self.judged_count == 1 else 'verdicts were'} decided: {parts}"

    @property
    def open_verdicts_summary(self) -> str:
        """The open verdicts by their world, as in "3 open: 2 left undone, 1 as asked"; empty if there are none."""
        if not self.open:
            return ""
        total = sum(self.open.values())
        return f"{total} open: " + ", ".join(f"{number} {world}" for world, number in self.open.items())


def count_verdict_bases(verdicts: Iterable[Verdict]) -> VerdictBasisCounts:
    """The sums over these verdicts."""
    by_basis: Counter[Basis] = Counter()
    undecided: Counter[str] = Counter()
    for verdict in verdicts:
        if verdict.outcome in ENDED_OPEN:
            undecided[str(verdict.world)] += 1
        else:
            by_basis[verdict.basis] += 1
    return VerdictBasisCounts(dict(by_basis.most_common()), dict(undecided.most_common()))


@dataclass(frozen=True)
class Success:
    """The two figures of a run. `by_outcome`: the outcomes that occurred. `ended`: the trials that ended well.
    `done`: those in which all was done as asked, by ledger and end state, whatever was said; None if nothing was stated
    about effects. `prompts`: by prompt, the trials that ended well and the judged ones. `done_rate`: None if none was
    judged. Trials of which the log has nothing left are open in both."""

    total: int
    by_outcome: dict[str, Rate]
    ended: StandingCount
    prompts: Mapping[Hashable, tuple[int, int]]
    done: StandingCount | None
    done_rate: Rate | None

    @property
    def ended_well_rate(self) -> Rate | None:
        """The share that ended well of the judged trials; None if none was judged."""
        return compute_pooled_rate([*self.prompts.values()])


def summarize_success(
    verdicts: Sequence[Verdict], standings: Sequence[Standing], prompts: Sequence[Hashable], *, lost: int = 0
) -> Success:
    """The counts and the rates. `standings`, `prompts`: one for each verdict. `lost`: the trials that ended and of
    which the log has not even the beginning."""
    outcomes = [str(verdict.outcome) for verdict in verdicts]
    rates = {
        name: compute_flag_rate((outcome == name for outcome in outcomes), prompts) for name in dict.fromkeys(outcomes)
    }
    judgeable = [n for n, verdict in enumerate(verdicts) if verdict.world is not WorldState.NOT_STATED]
    done_standings = [get_fact_standing(verdicts[n].done) for n in judgeable]
    return Success(
        len(outcomes),
        {name: share for name, share in rates.items() if share is not None},
        StandingCount.from_standings(standings) + StandingCount(open=lost),
        count_well_by_prompt(standings, prompts),
        StandingCount.from_standings(done_standings) + StandingCount(open=lost) if judgeable else None,
        compute_ended_well_rate(done_standings, [prompts[n] for n in judgeable]),
    )
