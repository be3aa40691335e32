"""One run as its page shows it, from its logs as they are written: read in parts and judged trial by trial, so that a
run of any length is begun to be shown at once."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from chaoslab.analysis.measures.incidents import Incident, Traits, find_incidents
from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.standing import Standing, Standings
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.clock import Clock, system
from chaoslab.core.events import (
    CallFinished,
    CallStarted,
    ChanceSet,
    Event,
    FaultArmed,
    FaultHealed,
    FaultsOff,
    FaultWitnessed,
    LabWarning,
    PromptFinished,
    PromptStarted,
    RunFinished,
    RunStarted,
    Usage,
)
from chaoslab.record.follow import Follower
from chaoslab.record.held import has_live_writer
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.rulings import FILE, Rulings
from chaoslab.record.spoken import KeptJudgeReplies
from chaoslab.record.steering import (
    CHANCES,
    NOTHING,
    PAUSED,
    RunSteering,
    is_gateway_run,
    is_real_time_lab_run,
    list_injection_names,
)
from chaoslab.reports.contents.outcomes import SEVERITY
from chaoslab.reports.explored import MAP
from chaoslab.reports.text import make_one_line
from chaoslab.surfaces.levers import FILE as GATEWAY

PART = 1 << 19
"""The bytes of a main log that are read at once."""
BATCH = 200
"""The most trials that are judged at once."""
TEXT, NAME = 160, 100
"""The most characters of a reason or a prompt, and of a name."""
ROWS_MAX = 50_000
"""The most trials that are kept as rows. Above it, the oldest that ended well are only counted."""
HARMS, NOTES = 50, 20
"""The latest trials with harm, and the latest notes, that are shown."""
SWITCHES = 100
"""The most faults of a plan that are shown to be switched off."""
RATE_S = 5.0
"""The seconds over which a rate is taken."""
COUNTED = {PromptFinished, FaultArmed, FaultHealed, Usage, RunStarted, RunFinished, LabWarning, ChanceSet, FaultsOff}
"""The kinds of events that change more than a number."""
RULED_S = 5.0
"""The seconds between two readings of the rulings, while a run goes on."""


class TrialLine(NamedTuple):
    """A trial of the table."""

    trial: str
    prompt: str
    outcome: str
    standing: str
    why: str
    harm: str
    met: tuple[tuple[str, str], ...]
    seconds: float | None
    calls: int
    failed: int
    incidents: tuple[int, int, float]
    """Their number, that of the recovered ones, and the seconds of these together."""


@dataclass
class _Cell:
    """The trials that met a fault at a target. `judged`, `bad`: of those that met no other fault."""

    trials: int = 0
    judged: int = 0
    bad: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass
class _Open:
    """A trial whose events are kept, since more of them may come. `quiet`: the looks that brought none."""

    records: list[Record] = field(default_factory=list)
    armed: int = 0
    ended: bool = False
    judged: bool = False
    quiet: int = 0


class _ControlState(NamedTuple):
    """The levers that somebody has pulled in a run's folder. `manager`: the proxy manager is paused. `gateway`: there
    is a gateway that has levers."""

    asked: RunSteering = NOTHING
    manager: bool = False
    gateway: bool = False

    @classmethod
    def read(cls, folder: Path) -> "_ControlState":
        return cls(RunSteering.read(folder), (folder / PAUSED).exists(), (folder / GATEWAY).exists())


class WatchedRun:
    """A run's state. `poll_logs` is for one thread, and all else for any."""

    def __init__(self, folder: Path, name: str = "", *, clock: Clock = system) -> None:
        self.folder, self.name, self._clock = folder, name or folder.name, clock
        self._version = 0
        # The latest alone: a run may warn without an end.
        self.notes: deque[str] = deque(maxlen=NOTES)
        self.asked_s = clock.monotonic()
        """The moment at which somebody last asked for it."""
        self._reset_state()
        self._state = self._build_state()

    def _reset_state(self) -> None:
        self._follower = Follower(self.folder)
        self.rows: dict[str, TrialLine] = {}
        self.started: RunStarted | None = None
        self.finished: RunFinished | None = None
        self.running, self.whole = False, False
        self._pulled = _ControlState()
        self.scenario = self.ruling = ""
        self._began: Record | None = None
        self._open: dict[str, _Open] = {}
        self._calm: deque[str] = deque()
        self._calls = self._faults = self._ended = self._tokens = 0
        self._outcomes = Counter[str]()
        self._standings = Counter[str]()
        self._cells: dict[tuple[str, str], _Cell] = {}
        self._harms: dict[str, str] = {}
        self._usd: float | None = 0.0
        self._recovered_s, self._recovered, self._incidents = 0.0, 0, 0
        self._traits = Traits()
        self._chances: dict[str, float] = {}
        self._off: list[str] = []
        self._now, self._last_t = "", 0.0
        self._past: deque[tuple[float, int, int, int]] = deque()
        self._standing = Standings()
        self._ruled = (-1, -1.0)
        self._gone = ""

    def poll_logs(self) -> bool:
        """Reads the next part of the logs. Returns True if there may be more at once."""
        before = self._version
        has_more = self._read_next_records()
        # One state for each version, whoever asks.
        if self._version != before:
            self._state = self._build_state()
        return has_more

    def get_state(self) -> dict[str, Any]:
        """All but the rows after the last look, as plain data."""
        return self._state

    @property
    def version(self) -> int:
        """That of the state: it counts the changes. The number that a look goes on counting would be ahead of it, and
        a page that had that one would never get the state that belongs to it."""
        return int(self._state["version"])

    def _read_next_records(self) -> bool:
        if self._gone:
            return False
        try:
            # A folder that was replaced has other logs: what was read of the former ones would be mixed with them.
            if moved := self._follower.describe_log_loss():
                folder_exists = self.folder.is_dir()
                self.add_note(f"{moved}: {'it is read anew' if folder_exists else 'this is what was read of it'}")
                self._follower.close()
                if not folder_exists:
                    self._gone, self.running = moved, False
                    return False
                self._reset_state()
            records = self._follower.read_new_records(PART)
            running = has_live_writer(self.folder)
        except OSError as error:
            if self._gone != (reason := f"{error.filename or self.folder} cannot be read: {error.strerror or error}"):
                self._gone, self.running = reason, False
                self.add_note(reason)
            return False
        self._read_rulings()
        fresh = self._count_records(records)
        if self.whole == self._follower.more:
            self.whole, self._version = not self.whole, self._version + 1
        if running != self.running:
            self.running, self._version = running, self._version + 1
        # Levers of a run that is over do nothing.
        if self._pulled != (pulled := _ControlState.read(self.folder) if running else _ControlState()):
            self._pulled, self._version = pulled, self._version + 1
        self._judge_ended_trials(fresh)
        self._version += bool(records)
        self._sample_counts()
        return self._follower.more

    def add_note(self, text: str) -> None:
        """A line for the reader of the page."""
        self.notes.append(make_one_line(text, 2 * TEXT))
        self._version += 1

    def close(self) -> None:
        self._follower.close()

    def _count_records(self, records: Sequence[Record]) -> set[str]:
        """Counts the events; returns the trials that they are of."""
        fresh: set[str] = set()
        open_trial, last = None, None
        for record in records:
            if (trial := record.trial) != last or open_trial is None:
                last = trial
                if trial is None:
                    continue
                fresh.add(trial)
                open_trial = self._open.setdefault(trial, _Open())
                open_trial.quiet = 0
            open_trial.records.append(record)
        kinds = [type(record.event) for record in records]
        kind_counts = Counter(kinds)
        self._calls += kind_counts[CallFinished]
        self._faults += kind_counts[FaultWitnessed]
        self._ended += kind_counts[PromptFinished]
        for kind, record in zip(kinds, records, strict=True):
            if kind in COUNTED:
                self._count_event(kind, record)
        if records:
            self._last_t = records[-1].t
            # Backwards: the latest call is what goes on now.
            calls = (
                record_read.event for record_read in reversed(records) if isinstance(record_read.event, CallStarted)
            )
            if (at := next(calls, None)) is not None:
                self._now = f"{at.target}.{at.tool}"
        return fresh

    def _count_event(self, kind: type[Event], record: Record) -> None:
        event: Any = record.event
        if kind is PromptFinished and record.trial is not None:
            self._open[record.trial].ended = True
        elif kind in (FaultArmed, FaultHealed) and record.trial is not None:
            self._open[record.trial].armed += 1 if kind is FaultArmed else -1
        elif kind is Usage:
            self._tokens += event.prompt_tokens + event.completion_tokens
            # One answer without a price: the sum is not known.
            self._usd = None if self._usd is None or event.cost_usd is None else self._usd + event.cost_usd
        elif kind is RunStarted:
            self._began, self.started = record, event
        elif kind is RunFinished:
            self.finished = event
        elif kind is LabWarning:
            self.add_note(event.message)
        elif kind is FaultsOff:
            if event.injections != self._off:
                self._off = [*event.injections]
                self.add_note(f"{event.change_in_words}, from {record.trial} on")
        elif kind is ChanceSet:
            self._chances[event.setting] = event.chance
            self.add_note(f"{event.change_in_words}, from {record.trial} on")

    def _judge_ended_trials(self, fresh: set[str]) -> None:
        """Judges the trials of which nothing more comes, and lets go of those before the latest."""
        to_judge = []
        for key, open_trial in self._open.items():
            open_trial.quiet += key not in fresh
            # The fault of a lane is known only when it is taken down.
            ready = open_trial.ended and (open_trial.armed <= 0 or self._follower.ended)
            # A look without an event of it, or with those of others: nothing more comes soon.
            if ready and not open_trial.judged and (open_trial.quiet or len(fresh) > 1 or self._follower.ended):
                open_trial.judged = True
                to_judge.append(key)
            elif key in fresh and open_trial.judged:  # more came of it
                to_judge.append(key)
        if self.whole and not self.running:  # nothing writes it any more
            rest = [key for key, open_trial in self._open.items() if not open_trial.judged]
            for key in rest:
                self._open[key].judged = True
            to_judge += rest
        remaining = iter(to_judge)
        while batch := list(islice(remaining, BATCH)):
            reason = run_guarded(lambda batch=batch: self._judge_trials(batch), str)  # type: ignore[misc]
            if reason:
                self.add_note(f"{len(batch)} trials could not be judged: {reason}")
        # After two quiet looks: a late event of a lane may come with the next.
        for key in [key for key, open_trial in self._open.items() if open_trial.judged and open_trial.quiet > 1]:
            del self._open[key]

    def _judge_trials(self, keys: list[str]) -> str:
        records = [record for key in keys for record in self._open[key].records]
        if self._began is not None:
            records.append(self._began)
        history = History(records, running=self.running, spoken=KeptJudgeReplies.read(self.folder).judge_opinions)
        ends: dict[str | None, PromptFinished] = {
            record.trial: event for record, event in history.find_events(PromptFinished)
        }
        calls: Counter[str | None] = Counter(trial for trial, _, _, _ in history.attempt_keys)
        failed: Counter[str | None] = Counter(
            record.trial for record, _, at in history.failed_attempts if at not in history.given_up_attempts
        )
        faults_met: dict[str | None, dict[tuple[str, str], None]] = {}
        for record, fault in history.find_events(FaultWitnessed):
            faults_met.setdefault(record.trial, {})[
                make_one_line(fault.fault, NAME), make_one_line(fault.target, NAME)
            ] = None
        trial_verdicts = judge_all_trials(history)
        repairs: dict[str, list[Incident]] = {}
        for incident in find_incidents(history, self._traits):
            repairs.setdefault(incident.trial, []).append(incident)
        for record, started in history.find_events(PromptStarted):
            if (trial := record.trial) is None or trial not in trial_verdicts:
                continue
            verdict, end, trial_incidents = trial_verdicts[trial], ends.get(trial), repairs.get(trial, ())
            closed = [incident_closed.duration_s for incident_closed in trial_incidents if incident_closed.recovered]
            self._store_trial_row(
                TrialLine(
                    trial,
                    make_one_line(started.prompt, TEXT),
                    str(verdict.outcome),
                    str(self._standing.get_standing(trial, str(verdict.outcome))),
                    make_one_line(verdict.why, TEXT),
                    make_one_line(verdict.harm[0], TEXT) if verdict.harm else "",
                    tuple(faults_met.get(trial, ())),
                    end.duration_s if end is not None else None,
                    calls[trial],
                    failed[trial],
                    (len(trial_incidents), len(closed), sum(closed)),
                )
            )
        return ""

    def _store_trial_row(self, row: TrialLine) -> None:
        """Adds a row, or takes it in place of the trial's former one."""
        if (old := self.rows.get(row.trial)) is not None:
            self._add_row_to_totals(old, -1)
        self.rows[row.trial] = row
        self._add_row_to_totals(row, 1)
        if row.standing == Standing.WELL and not row.harm and old is None:
            self._calm.append(row.trial)
        # The oldest that ended well: those in trouble are what somebody looks for.
        if len(self.rows) > ROWS_MAX and self._calm:
            self.rows.pop(self._calm.popleft(), None)

    def _add_row_to_totals(self, row: TrialLine, by: int) -> None:
        self._outcomes[row.outcome] += by
        self._standings[row.standing] += by
        number, recovered, seconds = row.incidents
        self._incidents += by * number
        self._recovered += by * recovered
        self._recovered_s += by * seconds
        if row.harm:
            # Put at the end: the latest come first in the page.
            self._harms.pop(row.trial, None)
            if by > 0:
                self._harms[row.trial] = row.harm
        for fault_key in row.met:
            cell = self._cells.setdefault(fault_key, _Cell())
            cell.trials += by
            cell.outcomes[row.outcome] += by
            # Those that met another fault too tell nothing of this one.
            if len(row.met) == 1 and row.standing != Standing.OPEN:
                cell.judged += by
                cell.bad += by * (row.standing == Standing.BAD)

    def _read_rulings(self) -> None:
        """Reads what a scenario has said of the trials, if there is more of it."""
        now_s = self._clock.monotonic()
        size, at_s = self._ruled
        size_now = _file_size(self.folder / FILE)
        # Rulings are read as a whole: at most each five seconds while they grow.
        if size_now != size and (not self.running or now_s - at_s > RULED_S):
            self._ruled = (size_now, now_s)
            with suppress(OSError):
                self._apply_rulings(Rulings.read(self.folder))

    def _apply_rulings(self, rulings: Rulings | None) -> None:
        if rulings is None:
            return
        self.scenario, self.ruling = rulings.scenario, str(rulings.final_state or "")
        self._update_row_standings(Standings(rulings.by_trial))
        self._version += 1

    def _update_row_standings(self, standing: Standings) -> None:
        """Takes other rules for what ended well."""
        self._standing = standing
        for row in [*self.rows.values()]:
            if (now := str(standing.get_standing(row.trial, row.outcome))) != row.standing:
                self._store_trial_row(row._replace(standing=now))

    def _sample_counts(self) -> None:
        """Notes where the counts stand now."""
        # A run that was over and goes on has no rate of the time between.
        if not self.running:
            self._past.clear()
        now_s = self._clock.monotonic()
        self._past.append((now_s, self._calls, self._faults, self._ended))
        while now_s - self._past[0][0] > RATE_S:
            self._past.popleft()

    def _build_state(self) -> dict[str, Any]:
        run, end, steering = self.started, self.finished, self._pulled.asked
        calls, faults, ended_count = self._calls, self._faults, self._ended
        trial_total = max(run.prompts if run else 0, ended_count)
        calls_s = faults_s = rate = None
        # Two looks at one moment give no rate.
        if len(self._past) > 1 and (since_s := self._past[-1][0] - self._past[0][0]) > 0:
            calls_s, faults_s, rate = ((self._past[-1][n] - self._past[0][n]) / since_s for n in (1, 2, 3))
        limits = _get_budget_limits(run.plan) if run else {}
        state_text = self._gone or (end.reason if end else "running" if self.running else "not finished")
        read, bytes_total = (0, 0)
        with suppress(OSError):
            read, bytes_total = self._follower.measure_progress()
        names = sorted({fault for fault, _ in self._cells})
        targets = sorted({target for _, target in self._cells})
        return {
            "run": self.name,
            "version": self._version,
            "name": self.scenario or make_one_line((run.model if run else "") or "", NAME),
            "ruling": self.ruling,
            "world": run.world if run else "",
            "seed": run.seed if run else None,
            "done": ended_count,
            "of": trial_total,
            "judged": sum(self._outcomes.values()),
            "kept": len(self.rows),
            "running": self.running,
            "paused": steering.hold,
            "ended": "paused" if steering.hold else make_one_line(state_text, TEXT),
            "read": None if self.whole or not bytes_total else min(1.0, read / bytes_total),
            "eta_s": (trial_total - ended_count) / rate if rate and self.running else None,
            "trials_per_s": rate,
            "calls_per_s": calls_s,
            "faults_per_s": faults_s,
            "calls": calls,
            "faults": faults,
            "now": make_one_line(self._now, NAME),
            "seconds": self._last_t,
            "outcomes": {str(name): n for name in Outcome if (n := self._outcomes[str(name)])},
            "well": self._standings[Standing.WELL],
            "bad": self._standings[Standing.BAD],
            "harms": [{"trial": key, "text": text} for key, text in reversed([*self._harms.items()][-HARMS:])],
            "harmed": len(self._harms),
            "matrix": {
                "targets": targets,
                "rows": [
                    {"fault": fault, "cells": [self._build_map_cell(fault, name) for name in targets]}
                    for fault in names
                ],
            },
            "mttr_s": self._recovered_s / self._recovered if self._recovered else None,
            "recovered": self._recovered,
            "incidents": self._incidents,
            "usd": self._usd,
            "tokens": self._tokens,
            "usd_max": limits.get("cost_usd") or None,
            "tokens_max": limits.get("tokens") or None,
            "map": (self.folder / MAP).is_file(),
            **self._build_controls_state(),
            "notes": [*self.notes, *self._describe_unreadable_lines()],
        }

    def _describe_unreadable_lines(self) -> Iterator[str]:
        for name, number in sorted(self._follower.cut.items()):
            yield f"{name}: {number} line{'s' if number > 1 else ''} could not be read"

    def _build_map_cell(self, fault: str, target: str) -> dict[str, Any] | None:
        cell = self._cells.get((fault, target))
        if cell is None or not cell.trials:
            return None
        worst = next((str(outcome) for outcome in SEVERITY if cell.outcomes[str(outcome)] > 0), "")
        return {"trials": cell.trials, "judged": cell.judged, "bad": cell.bad, "worst": worst}

    def _build_controls_state(self) -> dict[str, Any]:
        """The levers of a run that goes on. `levers`: its own ("run"), those of its gateway, or none. `manager`: the
        proxy manager is paused; None if there is none. `chances`: those that may be set, by setting. `switches`: the
        faults of the plan, on or off."""
        run, (steering, manager, gateway) = self.started, self._pulled
        if run is None or not self.running:
            return {"levers": "", "chances": {}, "switches": [], "manager": None}
        has_own = not is_gateway_run(run)
        settings = (
            {name: run.settings.get(name) for name in CHANCES} | self._chances if is_real_time_lab_run(run) else {}
        )
        return {
            "levers": "run" if has_own else "gateway" if gateway else "",
            "chances": {name: float(value) for name, value in settings.items() if isinstance(value, int | float)},
            "switches": [
                {"name": fault_name, "on": fault_name not in steering.off}
                # A gateway's faults are switched by its own levers.
                for fault_name in list_injection_names(run)[: has_own * SWITCHES]
            ],
            "manager": manager if is_real_time_lab_run(run) else None,
        }


def _get_budget_limits(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """The limits of the plan's budget: `cost_usd` is the run's, `tokens` are a trial's; empty if it has none."""
    choices = (choice for injection in plan.get("injections", ()) for choice in injection.get("choices", ()))
    parameters = next((choice.get("params") for choice in choices if choice["fault"] == "budget"), None)
    items = parameters.items() if isinstance(parameters, dict) else ()  # it may hold anything
    return {name: limit for name, limit in items if isinstance(limit, int | float)}


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
