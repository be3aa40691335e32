"""Bounds on measures, as a campaign's file states them: "error_rate > 0.2 over 60s", "< 0.2s", "10%"."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chaoslab.base import parsers

MEASURES: Mapping[str, str] = {
    "error_rate": "share of calls that failed, 0 to 1; calls in virtual time are no traffic and do not count",
    "slo_burn": "share of the same calls beyond `slo`, by the share that it allows: 1 uses up the allowance exactly",
    "latency_s": "mean duration of the same calls in seconds",
    "harm": "trials that ended in harm",
    "failed": "trials that failed their scenario",
    "faults": "faults that were met",
    "cost": "dollars of the model's answers",
}
"""The measures of a campaign's runs, and their meanings."""
RATED = ("error_rate", "slo_burn", "latency_s")
"""Those that are taken over a time."""
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq,
}  # fmt: skip
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)\s*(%|[a-z]+)?")
_BOUND = re.compile(r"\s*(>=|<=|>|<|=)?(.*)", re.DOTALL)
_CONDITION = re.compile(r"\s*(\w+)\s*(>=|<=|>|<|=)\s*(.+?)(?:\s+over\s+(.+?))?\s*")
LIKE = "as in 'error_rate > 0.2 over 60s'"


def parse_number(text: str) -> float:
    """The number of a text such as "0.2", "10%" or "5m", which is 300 seconds. Raises ValueError: it is none; the
    message says what it should be."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or (match[2] not in (None, "%") and match[2] not in parsers.UNITS):
        raise ValueError("a number, a share such as 10%, or a duration such as 0.2s or 5m")
    return float(match[1]) * (0.01 if match[2] == "%" else parsers.UNITS[match[2]] if match[2] else 1.0)


@dataclass(frozen=True)
class Bound:
    """A comparison with a number. `tolerance`: the distance from it that still counts as equal."""

    sign: str
    value: float
    tolerance: float = 0.0

    @classmethod
    def parse(cls, text: str, tolerance: str = "") -> Bound:
        """The bound in a text such as "< 0.2s" or "200". `tolerance`: a number, or a share of the value. Raises
        ValueError: it is none; the message says what it should be."""
        match = _BOUND.fullmatch(text)
        assert match is not None
        value, within = parse_number(match[2]), parse_number(tolerance) if tolerance else 0.0
        if within < 0 or (within and (match[1] or "=") != "="):
            raise ValueError("a value alone if there is a tolerance, as in 200 ± 10%")
        return cls(match[1] or "=", value, within * abs(value) if tolerance.strip().endswith("%") else within)

    def is_met_by(self, value: float) -> bool:
        if self.sign == "=" and self.tolerance:
            return abs(value - self.value) <= self.tolerance
        return _COMPARE[self.sign](value, self.value)

    def __str__(self) -> str:
        around = f" ± {self.tolerance:g}" if self.tolerance else ""
        return f"{self.sign} {self.value:g}{around}"


@dataclass(frozen=True)
class StopBound:
    """A bound on a measure that ends a campaign. `over_s`: the time over which it is taken; None: all of it."""

    measure: str
    bound: Bound
    over_s: float | None = None

    @classmethod
    def parse(cls, text: str) -> StopBound:
        """The condition in a text such as "harm > 0". Raises ValueError: it is none; the message says what it should
        be."""
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise ValueError(f"a measure, a bound and maybe a time, {LIKE}")
        measure, time_text = match[1], match[4]
        require_known_measure(measure, time_text is not None)
        over_s = None if time_text is None else parsers.parse_duration(time_text)
        if over_s == 0:
            raise ValueError(f"a condition over a time above 0, {LIKE}")
        bound = Bound(match[2], parse_number(match[3]))
        if measure == "error_rate" and not bound.is_met_by(1.0) and not bound.is_met_by(0.0):
            raise ValueError(f"a condition that can hold: error_rate is a share from 0 to 1, {LIKE}")
        return cls(measure, bound, over_s)

    def __str__(self) -> str:
        time_text = "" if self.over_s is None else f" over {self.over_s:g} s"
        return f"{self.measure} {self.bound}{time_text}"


def require_known_measure(name: str, has_time: bool = False) -> None:
    """Checks that there is such a measure. `has_time`: it is taken over a time. Raises ValueError: there is none."""
    if name not in MEASURES:
        raise ValueError(f"one of {', '.join(MEASURES)}{parsers.hint_closest(name, MEASURES)}")
    if has_time and name not in RATED:
        raise ValueError(f"{name} without a time: it is counted over the whole campaign")
