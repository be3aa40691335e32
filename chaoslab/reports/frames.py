"""A run as tables: pandas DataFrames with documented columns, of its log's lines and of its measures' values."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from chaoslab.analysis.measures.errors import find_failures_with_causes
from chaoslab.analysis.measures.incidents import find_incidents
from chaoslab.analysis.measures.intervals import kaplan_meier
from chaoslab.analysis.measures.mttr import ENOUGH, to_censored_durations
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import MeasureResult
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.table import Verdict
from chaoslab.base import extras
from chaoslab.base.identity import hash_value
from chaoslab.core import events
from chaoslab.core.events import RunStarted
from chaoslab.record.history import History, Place, WithHistory
from chaoslab.record.lines import Record
from chaoslab.record.runs import read_revision
from chaoslab.record.trial_stream import TrialStream, Unordered
from chaoslab.reports._columns import COLUMNS, extract_settings, format_setting_value
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._matrix import build_matrix
from chaoslab.reports.contents._tables import ROWS
from chaoslab.reports.levels import find_chaos_level
from chaoslab.reports.places import LOGS, read_report

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
WIRE = "wire"
"""The injection that TOXIC_PROB makes; the settings describe it completely."""


def _make_table_property(name: str, doc: str) -> cached_property[pd.DataFrame]:
    """The property with the table of this name, made when it is first asked for."""

    def build_table(run: Frames) -> pd.DataFrame:
        return run._build_table(name)

    build_table.__doc__ = doc
    return cached_property(build_table)


class Frames:
    """A run as tables, each made when it is first asked for. The rows are in the order of its log's time."""

    def __init__(self, source: History | Path, report: RunReport | None = None) -> None:
        """`source`: the run's history, or its folder, of which no whole history is held. `known`: the report on it, if
        it was made before."""
        self._source, self._known = source, report

    @classmethod
    def read(cls, name: str, *, logs: Path = LOGS) -> Self:
        """The run that `places.read` finds by this name. Raises LookupError: as that."""
        report, source = read_report(name, logs=logs)
        return cls(source, report)

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
        return self._known or RunReport.from_history(self.history)

    def _build_table(self, name: str) -> pd.DataFrame:
        return self.build_columns(name).to_data_frame()

    def build_columns(self, name: str) -> Columns:
        """The table of this name; a setting's column in `runs` as text. Raises KeyError: there is none. Unknown: its
        measure raised."""
        if name in LOGGED:
            return self._log_tables[name].value
        rows = [*MEASURED[name](self.measures)]
        columns = Columns(
            name, settings=[setting for row in rows for setting in extract_settings(row)] if name == "runs" else ()
        )
        columns.add_rows(rows, self._run_fields)
        return columns

    @cached_property
    def _run_fields(self) -> Row:
        """The part of a row that tells the run."""
        revision = read_revision(self._source) if isinstance(self._source, Path) else None
        return {"run": self.name, "revision": revision or None}

    @cached_property
    def _log_tables(self) -> Mapping[str, MeasureResult[Columns]]:
        """The tables of the log's lines, all made in one reading."""
        try:
            return self._read_log_tables(
                [self._source] if isinstance(self._source, History) else TrialStream(self._source)
            )
        # A log whose trials do not stand in order cannot be read trial by trial: it is held as a whole.
        except Unordered:
            return self._read_log_tables([self.history])

    def _read_log_tables(self, parts: Iterable[History]) -> Mapping[str, MeasureResult[Columns]]:
        tables = {name: Columns(name) for name in LOGGED}
        unknown = dict.fromkeys(tables, "")
        for history in parts:
            for name, columns in tables.items():
                rows = LOGGED[name](history, self.measures)
                unknown[name] = (
                    unknown[name]
                    or MeasureResult.from_measure(partial(columns.add_rows, rows, self._run_fields)).unknown
                )
        return {
            name: MeasureResult(None, reason) if (reason := unknown[name]) else MeasureResult(tables[name])
            for name in tables
        }

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row a run. After these columns, one of each setting that a log states, under the setting's name, such as
        `TOXIC_PROB`: numbers if all values are, else text."""
        table = self._build_table("runs")
        return table.assign(**{name: _texts_to_numbers(table[name]) for name in table.columns[len(COLUMNS["runs"]) :]})

    trials = _make_table_property("trials", "One row a trial.")
    calls = _make_table_property("calls", "One row an attempt at a call.")
    faults = _make_table_property("faults", "One row a fault that was drawn for an attempt.")
    effects = _make_table_property("effects", "One row a line of a ledger.")
    usage = _make_table_property("usage", "One row an answer of a model.")
    incidents = _make_table_property("incidents", "One row a request that met a fault, with its recovery.")
    figures = _make_table_property(
        "figures", "One row a figure of the report, with its interval, its unit and the sentence that tells it."
    )
    outcomes = _make_table_property("outcomes", "One row an outcome, with its share of the trials.")
    impact = _make_table_property(
        "impact", "One row a fault at a target: the trials that met it, their ends, and what they took more."
    )
    recovery = _make_table_property(
        "recovery",
        "One row a corner of Kaplan–Meier's curve: the share of the incidents that are not over yet. No row below 8 "
        "incidents, of which it would be misleading.",
    )
    mttr = _make_table_property(
        "mttr",
        "One row a fault at a target, and one over all of its targets: its incidents, and how soon they recovered.",
    )
    latency = _make_table_property("latency", "One row a target, and one more of its attempts that met a fault.")
    amplification = _make_table_property(
        "amplification", "One row a target: the attempts that it got for each request, most amplified first."
    )
    throughput = _make_table_property("throughput", "One row an interval of the run.")
    costs = _make_table_property(
        "costs", "One row a fault that added something to its trials, and the rows that make the sum of the run whole."
    )
    delivery = _make_table_property(
        "delivery", "One row an injection, and one each of its faults: from the dice to the witness."
    )
    unmet = _make_table_property("unmet", "One row a reason why scheduled faults were not witnessed.")
    failures = _make_table_property("failures", "One row a failure that nobody injected, most frequent first.")
    warnings = _make_table_property("warnings", "One row a warning of the lab, most frequent first.")
    matrix = _make_table_property(
        "matrix", "One row a fault at a target: the trials that met it, and the bad ones of them."
    )
    reliability = _make_table_property(
        "reliability", "One row an objective of the run; none if nothing could be judged."
    )


class JoinedRunFrames(Frames):
    """Several runs in one table each. Of runs with one name, the column `run` counts the later ones, as in "paid (2)".
    `only`: the names of the tables to keep of each run, of which nothing else is held then."""

    def __init__(self, runs: Iterable[Frames], *, only: Sequence[str] = ()) -> None:
        name_counts: Counter[str] = Counter()
        self._each: list[tuple[str, Callable[[str], pd.DataFrame]]] = []
        for run in runs:
            name_counts[run.name] += 1
            # As the list of runs does: two runs of one name would be one line in a chart.
            suffix = f" ({name_counts[run.name]})" if name_counts[run.name] > 1 else ""
            # Read now, so that of each run these tables alone are held.
            tables = {table: MeasureResult.from_measure(partial(run._build_table, table)) for table in only}
            self._each.append((suffix, partial(_get_kept_table, tables) if only else run._build_table))

    def _build_table(self, name: str) -> pd.DataFrame:
        """The tables of the runs, one below the other. Raises Unknown: a measure raised. KeyError: `only` lacks it."""
        import pandas as pd

        run_tables = [(suffix, read_table(name)) for suffix, read_table in self._each]
        tables = [table.assign(run=table["run"] + suffix) if suffix else table for suffix, table in run_tables]
        return pd.concat(tables, ignore_index=True)


def _get_kept_table(tables: Mapping[str, MeasureResult[pd.DataFrame]], name: str) -> pd.DataFrame:
    return tables[name].value


def frame(trials: Iterable[WithHistory]) -> pd.DataFrame:
    """The trials of `run_many` as one DataFrame: the columns of `load(…).trials`, a row a trial.

    Raises:
        Incomplete: pandas is not installed.
    """
    extras.require_module("lab.frame", "pandas", "charts")
    rows: list[dict[str, Any]] = []
    usage = False
    for history in (trial.history for trial in trials):  # they need not be held
        usage = usage or events.Usage in history.event_kinds
        rows += [
            {"run": history.run_name, **row} for row in _trial_rows(history, judge_all_trials(history), usage=True)
        ]
    unknown = {} if usage else {"tokens": None, "cost_usd": None}  # as in one log of all trials
    columns = Columns("trials")
    columns.add_rows((row | unknown for row in rows), {})
    return columns.to_data_frame()


class Columns:
    """The columns of the table of a name, to which rows are added. `values`: those of each."""

    def __init__(self, name: str, *, settings: Iterable[str] = ()) -> None:
        self._of = {column.name: column.dtype for column in COLUMNS[name]} | dict.fromkeys(settings, "string")
        self.values: dict[str, list[Any]] = {column: [] for column in self._of}

    def add_rows(self, rows: Iterable[Row], run: Row) -> None:
        """Adds rows. `run`: the values that all of them have."""
        for row in rows:
            for column, values in self.values.items():
                values.append(_escape_surrogates(row.get(column, run.get(column))))

    def to_data_frame(self) -> pd.DataFrame:
        import pandas as pd

        # With the dtype of each column, also of an empty one: pandas would guess another in each run.
        return pd.DataFrame({column: pd.array(self.values[column], dtype=dtype) for column, dtype in self._of.items()})


def _texts_to_numbers(texts_series: pd.Series) -> Any:
    """A setting's texts as numbers, if they all say one and nothing is lost."""
    import pandas as pd

    texts = [None if text is pd.NA else text for text in texts_series.astype("string")]
    try:
        numbers = [None if text is None else float(text) for text in texts]
    except ValueError:
        return pd.array(texts, dtype="string")
    # Only if each reads as its text: 1e3 or 007 would not come back.
    same = all(number is None or f"{number:g}" == text for number, text in zip(numbers, texts, strict=True))
    return pd.array(numbers, dtype="Float64") if same else pd.array(texts, dtype="string")


