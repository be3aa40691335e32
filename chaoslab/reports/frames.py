"""A run as tables: pandas DataFrames with documented columns, of its log's lines and of its measures' values."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from chaoslab.analysis.measures.errors import failures
from chaoslab.analysis.measures.incidents import incidents
from chaoslab.analysis.measures.intervals import kaplan_meier
from chaoslab.analysis.measures.mttr import ENOUGH, spells
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import Section
from chaoslab.analysis.verdict.judge import verdicts
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base import extras
from chaoslab.base.files import replacing
from chaoslab.base.identity import digest
from chaoslab.core import events
from chaoslab.core.events import RunStarted
from chaoslab.record.history import History, Place, WithHistory
from chaoslab.record.lines import Record
from chaoslab.record.runs import revision_of
from chaoslab.record.trial_stream import TrialStream, Unordered
from chaoslab.reports._columns import COLUMNS, as_text, settings_of
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._matrix import matrix
from chaoslab.reports.contents._tables import ROWS
from chaoslab.reports.levels import level_in
from chaoslab.reports.places import LOGS, reported

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
WIRE = "wire"
"""The injection that TOXIC_PROB makes; the settings describe it completely."""


def _property(name: str, doc: str) -> cached_property[pd.DataFrame]:
    """The property with the table of this name, made when it is first asked for."""

    def made(run: Frames) -> pd.DataFrame:
        return run._table(name)

    made.__doc__ = doc
    return cached_property(made)


class Frames:
    """A run as tables, each made when it is first asked for. The rows are in the order of its log's time."""

    def __init__(self, source: History | Path, known: RunReport | None = None) -> None:
        """`source`: the run's history, or its folder, of which no whole history is held. `known`: the report on it, if
        it was made before."""
        self._source, self._known = source, known

    @classmethod
    def read(cls, name: str, *, logs: Path = LOGS) -> Self:
        """The run that `places.read` finds by this name. Raises LookupError: as that."""
        known, source = reported(name, logs=logs)
        return cls(source, known)

    @cached_property
    def history(self) -> History:
        """The run's history; of a folder, it is read when it is first asked for."""
        return self._source if isinstance(self._source, History) else History.read(self._source)

    @property
    def name(self) -> str:
        """The run's name; empty without any event."""
        return self.measures.name

    @cached_property
    def measures(self) -> RunReport:
        """The measures of the run as values, with what its log says of the run as a whole."""
        return self._known or RunReport.of(self.history)

    def _table(self, name: str) -> pd.DataFrame:
        return self.columns(name).frame()

    def columns(self, name: str) -> Columns:
        """The table of this name; a setting's column in `runs` as text. Raises KeyError: there is none. Unknown: its
        measure raised."""
        if name in LOGGED:
            return self._of_lines[name].value
        rows = [*MEASURED[name](self.measures)]
        made = Columns(
            name, settings=[setting for row in rows for setting in settings_of(row)] if name == "runs" else ()
        )
        made.add(rows, self._run)
        return made

    @cached_property
    def _run(self) -> Row:
        """The part of a row that tells the run."""
        revision = revision_of(self._source) if isinstance(self._source, Path) else None
        return {"run": self.name, "revision": revision or None}

    @cached_property
    def _of_lines(self) -> Mapping[str, Section[Columns]]:
        """The tables of the log's lines, all made in one reading."""
        try:
            return self._read([self._source] if isinstance(self._source, History) else TrialStream(self._source))
        except Unordered:
            return self._read([self.history])

    def _read(self, parts: Iterable[History]) -> Mapping[str, Section[Columns]]:
        made = {name: Columns(name) for name in LOGGED}
        unknown = dict.fromkeys(made, "")
        for part in parts:
            for name, columns in made.items():
                rows = LOGGED[name](part, self.measures)
                unknown[name] = unknown[name] or Section.of(partial(columns.add, rows, self._run)).unknown
        return {name: Section(None, why) if (why := unknown[name]) else Section(made[name]) for name in made}

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
    figures = _property(
        "figures", "One row a figure of the report, with its interval, its unit and the sentence that tells it."
    )
    outcomes = _property("outcomes", "One row an outcome, with its share of the trials.")
    impact = _property(
        "impact", "One row a fault at a target: the trials that met it, their ends, and what they took more."
    )
    recovery = _property(
        "recovery",
        "One row a corner of Kaplan–Meier's curve: the share of the incidents that are not over yet. No row below 8 "
        "incidents, of which it would be misleading.",
    )
    mttr = _property(
        "mttr",
        "One row a fault at a target, and one over all of its targets: its incidents, and how soon they recovered.",
    )
    latency = _property("latency", "One row a target, and one more of its attempts that met a fault.")
    amplification = _property(
        "amplification", "One row a target: the requests that it got for each that was wanted, most amplified first."
    )
    throughput = _property("throughput", "One row an interval of the run.")
    costs = _property(
        "costs", "One row a fault that added something to its trials, and the rows that make the sum of the run whole."
    )
    delivery = _property("delivery", "One row an injection, and one each of its faults: from the dice to the witness.")
    unmet = _property("unmet", "One row a reason why scheduled faults were not witnessed.")
    failures = _property("failures", "One row a failure that nobody injected, most frequent first.")
    warnings = _property("warnings", "One row a warning of the lab, most frequent first.")
    matrix = _property("matrix", "One row a fault at a target: the trials that met it, and the bad ones of them.")
    reliability = _property("reliability", "One row an objective of the run; none if nothing could be judged.")
    score = _property("score", "One row a part of the score of reliability that is known.")
    quality = _property("quality", "One row a part of the quality of recovery that is known.")


