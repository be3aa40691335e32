"""Hits the calls of some tools of the target."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property
from typing import Any

from chaoslab.core.occasion import Met, Occasion
from chaoslab.core.triggers import Trigger

KNOWN_MAX = 256


@dataclass(frozen=True)
class Tool(Trigger):
    """Holds for the calls of a tool whose name matches the pattern; `*` stands for any text."""

    value: str
    should_be = "a tool's name, or a pattern such as 'get_*'"
    place = True
    order = 1

    @classmethod
    def of(cls, value: Any) -> Tool:
        if not isinstance(value, str) or not value or len(value) > 200:
            raise cls.refused()
        return cls(value)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(translate(self.value))

    def holds(self, occasion: Occasion, met: Met) -> bool:
        matches = self._known.get(occasion.tool)
        if matches is None:
            if len(self._known) == KNOWN_MAX:
                self._known.clear()
            matches = self._known[occasion.tool] = self._pattern.match(occasion.tool) is not None
        return matches

    @cached_property
    def _known(self) -> dict[str, bool]:
        """The names that were asked about, since most are asked about again."""
        return {}
