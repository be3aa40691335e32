"""The result of one measure of a run, or the reason for its failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from chaoslab.analysis.verdict.guard import Unknown, guarded

T = TypeVar("T")


@dataclass(frozen=True)
class Section(Generic[T]):
    """One measure of a run. `unknown`: one line with the reason if the measure failed, else empty. A measure without
    data has a value that expresses it (None, an empty list, n of 0); it is not unknown."""

    _found: T | None = None
    unknown: str = ""

    @classmethod
    def of(cls, measure: Callable[[], T]) -> Section[T]:
        """The result of the measure; unknown if it raises."""
        return guarded(lambda: Section(measure()), lambda why: Section(None, why))

    @property
    def value(self) -> T:
        """The result of the measure. Raises Unknown: it failed."""
        if self.unknown:
            raise Unknown(self.unknown)
        return cast(T, self._found)
