"""The duration of each prompt from question to answer."""

from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.events import PromptFinished
from chaoslab.record.history import History


@dataclass(frozen=True)
class Response:
    """One prompt that ended. `place`: its number in the order asked, from 1. `duration_s` is NaN if the log lacks
    it."""

    trial: str
    place: int
    duration_s: float


def responses(history: History) -> list[Response]:
    """Every prompt that ended, in the order of ending."""
    places = {trial: place for place, trial in enumerate(history.trials, 1)}
    return [
        Response(record.trial, places[record.trial], e.duration_s)
        for record, e in history.of(PromptFinished)
        if record.trial is not None and record.trial in places
    ]
