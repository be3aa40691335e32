"""A run's log as tables: pandas DataFrames with documented columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from chaoslab.analysis.verdict.judge import verdicts
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base import extras
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
    Usage,
)
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports.folder import read

if TYPE_CHECKING:
    import pandas as pd


class Column(NamedTuple):
    """One column: its name, its pandas dtype, and its meaning with the unit."""

    name: str
    dtype: str
    meaning: str


_WHERE = (
    Column("trial", "string", "the trial's key, as in p3.r1; missing outside of trials"),
    Column("turn", "Int64", "the turn of the conversation, from 1"),
    Column("target", "string", "the service or function"),
    Column("tool", "string", "the tool, or a request's method and path"),
    Column("request", "Int64", "the number of the request to the target, from 1"),
    Column("attempt", "Int64", "the attempt at that request, from 1"),
)
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "trials": (
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
        Column("trial", "string", "the trial's key; missing outside of trials"),
        Column("t_s", "Float64", "the moment, in seconds since the run began"),
        Column("target", "string", "the service or function"),
        Column("tool", "string", "the tool"),
        Column("effect", "string", "the effect's name"),
        Column("request_id", "string", "its request's id, missing if it has none; lines with one id are one effect"),
        Column("content", "string", "the content as JSON"),
    ),
    "usage": (
        Column("trial", "string", "the trial's key; missing outside of trials"),
        Column("t_s", "Float64", "the moment, in seconds since the run began"),
        Column("model", "string", "the model's name; missing if its answer has none"),
        Column("request", "Int64", "the number of the request to the model"),
        Column("prompt_tokens", "Int64", "tokens to the model"),
        Column("completion_tokens", "Int64", "tokens from the model"),
        Column("cost_usd", "Float64", "dollars; missing if the price is not known"),
    ),
}  # fmt: skip
"""Table → its columns."""


@dataclass(frozen=True)
class Frames:
    """A run as tables, each made when it is first asked for. The rows are in the order of the log's time."""

    history: History

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row a trial."""
        return _frame("trials", _trials(self.history, usage=self.history.has(Usage)))

    @cached_property
    def calls(self) -> pd.DataFrame:
        """One row an attempt at a call."""
        return _frame("calls", _calls(self.history))

    @cached_property
    def faults(self) -> pd.DataFrame:
        """One row a fault that was drawn for an attempt."""
        return _frame("faults", _faults(self.history))

    @cached_property
    def effects(self) -> pd.DataFrame:
        """One row a line of a ledger."""
        return _frame("effects", _effects(self.history))

    @cached_property
    def usage(self) -> pd.DataFrame:
        """One row an answer of a model."""
        return _frame("usage", _usage(self.history))


def load(run: str = "latest") -> Frames:
    """A run's log as pandas DataFrames: `lab.load("logs/latest").trials`, `.calls`, `.faults`, `.effects` and `.usage`.
    A missing value is `pd.NA`. `run`: a folder, or the name of a run in logs/.

    Raises:
        LookupError, FileNotFoundError: there is no such run. Incomplete: pandas is not installed.
    """
    extras.check("lab.load", "frames")
    return Frames(read(str(run)))


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
        rows += _trials(history, usage=True)
    unknown = {} if usage else {"tokens": None, "cost_usd": None}  # as in one log of all trials
    return _frame("trials", [row | unknown for row in rows])


def _frame(name: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    made = list(rows)
    columns = COLUMNS[name]
    data = {each.name: pd.array([row.get(each.name) for row in made], dtype=each.dtype) for each in columns}
    return pd.DataFrame(data, columns=[each.name for each in columns])


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
            if (name := fields.get(type(event))) is not None:
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
