"""The duration of attempts, from leaving the seam to their end. Numbers and percentiles are of all attempts. The
report's pictures draw each of them up to 100,000, and of more a part: each attempt has the same chance to be in it, and
the dice are the same in every report of a run."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from operator import attrgetter, itemgetter
from statistics import median
from sys import intern
from typing import NamedTuple, TypeVar

from chaoslab.analysis.measures.quantiles import Quantiles
from chaoslab.base.dice import Dice
from chaoslab.base.durations import duration
from chaoslab.core.events import CallDisturbed, CallFinished, FaultWitnessed
from chaoslab.record.history import History, Place
from chaoslab.record.lines import Record

T_ = TypeVar("T_")


class Attempt(NamedTuple):
    """One attempt. `t`: its end. `faults`: the names of those witnessed on it. A duration of NaN is unknown.
    `first_byte_s` and `last_byte_s` tell when a streamed reply's first and last part reached the caller; None for any
    other."""

    trial: str
    target: str
    t: float
    duration_s: float
    ok: bool
    via: str
    faults: tuple[str, ...]
    first_byte_s: float | None = None
    last_byte_s: float | None = None

    @property
    def left(self) -> bool:
        """True if it left the seam. Otherwise it was refused, or answered in place of its target."""
        return self.via != "none"

    @property
    def timed(self) -> bool:
        """True if its duration is known and the target's own."""
        return self.left and not math.isnan(self.duration_s)


@dataclass(frozen=True)
class Latency:
    """Percentiles of `n` durations (n is above 0), in seconds."""

    n: int
    p50_s: float
    p90_s: float
    p99_s: float
    longest_s: float


def summarize_latency(durations_s: Quantiles) -> Latency | None:
    """The percentiles of the durations; None without any."""
    if not durations_s:
        return None
    p50, p90, p99 = map(durations_s.at, (0.5, 0.9, 0.99))
    return Latency(len(durations_s), p50, p90, p99, durations_s.longest)


def list_attempts(history: History) -> list[Attempt]:
    """The attempts in the order in which they ended, also those that never left the seam and those without a known
    duration. Those that the lab disturbed and those that were given up are left out, since their durations are not the
    target's."""
    return _build_attempts(_select_ends(history), _faults_by_place(history))


_End = tuple[Record, CallFinished, Place]


def _select_ends(history: History) -> Sequence[_End]:
    """The ends of these attempts."""
    excluded = {at for _, _, at in history.placed(CallDisturbed)} | history.given_up
    ends = history.placed(CallFinished)
    return [end for end in ends if end[2] not in excluded] if excluded else ends


def _faults_by_place(history: History) -> Mapping[Place, tuple[str, ...]]:
    """The names of the faults witnessed on each attempt that met one."""
    faults: dict[Place, tuple[str, ...]] = {}
    for _, fault, at in history.placed(FaultWitnessed):
        names = faults.get(at, ())
        if fault.fault not in names:
            faults[at] = (*names, intern(fault.fault))
    return faults


def _build_attempts(ends: Iterable[_End], faults: Mapping[Place, tuple[str, ...]]) -> list[Attempt]:
    new = tuple.__new__  # a NamedTuple's own takes three times as long
    return [
        new(
            Attempt,
            (
                intern(at[0] or ""),
                intern(at[1]),
                record.t,
                e.duration_s,
                e.ok,
                intern(e.via),
                faults.get(at, ()),
                first_s := e.first_byte_s,
                None if first_s is None else e.last_byte_s,
            ),
        )
        for record, e, at in ends
    ]


class AttemptKind(NamedTuple):
    """Attempts that are alike. `known`: their durations are; the rest as in `Attempt`."""

    target: str
    faults: tuple[str, ...]
    ok: bool
    left: bool
    known: bool


