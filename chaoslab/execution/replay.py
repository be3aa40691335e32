"""Runs a run again from what its log holds, in virtual time, and says whether the same happened, or where it first differed.

A run made in virtual time is compared byte for byte. One that was made in real time is compared as stories: what befell each attempt and
how it ended, whatever time that took.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.analysis import trace_diff
from chaoslab.analysis.judge import judge
from chaoslab.core.events import CallFinished, PromptStarted, RunFinished
from chaoslab.execution import recorded_run
from chaoslab.execution.recorded_run import Line, Remembered, Unrepeatable
from chaoslab.record import provenance
from chaoslab.record.history import History
from chaoslab.record.lines import Record, parse_line
from chaoslab.record.log import Kept, lines_of
from chaoslab.reports.progress import Progress
from chaoslab.worlds.virtual.context import Uncovered
from chaoslab.worlds.virtual.recorded_targets import NO_REPLY

if TYPE_CHECKING:
    from chaoslab.execution.virtual_lab import Done, Order

EQUAL, DIFFERENT = 0, 1
SHOWN = 10
"""Trials whose difference is told; of the others there are only so many."""
VALUE_MAX = 160


@dataclass(frozen=True)
class Compared:
    """One trial laid beside itself. `difference`: the first, in words; `left_out`: why no comparison of it would say anything."""

    trial: str
    events: int
    difference: str = ""
    left_out: str = ""


def replay(name: str, wanted: Sequence[str] = (), *, logs: Path = Path("logs")) -> int:
    """Prints what came of it: 0 the same, 1 something else.

    Raises:
        LookupError, Unrepeatable, SettingError: there is nothing that could be run again, or the agent of today does something real.
    """
    log = recorded_run.read(name, logs=logs)
    trials = recorded_run.choose(log, wanted)
    order = recorded_run.order(log)
    numbers = {trial: log.number(trial) for trial in trials}
    for line in _changed(log):
        print(line, file=sys.stderr, flush=True)
    made = f"run {log.run}, made in {log.started.world}"
    print(
        f"{log.folder}: {made}; {_many(len(trials), 'trial')} of {log.started.prompts} again in virtual time",
        flush=True,
    )
    with Progress(len(trials)) as progress:
        compared = []
        try:
            for trial, done in _again(log, order, numbers):
                compared.append(_compare(log, order, trial, done))
                progress.count(done.seconds, outcome=done.outcome, faults=done.witnessed)
        except Uncovered as error:
            raise Unrepeatable(str(error)) from error
    return _say(log, compared)


def _changed(log: Remembered) -> Iterator[str]:
    """What is not as it was: the replay goes on, since after a mending one wants to see whether the failure is gone."""
    yield from (f"note: {note}" for note in log.history.notes)
    changed = provenance.changed(log.started.code, provenance.code())
    if changed:
        yield f"not as it was: {'; '.join(changed)}"
    if log.history.first(RunFinished) is None:
        yield "the log has no end (run_finished): the run was killed, or info.log is cut; what there is of it is compared"
    from chaoslab.agent import prompts
    from chaoslab.config.settings import SettingError

    given = str(log.started.settings.get("PROMPTS") or "")
    file = Path(given) if given else prompts.FILE
    shown = given or "agent/prompts.json"
    try:
        now = prompts.as_data(prompts.load(file))
    except SettingError as error:
        yield f"the prompts of the log are used: {error}"
        return
    if now != log.started.asked:
        yield f"{shown} is not as it was: the prompts of the log are used"


def _again(log: Remembered, order: Order, numbers: Mapping[str, int]) -> Iterator[tuple[str, Done]]:
    from chaoslab.execution.virtual_lab import Unit

    with order.opened() as do:
        for trial, number in numbers.items():
            yield trial, do(Unit(number, log.spent_usd(trial)))


def _compare(log: Remembered, order: Order, trial: str, done: Done) -> Compared:
    lines = log.lines(trial)
    events = sum(len(each) for each in lines.values())
    was = [line.record for each in lines.values() for line in each if line.record]
    if log.virtual:
        difference = _bytes(log, lines, done.kept)
        if difference:
            difference = _with_outcome(difference, was, list(_records(log, trial, done.kept)), trial)
        return Compared(trial, events, difference)
    if why := trace_diff.spoilt(was, trial):
        return Compared(trial, events, left_out=why)
    now = list(_records(log, trial, done.kept))
    found = trace_diff.compare(trace_diff.tell(was, trial), trace_diff.tell(now, trial))
    if found is None:
        return Compared(trial, events)
    unasked = next((r.event for r in now if isinstance(r.event, CallFinished) and r.event.error == NO_REPLY), None)
    if unasked is not None:
        place = f"{unasked.target} {unasked.request}.{unasked.attempt}"
        return Compared(
            trial, events, f"the log holds no reply of the {unasked.target} for {place}: it was never asked that"
        )
    open_ = trace_diff.either_way(
        was, trial, tool_s=order.settings.tool_timeout_s, model_s=order.settings.model_timeout_s
    )
    if found.place in open_:
        factor = f"a delay within a factor of {trace_diff.FACTOR:g} of the deadline"
        return Compared(trial, events, left_out=f"{found.place} may go either way ({factor}), and did")
    difference = f"{found.place}{_parted(found.what, found.was, found.now)}"
    return Compared(trial, events, _with_outcome(difference, was, now, trial))


def _records(log: Remembered, trial: str, kept: Sequence[Kept]) -> Iterator[Record]:
    for number, line in enumerate(_spelt(log, kept, after_s=0.0, seqs={}), 1):
        record = parse_line(line)
        if record is None:
            raise AssertionError(f"line {number} of the replay of {trial} cannot be read: {line!r}")
        yield record


def _spelt(log: Remembered, kept: Sequence[Kept], *, after_s: float, seqs: dict[str, int]) -> Iterator[bytes]:
    """The lines as the run's book would have them, when the trial begins so late."""
    began = datetime.fromisoformat(log.started.now)
    return lines_of(kept, run=log.run, began=began, after_s=after_s, seqs=seqs)


