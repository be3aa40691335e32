"""The answer says what could not be done."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.answers.admit import admits
from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.base.jsonable import line


@dataclass(frozen=True)
class AdmitsFailure(Assertion):
    """The answer states in its own words that something could not be done, or may not have been."""

    example = "admits_failure"

    def check(self, seen: Seen) -> Miss | None:
        if seen.answer is None:
            return Miss("there is no answer")
        return None if admits(seen.answer) else seen.of_answer(f"the answer admits nothing: {line(seen.answer, 160)!r}")
