"""The kind of an experiment, by the patterns of failure that are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaoslab.search.planning.cells import ONCE, Cell
from chaoslab.search.planning.design import Design, Known


class Pattern:
    """A fault that was survived when it came once is tried again as one that stays; else once is enough."""

    def of(self, design: Design, known: Known) -> Iterator[tuple[str, Any, str]]:
        once = known.evidence.cells.get((known.subject, Cell.of(design.target, design.fault, design.params).key))
        if once is not None and once.weight and not once.bad:
            yield "how", "always", f"once was survived {once.weight:.0f} times, so a retry may be what saves it"
        elif once is not None and once.bad:
            yield "how", ONCE, f"a known pattern: once broke it {once.bad:.0f} of {once.weight:.0f} times"
        else:
            yield "how", ONCE, "nothing is known: the mildest kind comes first"
