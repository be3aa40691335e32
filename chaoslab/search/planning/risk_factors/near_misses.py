"""The trials that nearly went wrong."""

from __future__ import annotations

from chaoslab.search.planning.risk import Asked


class NearMisses:
    """The share of the trials that met a fault at the target and ended well, though a part was left undone."""

    weight = 0.5
    base = 0.0

    def value(self, asked: Asked) -> float:
        place = asked.subject, asked.cell.target
        met = asked.evidence.met[place]
        return asked.evidence.near[place] / met if met else 0.0
