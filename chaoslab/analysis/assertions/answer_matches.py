"""The answer matches a pattern."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaoslab.analysis.answers.values import READ_MAX
from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.base.jsonable import line


@dataclass(frozen=True)
class AnswerMatches(Assertion):
    """`pattern` (a regular expression) is found in the first 20,000 characters of the answer."""

    pattern: str
    example = "{pattern: '(?i)refunded \\\\d+'}"

    def check(self, seen: Seen) -> Miss | None:
        if seen.answer is None:
            return Miss("there is no answer")
        if re.search(self.pattern, seen.answer[:READ_MAX]):
            return None
        return seen.of_answer(f"{self.pattern!r} is not found in the answer: {line(seen.answer, 160)!r}")

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"pattern of answer_matches cannot be read: {error}") from None
