"""Faults change nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from chaoslab.analysis.answers.compare import Likeness, compare
from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.base.identity import canonical


@dataclass(frozen=True)
class SameAsTwin(Assertion):
    """The answer has the same values as the twin's, the trial without faults, and the effects are the same."""

    example = "same_as_twin"

    def check(self, seen: Seen) -> Miss | None:
        if seen.twin is None:
            return Miss("there is no twin to compare with")
        twin = Seen(seen.twin, seen.twin.trials[0], seen.verdict)
        if seen.answer is None or twin.answer is None:
            return Miss("there is no answer" if seen.answer is None else "its twin has no answer")
        found = compare(twin.answer, seen.answer)
        if found.likeness is not Likeness.SAME:
            return seen.of_answer(f"the answer is not its twin's: {found.said}")
        counts = [Counter(canonical([e.effect, e.content]) for _, e in each.effects()) for each in (twin, seen)]
        if counts[0] != counts[1]:
            made = [record for record, _ in seen.effects()]
            return Miss.at(f"it has {counts[1].total()} effects, its twin {counts[0].total()}, and they differ", *made)
        return None
