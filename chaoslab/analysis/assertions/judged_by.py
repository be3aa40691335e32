"""A model as the judge finds that a statement about the answer is true."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.analysis.opinion import opinion
from chaoslab.core.events import PromptStarted, TurnStarted


@dataclass(frozen=True)
class JudgedBy(Assertion):
    """The model at JUDGE_URL, called JUDGE_MODEL, finds that `statement` is true of the answer. If it cannot be asked
    or gives no verdict, the trial is invalid. It costs a request for each trial, and may err."""

    statement: str
    asks = True
    example = "{statement: It tells the customer when the parcel comes.}"

    def check(self, seen: Seen) -> Miss | None:
        if seen.answer is None:
            return Miss("there is no answer")
        found = opinion(seen.ask, self.statement, _prompt(seen), seen.answer)
        seen.opinions.append(found)
        return None if found.holds else seen.of_answer(f"the judge {found.model} says no: {found.why}")


def _prompt(seen: Seen) -> str:
    """The user's words, of the turn if one is looked at."""
    if seen.turn is not None:
        return next((event.prompt for _, event in seen.of(TurnStarted) if event.turn == seen.turn), "")
    return next((event.prompt for _, event in seen.of(PromptStarted)), "")