def _escape_surrogates(value: Any) -> Any:
    """A value of a cell; a text with half a surrogate pair in it, which no table holds, has its escape instead."""
    return value.encode("utf-8", "backslashreplace").decode() if type(value) is str and not value.isascii() else value


def _trial_rows(history: History, judged: Mapping[str, Verdict], *, usage: bool) -> Iterator[dict[str, Any]]:
    """The rows. `usage`: the log can tell the use of models."""
    sums = _sum_figures_by_trial(history, usage=usage)
    ends = {record.trial: event for record, event in history.find_events(events.PromptFinished)}
    for record, started in history.find_events(events.PromptStarted):
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


def _sum_figures_by_trial(history: History, *, usage: bool) -> Mapping[str | None, dict[str, Any]]:
    """The sums of each trial."""
    # Without usage a missing number is not 0.
    empty_row = {"calls": 0, "faults": 0, "effects": 0, **({"tokens": 0, "cost_usd": 0.0} if usage else {})}
    sums_by_trial: dict[str | None, dict[str, Any]] = defaultdict(empty_row.copy)
    kinds = {"calls": events.CallStarted, "faults": events.FaultWitnessed, "effects": events.Effect}
    for name, kind in kinds.items():
        for record, _ in history.find_events(kind):
            sums_by_trial[record.trial][name] += 1
    # A trial whose story was left out has its sums in that line alone.
    for record, story in history.find_events(events.StoryLeftOut):
        fault_count = sum(sum(counts.values()) for counts in story.met.values())
        sums_by_trial[record.trial] |= {"calls": sum(story.calls.values()), "faults": fault_count}
    for record, used in history.find_events(events.Usage):
        sums = sums_by_trial[record.trial]
        cost_before = sums["cost_usd"]
        sums["tokens"] += used.prompt_tokens + used.completion_tokens
        # One answer without a price: the sum is not known.
        sums["cost_usd"] = None if cost_before is None or used.cost_usd is None else cost_before + used.cost_usd
    return sums_by_trial


