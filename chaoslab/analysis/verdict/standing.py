"""The one count of a run's trials: each is well, bad or open, by its outcome or by the ruling of its scenario.

A trial ended *well* if it is correct or degraded: the agent did what it could and said nothing untrue. It is *open* if
it allows no conclusion (unknown, invalid, unfinished), or if something was left undone and it is not known if the
answer says so. All others are *bad*. A scenario states which outcomes it accepts, and may assert more, so its ruling
takes the place of the outcome.

Whatever counts trials asks this module. An open trial is never well, and no count leaves it out: a share is given over
well + bad, with the open ones beside it, and as bounds where it decides something.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from chaoslab.analysis.verdict.table import ENDED_OPEN, ENDED_WELL, Verdict
from chaoslab.record.rulings import RulingState, TrialRuling

OPEN_MAX = 0.05
"""The largest share of open trials beside which the others decide, where the user states no other."""


class Standing(StrEnum):
    """The standing of a trial. OPEN: it allows no conclusion."""

    WELL = "well"
    BAD = "bad"
    OPEN = "open"


_RULED = {RulingState.PASSED: Standing.WELL, RulingState.FAILED: Standing.BAD, RulingState.INVALID: Standing.OPEN}


def get_outcome_standing(outcome: str | None) -> Standing:
    """The standing of a trial by its outcome. `outcome`: its name; None if there is no verdict."""
    if outcome is None or outcome in ENDED_OPEN:
        return Standing.OPEN
    return Standing.WELL if outcome in ENDED_WELL else Standing.BAD


def get_fact_standing(holds: bool | None) -> Standing:
    """The standing of a trial by one fact about it, such as `Verdict.done`; None if it is not known."""
    return Standing.OPEN if holds is None else Standing.WELL if holds else Standing.BAD


@dataclass(frozen=True)
class StandingCount:
    """The number of trials that are well, bad and open."""

    well: int = 0
    bad: int = 0
    open: int = 0

    @classmethod
    def from_standings(cls, standings: Iterable[Standing]) -> "StandingCount":
        """The count of these standings."""
        numbers = Counter(standings)
        return cls(numbers[Standing.WELL], numbers[Standing.BAD], numbers[Standing.OPEN])

    def __add__(self, second: "StandingCount") -> "StandingCount":
        return StandingCount(self.well + second.well, self.bad + second.bad, self.open + second.open)

    @property
    def total(self) -> int:
        return self.well + self.bad + self.open

    @property
    def judged_count(self) -> int:
        """Those that are well or bad."""
        return self.well + self.bad

    @property
    def well_share(self) -> float | None:
        """The share of well ones among the judged; None if none was judged."""
        return self.well / self.judged_count if self.judged_count else None

    @property
    def share_bounds(self) -> tuple[float, float]:
        """The share of well ones among all if each open one were bad, and if each were well; (0, 1) without trials."""
        if not self.total:
            return 0.0, 1.0
        return self.well / self.total, (self.well + self.open) / self.total

    def __str__(self) -> str:
        return f"{self.well} of {self.judged_count}" + (f", {self.open} open" if self.open else "")


def classify_share(count: StandingCount, min_share: float, *, open_max: float = OPEN_MAX) -> Standing:
    """The standing of a whole whose share of well trials should be at least this. It is open where the open trials
    could turn it and are more than the share `open_max` of all."""
    low, high = count.share_bounds
    if high < min_share:
        return Standing.BAD
    if count.total and low >= min_share:
        return Standing.WELL
    if count.judged_count and count.open <= open_max * count.total:
        return Standing.WELL if count.well >= min_share * count.judged_count else Standing.BAD
    return Standing.OPEN


@dataclass(frozen=True)
class Standings:
    """The standing of the trials of a run. `rulings`: those of the scenario, by trial."""

    rulings: Mapping[str, TrialRuling] = field(default_factory=dict)

    def get_standing(self, trial: str, outcome: str | None) -> Standing:
        """The standing of a trial. `outcome`: its name; None if there is no verdict."""
        if ruling := self.rulings.get(trial):
            return _RULED[ruling.state]
        return get_outcome_standing(outcome)

    def map_standings(self, outcomes: Mapping[str, str | None]) -> dict[str, Standing]:
        """The standing of each of many trials. `outcomes`: as in `get_standing`, by trial."""
        return {trial: self.get_standing(trial, outcome) for trial, outcome in outcomes.items()}

    def list_standings(self, trials: Iterable[str], outcomes: Iterable[str | None]) -> list[Standing]:
        """The standings of trials in their order. `outcomes`: one for each."""
        return [self.get_standing(trial, outcome) for trial, outcome in zip(trials, outcomes, strict=True)]


class TrialStandings(Mapping[str, Standing]):
    """The standing of each trial, by its verdict."""

    def __init__(self, standings: Standings, verdicts: Mapping[str, Verdict]) -> None:
        self._standings, self._verdicts = standings, verdicts

    def __getitem__(self, trial: str) -> Standing:
        return self._standings.get_standing(trial, self._verdicts[trial].outcome)

    def __iter__(self) -> Iterator[str]:
        return iter(self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    def __repr__(self) -> str:
        return repr(dict(self))
