"""A run's log as tables: pandas DataFrames with documented columns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.measures.errors import failures
from chaoslab.analysis.measures.incidents import incidents
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import Section
from chaoslab.analysis.verdict.judge import verdicts
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base import extras
from chaoslab.core import events
from chaoslab.record.history import History, Place, WithHistory
from chaoslab.record.lines import Record
from chaoslab.reports._columns import COLUMNS
from chaoslab.reports._inputs import settings_of
from chaoslab.reports._points import MEASURED

if TYPE_CHECKING:
    import pandas as pd


NAMES = ("trials", "calls", "faults", "effects", "usage", "incidents")
"""The tables whose rows depend on one trial each."""


def _property(name: str, doc: str) -> cached_property[pd.DataFrame]:
    """The property with the table of this name, made when it is first asked for."""

    def made(run: Frames) -> pd.DataFrame:
        return run._table(name)

    made.__doc__ = doc
    return cached_property(made)


@dataclass(frozen=True)
class Frames:
    """A run as tables, each made when it is first asked for. The rows are in the order of its log's time. `known`: the
    report on it, if it was made before. `revision`: the commit that its run.json names."""

    history: History
    known: RunReport | None = None
    revision: str = ""

    @property
    def name(self) -> str:
        """The run's name; empty without any event."""
        return self.history.run

    @cached_property
    def measures(self) -> RunReport:
        """The measures of the run as values, with what its log says of the run as a whole."""
        return self.known or RunReport.of(self.history)

    def _table(self, name: str) -> pd.DataFrame:
        """The table of this name, made anew; a setting's column in `runs` as text. Raises KeyError: there is none."""
        rows = of(self.measures) if (of := MEASURED.get(name)) else LOGGED[name](self, self.history)
        return _frame(name, ({"run": self.name, "revision": self.revision or None, **row} for row in rows))

    def judged(self, part: History) -> Mapping[str, Verdict]:
        """The verdicts on the trials of a part."""
        return verdicts(part) if self.known is None else self.known.verdicts

    def tells_usage(self, part: History) -> bool:
        """True if the log can tell the use of models."""
        return part.has(events.Usage) if self.known is None else self.known.knows_usage

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row a run. After these columns, one of each setting that a log states, under the setting's name, such as
        `TOXIC_PROB`: numbers if all values are, else text."""
        table = self._table("runs")
        return table.assign(**{name: _numbers(table[name]) for name in table.columns[len(COLUMNS["runs"]) :]})

    trials = _property("trials", "One row a trial.")
    calls = _property("calls", "One row an attempt at a call.")
    faults = _property("faults", "One row a fault that was drawn for an attempt.")
    effects = _property("effects", "One row a line of a ledger.")
    usage = _property("usage", "One row an answer of a model.")
    incidents = _property("incidents", "One row a request that met a fault, with its recovery.")
    outcomes = _property("outcomes", "One row an outcome, with its share of the trials.")
    recovery = _property(
        "recovery",
        "One row a corner of Kaplan–Meier's curve: the share of the incidents that are not over yet. No row below 8 "
        "incidents, of which it would be misleading.",
    )
    mttr = _property("mttr", "One row a fault: how many of its incidents recovered, and how soon.")
    latency = _property("latency", "One row a target, and one more of its attempts that met a fault.")
    amplification = _property(
        "amplification", "One row a target: the requests that it got for each that was wanted, most amplified first."
    )
    throughput = _property("throughput", "One row an interval of the run.")
    costs = _property("costs", "One row a fault that added something to its trials, dearest first.")
    matrix = _property("matrix", "One row a fault at a target: the trials that met it, and the bad ones of them.")
    reliability = _property(
        "reliability",
        "One row an objective of a run: nines, error budget and burn rate, with the run's MTTR; none of a run of "
        "which nothing could be judged.",
    )


class Joined(Frames):
    """Several runs in one table each. Of runs with one name, the column `run` counts the later ones, as in "paid (2)".
    `only`: the names of the tables to keep of each run, of which nothing else is held then."""

    def __init__(self, runs: Iterable[Frames], *, only: Sequence[str] = ()) -> None:
        named: Counter[str] = Counter()
        each: list[tuple[str, Callable[[str], pd.DataFrame]]] = []
        for run in runs:
            named[run.name] += 1
            again = f" ({named[run.name]})" if named[run.name] > 1 else ""
            kept = {table: Section.of(partial(run._table, table)) for table in only}
            each.append((again, partial(_value, kept) if only else run._table))
        vars(self).update(_each=each)

    def _table(self, name: str) -> pd.DataFrame:
        """The tables of the runs, one below the other. Raises Unknown: a measure raised. KeyError: `only` lacks it."""
        import pandas as pd

        found = [(again, of(name)) for again, of in vars(self)["_each"]]
        tables = [table.assign(run=table["run"] + again) if again else table for again, table in found]
        return pd.concat(tables, ignore_index=True)


def _value(kept: Mapping[str, Section[pd.DataFrame]], name: str) -> pd.DataFrame:
    return kept[name].value


def frame(trials: Iterable[WithHistory]) -> pd.DataFrame:
    """The trials of `run_many` as one DataFrame: the columns of `load(…).trials`, a row a trial.

    Raises:
        Incomplete: pandas is not installed.
    """
    extras.check("lab.frame", "frames")
    rows: list[dict[str, Any]] = []
    usage = False
    for history in (trial.history for trial in trials):  # they need not be held
        usage = usage or events.Usage in history.kinds
        rows += [{"run": history.run, **row} for row in _trials(history, verdicts(history), usage=True)]
    unknown = {} if usage else {"tokens": None, "cost_usd": None}  # as in one log of all trials
    return _frame("trials", [row | unknown for row in rows])


def empty(name: str) -> pd.DataFrame:
    """The table without a row."""
    return _frame(name, [])


def _frame(name: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    made = Columns(name)
    made.add(rows)
    return made.frame()


class Columns:
    """The columns of the table of a name, to which rows are added."""

    def __init__(self, name: str) -> None:
        self._name, self._of = name, {column.name: column.dtype for column in COLUMNS[name]}
        self._values: dict[str, list[Any]] = {column: [] for column in self._of}

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        if self._name == "runs":
            rows = [*rows]
            self._of |= {setting: "string" for row in rows for setting in settings_of(row)}
            self._values |= {setting: [] for setting in self._of if setting not in self._values}
        for row in rows:
            for column, values in self._values.items():
                values.append(_whole(row.get(column)))

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame({column: pd.array(self._values[column], dtype=dtype) for column, dtype in self._of.items()})


def _numbers(of: pd.Series) -> Any:
    """A setting's texts as numbers, if they all say one and nothing is lost."""
    import pandas as pd

    texts = [None if text is pd.NA else text for text in of.astype("string")]
    try:
        numbers = [None if text is None else float(text) for text in texts]
    except ValueError:
        return pd.array(texts, dtype="string")
    same = all(number is None or f"{number:g}" == text for number, text in zip(numbers, texts, strict=True))
    return pd.array(numbers, dtype="Float64") if same else pd.array(texts, dtype="string")


