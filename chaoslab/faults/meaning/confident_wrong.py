"""The answer is wrong, and says how sure it is."""

from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply, find_informative_paths, pick_at_share
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.untrue import make_untrue_value


@dataclass(frozen=True)
class ConfidentWrong(ChangedReply):
    """Changes one value and adds that it was verified: the fields "confidence" and "verified", or words in a text.

    A value that is neither text nor in an object has no room for that; it is only wrong. `severity` (0–1) is how far
    off the value is, `point` (0–1) picks it; both are drawn if they are -1. `confidence` (0–1) is the certainty that is
    stated.
    """

    severity: float = -1.0
    point: float = -1.0
    confidence: float = 0.99
    bounds: ClassVar = {"severity": (-1, 1), "point": (-1, 1), "confidence": (0, 1)}
    drawn: ClassVar = {"severity": (), "point": ()}
    example = '"confident_wrong", "get_price", severity=0.2, chance=0.2'
    source = "https://github.com/microsoft/BotBuilder-CognitiveServices/issues/107"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        candidates = find_informative_paths(value, call)
        if not candidates:
            return value
        path = pick_at_share(candidates, self.point)
        lie = make_untrue_value(json_values.get_at(value, path), self.severity, Dice("confident_wrong", self.point))
        changed = json_values.replace_at(value, path, lie)
        holder_path = next(
            (path[:n] for n in range(len(path), -1, -1) if type(_get_value_at_depth(changed, path, n)) is dict), None
        )
        if holder_path is not None:
            true_value = json_values.get_at(changed, holder_path)
            return json_values.replace_at(
                changed, holder_path, {**true_value, "confidence": self.confidence, "verified": True}
            )
        if is_prose(lie):
            return json_values.replace_at(changed, path, f"{lie} (verified, {self.confidence:.0%} certain)")
        return changed


def _get_value_at_depth(value: Any, path: json_values.Place, depth: int) -> Any:
    return json_values.get_at(value, path[:depth])


def is_prose(value: Any) -> bool:
    """True for words, to which others can be added."""
    return isinstance(value, str) and any(c.isspace() for c in value)
