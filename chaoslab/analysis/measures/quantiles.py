"""Percentiles of many values, linear between the two nearest ranks: type 7 of Hyndman and Fan (1996), as in NumPy. A
value takes eight bytes, so ten million attempts take 80 MB."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence


class Quantiles:
    """The percentiles of values that come one after the other. The order does not matter. `longest`: the largest value;
    minus infinity without any."""

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.longest = -math.inf
        self._values = array("d")
        self._ranked = True
        self.add_values([*values])

    @classmethod
    def merge(cls, *others: Quantiles) -> Quantiles:
        """Those of all values of some others."""
        merged = cls()
        for quantiles in others:
            merged.add_values(quantiles._values)
        return merged

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Quantiles(n={len(self)}, {[self.value_at(share / 4) for share in range(5)] if self else 'no value'})"

    def __eq__(self, second: object) -> bool:
        return isinstance(second, Quantiles) and sorted(self._values) == sorted(second._values)

    __hash__ = None  # type: ignore[assignment]

    def add_values(self, values: Sequence[float]) -> None:
        """Takes values, of which none is NaN."""
        if values:
            self.longest = max(self.longest, max(values))
            self._values.extend(values)
            self._ranked = False

    def value_at(self, share: float) -> float:
        """The value at a share from 0 to 1. There has to be one."""
        if not self._ranked:
            self._values, self._ranked = array("d", sorted(self._values)), True
        return _interpolate(self._values, share)


def compute_percentile(values: Sequence[float], share: float) -> float:
    """The percentile of some values."""
    return _interpolate(sorted(values), share)


def _interpolate(ranked: Sequence[float], share: float) -> float:
    rank = share * (len(ranked) - 1)
    low = ranked[math.floor(rank)]
    return low + (ranked[math.ceil(rank)] - low) * (rank - math.floor(rank))
