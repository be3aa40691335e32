"""A run's log as tables: pandas DataFrames with documented columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from chaoslab.analysis.measures.incidents import incidents
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.judge import verdicts
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base import extras
from chaoslab.base.registry import did_you_mean
from chaoslab.core.events import (
    CallFinished,
    CallStarted,
    Effect,
    Event,
    FaultInjected,
    FaultScheduled,
    FaultWitnessed,
    PromptFinished,
    PromptStarted,
    StoryLeftOut,
    Usage,
)
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.spoken import LABELS, OPINIONS
from chaoslab.reports.contents.figures import recovery, reliability
from chaoslab.reports.folder import LATEST, find, matching, read

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from chaoslab.reports.report import Report


class Column(NamedTuple):
    """One column: its name, its pandas dtype, and its meaning with the unit."""

    name: str
    dtype: str
    meaning: str


_RUN = Column("run", "string", "the run's name, by which several runs are told apart")
_WHERE = (
    _RUN,
    Column("trial", "string", "the trial's key, as in p3.r1; missing outside of trials"),
    Column("turn", "Int64", "the turn of the conversation, from 1"),
    Column("target", "string", "the service or function"),
    Column("tool", "string", "the tool, or a request's method and path"),
    Column("request", "Int64", "the number of the request to the target, from 1"),
    Column("attempt", "Int64", "the attempt at that request, from 1"),
)
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "trials": (
        _RUN,
        Column("trial", "string", "the trial's key, as in p3.r1"),
        Column("prompt_index", "Int64", "the prompt's number, from 1"),
        Column("prompt", "string", "the user's words"),
        Column("outcome", "string", "correct, degraded, wrong, false_success, harm, failed, hung, unknown, invalid …"),
        Column("certain", "boolean", "false if the outcome rests on words, or on a model that is not trusted"),
        Column("world", "string", "as asked, left undone, harm, may have been done, not stated"),
        Column("said", "string", "right, wrong, admits it, passes over it, unclear, nothing"),
        Column("basis", "string", "end, ledger, state, facts, values, same answer, says, label, judge, words"),
        Column("why", "string", "the reason for the outcome, in one line"),
        Column("harms", "Int64", "things wrong on the ledger or in the end state; missing if the log knows no effects"),
        Column("answer", "string", "the agent's answer; missing if it gave none, or an empty one"),
        Column("began_s", "Float64", "its start, in seconds since the run began"),
        Column("duration_s", "Float64", "its duration in seconds of its world's time; missing if it did not end"),
        Column("twin_s", "Float64", "the duration of the trial without faults, in seconds; missing without one"),
        Column("calls", "Int64", "attempts at calls"),
        Column("faults", "Int64", "faults that were witnessed; missing if the log knows none"),
        Column("effects", "Int64", "lines on the services' ledgers; missing if the log knows none"),
        Column("tokens", "Int64", "tokens to the model and from it; missing if the log knows none"),
        Column("cost_usd", "Float64", "dollars for the model; missing if a price is not known"),
    ),
    "calls": (
        *_WHERE,
        Column("request_id", "string", "the same for each attempt of a request; missing if the log knows none"),
        Column("began_s", "Float64", "its start, in seconds since the run began"),
        Column("duration_s", "Float64", "its duration in seconds; missing if it did not end"),
        Column("ok", "boolean", "the answer looked right to the caller; missing if it did not end or was given up"),
        Column("given_up", "boolean", "its agent cancelled it, or the trial's end cut it, and it had met no fault"),
        Column("status", "Int64", "the HTTP status; missing if there was none"),
        Column("error", "string", "timed_out, refused, reset, closed … or the service's own words; missing if none"),
        Column("via", "string", "the way it went; missing if it did not end"),
        Column("bytes", "Int64", "the size of the answer; missing if it did not end, or the log knows none"),
        Column("faults", "string", "the faults witnessed at it, with commas; empty if none, missing if not known"),
        Column("first_token_s", "Float64", "seconds until the first part of a streamed reply; missing if none came"),
        Column("last_token_s", "Float64", "seconds until its last part; missing if none came"),
    ),
    "faults": (
        *(column for column in _WHERE if column.name != "tool"),
        Column("fault", "string", "the fault's name"),
        Column("injection", "string", "the injection that it comes from"),
        Column("scheduled_s", "Float64", "the moment it was drawn, in seconds since the run began"),
        Column("injected", "boolean", "it changed the exchange (faults of the wire: see witnessed)"),
        Column("witnessed", "boolean", "the caller met it"),
        Column("evidence", "string", "the caller's observation; missing if it was not witnessed"),
        Column("params", "string", "its parameters as JSON"),
    ),
    "effects": (
        _RUN,
        Column("trial", "string", "the trial's key; missing outside of trials"),
        Column("t_s", "Float64", "the moment, in seconds since the run began"),
        Column("target", "string", "the service or function"),
        Column("tool", "string", "the tool"),
        Column("effect", "string", "the effect's name"),
        Column("request_id", "string", "its request's id, missing if it has none; lines with one id are one effect"),
        Column("content", "string", "the content as JSON"),
    ),
    "usage": (
        _RUN,
        Column("trial", "string", "the trial's key; missing outside of trials"),
        Column("t_s", "Float64", "the moment, in seconds since the run began"),
        Column("model", "string", "the model's name; missing if its answer has none"),
        Column("request", "Int64", "the number of the request to the model"),
        Column("prompt_tokens", "Int64", "tokens to the model"),
        Column("completion_tokens", "Int64", "tokens from the model"),
        Column("cost_usd", "Float64", "dollars; missing if the price is not known"),
    ),
    "incidents": (
        _RUN,
        Column("trial", "string", "the trial's key"),
        Column("target", "string", "the service or function"),
        Column("request", "Int64", "the number of the request that met the fault"),
        Column("fault", "string", "the fault that opened it"),
        Column("injection", "string", "the injection that the fault comes from"),
        Column("opened_s", "Float64", "the start of the attempt that met it, in seconds since the run began"),
        Column("duration_s", "Float64", "seconds until the right result, or until the trial's end"),
        Column("detect_s", "Float64", "seconds until it was noticed"),
        Column("repair_s", "Float64", "seconds from there to its end; missing if there was nothing to notice"),
        Column("ending", "string", "retry, fallback, late, harm, or censored: it never recovered"),
        Column("recovered", "boolean", "a right result came without harm"),
    ),
    "reliability": (
        _RUN,
        Column("objective", "Float64", "the share of trials that should end well (SLO)"),
        Column("judged", "Int64", "the trials that allow a conclusion"),
        Column("well", "Int64", "those that ended well"),
        Column("proven", "Float64", "the share that is exceeded with a confidence of 95 %"),
        Column("nines", "Int64", "the nines of that share"),
        Column("allowed", "Float64", "the trials that may end badly by the objective: its error budget"),
        Column("budget_left", "Float64", "the share of the budget that is left, from 0 to 1"),
        Column("burn_rate", "Float64", "the share of bad trials over the allowed one; above 1 the objective is missed"),
        Column("mttr_s", "Float64", "the mean time to recovery over the run's incidents; missing if none recovered"),
        Column("detect_s", "Float64", "its part until the fault was noticed, of recoveries by retry or fallback"),
        Column("repair_s", "Float64", "its part from there on"),
        Column("score", "Float64", "the score of reliability, from 0 to 1"),
    ),
}  # fmt: skip
"""Table → its columns."""


TABLES = "tables"
NAMES = ("trials", "calls", "faults", "effects", "usage", "incidents")
"""The tables whose rows depend on one trial each."""


@dataclass(frozen=True)
class Frames:
    """A run, or several, as tables, each made when it is first asked for. The rows of a run are in the order of its
    log's time."""

    history: History
    more: tuple[History, ...] = ()

    @property
    def runs(self) -> tuple[History, ...]:
        """The runs in the order in which they were named."""
        return (self.history, *self.more)

    def _frame(self, name: str, rows: Callable[[History], Iterable[Mapping[str, Any]]]) -> pd.DataFrame:
        return _frame(name, ({"run": each.run, **row} for each in self.runs for row in rows(each)))

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row a trial."""
        return self._frame("trials", lambda history: _trials(history, usage=history.has(Usage)))

    @cached_property
    def calls(self) -> pd.DataFrame:
        """One row an attempt at a call."""
        return self._frame("calls", _calls)

    @cached_property
    def faults(self) -> pd.DataFrame:
        """One row a fault that was drawn for an attempt."""
        return self._frame("faults", _faults)

    @cached_property
    def effects(self) -> pd.DataFrame:
        """One row a line of a ledger."""
        return self._frame("effects", _effects)

    @cached_property
    def usage(self) -> pd.DataFrame:
        """One row an answer of a model."""
        return self._frame("usage", _usage)

    @cached_property
    def incidents(self) -> pd.DataFrame:
        """One row a request that met a fault, with its recovery."""
        return self._frame("incidents", _incidents)

    @cached_property
    def reliability(self) -> pd.DataFrame:
        """One row an objective of a run: nines, error budget and burn rate, with the run's MTTR; none of a run of which
        nothing could be judged."""
        return self._frame("reliability", _reliability)

    def chart(self, name: str) -> Figure:
        """One of the charts that `charts.py` draws, as a matplotlib figure: `lab.load("latest").chart("mttr")`; of
        several runs, one that lays them over each other, such as "pass_rate_vs_level".

        Raises:
            LookupError: there is no such chart. Incomplete: matplotlib is not installed.
        """
        extras.check("a chart", "charts")
        from chaoslab.reports.charts import draw, names, overlay

        reports = [RunReport.of(history) for history in self.runs]
        figures = overlay(reports) if self.more else draw(reports[0], only=name)
        if name not in figures:
            known = figures if self.more else names()
            raise LookupError(f"there is no chart '{name!s:.60}' of this: {did_you_mean(str(name), known)}")
        return figures[name]

    def report(self) -> Report:
        """The report on the run, with its figures as values and `save("report.html")`.

        Raises:
            ValueError: these are several runs.
        """
        from chaoslab.reports.report import Report

        if self.more:
            raise ValueError(f"these are {len(self.runs)} runs: load one of them for a report")
        return Report(self.history)


def load(*runs: str | Path) -> Frames:
    """Logs as pandas DataFrames: `lab.load("latest").trials`, `.calls`, `.faults`, `.effects`, `.usage`, `.incidents`
    and `.reliability`. A missing value is `pd.NA`. `runs`: folders, names of runs in logs/, or patterns of either, as
    in `lab.load("logs/2026*")`; by default the latest. The column `run` tells several apart.

    Raises:
        LookupError, FileNotFoundError: there is no such run. Incomplete: pandas is not installed.
    """
    extras.check("lab.load", "frames")
    names = [name for run in runs or (LATEST,) for name in matching(str(run))]
    if len(names) == 1 and "#" not in names[0] and _tables_there(folder := find(names[0])):
        return WrittenFrames(folder)
    first, *more = map(read, names)
    return Frames(first, tuple(more))


class WrittenFrames(Frames):
    """A run whose tables were written while it went on. Its log is read only for what they do not have."""

    def __init__(self, folder: Path) -> None:
        vars(self).update(_folder=folder, more=())

    @cached_property
    def history(self) -> History:
        """The run's history, read when it is first asked for."""
        return read(str(vars(self)["_folder"]))

    def _frame(self, name: str, rows: Callable[[History], Iterable[Mapping[str, Any]]]) -> pd.DataFrame:
        return _written(vars(self)["_folder"], name) if name in NAMES else super()._frame(name, rows)


