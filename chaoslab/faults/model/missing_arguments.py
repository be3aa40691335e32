"""A tool call lacks an argument."""

from dataclasses import dataclass, replace

from chaoslab.core.answers import AnswerContent
from chaoslab.core.changed_answer import ChangedAnswer


@dataclass(frozen=True)
class MissingArguments(ChangedAnswer):
    """Leaves the last argument of the first tool call out; all of them with `all`."""

    all: bool = False
    needs = "a tool call with arguments in the model's answer"
    example = '"missing_arguments", "api.openai.com", chance=0.1'
    source = "https://github.com/esengine/DeepSeek-Reasonix/pull/621"

    def change_content(self, content: AnswerContent) -> AnswerContent:
        values = content.calls[0].parsed_arguments if content.calls else None
        if not values:
            return content
        values_kept = {} if self.all else dict(list(values.items())[:-1])
        return replace(content, calls=(content.calls[0].with_arguments(values_kept), *content.calls[1:]))
