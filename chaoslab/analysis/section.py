"""What one measure says of a run, or why it says nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from chaoslab.analysis.measures.guard import Unknown, guarded

T = TypeVar("T")


@dataclass(frozen=True)
class Section(Generic[T]):
    """One measure of a run. `unknown`: in one line, why the measure failed; empty where it did not.

    A measure of which there are no data has a value that says so (None, an empty list, n of 0); it is not unknown.
    """

    _found: T | None = None
    unknown: str = ""

    @classmethod
    def of(cls, measure: Callable[[], T]) -> Section[T]:
        """What the measure gives; unknown where it raises."""
        return guarded(lambda: Section(measure()), lambda why: Section(None, why))

    @property
    def value(self) -> T:
        """What the measure gave.

        Raises:
            Unknown: it failed.
        """
        if self.unknown:
            raise Unknown(self.unknown)
        return cast(T, self._found)