def _attempt_place_fields(record: Record, event: Any) -> dict[str, Any]:
    attempt_place = event.at
    return {
        "trial": record.trial,
        "turn": attempt_place.turn,
        "target": attempt_place.target,
        "request": attempt_place.request,
        "attempt": attempt_place.attempt,
    }


def _attempt_key(record: Record, event: Any) -> tuple[Any, ...]:
    return record.trial, event.at.target, event.at.request, event.at.attempt


def _call_rows(history: History) -> Iterator[dict[str, Any]]:
    """The rows. Of a log that was cut there are ends without a beginning."""
    starts = {
        attempt_place: (record, event)
        for record, event, attempt_place in history.find_attempt_events(events.CallStarted)
    }
    ends = {
        attempt_place: (record, event)
        for record, event, attempt_place in history.find_attempt_events(events.CallFinished)
    }
    given_up, disturbed = (
        history.given_up_attempts,
        {attempt_place for _, _, attempt_place in history.find_attempt_events(events.CallDisturbed)},
    )
    causes = {attempt_place: (kind, cause) for attempt_place, kind, cause in find_failures_with_causes(history)}
    fault_names: dict[Place, list[str]] = {}
    for _, fault, attempt_place in history.find_attempt_events(events.FaultWitnessed):
        fault_names.setdefault(attempt_place, []).append(fault.fault)
    # A log that was cut has ends without a beginning, too.
    for attempt_place in {**starts, **ends}:
        start, (ended, end) = starts.get(attempt_place), ends.get(attempt_place, (None, None))
        record, call = start or ends[attempt_place]
        kind, cause = causes.get(attempt_place, (None, None))
        yield {
            **_attempt_place_fields(record, call),
            "tool": call.tool,
            "request_id": call.at.request_id or None,
            "began_s": None if start is None else record.t,
            "ended_s": None if ended is None else ended.t,
            "duration_s": None if end is None else end.duration_s,
            "ok": None if end is None or attempt_place in given_up else end.ok,
            "given_up": None if end is None else attempt_place in given_up,
            "disturbed": attempt_place in disturbed,
            "status": None if end is None else end.status,
            "error": None if end is None else end.error or None,
            "failure": kind,
            "cause": cause,
            "via": None if end is None else end.via,
            "bytes": None if end is None else end.bytes,
            # Empty and not missing: the attempt met none.
            "faults": ", ".join(fault_names.get(attempt_place, [])),
            "first_token_s": None if end is None else end.first_byte_s,
            "last_token_s": None if end is None else end.last_byte_s,
        }


