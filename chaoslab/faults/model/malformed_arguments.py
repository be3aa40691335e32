"""The arguments of a tool call are no JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from chaoslab.core.answers import Answers, Said
from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.exchange import Call


@dataclass(frozen=True)
class MalformedArguments(ChangedAnswer):
    """Cuts the arguments of the first tool call after a share `part` of their text. Formats whose arguments are objects
    cannot say this, so their answers pass unchanged."""

    part: float = 0.6
    bounds: ClassVar = {"part": (0.0, 0.99)}
    example = '"malformed_arguments", "api.openai.com", chance=0.1'

    def changed(self, said: Said, answers: Answers, call: Call) -> Said:
        if not said.calls or answers.objects:
            return said
        first, *others = said.calls
        text = first.arguments
        broken = text[: min(len(text) - 1, max(1, int(len(text) * self.part)))] or "{"
        return replace(said, calls=(replace(first, arguments=broken), *others))
