"""Trials that ended alike as one way to fail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.record.rulings import RulingState
from chaoslab.reports.contents._rows import WHY, poor
from chaoslab.reports.contents.outcomes import word
from chaoslab.reports.page import NAMED, alike
from chaoslab.reports.text import visible


@dataclass(frozen=True)
class FailureWay:
    """A way to fail. `said`: the outcome, or a scenario's ruling. `trials`: those that ended so, in their order."""

    said: str
    why: str
    trials: tuple[str, ...]

    @property
    def head(self) -> str:
        """The outcome with the number of its trials, or with the trial if it is one: 12 × wrong, p1.r1 wrong."""
        return f"{len(self.trials)} × {self.said}" if self.trials[1:] else f"{self.trials[0]} {self.said}"

    @property
    def named(self) -> str:
        """Some of its trials, if it has several, as an addition: (p1.r1, p2.r1, p3.r1 …)."""
        return f" ({', '.join(self.trials[:NAMED])}{' …' if self.trials[NAMED:] else ''})" if self.trials[1:] else ""


def ways(report: RunReport, order: Sequence[str]) -> tuple[FailureWay, ...]:
    """The ways of the trials that failed, could not do all or prove nothing, or that a scenario did not let pass: in
    the order of the trials, and of those that ended so the most frequent first."""
    by_outcome: dict[str, list[tuple[str, str]]] = {}
    for said, why, trial in _poor(report, order):
        by_outcome.setdefault(said, []).append((why, trial))
    return tuple(
        FailureWay(said, visible(why, WHY), tuple(trials))
        for said, told in by_outcome.items()
        for why, trials in alike(told)
    )


def _poor(report: RunReport, order: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    ruled = report.rulings.by_trial if report.rulings is not None else {}
    for trial in order:
        found, ruling = report.verdicts[trial], ruled.get(trial)
        if ruling is not None and ruling.state is not RulingState.PASSED:
            yield ruling.state, "; ".join(ruling.reasons) or found.why, trial
        elif ruling is None and poor(report, trial):
            yield f"{'' if found.certain else '≈ '}{word(found.outcome)}", found.why, trial