def _whole(value: Any) -> Any:
    """A value of a cell; a text with half a surrogate pair in it, which no table holds, has its escape instead."""
    return value.encode("utf-8", "backslashreplace").decode() if type(value) is str and not value.isascii() else value


def _trials(history: History, judged: Mapping[str, Verdict], *, usage: bool) -> Iterator[dict[str, Any]]:
    """The rows. `usage`: the log can tell the use of models."""
    counted = _Counted(history, usage=usage)
    ends = {record.trial: event for record, event in history.of(events.PromptFinished)}
    for record, started in history.of(events.PromptStarted):
        trial, end = record.trial or "", ends.get(record.trial)
        verdict = judged[trial]
        yield {
            "trial": trial,
            "prompt_index": started.prompt_index,
            "prompt": started.prompt,
            "outcome": str(verdict.outcome),
            "hint": verdict.hint or None,
            "world": str(verdict.world),
            "said": str(verdict.said),
            "basis": str(verdict.basis),
            "why": verdict.why,
            "harms": len(verdict.harm),
            "answer": end.answer or None if end is not None and end.status == "ok" else None,
            "began_s": record.t,
            "duration_s": None if end is None else end.duration_s,
            "twin_s": started.twin_s,
            **counted.of(trial),
        }


_COUNTED: Mapping[type[events.Event], str] = {
    events.CallStarted: "calls",
    events.FaultWitnessed: "faults",
    events.Effect: "effects",
}


class _Counted:
    """Sums by trial, in one pass."""

    def __init__(self, history: History, *, usage: bool) -> None:
        self._sums: dict[str | None, dict[str, Any]] = {}
        self._calm: dict[str, Any] = dict.fromkeys(_COUNTED.values(), 0)
        if usage:
            self._calm |= {"tokens": 0, "cost_usd": 0.0}
        for record in history.records:
            event = record.event
            if isinstance(event, events.StoryLeftOut):
                sums = self._sums.setdefault(record.trial, {})
                sums["calls"] = sum(event.calls.values())
                sums["faults"] = sum(sum(by.values()) for by in event.met.values())
            elif (name := _COUNTED.get(type(event))) is not None:
                sums = self._sums.setdefault(record.trial, {})
                sums[name] = sums.get(name, 0) + 1
            elif isinstance(event, events.Usage):
                sums = self._sums.setdefault(record.trial, {})
                sums["tokens"] = sums.get("tokens", 0) + event.prompt_tokens + event.completion_tokens
                before = sums.get("cost_usd", 0.0)
                sums["cost_usd"] = None if before is None or event.cost_usd is None else before + event.cost_usd

    def of(self, trial: str) -> dict[str, Any]:
        return {**self._calm, **self._sums.get(trial, {})}