# Byte for byte.


def _bytes(log: Remembered, lines: dict[str, list[Line]], kept: Sequence[Kept]) -> str:
    """Where the trial's lines first differ, in the order of time; empty if nowhere. Each counts from the trial's own beginning."""
    first = next(
        line for each in lines.values() for line in each if line.record and isinstance(line.record.event, PromptStarted)
    )
    begins = next((entry.t for entry in kept if entry.is_a(PromptStarted)), 0.0)
    assert first.record is not None
    seqs = {name.removesuffix(".log"): _seq(each[0]) - 1 for name, each in lines.items()}
    again: dict[str, list[bytes]] = {}
    for entry, spelt in zip(kept, _spelt(log, kept, after_s=round(first.record.t - begins, 6), seqs=seqs), strict=True):
        again.setdefault(f"{entry.writer}.log", []).append(spelt)
    found = [unlike for name in {**lines, **again} if (unlike := _file(name, lines.get(name, []), again.get(name, [])))]
    return min(found)[1] if found else ""


def _seq(line: Line) -> int:
    return line.record.seq if line.record else line.number


def _file(name: str, was: list[Line], now: list[bytes]) -> tuple[float, str] | None:
    """When and where the lines of one writer first differ."""
    for line, again in zip(was, now, strict=False):
        if line.raw != again:
            before, after = _own_first(line.raw), _own_first(again)
            unlike = trace_diff.first_unlike(before, after) or ("its spelling", line.raw.decode(), again.decode())
            return min(before["t"], after["t"]), f"{name}, line {line.number} ({before['kind']}){_parted(*unlike)}"
    if len(was) > len(now):
        gone = was[len(now)]
        told_of = json.loads(gone.raw)
        return told_of["t"], f"{name}, line {gone.number}: this {told_of['kind']} does not happen now"
    if len(now) > len(was):
        more = json.loads(now[len(was)])
        after_line = f", after line {was[-1].number}" if was else ""
        return more["t"], f"{name}{after_line}: {more['kind']} happens now, and did not then"
    return None


def _own_first(line: bytes) -> dict[str, Any]:
    """A line's fields with the kind's own before the envelope's, since they tell more."""
    fields = json.loads(line)
    envelope = {key: fields.pop(key) for key in ("seq", "t", "ts", "run", "trial", "writer")}
    return {**fields, **envelope}


# In words.


def _parted(what: str, was: Any, now: Any) -> str:
    return f"{':' if not what else f': {what}'} was {_value(was)}, is {_value(now)}"


def _value(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"


def _with_outcome(difference: str, was: list[Record], now: list[Record], trial: str) -> str:
    """The difference, and what it made of the trial's outcome."""
    before, after = (judge(History(records), trial).outcome for records in (was, now))
    return f"{difference}; {before}{f', now {after}' if after != before else ' as before'}"


def _say(log: Remembered, compared: list[Compared]) -> int:
    unlike = [each for each in compared if each.difference]
    apart = [each for each in compared if each.left_out]
    for each in unlike[:SHOWN]:
        print(f"{each.trial}  {each.difference}")
    for each in apart[:SHOWN]:
        print(f"{each.trial}  left out: {each.left_out}")
    whole = [each for each in compared if not each.left_out]
    events = sum(each.events for each in whole)
    how = "byte for byte" if log.virtual else "as stories, times apart"
    left = f"; {_many(len(apart), 'trial')} left out" if apart else ""
    if unlike:
        print(f"different: {len(unlike)} of {_many(len(whole), 'trial')}{left}")
        return DIFFERENT
    print(f"equal: {_many(len(whole), 'trial')}, {_many(events, 'event')}, {how}{left}")
    return EQUAL


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
