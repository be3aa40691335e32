"""The answer ends in the middle, since the tokens it may have are used up."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from chaoslab.core.answers import AnswerContent, FunctionCall, truncate_json_text, truncate_to_word_share
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class FinishLength(ChangedAnswer):
    """Keeps a share `part` of the answer and gives the format's own reason for one that was too long.

    `tool_calls` "lost": the words are cut and the calls are gone. "cut": the last call has that share of its arguments;
    where they are objects, as Anthropic's that are not streamed and Gemini's, that share of their values. An answer
    without calls is cut in its words.
    """

    part: float = 0.5
    tool_calls: Literal["lost", "cut"] = "lost"
    leaves = "part"
    bounds: ClassVar = {"part": (0.0, 1.0)}
    example = '"finish_length", "api.openai.com", part=0.3'
    source = "https://github.com/agent0ai/agent-zero/issues/1836"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        if self.tool_calls == "cut" and content.calls:
            *calls_before, last = content.calls
            return replace(
                content, calls=(*calls_before, self._cut_arguments(last, objects=content.objects)), finish="length"
            )
        return AnswerContent(truncate_to_word_share(content.text, self.part), finish="length")

    def _cut_arguments(self, call: FunctionCall, *, objects: bool) -> FunctionCall:
        if not objects:
            return replace(call, arguments=truncate_json_text(call.arguments, self.part))
        values = list((call.parsed_arguments or {}).items())
        # At least one value is lost, or nothing would be wrong.
        return call.with_arguments(dict(values[: min(len(values) - 1, int(len(values) * self.part))] if values else ()))
