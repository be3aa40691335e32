"""The answer was true some time ago."""

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, ClassVar, Self

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply, find_informative_paths
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.untrue import classify_value, make_untrue_value, shift_date, shift_moment


@dataclass(frozen=True)
class OutdatedInfo(ChangedReply):
    """Moves all moments of the answer `age_days` days back, and its numbers as far as they may have moved since.

    Without any of both, one text is another. `age_days` is drawn from 1 to 730 if it is 0. `severity` (0–1) is how far
    the numbers have moved; it follows from the age if it is -1: a year and more is 0.5.
    """

    age_days: int = 0
    severity: float = -1.0
    bounds: ClassVar = {"age_days": (0, 36_500), "severity": (-1, 1)}
    example = '"outdated_info", "get_price", age_days=90, chance=0.2'
    source = "https://github.com/weather-gov/api/issues/71"

    # Even over the orders of magnitude: half of the ages are below four weeks.
    def draw(self, dice: Dice) -> Self:
        age_days = self.age_days or round(730 ** dice("age_days").uniform())
        severity = self.severity if self.severity >= 0 else min(age_days, 365) / 730
        return replace(self, age_days=age_days, severity=severity)

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        before, meant = value, dict.fromkeys(find_informative_paths(value, call))
        for path in json_values.find_leaves(value):
            leaf = json_values.get_at(value, path)
            sort = classify_value(leaf)
            if sort == "moment":
                value = json_values.replace_at(value, path, self._shift_moment_back(leaf))
            elif sort == "number" and path in meant:
                value = json_values.replace_at(
                    value, path, make_untrue_value(leaf, self.severity, Dice("outdated", *path))
                )
        # By identity: put gives back another value.
        if value is before and meant:
            path = next(iter(meant))
            value = json_values.replace_at(
                value, path, make_untrue_value(json_values.get_at(value, path), self.severity, Dice("outdated"))
            )
        return value

    def _shift_moment_back(self, moment: Any) -> Any:
        try:  # not `shifted`, which goes the other way at the end of the calendar
            if isinstance(moment, str):
                return shift_date(moment, -self.age_days)
            return (
                moment - timedelta(days=self.age_days)
                if isinstance(moment, date)
                else shift_moment(moment, -self.age_days)
            )
        except (ValueError, OverflowError):
            return make_untrue_value(moment, self.severity, Dice("outdated"))
