"""The sums of some trials: all that the measures of a report take from them, as bytes.

Whoever ran the trials makes them, where their events are at hand. A report that adds them up has the figures of one
that reads the stories, to the last bit. Their moments are in seconds since their trial's beginning and their lines are
counted from its first, so sums do not depend on what ran before; `add` moves them to their place in the run.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from operator import attrgetter
from sys import intern
from typing import Any, Generic, TypeVar, get_args

import msgspec

from chaoslab.analysis.measures._calls import Bill, CallCount
from chaoslab.analysis.measures._findings import Findings, Taking
from chaoslab.analysis.measures.amplification import RequestCounts
from chaoslab.analysis.measures.errors import Failed
from chaoslab.analysis.measures.faults import FaultStages, NotWitnessed, Uninjected
from chaoslab.analysis.measures.incidents import Ending, Incident
from chaoslab.analysis.measures.latency import Attempt, every_attempt
from chaoslab.analysis.measures.noticed import Noticed
from chaoslab.analysis.measures.trials import TrialFigures
from chaoslab.analysis.verdict.guard import guarded
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.core.events import (
    Budget,
    CallDisturbed,
    CallFinished,
    ChanceSet,
    Event,
    FaultsOff,
    LabDisturbed,
    PromptFinished,
    RunFinished,
    RunStarted,
    StoryLeftOut,
)
from chaoslab.record.batches import Batch
from chaoslab.record.lines import Record
from chaoslab.record.spoken import SILENT

Amount = int | float | str
"""A number; a fraction is spelled out."""
Moment = tuple[int, float]
"""The place of a trial among the trials, and seconds since its beginning."""
ASIDE = (Budget, CallDisturbed, ChanceSet, FaultsOff, LabDisturbed, RunFinished, RunStarted, StoryLeftOut)
"""The kinds of events of which no sums are made."""


class _Figures(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """A `TrialFigures`."""

    prompt: tuple[int, str] | None
    outcome: str | None
    met: tuple[tuple[tuple[str, str], int], ...]
    called: tuple[str, ...]
    attempts: int
    failed: int
    retries: int
    ended: bool
    took_s: float | None
    calls: int
    effects: int
    tokens: int
    usd: Amount
    unpriced: bool
    spent_s: Amount
    twin_s: float | None
    twin_calls: int | None
    twin_effects: int | None
    noticed: Noticed


class Sums(msgspec.Struct, array_like=True, gc=False):
    """The sums. Numbers in `verdicts`, `rows` and `attempts` are places in `told`, `figures` and `ways`."""

    trials: list[str]
    stated: bool
    in_process: bool
    kinds: list[str]
    warnings: list[tuple[str, str]]
    began_s: float
    told: list[Verdict]
    verdicts: list[int]
    figures: list[_Figures]
    rows: list[int]
    passed: dict[str, list[bool]]
    delivery: FaultStages
    called: list[str]
    not_met: NotWitnessed
    uninjected: Uninjected
    incidents: list[tuple[int, str, int, str, str, float, float, Ending, float, bool]]
    calls: CallCount
    ways: list[tuple[str, tuple[str, ...], bool, str]]
    attempts: list[tuple[int, int, float, float, float | None, float | None]]
    prompts_ended: list[Moment]
    calls_ended: list[Moment]
    usage: Bill
    errors: Failed
    amplification: RequestCounts
    quality: list[tuple[int, float, float, float]]


def _counter(kind: Any, plain: Any) -> Any:
    return Counter(msgspec.convert(plain, dict[get_args(kind)[0], int]))  # type: ignore[misc]


_DECODER = msgspec.msgpack.Decoder(Sums, dec_hook=_counter)


def made(stories: Sequence[Sequence[Record]], judged: Mapping[str, Verdict] | None = None) -> bytes | None:
    """The sums of whole trials, each with its records numbered from 1 and timed from its beginning. None if there are
    events whose measures only a history can tell. `judged`: their verdicts, by the same records."""
    if any(record.seq != n or record.trial is None for story in stories for n, record in enumerate(story, 1)):
        return None
    batch = Batch.of_lines([record for story in stories for record in story], running=False, spoken=SILENT)
    if not batch.kinds.isdisjoint(ASIDE) or len(batch.trials) != len(stories):
        return None
    found = Findings()
    found.spare(found.attempts, found.spells, found.throughput)  # of which the sums hold the moments and attempts
    found.take(batch, judged)
    if any(each.unknown for each in vars(found).values() if isinstance(each, Taking)):
        return None
    # such as for a text that is no UTF-8; the log is read then
    return guarded(lambda: msgspec.msgpack.encode(_sums(found, batch)), lambda _: None)


def _sums(found: Findings, batch: Batch) -> Sums:
    place = {trial: n for n, trial in enumerate(found.trials)}
    told, figures, ways = _Table[Verdict](), _Table[_Figures](), _Table[tuple[str, tuple[str, ...], bool, str]]()
    return Sums(
        trials=found.trials,
        stated=found.stated,
        in_process=found.in_process,
        kinds=sorted(kind.kind for kind in found.kinds),
        warnings=found.warnings,
        began_s=found.began_t or 0.0,
        verdicts=[told(found.verdicts[trial]) for trial in found.trials],
        told=told.rows,
        rows=[figures(_figures(trial)) for trial in found.rows.measure.rows],
        figures=figures.rows,
        passed=found.rows.measure.passed,
        delivery=found.delivery.measure,
        called=sorted(found.coverage.measure.called),
        not_met=found.not_met.measure,
        uninjected=found.uninjected.measure,
        incidents=[(place[one.trial], *one[1:]) for one in found.recovery.measure.settled()],
        calls=found.calls.measure,
        attempts=[
            (place[a.trial], ways((a.target, a.faults, a.ok, a.via)), a.t, a.duration_s, a.first_byte_s, a.last_byte_s)
            for a in every_attempt(batch)
        ],
        ways=ways.rows,
        prompts_ended=[(place[record.trial or ""], record.t) for record, _ in batch.of(PromptFinished)],
        calls_ended=[(place[record.trial or ""], record.t) for record, _ in batch.of(CallFinished)],
        usage=found.usage.measure,
        errors=found.errors.measure,
        amplification=found.amplification.measure,
        quality=[(place[trial], *own) for trial, own in found.quality.measure.own.items()],
    )


H_ = TypeVar("H_", bound=Hashable)


class _Table(Generic[H_]):
    """The different ones of many values; it is called for the place of each."""

    def __init__(self) -> None:
        self._places: dict[H_, int] = {}

    def __call__(self, value: H_) -> int:
        return self._places.setdefault(value, len(self._places))

    @property
    def rows(self) -> list[H_]:
        return [*self._places]


_NAMES = tuple(each.name for each in fields(TrialFigures))
_values = attrgetter(*_NAMES)


def _figures(trial: TrialFigures) -> _Figures:
    usd, spent_s = (str(sum_) if type(sum_) is Fraction else sum_ for sum_ in (trial.usd, trial.spent_s))
    values = dict(zip(_NAMES, _values(trial), strict=True))
    return _Figures(**values | {"called": (*sorted(trial.called),), "usd": usd, "spent_s": spent_s})


def _trial(figures: _Figures) -> TrialFigures:
    usd, spent_s = (Fraction(sum_) if type(sum_) is str else sum_ for sum_ in (figures.usd, figures.spent_s))
    values = dict(zip(_NAMES, _values(figures), strict=True))
    return TrialFigures(**values | {"called": frozenset(figures.called), "usd": usd, "spent_s": spent_s})


def add(found: Findings, data: bytes, *, after_s: Sequence[float], lines: Sequence[int]) -> None:
    """Adds sums to the findings about a run, of which the trials before have been taken. `after_s`, `lines`: for each
    trial its beginning in seconds since the run's, and the number of lines of the log before it. Raises ValueError:
    these are no sums of so many trials."""
    sums: Sums = _DECODER.decode(data)
    trials, told = sums.trials, sums.told
    if not len(trials) == len(after_s) == len(lines) == len(sums.rows) == len(sums.verdicts):
        raise ValueError("sums of other trials")
    found.stated, found.in_process = found.stated or sums.stated, found.in_process or sums.in_process
    found.kinds |= {Event.kinds[kind] for kind in sums.kinds}
    found.warnings += sums.warnings
    if found.began_t is None:
        found.began_t = round(after_s[0] + sums.began_s, 6)
    ends = found.throughput.measure
    if ends.began_t is None:
        ends.began_t = found.began_t
    found.trials += trials
    thin: dict[int, Verdict] = {}
    for trial, number, before in zip(trials, sums.verdicts, lines, strict=True):
        if not found.told_all:
            found.verdicts[trial] = found.thin(_shown(told[number], before))
        else:
            found.verdicts[trial] = thin.get(number) or thin.setdefault(number, found.thin(told[number]))
    figures = [*map(_trial, sums.figures)]
    for trial, number in zip(trials, sums.rows, strict=True):
        found.rows.measure.add(trial, figures[number])
        if met := figures[number].met:
            found.meet(trial, {place for place, _ in met})
    _join(found.rows.measure.passed, sums.passed)
    found.coverage.measure.called.update(sums.called)
    for n, *own in sums.quality:
        found.quality.measure.add(trials[n], (own[0], own[1], own[2]))
    for n, at, number, fault, name, opened_s, lasted_s, ending, noticed_s, cut in sums.incidents:
        found.recovery.measure.found.append(
            Incident(
                trials[n], intern(at), number, intern(fault), intern(name), round(after_s[n] + opened_s, 6), lasted_s,
                ending, noticed_s, cut,
            )
        )  # fmt: skip
    ways = [(intern(target), tuple(map(intern, faults)), ok, intern(via)) for target, faults, ok, via in sums.ways]
    attempts = []
    for n, way, t, lasted_s, first_s, last_s in sums.attempts:
        target, faults, ok, via = ways[way]
        attempts.append(
            Attempt(trials[n], target, round(after_s[n] + t, 6), lasted_s, ok, via, faults, first_s, last_s)
        )
    found.attempts.measure.add(attempts)
    found.spells.measure.add(attempts)
    ends.prompts.extend([round(after_s[n] + t, 6) for n, t in sums.prompts_ended])
    ends.calls.extend([round(after_s[n] + t, 6) for n, t in sums.calls_ended])
    for name in ("delivery", "not_met", "uninjected", "calls", "usage", "errors", "amplification"):
        _join(getattr(found, name).measure, getattr(sums, name))


def _shown(verdict: Verdict, before: int) -> Verdict:
    """The verdict with the numbers of its lines in the log. `before`: the number of lines before its trial."""
    moved = [replace(each, lines=tuple((log, seq + before) for log, seq in each.lines)) for each in verdict.evidence]
    return replace(verdict, evidence=tuple(moved)) if moved else verdict


def _join(into: Any, later: Any) -> Any:
    """The sum of two of one kind: numbers add up, lists go on, mappings and dataclasses are joined part by part."""
    if into is None or later is None:
        return later if into is None else into
    if isinstance(into, Counter):
        into.update(later)
    elif isinstance(into, dict):
        for key, value in later.items():
            into[key] = _join(into.get(key), value)
    elif isinstance(into, list):
        into += later
    elif isinstance(into, tuple):
        return tuple(map(_join, into, later))
    elif not is_dataclass(into):
        return into + later
    elif hasattr(into, "join"):
        into.join(later)
    else:
        for each in fields(into):
            setattr(into, each.name, _join(getattr(into, each.name), getattr(later, each.name)))
    return into
