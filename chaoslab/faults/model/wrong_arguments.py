"""The model calls the right tool with an argument that is wrong, and looks right."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.changed_reply import pick_at_share
from chaoslab.core.untrue import make_untrue_value


@dataclass(frozen=True)
class WrongArguments(ChangedAnswer):
    """Changes an argument of the first tool call; its JSON stays whole.

    `how` "value": one argument has another value of its type and form, up to `severity` (0–1) off, as in a wrong city
    or order. "name": one argument has a name that the tool's schema does not know. `point` (0–1) picks the argument; it
    is drawn if it is -1. A call without arguments passes unchanged.
    """

    how: Literal["value", "name"] = "value"
    severity: float = 0.5
    point: float = -1.0
    leaves = "value"
    needs = "a tool call with arguments in the model's answer"
    bounds: ClassVar = {"severity": (0, 1), "point": (-1, 1)}
    drawn: ClassVar = {"point": ()}
    example = '"wrong_arguments", "api.openai.com", chance=0.1'
    source = "https://github.com/floritange/AgentChaos/blob/main/docs/faults.md"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        values = content.calls[0].parsed_arguments if content.calls else None
        if not values:
            return content
        if self.how == "name":
            picked = pick_at_share(list(values), self.point)
            changed_values = {f"{name}_value" if name == picked else name: value for name, value in values.items()}
        else:
            leaves = json_values.find_leaves(values)
            if not leaves:
                return content
            path = pick_at_share(leaves, self.point)
            argument = json_values.get_at(values, path)
            lie = make_untrue_value(
                argument, self.severity, Dice("wrong_arguments", json_values.dump_canonical(argument))
            )
            changed_values = json_values.replace_at(values, path, lie)
        return replace(content, calls=(content.calls[0].with_arguments(changed_values), *content.calls[1:]))
