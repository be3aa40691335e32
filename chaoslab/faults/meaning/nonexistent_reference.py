"""The ids and links in the answer lead nowhere."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_reply import ChangedReply, list_argument_values
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.json_values import Place
from chaoslab.core.untrue import URLS, classify_value, make_other_url, make_untrue_value


@dataclass(frozen=True)
class NonexistentReference(ChangedReply):
    """Puts an id or link of the same form, which leads nowhere, in the place of each one in the answer.

    References are texts with the form of an id, links, links within a text, and whole numbers that repeat an argument
    or differ in every record of a list. The same reference gets the same new one everywhere. `severity` (0–1): one
    character differs at 0, all at 1, and from 0.5 on a link's host cannot exist (`.invalid`). It is drawn if it is -1.
    """

    severity: float = -1.0
    needs = "an id or a link in the answer"
    bounds: ClassVar = {"severity": (-1, 1)}
    drawn: ClassVar = {"severity": ()}
    example = '"nonexistent_reference", "search", severity=0.1, chance=0.2'
    source = "https://github.com/Arize-ai/phoenix/issues/13528"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        # Each once: a second change would be made of the first lie.
        for path in dict.fromkeys(_find_references(value, call)):
            true = json_values.get_at(value, path)
            if isinstance(true, str) and classify_value(true) == "text":
                reference: Any = URLS.sub(self._make_dead_link, true)
            else:
                # By the value alone, so that one reference has one lie wherever it stands.
                reference = make_untrue_value(true, self.severity, Dice("reference", json_values.dump_canonical(true)))
            value = json_values.replace_at(value, path, reference)
        return value

    def _make_dead_link(self, link: re.Match[str]) -> str:
        return make_other_url(link[0], self.severity, Dice("reference", link[0]))


def _find_references(value: Any, call: Call) -> Iterator[Place]:
    numbers = {entry for entry in list_argument_values(call) if type(entry) is int}
    every = json_values.find_leaves(value)
    for path in every:
        leaf = json_values.get_at(value, path)
        is_text = isinstance(leaf, str) and URLS.search(leaf) is not None
        if is_text or classify_value(leaf) in ("id", "url") or (type(leaf) is int and leaf in numbers):
            yield path
    for column in json_values.group_by_column(value, every):
        entries = [json_values.get_at(value, path) for path in column]
        are_numbers = all(classify_value(entry) == "number" and type(entry) is int for entry in entries)
        if are_numbers and len(set(entries)) == len(column) > 1:
            yield from column