def _fault_rows(history: History) -> Iterator[dict[str, Any]]:
    injected = {
        (_attempt_key(record, event), event.injection, event.fault)
        for record, event in history.find_events(events.FaultInjected)
    }
    evidence = {
        (_attempt_key(record, event), event.injection, event.fault): event.evidence
        for record, event in history.find_events(events.FaultWitnessed)
    }
    for record, event in history.find_events(events.FaultScheduled):
        key = (_attempt_key(record, event), event.injection, event.fault)
        yield {
            **_attempt_place_fields(record, event),
            "fault": event.fault,
            "injection": event.injection,
            "scheduled_s": record.t,
            "injected": key in injected,
            "witnessed": key in evidence,
            "evidence": evidence.get(key),
            # Sorted, so that equal parameters are equal texts.
            "params": json.dumps(event.params, ensure_ascii=False, sort_keys=True),
        }


def _effect_rows(history: History) -> Iterator[dict[str, Any]]:
    for record, event in history.find_events(events.Effect):
        yield {
            "trial": record.trial, "t_s": record.t, "target": event.target, "tool": event.tool, "effect": event.effect,
            "request_id": event.request_id or None,
            "content": json.dumps(event.content, ensure_ascii=False, sort_keys=True),
        }  # fmt: skip


def _usage_rows(history: History) -> Iterator[dict[str, Any]]:
    for record, event in history.find_events(events.Usage):
        yield {
            "trial": record.trial, "t_s": record.t, "model": event.model or None, "request": event.request,
            "prompt_tokens": event.prompt_tokens, "completion_tokens": event.completion_tokens,
            "cost_usd": event.cost_usd,
        }  # fmt: skip