class Joined(Frames):
    """Several runs in one table each. Of runs with one name, the column `run` counts the later ones, as in "paid (2)".
    `only`: the names of the tables to keep of each run, of which nothing else is held then."""

    def __init__(self, runs: Iterable[Frames], *, only: Sequence[str] = ()) -> None:
        named: Counter[str] = Counter()
        self._each: list[tuple[str, Callable[[str], pd.DataFrame]]] = []
        for run in runs:
            named[run.name] += 1
            again = f" ({named[run.name]})" if named[run.name] > 1 else ""
            kept = {table: Section.of(partial(run._table, table)) for table in only}
            self._each.append((again, partial(_value, kept) if only else run._table))

    def _table(self, name: str) -> pd.DataFrame:
        """The tables of the runs, one below the other. Raises Unknown: a measure raised. KeyError: `only` lacks it."""
        import pandas as pd

        found = [(again, of(name)) for again, of in self._each]
        tables = [table.assign(run=table["run"] + again) if again else table for again, table in found]
        return pd.concat(tables, ignore_index=True)


def _value(kept: Mapping[str, Section[pd.DataFrame]], name: str) -> pd.DataFrame:
    return kept[name].value


def frame(trials: Iterable[WithHistory]) -> pd.DataFrame:
    """The trials of `run_many` as one DataFrame: the columns of `load(…).trials`, a row a trial.

    Raises:
        Incomplete: pandas is not installed.
    """
    extras.check_module("lab.frame", "pandas", "charts")
    rows: list[dict[str, Any]] = []
    usage = False
    for history in (trial.history for trial in trials):  # they need not be held
        usage = usage or events.Usage in history.kinds
        rows += [{"run": history.run, **row} for row in _trials(history, verdicts(history), usage=True)]
    unknown = {} if usage else {"tokens": None, "cost_usd": None}  # as in one log of all trials
    made = Columns("trials")
    made.add((row | unknown for row in rows), {})
    return made.frame()


def write_parquet(run: Frames, folder: Path) -> list[Path]:
    """Writes `trials.parquet` and so on into the folder, each replaced as a whole. Raises Incomplete: pandas or pyarrow
    is not installed. OSError: a file could not be written."""
    extras.check("a Parquet file", "parquet")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in COLUMNS:
        path = folder / f"{name}.parquet"
        with replacing(path) as part:
            getattr(run, name).to_parquet(part, engine="pyarrow", index=False)
        paths.append(path)
    return paths


