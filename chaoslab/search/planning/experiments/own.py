"""The kinds of experiment that come with the lab."""

from collections.abc import Mapping
from typing import Any

from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection
from chaoslab.search.planning.cells import Cell


class Always:
    """Each call of the target meets the fault, retries included."""

    def injection(self, cell: Cell) -> Injection:
        return inject(cell.fault, cell.target, **cell.parameters)

    def is_one(self, injection: Mapping[str, Any]) -> bool:
        return injection.get("chance") == 1 and not injection.get("calls") and not injection.get("triggers")


class Once:
    """The first call of the target meets the fault."""

    def injection(self, cell: Cell) -> Injection:
        return inject(cell.fault, cell.target, calls=[1], **cell.parameters)

    def is_one(self, injection: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """All that no other kind knows."""
        return False
