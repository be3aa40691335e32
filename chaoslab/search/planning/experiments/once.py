"""A fault that comes and goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection
from chaoslab.search.planning.cells import Cell


class Once:
    """The first call of the target meets the fault."""

    def injection(self, cell: Cell) -> Injection:
        return inject(cell.fault, cell.target, calls=[1], **cell.parameters)

    def is_one(self, injection: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """All that no other kind knows."""
        return False
