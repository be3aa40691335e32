"""The effects that cannot be taken back."""

from __future__ import annotations

from chaoslab.search.planning.evidence import Target
from chaoslab.search.planning.risk import Asked


class Irreversibility:
    """The share of the target's effects that no other effect takes back (`undoes`); 0 for one that has none."""

    weight = 0.4
    base = 0.5

    def value(self, asked: Asked) -> float:
        found = asked.evidence.targets.get((asked.subject, asked.cell.target), Target())
        if not found.trials:
            return self.base
        return 1 - found.undoable / found.effects if found.effects else 0.0
