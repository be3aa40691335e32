"""The answer is about another one: another city, another order."""

from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import (
    ChangedReply,
    answered,
    meaning,
    renamed,
    same_question,
    told_places,
    wanted_values,
)
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.untrue import untrue


@dataclass(frozen=True)
class WrongEntity(ChangedReply):
    """Answers with the record of another one: the latest answer of this trial to the same tool with other arguments,
    else one that is made of the true answer.

    `severity` (0–1): below 0.5 the answer repeats the arguments of this call, so that nothing in it tells of the
    mistake; from 0.5 on it names the other one. It is drawn if it is -1.
    """

    severity: float = -1.0
    looks_back = True
    bounds: ClassVar = {"severity": (-1, 1)}
    drawn: ClassVar = {"severity": ()}
    example = '"wrong_entity", "get_order", severity=0.8, chance=0.2'
    source = "https://github.com/morcen/passage/issues/111"

    def changed(self, value: Any, call: Call, context: TrialContext) -> Any:
        for earlier, reply in reversed(answered(call, context)):
            true = meaning(reply)
            if not same_question(earlier, call) and type(true) is type(value):
                other = true if self.severity >= 0.5 else renamed(true, earlier, call)
                if json_values.spelt(other) != json_values.spelt(value):
                    return other
        return self._made(value, call)

    def _made(self, value: Any, call: Call) -> Any:
        repeated = {json_values.spelt(each) for each in wanted_values(call)}
        meant = set(told_places(value, call))
        for place in json_values.leaves(value):
            held = json_values.at(value, place)
            if place in meant or (self.severity >= 0.5 and json_values.spelt(held) in repeated):
                dice = Dice("wrong_entity", json_values.spelt(held))
                value = json_values.put(value, place, untrue(held, max(self.severity, 0.3), dice))
        return value
