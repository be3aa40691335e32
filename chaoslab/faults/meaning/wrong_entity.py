"""The answer is about another one: another city, another order."""

from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import (
    ChangedReply,
    find_told_places,
    is_same_question,
    list_answered,
    meaning,
    rename_entities,
    wanted_values,
)
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.untrue import make_untrue


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
        for earlier, reply in reversed(list_answered(call, context)):
            true = meaning(reply)
            if not is_same_question(earlier, call) and type(true) is type(value):
                entity = true if self.severity >= 0.5 else rename_entities(true, earlier, call)
                if json_values.spelt(entity) != json_values.spelt(value):
                    return entity
        return self._made(value, call)

    def _made(self, value: Any, call: Call) -> Any:
        repeated = {json_values.spelt(leaf_path) for leaf_path in wanted_values(call)}
        meant = set(find_told_places(value, call))
        for path in json_values.leaves(value):
            leaf = json_values.at(value, path)
            if path in meant or (self.severity >= 0.5 and json_values.spelt(leaf) in repeated):
                dice = Dice("wrong_entity", json_values.spelt(leaf))
                value = json_values.put(value, path, make_untrue(leaf, max(self.severity, 0.3), dice))
        return value
