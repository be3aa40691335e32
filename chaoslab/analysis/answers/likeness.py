"""The result of comparing two answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Likeness(StrEnum):
    """The result of comparing two answers."""

    SAME = "same"
    OTHER = "other"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Comparison:
    """The likeness of two answers. `said`: the finding, as part of a line. `lies`: the answer has a value that the
    other lacks, in a sentence that admits no failure."""

    likeness: Likeness
    said: str
    lies: bool = False
