"""The model answers by itself, with figures that nobody gave it."""

import re
from dataclasses import dataclass, replace

from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class Confabulation(ChangedAnswer):
    """Changes every number in the text of an answer that calls no tool, or, with `instead_of_calls`, answers a question
    for a tool with a number from nowhere."""

    instead_of_calls: bool = False
    leaves = "value"
    example = '"confabulation", "api.openai.com", chance=0.1'
    source = "https://github.com/langgenius/dify/issues/40671"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        if content.calls:
            return AnswerContent("It is 4711.") if self.instead_of_calls else content
        text = NUMBER.sub(lambda match: _change_digits(match[0]), content.text)
        return replace(content, text=text) if text != content.text else content


NUMBER = re.compile(r"\d+")


def _change_digits(digits: str) -> str:
    """Another number with as many digits."""
    # Digit by digit, so that the number keeps its length; none stays as it is.
    return "".join(str((int(digit) + 3) % 10) for digit in digits)