@dataclass
class Durations:
    """The known durations of the attempts at a target: without a fault, with one, and with one that ended them before
    they left the seam."""

    calm: Quantiles = field(default_factory=Quantiles)
    met: Quantiles = field(default_factory=Quantiles)
    held: Quantiles = field(default_factory=Quantiles)

    @cached_property
    def both(self) -> tuple[Quantiles, Quantiles]:
        """Those without a fault and with one. A fault's own count too: the caller waits for an answer, or for the end
        of a call, whether or not the target is asked. To be read after the last one."""
        return self.calm, Quantiles.build(self.met, self.held)


KEPT = 100_000
"""The most attempts that are kept to be drawn."""
LUMP = 2048
"""The fewest durations that are counted at once."""
_AttemptKey = tuple[str, tuple[str, ...], bool, str]
"""The target of attempts, their faults, whether they were ok, and their way."""
_event, _first_byte_s = itemgetter(1), attrgetter("first_byte_s")


@dataclass
class Attempts:
    """The attempts of a run. `kinds`: the number of each kind. `by_target`: the durations. `first_byte`, `last_byte`:
    of streamed replies. `drawn`: the attempts for the report's pictures, in the order in which they ended: one in
    `one_in`, by the dice. `ended_t`: the end of the last one. All to be read from `result`."""

    kinds: Counter[AttemptKind] = field(default_factory=Counter)
    by_target: dict[str, Durations] = field(default_factory=lambda: defaultdict(Durations))
    first_byte: Quantiles = field(default_factory=Quantiles)
    last_byte: Quantiles = field(default_factory=Quantiles)
    drawn: list[Attempt] = field(default_factory=list)
    one_in: int = 1
    ended_t: float = -math.inf

    def __post_init__(self) -> None:
        self._alike: defaultdict[_AttemptKey, list[float]] = defaultdict(list)
        """The durations that are not counted yet."""
        self._number = 0
        self._dice = Dice(0, "attempts", "drawn").stream().random
        self._chances = array("d")
        """The chance up to which each attempt of `drawn` stays in it; drawn when it is asked for."""

    def take(self, history: History) -> None:
        ends, faults = _select_ends(history), _faults_by_place(history)
        if not ends:
            return
        alike = self._alike
        for _, e, at in ends:
            alike[e.target, faults.get(at, ()), e.ok, e.via].append(e.duration_s)
        if [*map(_first_byte_s, map(_event, ends))].count(None) < len(ends):
            self._count_streams([end[1] for end in ends if end[1].first_byte_s is not None])
        self._number, self.ended_t = self._number + len(ends), ends[-1][0].t
        if self._number >= LUMP:
            self._count()
        self._draw(ends, faults)

    def result(self) -> Attempts:
        """The same, with all that were taken, and sorted."""
        self._count()
        self.kinds = Counter(dict(sorted(self.kinds.items())))
        self.by_target = dict(sorted(self.by_target.items()))
        return self

    @cached_property
    def calm(self) -> Quantiles:
        """The durations of the attempts at all targets that met no fault."""
        return Quantiles.build(*(durations.calm for durations in self.by_target.values()))

    @cached_property
    def timed(self) -> Quantiles:
        """The durations of the attempts at all targets that are the targets' own, with a fault or without one."""
        return Quantiles.build(
            *(quantiles for durations in self.by_target.values() for quantiles in (durations.calm, durations.met))
        )

    def number(self, selects: Callable[[AttemptKind], bool] = lambda _: True) -> int:
        """The number of attempts of some kinds."""
        return sum(count for kind, count in self.kinds.items() if selects(kind))

    def numbers(self, selects: Callable[[AttemptKind], bool] = lambda _: True) -> Counter[str]:
        """The number of attempts of some kinds by target."""
        counts = Counter[str]()
        for kind, count in self.kinds.items():
            if selects(kind):
                counts[kind.target] += count
        return counts

    @property
    def sample(self) -> str:
        """The part of them that is drawn, in words; empty if it is all."""
        return f"drawn from a random one in {self.one_in} attempts" if self.one_in > 1 else ""

    def _count(self) -> None:
        for (target, faults, ok, via), durations in self._alike.items():
            all_known = not math.isnan(sum(durations))
            finite = durations if all_known else [duration_s for duration_s in durations if not math.isnan(duration_s)]
            has_left, target = via != "none", intern(target)
            for is_known, number in ((True, len(finite)), (False, len(durations) - len(finite))):
                if number:
                    self.kinds[AttemptKind(target, faults, ok, has_left, is_known)] += number
            if finite and (has_left or faults):
                target_durations = self.by_target[target]
                (
                    target_durations.calm if not faults else target_durations.met if has_left else target_durations.held
                ).add(finite)
        self._alike.clear()
        self._number = 0

    def _count_streams(self, ends: Sequence[CallFinished]) -> None:
        self.first_byte.add([end.first_byte_s for end in ends if end.first_byte_s is not None])
        self.last_byte.add([end.last_byte_s for end in ends if end.last_byte_s is not None])

    def _draw(self, ends: Sequence[_End], faults: Mapping[Place, tuple[str, ...]]) -> None:
        """Adds those of the attempts that the dice keep, and keeps half of all while they are too many. Each attempt's
        chance is drawn once, so that what stays is the same however the run is cut."""
        if self.one_in == 1:
            self.drawn += _build_attempts(ends, faults)
            if len(self.drawn) <= KEPT:
                return
            self._chances.extend([self._dice() for _ in self.drawn])
        else:
            chances = [self._dice() for _ in ends]
            stays = [chance * self.one_in < 1 for chance in chances]
            self.drawn += _build_attempts(compress(ends, stays), faults)
            self._chances.extend(compress(chances, stays))
        while len(self.drawn) > KEPT:
            self.one_in *= 2
            stays = [chance * self.one_in < 1 for chance in self._chances]
            self.drawn = [*compress(self.drawn, stays)]
            self._chances = array("d", compress(self._chances, stays))


