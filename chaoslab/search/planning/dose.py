"""The safe dose of a fault: the largest that is known to be safe, the smallest that is known not to be, and the next to
try between them.

The bisection is geometric, since a timeout may be of any order of magnitude: the next dose is the root of the product
of both ends. A side that is not known stands at LEAST_S or MOST_S. When the ends are within a factor of NEAR, the root
of their product is within 15 % of the edge.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaoslab.base.durations import format_duration, format_range

LEAST_S, MOST_S = 0.01, 900.0
"""The doses between which an edge is sought, if nothing is known."""
NEAR = 1.3
"""The factor between the ends within which the edge is known well enough."""


@dataclass(frozen=True)
class DoseRange:
    """The edge lies between `safe` and `unsafe`, in seconds; None: not known. `safe_n`, `unsafe_n`: the trials at those
    doses. `mixed`: a larger dose than `unsafe` was survived, so that the edge is no sharp one."""

    safe: float | None = None
    unsafe: float | None = None
    safe_n: float = 0.0
    unsafe_n: float = 0.0
    mixed: bool = False

    @property
    def next_dose(self) -> float | None:
        """The dose whose trial tells most; None if the edge is known, or none is between the bounds."""
        # Where 0 is known to be safe, the root of the product would be 0 again.
        low = max(LEAST_S, self.safe or 0.0)
        high = MOST_S if self.unsafe is None else self.unsafe
        if self.unsafe is not None and self.unsafe <= LEAST_S:
            return None
        if self.safe is not None and self.unsafe is None and self.safe >= MOST_S:
            return None
        if self.safe is not None and self.unsafe is not None and high <= low * NEAR:
            return None
        # three digits, which is finer than NEAR asks for and can be read
        return float(f"{math.sqrt(low * high):.3g}") if low * NEAR < high else low if self.safe is None else high

    @property
    def estimated_edge(self) -> float | None:
        """The estimate of the edge: the root of the product of both ends; None if one is not known."""
        if self.safe is None or self.unsafe is None:
            return None
        return math.sqrt(max(self.safe, LEAST_S) * self.unsafe)

    def describe_in_words(self, *, in_s: bool = True) -> str:
        """The range in words. `in_s`: the parameter is in seconds."""
        safe, unsafe = (
            None if end is None else format_duration(end) if in_s else f"{end:g}" for end in self.safe_and_unsafe_dose
        )
        if self.safe is None or self.unsafe is None:
            if safe is not None:
                return f"safe up to {safe} (n={self.safe_n:g}), and nothing larger was tried"
            if unsafe is None:
                return "nothing was tried"
            return f"unsafe from {unsafe} on (n={self.unsafe_n:g}), and nothing smaller was survived"
        edge = format_range(self.safe, self.unsafe) if in_s else f"{safe}–{unsafe}"
        # One noisy trial at either end may be all that there is.
        counts = f" (n={self.safe_n:g} and {self.unsafe_n:g})"
        return f"the edge is at {edge}{counts}{', and it is no sharp one' if self.mixed else ''}"

    @property
    def safe_and_unsafe_dose(self) -> tuple[float | None, float | None]:
        return self.safe, self.unsafe

    def __str__(self) -> str:
        return self.describe_in_words()


def compute_dose_range(tried: Mapping[float, Sequence[float]]) -> DoseRange:
    """The range of doses by what came of each: the trials, and the bad ones of them. A dose is unsafe if one trial in
    ten was bad; the largest safe dose is below the smallest unsafe one."""
    bad = sorted(dose for dose, (count, bad) in tried.items() if bad > 0.1 * count)
    unsafe = bad[0] if bad else None
    good = [dose for dose, (count, _) in tried.items() if count > 0 and dose not in bad]
    below = [dose for dose in good if unsafe is None or dose < unsafe]
    safe = max(below) if below else None
    return DoseRange(
        safe,
        unsafe,
        0.0 if safe is None else tried[safe][0],
        0.0 if unsafe is None else tried[unsafe][0],
        mixed=len(below) < len(good),
    )