class Columns:
    """The columns of the table of a name, to which rows are added. `values`: those of each."""

    def __init__(self, name: str, *, settings: Iterable[str] = ()) -> None:
        self._of = {column.name: column.dtype for column in COLUMNS[name]} | dict.fromkeys(settings, "string")
        self.values: dict[str, list[Any]] = {column: [] for column in self._of}

    def add(self, rows: Iterable[Row], run: Row) -> None:
        """Adds rows. `run`: the values that all of them have."""
        for row in rows:
            for column, values in self.values.items():
                values.append(_whole(row.get(column, run.get(column))))

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame({column: pd.array(self.values[column], dtype=dtype) for column, dtype in self._of.items()})


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
    sums = _sums(history, usage=usage)
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
            **sums[record.trial],
        }


def _sums(history: History, *, usage: bool) -> Mapping[str | None, dict[str, Any]]:
    """The sums of each trial."""
    none = {"calls": 0, "faults": 0, "effects": 0, **({"tokens": 0, "cost_usd": 0.0} if usage else {})}
    found: dict[str | None, dict[str, Any]] = defaultdict(none.copy)
    kinds = {"calls": events.CallStarted, "faults": events.FaultWitnessed, "effects": events.Effect}
    for name, kind in kinds.items():
        for record, _ in history.of(kind):
            found[record.trial][name] += 1
    for record, story in history.of(events.StoryLeftOut):
        met = sum(sum(by.values()) for by in story.met.values())
        found[record.trial] |= {"calls": sum(story.calls.values()), "faults": met}
    for record, used in history.of(events.Usage):
        sums = found[record.trial]
        before = sums["cost_usd"]
        sums["tokens"] += used.prompt_tokens + used.completion_tokens
        sums["cost_usd"] = None if before is None or used.cost_usd is None else before + used.cost_usd
    return found


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


LOGGED: Mapping[str, Callable[[History, RunReport], Iterable[Row]]] = {
    "trials": lambda part, run: _trials(part, run.verdicts, usage=run.knows_usage),
    "calls": lambda part, _: _calls(part),
    "faults": lambda part, _: _faults(part),
    "effects": lambda part, _: _effects(part),
    "usage": lambda part, _: _usage(part),
    "incidents": lambda part, _: _incidents(part),
}
"""Table → its rows, of the lines of a part of the log with whole trials."""


def summarize_run(report: RunReport) -> dict[str, Any]:
    """A run in one row, with each setting that its log states under its own name."""
    run, judged, met = report.started, report.success, report.delivered
    row: dict[str, Any] = {**_settings(run), "trials": len(report.trials), "level": level_in(run)}
    if report.rulings is not None:
        row["scenario"] = report.rulings.scenario or None
    if run is not None:
        row |= {"world": run.world or None, "model": run.model or None, "inputs": json.dumps(_others(run))}
        row["seed"] = None if run.seed is None else str(run.seed)
    if not judged.unknown:
        ended, done = judged.value.ended, judged.value.done
        row |= {"judged": ended.judged, "well": ended.well, "open": ended.open}
        row["prompts"] = json.dumps({digest(prompt)[:8]: of for prompt, of in judged.value.prompts.items()})
        row |= {"done": done.well, "not_done": done.bad} if done is not None else {}
    if not met.unknown:
        row["faults"] = sum(one.witnessed for one in met.value.by_fault)
    if not report.recovery.unknown:
        of_all = report.recovery.value.overall
        row |= {"incidents": of_all.n, "recovered": of_all.recovered, "mttr_s": of_all.mean_s}
    return row


