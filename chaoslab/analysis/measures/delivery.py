"""The delivery of faults as the check counts it: a cell is a fault, a seam and a chance."""

from dataclasses import dataclass

from chaoslab.analysis.measures.intervals import Interval, clopper_pearson_interval
from chaoslab.core.fault import get_trait, load_fault

CONFIDENCE = 0.999
"""Of all intervals together: each is made for a part of the error, one for each cell (Bonferroni)."""


@dataclass(frozen=True)
class DeliveryCell:
    """A fault to fire through a seam, at a chance, with so many calls."""

    fault: str
    seam: str
    chance: float
    calls: int
    seed: int = 1


@dataclass(frozen=True)
class DeliveryCounts:
    """The counts of a cell. `refusal`: the line by which the seam does not take the fault; empty if it does.
    `eligible`: the attempts for which its dice were rolled. `scheduled`: those that it should hit. `injected`: those in
    which there was something to do. `witnessed`: those in which the caller met it. `unlike`: the difference, in words,
    between the pieces that arrived and what its page says; empty if there is none, None if they were not compared."""

    cell: DeliveryCell
    eligible: int = 0
    scheduled: int = 0
    injected: int = 0
    witnessed: int = 0
    refusal: str = ""
    unlike: str | None = None

    @property
    def is_fully_delivered(self) -> bool:
        """True if each injected fault was witnessed."""
        return self.witnessed == self.injected

    def compute_rate_interval(self, cells: int) -> Interval | None:
        """The exact interval of the rate at which it was scheduled, one of so many; None without a call."""
        error = (1 - CONFIDENCE) / cells
        return clopper_pearson_interval(self.scheduled, self.eligible, confidence=1 - error)

    def is_rate_as_planned(self, cells: int) -> bool:
        """True if the chance is in the interval, or if the fault decides by itself when it acts."""
        if get_trait(load_fault(self.cell.fault), "conditional"):
            return True
        interval = self.compute_rate_interval(cells)
        return interval is not None and self.cell.chance in interval
