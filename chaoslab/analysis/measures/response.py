"""The duration of each prompt from question to answer."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

from chaoslab.core.events import PromptFinished
from chaoslab.record.history import History


@dataclass(frozen=True, slots=True)
class Response:
    """One prompt that ended. `place`: its number in the order asked, from 1. `duration_s` is NaN if the log lacks
    it."""

    trial: str
    place: int
    duration_s: float


class Responses(Sequence[Response]):
    """Prompts that ended, of which each is made when it is asked for: a long run has many."""

    def __init__(self) -> None:
        self._trials: list[str] = []
        self._places, self._durations_s = array("q"), array("d")

    def add(self, trial: str, place: int, duration_s: float) -> None:
        self._trials.append(trial)
        self._places.append(place)
        self._durations_s.append(duration_s)

    def __len__(self) -> int:
        return len(self._trials)

    @overload
    def __getitem__(self, at: int) -> Response: ...
    @overload
    def __getitem__(self, at: slice) -> list[Response]: ...
    def __getitem__(self, at: int | slice) -> Response | list[Response]:
        if isinstance(at, slice):
            return [*self][at]
        return Response(self._trials[at], self._places[at], self._durations_s[at])

    def __iter__(self) -> Iterator[Response]:
        return map(Response, self._trials, self._places, self._durations_s)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    def __repr__(self) -> str:
        return repr([*self])

    __hash__ = None  # type: ignore[assignment]


@dataclass
class Ended:
    """Collects the prompts that ended in batches."""

    found: Responses = field(default_factory=Responses)
    began: int = 0

    def take(self, history: History) -> None:
        places = {trial: (trial, place) for place, trial in enumerate(history.trials, self.began + 1)}
        self.began += len(history.trials)
        for record, event in history.of(PromptFinished):
            if record.trial is not None and record.trial in places:
                self.found.add(*places[record.trial], event.duration_s)  # a key that others have too