def _incident_rows(history: History) -> Iterator[dict[str, Any]]:
    known_trials = {*history.trials}  # a cut log has faults of trials that it lacks
    for incident in (
        # A log without any beginning of a trial keeps all of its incidents.
        candidate
        for candidate in find_incidents(history)
        if not known_trials or candidate.trial in known_trials
    ):
        yield {
            "trial": incident.trial, "target": incident.target, "request": incident.request, "fault": incident.fault,
            "injection": incident.injection or None, "opened_s": incident.opened_t, "duration_s": incident.duration_s,
            "detect_s": incident.noticed_after_s, "repair_s": incident.since_notice_s, "ending": str(incident.ending),
            "recovered": incident.recovered, "cut": incident.cut,
        }  # fmt: skip


LOGGED: Mapping[str, Callable[[History, RunReport], Iterable[Row]]] = {
    "trials": lambda part, run: _trial_rows(part, run.verdicts, usage=run.knows_usage),
    "calls": lambda part, _: _call_rows(part),
    "faults": lambda part, _: _fault_rows(part),
    "effects": lambda part, _: _effect_rows(part),
    "usage": lambda part, _: _usage_rows(part),
    "incidents": lambda part, _: _incident_rows(part),
}
"""Table → its rows, of the lines of a part of the log with whole trials."""


def summarize_run(report: RunReport) -> dict[str, Any]:
    """A run in one row, with each setting that its log states under its own name."""
    run, success, delivered = report.started, report.success, report.delivered
    # Each setting that the run's log states.
    settings = {} if run is None else {name: format_setting_value(value) for name, value in run.settings.items()}
    row: dict[str, Any] = {**settings, "trials": len(report.trials), "level": find_chaos_level(run)}
    if report.rulings is not None:
        row["scenario"] = report.rulings.scenario or None
    if run is not None:
        row |= {"world": run.world or None, "model": run.model or None, "inputs": json.dumps(_collect_run_inputs(run))}
        row["seed"] = None if run.seed is None else str(run.seed)
    if not success.unknown:
        ended, done = success.value.ended, success.value.done
        row |= {"judged": ended.judged_count, "well": ended.well, "open": ended.open}
        # A digest of each prompt: its words may be as long as they like, and runs of other prompts are compared.
        row["prompts"] = json.dumps(
            {hash_value(prompt)[:8]: prompt_counts for prompt, prompt_counts in success.value.prompts.items()}
        )
        row |= {"done": done.well, "not_done": done.bad} if done is not None else {}
    if not delivered.unknown:
        row["faults"] = sum(fault_count.witnessed for fault_count in delivered.value.by_fault)
    if not report.recovery.unknown:
        overall = report.recovery.value.overall
        row |= {"incidents": overall.n, "recovered": overall.recovered_count, "mttr_s": overall.mean_s}
    return row