class WithHistory(Protocol):
    """A trial as `lab.run` gives it."""

    @property
    def history(self) -> History: ...


def frame(trials: Iterable[WithHistory]) -> pd.DataFrame:
    """The trials of `run_many` as one DataFrame: the columns of `load(…).trials`, a row a trial.

    Raises:
        Incomplete: pandas is not installed.
    """
    extras.check("lab.frame", "frames")
    rows: list[dict[str, Any]] = []
    usage = False
    for history in (trial.history for trial in trials):  # they need not be held
        usage = usage or Usage in history.kinds
        rows += [{"run": history.run, **row} for row in _trials(history, usage=True)]
    unknown = {} if usage else {"tokens": None, "cost_usd": None}  # as in one log of all trials
    return _frame("trials", [row | unknown for row in rows])


def _tables_there(folder: Path) -> bool:
    """True if the tables of a run are there and hold all its trials: it was not killed between a pack and its tables,
    and nobody has spoken of the answers since."""
    tables, packs = [*folder.glob(f"{TABLES}/trials/*.parquet")], [*folder.glob("info.*.log.zst")]
    later = any((folder / each).exists() for each in (LABELS, OPINIONS))
    return bool(tables) and len(tables) == len(packs) and not later


def _written(folder: Path, name: str) -> pd.DataFrame:
    """A table, one of `NAMES`, that was written while the run went on.

    Raises:
        Incomplete: a package that reads it is not installed.
    """
    extras.check("reading the tables of a run", "parquet")
    import pandas as pd

    paths = sorted((folder / TABLES / name).glob("*.parquet"))
    parts = [pd.read_parquet(path, engine="pyarrow") for path in paths]
    return pd.concat(parts, ignore_index=True) if parts else _frame(name, [])


