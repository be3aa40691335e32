"""The stream ends in the middle of a tool call's arguments, as if it had ended as it should."""

from dataclasses import dataclass, replace
from typing import ClassVar

from chaoslab.core.answers import AnswerContent, truncate_json_text
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class CutArguments(ChangedAnswer):
    """Cuts the arguments of a streamed answer's last tool call after a share `part` of their text; the stream ends
    properly. Gemini's arguments are objects, so its answers pass unchanged, and so do whole ones: `malformed_arguments`
    acts on them."""

    part: float = 0.5
    layer = "stream"
    of_text = True
    leaves = "part"
    needs = "a streamed answer that calls a tool with arguments"
    bounds: ClassVar = {"part": (0.0, 0.99)}
    example = '"cut_arguments", "api.openai.com", chance=0.1'
    source = "https://github.com/anthropics/claude-code/issues/19143"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        # Gemini's arguments are objects: there is no text that could be cut.
        if not content.calls or content.objects:
            return content
        *calls_before, last = content.calls
        return replace(
            content, calls=(*calls_before, replace(last, arguments=truncate_json_text(last.arguments, self.part)))
        )
