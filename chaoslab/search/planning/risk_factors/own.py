"""The factors of a risk that come with the lab."""

from chaoslab.search.planning._risk import RiskQuestion
from chaoslab.search.planning.evidence import TargetKnowledge


class Criticality:
    """The mean of two shares: the trials that call the target, and the effects that are its own; or as stated."""

    weight = 0.4
    base = 0.5

    def value(self, asked: RiskQuestion) -> float:
        if asked.cell.target in asked.stated:
            return asked.stated[asked.cell.target]
        targets = {name: found for (subject, name), found in asked.evidence.targets.items() if subject == asked.subject}
        own, effects = targets.get(asked.cell.target, TargetKnowledge()), sum(each.effects for each in targets.values())
        if not own.trials:
            return self.base
        return (own.called / own.trials + (own.effects / effects if effects else 0.0)) / 2


class Irreversibility:
    """The share of the target's effects that no other effect takes back (`undoes`); 0 for one that has none."""

    weight = 0.4
    base = 0.5

    def value(self, asked: RiskQuestion) -> float:
        found = asked.evidence.targets.get((asked.subject, asked.cell.target), TargetKnowledge())
        if not found.trials:
            return self.base
        return 1 - found.undoable / found.effects if found.effects else 0.0


class NearMisses:
    """The share of the trials that met a fault at the target and ended well, though a part was left undone."""

    weight = 0.5
    base = 0.0

    def value(self, asked: RiskQuestion) -> float:
        place = asked.subject, asked.cell.target
        met = asked.evidence.met[place]
        return asked.evidence.near[place] / met if met else 0.0