def recovery_corners(report: RunReport) -> list[dict[str, Any]]:
    """The corners of Kaplan–Meier's curve: `seconds` since the fault began, the `share` of the incidents that are not
    over, from 0 to 1, `low` and `high` of its 95 % interval (log–log). Between them those that were still `open` when
    the log ended. None below 8 incidents, where the interval would be misleading."""
    met = report.recovery.value.incidents
    curve = kaplan_meier(spells(met), [incident.trial for incident in met]) if len(met) >= ENOUGH else None
    if curve is None:
        return []
    corners: list[dict[str, Any]] = [{"seconds": 0.0, "share": 1.0, "low": 1.0, "high": 1.0, "open": False}]
    for step in curve.steps:
        level = {"share": step.share, "low": step.interval.low, "high": step.interval.high}
        corners += [corners[-1] | {"seconds": step.at_s}, corners[-1] | {"seconds": step.at_s} | level]
    if curve.horizon_s > corners[-1]["seconds"]:
        corners.append(corners[-1] | {"seconds": curve.horizon_s})
    for cut_s in sorted({one.duration_s for one in met if one.censored}):
        before = next(corner for corner in reversed(corners) if corner["seconds"] <= cut_s and not corner["open"])
        corners.append({"seconds": cut_s, "share": before["share"], "open": True})
    return sorted(corners, key=itemgetter("seconds"))


def _throughput(report: RunReport) -> Iterable[Row]:
    if (found := report.throughput.value) is not None:
        for n, (trials, calls) in enumerate(zip(found.prompts, found.calls, strict=True)):
            edges = {"from_s": n * found.width_s, "to_s": (n + 1) * found.width_s}
            yield {**edges, "trials": trials, "calls": calls}


def _matrix(report: RunReport) -> Iterable[Row]:
    for cell in (cell for cells in matrix(report).rows.values() for cell in cells):
        figures = {} if cell.bad is None else {
            "bad": cell.bad.count, "judged": cell.bad.total, **vars(cell.bad.interval),
        }  # fmt: skip
        worst = None if cell.worst is None else str(cell.worst)
        yield {**vars(cell), "state": str(cell.state), "bad": None, **figures, "worst": worst}


def _figures(report: RunReport) -> Iterable[Row]:
    if report.started or report.trials:
        for row in Contents.of(History([]), where=report.name, report=report).figures:
            yield {name: None if value == "" else value for name, value in row.items()}


MEASURED: Mapping[str, Callable[[RunReport], Iterable[Row]]] = {
    **ROWS,
    "runs": lambda report: [summarize_run(report)] if report.started or report.trials else [],
    "figures": _figures, "recovery": recovery_corners, "throughput": _throughput, "matrix": _matrix,
}  # fmt: skip
"""Table → its rows. All others are made of the log's lines."""


def _settings(run: RunStarted | None) -> dict[str, str]:
    """The settings that the run's log states."""
    return {} if run is None else {name: as_text(value) for name, value in run.settings.items()}


def _others(run: RunStarted | None) -> dict[str, str]:
    """All else that its log states. What is long is a digest; injections that follow from the settings are left out."""
    if run is None:
        return {}
    found: dict[str, Any] = {"prompts": digest(run.asked)[:6]} if run.asked else {}
    found |= {name: value for name, value in (("MODEL", run.model), ("WORLD", run.world)) if value}
    if run.now and "NOW" not in run.settings:  # NOW=now is another time in each run
        found["NOW"] = run.now
    injections = [] if _follows(run.plan, run.settings) else run.injections
    found |= {f"injection {i.get('name')}": _rest(i) for i in injections if i.get("name") != WIRE}
    found |= {f"version of {name}": value for name, value in run.code.items()}
    return {name: as_text(value) for name, value in found.items()}


def _rest(injection: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in injection.items() if key != "name"}


def _follows(plan: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """True if the plan is what the settings ask for, so that they say it all."""
    from chaoslab.config.scenario import from_settings
    from chaoslab.config.settings import SettingError, Settings

    try:
        made = from_settings(Settings.from_shown(settings, where="a log")).to_json()
        return digest(made) == digest(dict(plan))
    except (SettingError, TypeError, ValueError):
        return False
