"""The time that a trial may take."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

from chaoslab.base.durations import duration
from chaoslab.search.planning.design import Design, Known, every

LEAST_S = 1.0


class Duration:
    """The mean of the past trials at the target, and three standard deviations and the fault's own time more."""

    def of(self, design: Design, known: Known) -> Iterator[tuple[str, Any, str]]:
        rows = [*every(known.evidence, known.subject, design.target)]
        count = sum(each.timed for each in rows)
        if count < 2:
            return
        mean = sum(each.seconds for each in rows) / count
        spread = sqrt(max(0.0, sum(each.squares for each in rows) / count - mean * mean))
        dose_s = design.cell.dose or 0.0
        value = round(max(LEAST_S, mean + 3 * spread) + dose_s, 1)
        more = f", and the fault takes {duration(dose_s)}" if dose_s else ""
        yield "deadline_s", value, f"{count} past trials took {duration(mean)} ± {duration(spread)}{more}"
