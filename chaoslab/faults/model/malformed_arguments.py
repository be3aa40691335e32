"""The arguments of a tool call are no JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from chaoslab.core.answers import Said, text_cut
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class MalformedArguments(ChangedAnswer):
    """Cuts the arguments of the first tool call after a share `part` of their text. Where arguments are objects nobody
    can say this, so such answers pass unchanged: Anthropic's that are not streamed, and Gemini's."""

    part: float = 0.6
    of_text = True
    bounds: ClassVar = {"part": (0.0, 0.99)}
    example = '"malformed_arguments", "api.openai.com", chance=0.1'

    def changed(self, said: Said) -> Said:
        if not said.calls or said.objects:
            return said
        first, *others = said.calls
        return replace(said, calls=(replace(first, arguments=text_cut(first.arguments, self.part)), *others))
