"""The spells of a run: the times over which one lasting fault hit the attempts of a trial."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, groupby
from typing import Any

from chaoslab.analysis.measures.latency import Attempt, every_attempt
from chaoslab.analysis.verdict import traits
from chaoslab.core.events import FaultWitnessed, RunStarted, faults_of
from chaoslab.record.history import History

LASTING = ("for_s", "for_good", "burst")
"""The beginnings of a persistence that lasts for more than one attempt."""


@dataclass(frozen=True)
class FaultSpell:
    """One fault at one target of one trial. `began_t`, `ended_t`: the start of the first attempt that met it and the
    end of the last, in seconds since the run's start."""

    trial: str
    target: str
    fault: str
    began_t: float
    ended_t: float


@dataclass
class Spells:
    """Collects the spells of batches: two or more attempts on end that met the fault. A fault that is drawn for each
    attempt anew has none, however often it hits."""

    found: list[FaultSpell] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lasting: frozenset[str] = frozenset()
        self._of_process = cache(traits.of_process)

    def take(self, history: History) -> None:
        if (started := history.first(RunStarted)) is not None:
            self._lasting = frozenset(_lasting(started.injections))
        names = {event.fault for _, event in history.of(FaultWitnessed)}
        if any(map(self._lasts, names)):
            self.add(every_attempt(history))

    def add(self, attempts: Sequence[Attempt]) -> None:
        """Adds the attempts of whole trials, in the order in which they ended."""
        places: dict[tuple[str, str], list[Attempt]] = {}
        for attempt in attempts:
            if attempt.faults or (attempt.trial, attempt.target) in places:
                places.setdefault((attempt.trial, attempt.target), []).append(attempt)
        for (trial, target), there in places.items():
            for fault in {*chain.from_iterable(attempt.faults for attempt in there)}:
                if self._lasts(fault):
                    self.found += [FaultSpell(trial, target, fault, *ends) for ends in _on_end(there, fault)]

    def _lasts(self, fault: str) -> bool:
        return fault in self._lasting or self._of_process(fault)

    def result(self) -> Sequence[FaultSpell]:
        """The spells in the order in which they began."""
        return sorted(self.found, key=lambda spell: (spell.began_t, spell.trial, spell.target, spell.fault))


def _on_end(attempts: Sequence[Attempt], fault: str) -> Iterator[tuple[float, float]]:
    """The times of the attempts on end that met the fault, where they are more than one."""
    for met, group in groupby(attempts, key=lambda attempt: fault in attempt.faults):
        mine = list(group)
        if met and len(mine) > 1:
            first = mine[0]
            began_t = first.t - (0.0 if math.isnan(first.duration_s) else first.duration_s)
            yield began_t, mine[-1].t


def _lasting(injections: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The faults that a plan lets last, and lets come in no other way."""
    brief: set[str] = set()
    lasting: set[str] = set()
    for injection in injections:
        triggers = injection.get("triggers") or {}
        lasts = "window_s" in triggers or str(triggers.get("persistence", "")).startswith(LASTING)
        (lasting if lasts else brief).update(faults_of(injection))
    yield from lasting - brief
