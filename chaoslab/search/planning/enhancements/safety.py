"""The limits and the stop conditions of an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaoslab.search.planning.design import Design, Known

RISKY = 0.3
"""The risk from which on an experiment is held to a part of the traffic."""


class Safety:
    """At most a tenth of the traffic and one fault at a time where the risk is high; an end with the first harm."""

    def of(self, design: Design, known: Known) -> Iterator[tuple[str, Any, str]]:  # noqa: ARG002
        if known.risk.value >= RISKY:
            yield "limits", {"share": 0.1, "at_once": 1}, f"the risk is {known.risk.value:.2f}, {RISKY} or more"
        yield "stop", ("harm > 0",), f"the chance of harm is {known.risk.harm:.0%}"
