"""The share of the work that depends on a target."""

from __future__ import annotations

from chaoslab.search.planning.evidence import Target
from chaoslab.search.planning.risk import Asked


class Criticality:
    """The mean of two shares: the trials that call the target, and the effects that are its own; or as stated."""

    weight = 0.4
    base = 0.5

    def value(self, asked: Asked) -> float:
        if asked.cell.target in asked.stated:
            return asked.stated[asked.cell.target]
        targets = {name: found for (subject, name), found in asked.evidence.targets.items() if subject == asked.subject}
        own, effects = targets.get(asked.cell.target, Target()), sum(each.effects for each in targets.values())
        if not own.trials:
            return self.base
        return (own.called / own.trials + (own.effects / effects if effects else 0.0)) / 2
