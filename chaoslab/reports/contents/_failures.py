"""Trials that ended alike as one way to fail, and the command that leads to a trial."""

from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.config import settings
from chaoslab.reports.page import alike


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


def ways(found: Iterable[tuple[str, str, str]]) -> list[FailureWay]:
    """The ways to fail, from the outcome, the reason and the name of each trial: in the order of the outcomes, and of
    one outcome the most frequent first."""
    by_outcome: dict[str, list[tuple[str, str]]] = {}
    for said, why, trial in found:
        by_outcome.setdefault(said, []).append((why, trial))
    return [FailureWay(said, why, tuple(trials)) for said, told in by_outcome.items() for why, trials in alike(told)]


def command(report: RunReport, trial: str, *, where: str, program: str = "", replayed: bool = True) -> str:
    """The command that runs the trial again, or shows it where nothing in the run's folder leads to its program.
    `where`, `program`: the run and chaoslab as the user's shell finds them. `replayed`: the log tells all that a replay
    needs."""
    ruling = report.rulings.by_trial.get(trial) if report.rulings is not None else None
    if ruling is not None and ruling.again:
        return ruling.again
    verb = "show" if report.of_functions or not replayed else "replay"
    return f"{program or settings.program()} {verb} {quote(where)} --trial {trial}"
