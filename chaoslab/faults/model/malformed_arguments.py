"""The arguments of a tool call are no JSON, or do not fit the tool's schema."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from chaoslab.core.answers import AnswerContent, FunctionCall, truncate_json_text
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class MalformedArguments(ChangedAnswer):
    """Cuts the arguments of the first tool call after a share `part` of their text.

    Arguments that are objects have no text: Anthropic's that are not streamed, and Gemini's. There the first argument
    gets a value of another type, a list in place of a text, which the tool's schema does not allow. A call without
    arguments passes unchanged.
    """

    part: float = 0.6
    needs = "a tool call with arguments in the model's answer"
    bounds: ClassVar = {"part": (0.0, 0.99)}
    example = '"malformed_arguments", "api.openai.com", chance=0.1'
    source = "https://github.com/OpenHands/software-agent-sdk/issues/2488"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        # Without values a call whose arguments are an object has nothing of the wrong type.
        if not content.calls or (content.objects and not content.calls[0].parsed_arguments):
            return content
        first, *calls_before = content.calls
        wrong = (
            _retype_argument(first)
            if content.objects
            else replace(first, arguments=truncate_json_text(first.arguments, self.part))
        )
        return replace(content, calls=(wrong, *calls_before))


def _retype_argument(call: FunctionCall) -> FunctionCall:
    """The call with a list as its first argument, or an object where that was a list."""
    (name, value), *others = (call.parsed_arguments or {}).items()
    wrong: Any = {"items": value} if isinstance(value, list) else [value]
    return call.with_arguments({name: wrong, **dict(others)})