def _place(record: Record, event: Any) -> dict[str, Any]:
    at = event.at
    return {
        "trial": record.trial, "turn": at.turn, "target": at.target, "request": at.request, "attempt": at.attempt,
    }  # fmt: skip


def _key(record: Record, event: Any) -> tuple[Any, ...]:
    return record.trial, event.at.target, event.at.request, event.at.attempt


def _calls(history: History) -> Iterator[dict[str, Any]]:
    """The rows. Of a log that was cut there are ends without a beginning."""
    begun = {at: (record, event) for record, event, at in history.placed(events.CallStarted)}
    ends = {at: (record, event) for record, event, at in history.placed(events.CallFinished)}
    gone, disturbed = history.given_up, {at for _, _, at in history.placed(events.CallDisturbed)}
    causes = {at: (kind, cause) for at, kind, cause in failures(history)}
    met: dict[Place, list[str]] = {}
    for _, fault, at in history.placed(events.FaultWitnessed):
        met.setdefault(at, []).append(fault.fault)
    for at in {**begun, **ends}:
        began, (ended, end) = begun.get(at), ends.get(at, (None, None))
        record, call = began or ends[at]
        kind, cause = causes.get(at, (None, None))
        yield {
            **_place(record, call),
            "tool": call.tool,
            "request_id": call.at.request_id or None,
            "began_s": None if began is None else record.t,
            "ended_s": None if ended is None else ended.t,
            "duration_s": None if end is None else end.duration_s,
            "ok": None if end is None or at in gone else end.ok,
            "given_up": None if end is None else at in gone,
            "disturbed": at in disturbed,
            "status": None if end is None else end.status,
            "error": None if end is None else end.error or None,
            "failure": kind,
            "cause": cause,
            "via": None if end is None else end.via,
            "bytes": None if end is None else end.bytes,
            "faults": ", ".join(met.get(at, [])),
            "first_token_s": None if end is None else end.first_byte_s,
            "last_token_s": None if end is None else end.last_byte_s,
        }


def _faults(history: History) -> Iterator[dict[str, Any]]:
    injected = {
        (_key(record, event), event.injection, event.fault) for record, event in history.of(events.FaultInjected)
    }
    evidence = {
        (_key(record, event), event.injection, event.fault): event.evidence
        for record, event in history.of(events.FaultWitnessed)
    }
    for record, event in history.of(events.FaultScheduled):
        key = (_key(record, event), event.injection, event.fault)
        yield {
            **_place(record, event),
            "fault": event.fault,
            "injection": event.injection,
            "scheduled_s": record.t,
            "injected": key in injected,
            "witnessed": key in evidence,
            "evidence": evidence.get(key),
            "params": json.dumps(event.params, ensure_ascii=False, sort_keys=True),
        }


def _effects(history: History) -> Iterator[dict[str, Any]]:
    for record, event in history.of(events.Effect):
        yield {
            "trial": record.trial, "t_s": record.t, "target": event.target, "tool": event.tool, "effect": event.effect,
            "request_id": event.request_id or None,
            "content": json.dumps(event.content, ensure_ascii=False, sort_keys=True),
        }  # fmt: skip


def _usage(history: History) -> Iterator[dict[str, Any]]:
    for record, event in history.of(events.Usage):
        yield {
            "trial": record.trial, "t_s": record.t, "model": event.model or None, "request": event.request,
            "prompt_tokens": event.prompt_tokens, "completion_tokens": event.completion_tokens,
            "cost_usd": event.cost_usd,
        }  # fmt: skip


def _incidents(history: History) -> Iterator[dict[str, Any]]:
    begun = {*history.trials}  # a cut log has faults of trials that it lacks
    for one in (each for each in incidents(history) if not begun or each.trial in begun):
        yield {
            "trial": one.trial, "target": one.target, "request": one.request, "fault": one.fault,
            "injection": one.injection or None, "opened_s": one.opened_t, "duration_s": one.duration_s,
            "detect_s": one.noticed_after_s, "repair_s": one.since_notice_s, "ending": str(one.ending),
            "recovered": one.recovered, "cut": one.cut,
        }  # fmt: skip


LOGGED: Mapping[str, Callable[[Frames, History], Iterable[Mapping[str, Any]]]] = {
    "trials": lambda run, part: _trials(part, run.judged(part), usage=run.tells_usage(part)),
    "calls": lambda _, part: _calls(part),
    "faults": lambda _, part: _faults(part),
    "effects": lambda _, part: _effects(part),
    "usage": lambda _, part: _usage(part),
    "incidents": lambda _, part: _incidents(part),
}
"""Table → its rows, of the lines of a part of the log."""
