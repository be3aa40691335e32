"""The dose of an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaoslab.base.durations import duration
from chaoslab.search.planning.cells import dose_of
from chaoslab.search.planning.design import Design, Known


class Dose:
    """The informative edge: between the largest known safe dose and the smallest known unsafe one."""

    def of(self, design: Design, known: Known) -> Iterator[tuple[str, Any, str]]:
        name = dose_of(design.fault)
        if not name or name in design.params or design.params.get("preset"):
            return
        seen = known.evidence.range(known.subject, design.cell)
        if seen.next is not None and seen.ends != (None, None):
            yield "params", {name: seen.next}, f"{seen}; halfway is {duration(seen.next)}"
        elif seen.edge is not None:
            yield "params", {name: round(seen.edge, 3)}, f"{seen}, which is known within 15 %"
