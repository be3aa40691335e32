"""What people and models said of the answers of a run, kept beside its log: labels by trial, a model's replies by the
hash of its question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Opinion:
    """A model's reply. `said`: the name of what the answer says, such as "admits it"."""

    said: str
    model: str


@dataclass(frozen=True)
class Spoken:
    """Labels by trial, and replies by the hash of their question. `trusted`: the model agreed with the labels as often
    as the user asked for."""

    labels: Mapping[str, str] = field(default_factory=dict)
    opinions: Mapping[str, Opinion] = field(default_factory=dict)
    trusted: bool = False

    def __bool__(self) -> bool:
        return bool(self.labels or self.opinions)


SILENT = Spoken()
"""Nobody said anything."""
