"""A cause as a contrast: how often a trial fails alike with the faults and without them, on other chance.

A failure was chosen because it was seen, so the trial that showed it proves nothing: it is left out here. Fisher's
exact test, one-sided (R. A. Fisher, The Design of Experiments, 1935), looked at after 5, 10, 20 and 40 trials.
"""

from dataclasses import dataclass
from math import comb

ALPHA = 0.01
"""The largest chance of a contrast like this one if the faults made no difference."""
LOOKS = (5, 10, 20, 40)
"""The trials with the faults, and as many without them, after which it is looked at where the agent draws chance."""


@dataclass(frozen=True)
class Contrast:
    """`failed` of `trials` with the faults fail alike, and `calm_failed` of `calm_trials` without them."""

    failed: int
    trials: int
    calm_failed: int
    calm_trials: int

    @property
    def holds(self) -> bool:
        """True if the faults make the difference. A single trial of each decides where the agent draws no chance."""
        if self.trials == 1:
            return self.failed == 1 and self.calm_failed == 0
        if not self.trials or not self.calm_trials:
            return False
        return self.failed > 0 and self.p_value <= ALPHA

    @property
    def needs_no_more_trials(self) -> bool:
        """True if more trials are of no use: it holds, or the failure was not seen again, or there were enough."""
        return self.holds or not self.failed or self.trials >= LOOKS[-1]

    @property
    def p_value(self) -> float:
        """The chance that so many of the failures, or more, fall on the trials with the faults."""
        failed, trials = self.failed + self.calm_failed, self.trials + self.calm_trials
        ways = (
            comb(failed, k) * comb(trials - failed, self.trials - k)
            for k in range(self.failed, min(failed, self.trials) + 1)
        )
        return sum(ways) / comb(trials, self.trials)

    def __str__(self) -> str:
        return f"with it {self.failed} of {self.trials}, without it {self.calm_failed} of {self.calm_trials}"


@dataclass(frozen=True)
class SelfFailure:
    """A failure that happens without faults too: `failed` of `trials`. `outcome`, `why`, `kind`: as in
    `TriedVariation`."""

    outcome: str
    why: str
    kind: str
    failed: int
    trials: int

    def __str__(self) -> str:
        return f"fails by itself: {self.failed} of {self.trials} without faults ({self.outcome}: {self.why})"