def _frame(name: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    made = list(rows)
    columns = COLUMNS[name]
    data = {each.name: pd.array([_whole(row.get(each.name)) for row in made], dtype=each.dtype) for each in columns}
    return pd.DataFrame(data, columns=[each.name for each in columns])


def _whole(value: Any) -> Any:
    """A value of a cell; a text with half a surrogate pair in it, which no table holds, has its escape instead."""
    return value.encode("utf-8", "backslashreplace").decode() if type(value) is str and not value.isascii() else value


def _trials(history: History, *, usage: bool) -> Iterator[dict[str, Any]]:
    """The rows. `usage`: the log can tell the use of models."""
    judged: Mapping[str, Verdict] = verdicts(history)
    counted = _Counted(history, usage=usage)
    ends = {record.trial: event for record, event in history.of(PromptFinished)}
    for record, started in history.of(PromptStarted):
        trial, end = record.trial or "", ends.get(record.trial)
        verdict = judged[trial]
        yield {
            "trial": trial,
            "prompt_index": started.prompt_index,
            "prompt": started.prompt,
            "outcome": str(verdict.outcome),
            "certain": verdict.certain,
            "world": str(verdict.world),
            "said": str(verdict.said),
            "basis": str(verdict.basis),
            "why": verdict.why,
            "harms": len(verdict.harm) if history.has(Effect) else None,
            "answer": end.answer or None if end is not None and end.status == "ok" else None,
            "began_s": record.t,
            "duration_s": None if end is None else end.duration_s,
            "twin_s": started.twin_s,
            **counted.of(trial),
        }


class _Counted:
    """Sums by trial, in one pass."""

    def __init__(self, history: History, *, usage: bool) -> None:
        self._sums: dict[str | None, dict[str, Any]] = {}
        fields: Mapping[type[Event], str] = {CallStarted: "calls", FaultWitnessed: "faults", Effect: "effects"}
        self._calm: dict[str, Any] = {name: 0 for kind, name in fields.items() if history.has(kind)}
        if usage:
            self._calm |= {"tokens": 0, "cost_usd": 0.0}
        for record in history.records:
            event = record.event
            if isinstance(event, StoryLeftOut):
                sums = self._sums.setdefault(record.trial, {})
                sums["calls"] = sum(event.calls.values())
                sums["faults"] = sum(sum(by.values()) for by in event.met.values())
            elif (name := fields.get(type(event))) is not None:
                sums = self._sums.setdefault(record.trial, {})
                sums[name] = sums.get(name, 0) + 1
            elif isinstance(event, Usage):
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
    ends = {_key(record, event): event for record, event in history.of(CallFinished)}
    gone = history.given_up
    met: dict[tuple[Any, ...], list[str]] = {}
    knows_faults, foreign = history.has(FaultWitnessed), bool(history.unknown)
    for record, fault in history.of(FaultWitnessed):
        met.setdefault(_key(record, fault), []).append(fault.fault)
    for record, started in history.of(CallStarted):
        end, given = ends.get(_key(record, started)), _key(record, started) in gone
        yield {
            **_place(record, started),
            "tool": started.tool,
            "request_id": started.at.request_id or None,
            "began_s": record.t,
            "duration_s": None if end is None else end.duration_s,
            "ok": None if end is None or given else end.ok,
            "given_up": None if end is None else given,
            "status": None if end is None else end.status,
            "error": None if end is None else end.error or None,
            "via": None if end is None else end.via,
            "bytes": None if end is None or foreign else end.bytes,
            "faults": ", ".join(met.get(_key(record, started), [])) if knows_faults else None,
            "first_token_s": None if end is None else end.first_byte_s,
            "last_token_s": None if end is None else end.last_byte_s,
        }


def _faults(history: History) -> Iterator[dict[str, Any]]:
    injected = {(_key(record, event), event.injection, event.fault) for record, event in history.of(FaultInjected)}
    evidence = {
        (_key(record, event), event.injection, event.fault): event.evidence
        for record, event in history.of(FaultWitnessed)
    }
    for record, event in history.of(FaultScheduled):
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
    for record, event in history.of(Effect):
        yield {
            "trial": record.trial, "t_s": record.t, "target": event.target, "tool": event.tool, "effect": event.effect,
            "request_id": event.request_id or None,
            "content": json.dumps(event.content, ensure_ascii=False, sort_keys=True),
        }  # fmt: skip


def _usage(history: History) -> Iterator[dict[str, Any]]:
    for record, event in history.of(Usage):
        yield {
            "trial": record.trial, "t_s": record.t, "model": event.model or None, "request": event.request,
            "prompt_tokens": event.prompt_tokens, "completion_tokens": event.completion_tokens,
            "cost_usd": event.cost_usd,
        }  # fmt: skip


def _incidents(history: History) -> Iterator[dict[str, Any]]:
    for one in incidents(history):
        yield {
            "trial": one.trial, "target": one.target, "request": one.request, "fault": one.fault,
            "injection": one.injection or None, "opened_s": one.opened_t, "duration_s": one.duration_s,
            "detect_s": one.noticed_after_s, "repair_s": one.since_notice_s, "ending": str(one.ending),
            "recovered": one.recovered,
        }  # fmt: skip


def _reliability(history: History) -> Iterator[dict[str, Any]]:
    """The figures of the report's JSON under the names that the columns share with them."""
    report = RunReport.of(history)
    if (found := reliability(report)) is None:
        return
    of_run = found if report.recovery.unknown else {**recovery(report.recovery.value.overall), **found}
    judged, well = (found["available"][name] for name in ("total", "count"))
    for budget in found["error_budgets"]:
        yield {**of_run, **budget, "judged": judged, "well": well, "budget_left": budget["left"]}
