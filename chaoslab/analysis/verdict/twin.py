"""The same trial without faults, which a trial is held against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Twin:
    """The results of the same trial without faults, for a comparison. `answer`: None if it cannot be compared.
    `seconds`: in the world's time; None if it cannot be compared. `calls`: the number of attempts. `effects`: the
    effects, as those that must happen again, if nothing else was stated about the trial."""

    answer: str | None
    seconds: float | None
    calls: int
    effects: Sequence[Mapping[str, Any]] | None = None
