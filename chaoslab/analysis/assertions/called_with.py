"""A tool is called with these arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.base.jsonable import brief


@dataclass(frozen=True)
class CalledWith(Assertion):
    """A call of `tool` (a name or a pattern) has these `arguments`, among others."""

    tool: str
    arguments: Mapping[str, Any]
    example = "{tool: refund, arguments: {order: 17}}"

    def check(self, seen: Seen) -> Miss | None:
        made = seen.started(self.tool)
        if not made:
            return Miss(f"{self.tool} was not called")
        for _, event in made:
            given = event.arguments if isinstance(event.arguments, dict) else {}
            if all(key in given and given[key] == value for key, value in self.arguments.items()):
                return None
        said = brief(made[0][1].arguments, 120)
        return Miss.at(
            f"no call of {self.tool} has {brief(dict(self.arguments), 120)}; the first has {said}",
            *(r for r, _ in made),
        )
