"""Percentiles of many values: exact up to 100,000 of them, beyond that from a sketch of bounded size. Exact ones are
linear between the two nearest ranks: type 7 of Hyndman and Fan (1996), as in NumPy. The sketch is DDSketch (Masson, Rim
and Lee 2019), which tells a value within 1 % of the one at the lower of the two ranks."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddsketch import DDSketch

EXACT = 100_000
"""The most values that are kept one by one."""
ERROR = 0.01
"""The largest relative error of a percentile from the sketch."""
WITHIN = f"within {100 * ERROR:g} %"
"""The meaning of `ERROR`, in words."""


class Quantiles:
    """The percentiles of values that come one after the other. The order does not matter. `longest`: the largest value;
    minus infinity without any."""

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.n, self.longest, self._shortest = 0, -math.inf, math.inf
        self._values = array("d")
        self._ranked = True
        self._sketch: DDSketch | None = None
        self.add([*values])

    @classmethod
    def of(cls, *parts: Quantiles) -> Quantiles:
        """Those of all values of some others."""
        found = cls()
        for part in parts:
            if part._sketch is None:
                found.add(part._values)
            else:
                found._merge(part, part._sketch)
        return found

    def __bool__(self) -> bool:
        return self.n > 0

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"Quantiles(n={self.n}, {[self.at(share / 4) for share in range(5)] if self.n else 'no value'})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantiles) and self.n == other.n and self._told() == other._told()

    __hash__ = None  # type: ignore[assignment]

    def _told(self) -> list[float]:
        """The values in order, or the sketch's percentiles."""
        return sorted(self._values) if self._sketch is None else [self.at(share / 1000) for share in range(1001)]

    def add(self, values: Sequence[float]) -> None:
        """Takes values, of which none is NaN."""
        if not values:
            return
        self._tell(len(values), min(values), max(values))
        if self._sketch is None:
            self._values.extend(values)
            self._ranked = False
            if self.n > EXACT:
                self._give_up_exact()
        else:
            _put(self._sketch, values)

    def _merge(self, other: Quantiles, sketch: DDSketch) -> None:
        self._tell(other.n, other._shortest, other.longest)
        self._give_up_exact().merge(sketch)

    def _tell(self, number: int, shortest: float, longest: float) -> None:
        self.n += number
        self.longest, self._shortest = max(self.longest, longest), min(self._shortest, shortest)

    def _give_up_exact(self) -> DDSketch:
        """The sketch, which takes all values that were kept."""
        if self._sketch is None:
            from ddsketch import DDSketch

            self._sketch = DDSketch(ERROR)
            _put(self._sketch, self._values)
            self._values = array("d")
        return self._sketch

    @property
    def exact(self) -> bool:
        """True if the percentiles are exact."""
        return self._sketch is None

    def at(self, share: float) -> float:
        """The value at a share from 0 to 1. There has to be one."""
        if self._sketch is None:
            if not self._ranked:
                self._values, self._ranked = array("d", sorted(self._values)), True
            return _between(self._values, share)
        found = self._sketch.get_quantile_value(share)
        assert found is not None
        return min(max(found, self._shortest), self.longest)


def _put(sketch: DDSketch, values: Sequence[float]) -> None:
    for value, count in Counter(values).items():
        sketch.add(value, count)


def percentile(values: Sequence[float], share: float) -> float:
    """The exact percentile of some values."""
    return _between(sorted(values), share)


def _between(ranked: Sequence[float], share: float) -> float:
    place = share * (len(ranked) - 1)
    low = ranked[math.floor(place)]
    return low + (ranked[math.ceil(place)] - low) * (place - math.floor(place))
