"""Tells whether a trial ended well: by its outcome, or by the ruling of the scenario that ran it.

A trial *ended well* if its outcome is correct or degraded: the agent did what it could and said nothing untrue. Trials
that allow no conclusion are open. If nothing was stated about right answers, a trial whose outcome is unknown ended
well: it neither failed, nor hung, nor did harm.

A scenario states which outcomes it accepts, and may assert more, so its ruling takes the place of the outcome.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from chaoslab.analysis.verdict.table import UNJUDGED, Verdict
from chaoslab.record.rulings import RulingState, TrialRuling

ENDED_WELL = ("correct", "degraded")


class Standing(StrEnum):
    """The standing of a trial. OPEN: it allows no conclusion."""

    WELL = "well"
    BAD = "bad"
    OPEN = "open"


_RULED = {RulingState.PASSED: Standing.WELL, RulingState.FAILED: Standing.BAD, RulingState.INVALID: Standing.OPEN}


@dataclass(frozen=True)
class Standings:
    """The standing of the trials of a run. `judgeable`: something was stated about right answers. `rulings`: those of
    the scenario, by trial."""

    judgeable: bool = True
    rulings: Mapping[str, TrialRuling] = field(default_factory=dict)

    def of(self, trial: str, outcome: str | None) -> Standing:
        """The standing of a trial. `outcome`: its name; None if there is no verdict."""
        if ruling := self.rulings.get(trial):
            return _RULED[ruling.state]
        return _of_outcome(outcome, self.judgeable)

    def each(self, outcomes: Mapping[str, str | None]) -> dict[str, Standing]:
        """The standing of each of many trials. `outcomes`: as in `of`, by trial."""
        return dict(zip(outcomes, self.of_all(outcomes, [*outcomes.values()]), strict=True))

    def of_all(self, trials: Iterable[str], outcomes: Collection[str | None]) -> list[Standing]:
        """The standings of trials in their order. `outcomes`: one for each."""
        if self.rulings:
            return [self.of(trial, outcome) for trial, outcome in zip(trials, outcomes, strict=True)]
        found = {outcome: _of_outcome(outcome, self.judgeable) for outcome in set(outcomes)}
        return [found[outcome] for outcome in outcomes]


class StandingOfEach(Mapping[str, Standing]):
    """The standing of each trial, by its verdict."""

    def __init__(self, standings: Standings, verdicts: Mapping[str, Verdict]) -> None:
        self._standings, self._verdicts = standings, verdicts

    def __getitem__(self, trial: str) -> Standing:
        return self._standings.of(trial, self._verdicts[trial].outcome)

    def __iter__(self) -> Iterator[str]:
        return iter(self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    def __repr__(self) -> str:
        return repr(dict(self))


@cache
def _of_outcome(outcome: str | None, judgeable: bool) -> Standing:
    if outcome in ENDED_WELL or (outcome == "unknown" and not judgeable):
        return Standing.WELL
    return Standing.OPEN if outcome is None or outcome in UNJUDGED else Standing.BAD