@dataclass(frozen=True)
class StreamTimes:
    """The times of the streamed replies, in seconds since their attempts began."""

    first_byte: Latency
    last_byte: Latency


def summarize_streams(attempts: Attempts) -> StreamTimes | None:
    """The percentiles of the streamed replies among the attempts; None if nothing was streamed."""
    first, last = summarize_latency(attempts.first_byte), summarize_latency(attempts.last_byte)
    return StreamTimes(first, last) if first is not None and last is not None else None


FIRST_COUNT, LATE_FACTOR, NOTICED_S = 20, 10, 0.25
"""The first attempts that a target's past is made of; the factor and the seconds beyond their median that are far."""


class LateAttempts(NamedTuple):
    """The attempts at a target that met no fault, ended well and took far longer than its first ones."""

    target: str
    n: int
    longest_s: float
    before_s: float
    """The median of the first ones."""

    @property
    def said(self) -> str:
        calls = f"{self.n} call{'s' if self.n > 1 else ''} to {self.target} took up to {duration(self.longest_s)}"
        return f"{calls} without a fault, where its first {FIRST_COUNT} took {duration(self.before_s)} in the median"


def find_late_attempts(attempts: Attempts) -> list[LateAttempts]:
    """Those of each target that has any, by name."""
    durations_s = defaultdict[str, list[float]](list)
    for attempt in attempts.drawn:
        if attempt.ok and attempt.timed and not attempt.faults:
            durations_s[attempt.target].append(attempt.duration_s)
    late_attempts = []
    for target, durations in sorted(durations_s.items()):
        before_s = median(durations[:FIRST_COUNT])
        if late_s := [s for s in durations[FIRST_COUNT:] if s > LATE_FACTOR * before_s and s > before_s + NOTICED_S]:
            late_attempts.append(LateAttempts(target, len(late_s), max(late_s), before_s))
    return late_attempts