def list_recovery_curve_points(report: RunReport) -> list[dict[str, Any]]:
    """The corners of Kaplan–Meier's curve: `seconds` since the fault began, the `share` of the incidents that are not
    over, from 0 to 1, `low` and `high` of its 95 % interval (log–log). Between them those that were still `open` when
    the log ended. None below 8 incidents, where the interval would be misleading."""
    incident_list = report.recovery.value.incidents
    curve = (
        kaplan_meier(to_censored_durations(incident_list), [incident.trial for incident in incident_list])
        if len(incident_list) >= ENOUGH
        else None
    )
    if curve is None:
        return []
    corners: list[dict[str, Any]] = [{"seconds": 0.0, "share": 1.0, "low": 1.0, "high": 1.0, "open": False}]
    for step in curve.steps:
        level = {"share": step.share, "low": step.interval.low, "high": step.interval.high}
        # Two corners a step: the curve goes straight on, then down.
        corners += [corners[-1] | {"seconds": step.at_s}, corners[-1] | {"seconds": step.at_s} | level]
    # It ends at the longest time that was observed.
    if curve.horizon_s > corners[-1]["seconds"]:
        corners.append(corners[-1] | {"seconds": curve.horizon_s})
    for cut_s in sorted({cut_incident.duration_s for cut_incident in incident_list if cut_incident.censored}):
        # The level that the curve has there: an open one is no corner.
        last_corner = next(corner for corner in reversed(corners) if corner["seconds"] <= cut_s and not corner["open"])
        corners.append({"seconds": cut_s, "share": last_corner["share"], "open": True})
    return sorted(corners, key=itemgetter("seconds"))


def _throughput_rows(report: RunReport) -> Iterable[Row]:
    if (throughput := report.throughput.value) is not None:
        for n, (trials, calls) in enumerate(zip(throughput.prompts, throughput.calls, strict=True)):
            edges = {"from_s": n * throughput.width_s, "to_s": (n + 1) * throughput.width_s}
            yield {**edges, "trials": trials, "calls": calls}


def _matrix_rows(report: RunReport) -> Iterable[Row]:
    for cell in (cell for cells in build_matrix(report).rows.values() for cell in cells):
        figures = {} if cell.bad is None else {
            "bad": cell.bad.count, "judged": cell.bad.total, **vars(cell.bad.interval),
        }  # fmt: skip
        worst = None if cell.worst is None else str(cell.worst)
        # None first: the cell's own `bad` is an object, which no table holds.
        yield {**vars(cell), "state": str(cell.state), "bad": None, **figures, "worst": worst}


def _key_figure_rows(report: RunReport) -> Iterable[Row]:
    if report.started or report.trials:
        # A history without lines: figures need the report alone.
        for row in Contents.from_source(History([]), where=report.name, report=report).all_key_figures:
            yield {name: None if value == "" else value for name, value in row.items()}


MEASURED: Mapping[str, Callable[[RunReport], Iterable[Row]]] = {
    **ROWS,
    "runs": lambda report: [summarize_run(report)] if report.started or report.trials else [],
    "figures": _key_figure_rows, "recovery": list_recovery_curve_points, "throughput": _throughput_rows,
    "matrix": _matrix_rows,
}  # fmt: skip
"""Table → its rows. All others are made of the log's lines."""


def _collect_run_inputs(run: RunStarted) -> dict[str, str]:
    """All else that its log states. What is long is a digest; injections that follow from the settings are left out."""
    inputs: dict[str, Any] = {"prompts": hash_value(run.asked)[:6]} if run.asked else {}
    inputs |= {name: value for name, value in (("MODEL", run.model), ("WORLD", run.world)) if value}
    if run.now and "NOW" not in run.settings:  # NOW=now is another time in each run
        inputs["NOW"] = run.now
    injections = [] if _plan_follows_settings(run.plan, run.settings) else run.injections
    for injection in injections:
        if (name := injection.get("name")) != WIRE:
            inputs[f"injection {name}"] = {key: value for key, value in injection.items() if key != "name"}
    inputs |= {f"version of {name}": value for name, value in run.code.items()}
    return {name: format_setting_value(value) for name, value in inputs.items()}


def _plan_follows_settings(plan: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """True if the plan is what the settings ask for, so that they say it all."""
    from chaoslab.config.scenario import plan_from_settings
    from chaoslab.config.settings import SettingError, Settings

    try:
        expected_plan = plan_from_settings(Settings.from_masked_dict(settings, where="a log")).to_json()
        # By digest: read back from JSON, a tuple is a list.
        return hash_value(expected_plan) == hash_value(dict(plan))
    # A plan of a newer or older checkout may not fit its settings any more.
    except (SettingError, TypeError, ValueError):
        return False
