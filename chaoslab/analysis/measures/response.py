"""The duration of each prompt from question to answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaoslab.core.events import PromptFinished
from chaoslab.record.history import History


@dataclass(frozen=True, slots=True)
class Response:
    """One prompt that ended. `place`: its number in the order asked, from 1. `duration_s` is NaN if the log lacks
    it."""

    trial: str
    place: int
    duration_s: float


@dataclass
class Ended:
    """Collects the prompts that ended in batches."""

    found: list[Response] = field(default_factory=list)
    began: int = 0

    def take(self, history: History) -> None:
        places = {trial: (trial, place) for place, trial in enumerate(history.trials, self.began + 1)}
        self.began += len(history.trials)
        for record, event in history.of(PromptFinished):
            if record.trial is not None and record.trial in places:
                self.found.append(Response(*places[record.trial], event.duration_s))  # a key that others have too


def responses(history: History) -> list[Response]:
    """Every prompt that ended, in the order of ending."""
    found = Ended()
    found.take(history)
    return found.found
