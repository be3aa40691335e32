"""The answer shows this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.analysis.answers.facts import shows
from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.base.jsonable import line


@dataclass(frozen=True)
class AnswerContains(Assertion):
    """The answer shows `text`, or one of several spellings, as whole words and numbers."""

    text: str | Sequence[str]
    example = "{text: [21.4, 21,4]}"

    def check(self, seen: Seen) -> Miss | None:
        spellings = [self.text] if isinstance(self.text, str) else [str(each) for each in self.text]
        if seen.answer is None:
            return Miss("there is no answer")
        if shows(spellings, seen.answer):
            return None
        return seen.of_answer(
            f"the answer does not show {' or '.join(repr(each) for each in spellings)}: {line(seen.answer, 160)!r}"
        )
