"""The numbers in the answer are in another unit than they should be."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal

from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply, find_informative_paths, pick_at_share
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.untrue import classify_value

Unit = Literal["", "fahrenheit", "thousand", "thousandth", "sixty", "hundred"]
KINDS: dict[Unit, tuple[float, float]] = {
    "fahrenheit": (1.8, 32.0), "thousand": (1000.0, 0.0), "thousandth": (0.001, 0.0), "sixty": (60.0, 0.0),
    "hundred": (100.0, 0.0),
}  # fmt: skip
"""Each with its factor and what is added: °C as °F, kg as g, g as kg, hours as minutes, euros as cents."""
# No part of a date, a time, an id or a version, which have no unit; 15 digits are what a float holds exactly.
_NUMBER = re.compile(r"(?<![\w.:-])-?\d{1,15}(?:\.\d{1,15})?(?![\w:.-]*\d)")


@dataclass(frozen=True)
class UnitError(ChangedReply):
    """Gives one quantity of the answer in another unit, in all records of a list.

    `kind` is "fahrenheit" (×1.8 + 32), "thousand" (×1000), "thousandth" (×0.001), "sixty" (×60) or "hundred" (×100),
    drawn if it is "". `factor` multiplies by any other number, unless it is 0. `point` (0–1) picks the quantity; it is
    drawn if it is -1. In a text without JSON it is the first number.
    """

    kind: Unit = ""
    factor: float = 0.0
    point: float = -1.0
    needs = "a number in the answer"
    bounds: ClassVar = {"factor": (0, 1e9), "point": (-1, 1)}
    drawn: ClassVar = {"point": (), "kind": tuple(KINDS)}
    example = '"unit_error", "weather", kind="fahrenheit", chance=0.2'
    source = "https://github.com/Pirate-Weather/pirateweather/issues/71"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        meant = [
            path for path in find_informative_paths(value, call) if self._can_convert(json_values.get_at(value, path))
        ]
        numbers = [path for path in meant if not isinstance(json_values.get_at(value, path), str)]
        columns = json_values.group_by_column(value, numbers or meant)
        for path in pick_at_share(columns, self.point) if columns else ():
            value = json_values.replace_at(value, path, self._convert_unit(json_values.get_at(value, path)))
        return value

    def _can_convert(self, value: Any) -> bool:
        if isinstance(value, str):
            return classify_value(value) in ("number", "text") and self._convert_unit(value) != value
        return classify_value(value) == "number" and math.isfinite(value) and self._convert_unit(value) != value

    def _convert_unit(self, value: Any) -> Any:
        if isinstance(value, str):
            return _NUMBER.sub(lambda match: str(self._convert_unit(_parse_number(match[0]))), value, count=1)
        factor, plus = (self.factor, 0.0) if self.factor else KINDS[self.kind or "thousand"]
        # By way of str, since Decimal(0.001) has the float's own error in it.
        if isinstance(value, Decimal):
            return value * Decimal(str(factor)) + Decimal(str(plus))
        if isinstance(value, int) and abs(value) >= 10**15:
            return value * max(2, round(factor))  # beyond what a float holds exactly
        # A product of floats has a tail that no service would send, as 1.1 * 1.8 = 1.9800000000000002.
        converted = round(value * factor + plus, 6)
        if not math.isfinite(converted):
            return value
        return int(converted) if isinstance(value, int) and converted == int(converted) else converted


def _parse_number(text: str) -> float:
    # An integer stays one: 12 kg are 12000 g, not 12000.0.
    return float(text) if "." in text else int(text)
