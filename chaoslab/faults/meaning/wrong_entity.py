"""The answer is about another one: another city, another order."""

from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import (
    ChangedReply,
    decode_reply_value,
    find_informative_paths,
    is_same_call,
    list_answered_calls,
    list_argument_values,
    replace_echoed_arguments,
)
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.untrue import make_untrue_value


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

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        for earlier, reply in reversed(list_answered_calls(call, context)):
            true = decode_reply_value(reply)
            if not is_same_call(earlier, call) and type(true) is type(value):
                entity = true if self.severity >= 0.5 else replace_echoed_arguments(true, earlier, call)
                if json_values.dump_canonical(entity) != json_values.dump_canonical(value):
                    return entity
        return self._make_other_entity(value, call)

    def _make_other_entity(self, value: Any, call: Call) -> Any:
        repeated = {json_values.dump_canonical(leaf_path) for leaf_path in list_argument_values(call)}
        meant = set(find_informative_paths(value, call))
        for path in json_values.find_leaves(value):
            leaf = json_values.get_at(value, path)
            if path in meant or (self.severity >= 0.5 and json_values.dump_canonical(leaf) in repeated):
                dice = Dice("wrong_entity", json_values.dump_canonical(leaf))
                value = json_values.replace_at(value, path, make_untrue_value(leaf, max(self.severity, 0.3), dice))
        return value
