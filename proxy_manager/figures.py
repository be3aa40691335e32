"""The figures at the manager's /metrics, in Prometheus's text format: of all runs that it has served. They are read
from the runs' logs, which tell of all parts. A scrape reads what was written since the one before it."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from chaoslab.base.prometheus import Family, Labels, render_metrics
from chaoslab.core import events
from chaoslab.record.follow import Follower
from chaoslab.record.held import has_live_writer
from chaoslab.record.history import History
from chaoslab.record.lines import Record

STAGES: dict[type[events.Event], str] = {
    events.FaultScheduled: "scheduled",
    events.FaultInjected: "injected",
    events.FaultWitnessed: "witnessed",
}
ABOUT = {
    "calls_total": ("counter", "Attempts at services and the model that ended."),
    "faults_total": ("counter", "Faults that were scheduled, injected and witnessed."),
    "trials_total": ("counter", "Trials that ended, by outcome."),
    "incidents_total": (
        "counter",
        "Requests that met a fault, by how it ended: retry, fallback, late, harm, never, censored.",
    ),
    "recovery_seconds_total": ("counter", "Seconds from faults to right answers; by recoveries_total it is the MTTR."),
    "recoveries_total": ("counter", "Incidents that ended in a right answer without harm."),
    "mttr_seconds": ("gauge", "The mean time to recovery so far, from the beginning of the call that met the fault."),
    "lanes": ("gauge", "Poisoned connections in force."),
    "runs": ("gauge", "Runs that are served."),
    "agent_up": ("gauge", "1 while the agent of a run lives, else 0."),
}
"""The metrics, without their prefix."""
PREFIX = "chaoslab_"


@dataclass
class _Run:
    """A run that is read. `open`: the records of trials that have not ended. `armed`: the lanes of each."""

    folder: Path
    follower: Follower
    began: Record | None = None
    ended: bool = False
    open: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    armed: Counter[str] = field(default_factory=Counter)
    finished: set[str] = field(default_factory=set)


class RunMetrics:
    """The counts of all runs; for any thread."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._runs: dict[str, _Run] = {}
        self._lock = threading.Lock()
        self._counts: dict[str, dict[Labels, float]] = {
            name: defaultdict(float) for name, (kind, _) in ABOUT.items() if kind == "counter"
        }

    def render_text(self, serving: Iterable[str], *, lanes: int, served: Iterable[str] = ()) -> str:
        """All metrics, with what the logs tell by now. `serving`: the names of the runs that are served; `served`: of
        those that ever were, of which some may have ended before the first scrape."""
        with self._lock:
            names = set(serving)
            # A run may have begun and ended between two scrapes.
            for name in names.union(served) - self._runs.keys():
                folder = self._logs / name
                self._runs[name] = _Run(folder, Follower(folder))
            for name, run in self._runs.items():
                if not run.ended:
                    self._read_run(run)
                    if name not in names:
                        run.ended = True
                        run.follower.close()
            # By the lock of its log, which the system gives up when the agent dies.
            up = any(has_live_writer(self._logs / name) for name in names)
            gauges: dict[str, float] = {"lanes": lanes, "runs": len(names), "agent_up": up}
            if recovered := sum(self._counts["recoveries_total"].values()):
                gauges["mttr_seconds"] = sum(self._counts["recovery_seconds_total"].values()) / recovered
            return render_metrics(self._iterate_metric_families(gauges))

    def close(self) -> None:
        """Reads no log any more; the counts stay."""
        with self._lock:
            for run in self._runs.values():
                run.ended = True
                run.follower.close()

    def _iterate_metric_families(self, gauges: Mapping[str, float]) -> Iterator[Family]:
        for name, (kind, about) in ABOUT.items():
            samples = self._counts.get(name, {})
            # A gauge is worked out anew; counters only rise.
            if name in gauges:
                samples = {(): float(gauges[name])}
            yield Family(PREFIX + name, about, kind, samples)

    def _add_count(self, name: str, value: float = 1.0, **labels: str) -> None:
        self._counts[name][tuple(labels.items())] += value

    def _read_run(self, run: _Run) -> None:
        records: list[Record] = []
        with suppress(OSError):  # a folder that was deleted; the run itself says so
            records = run.follower.read_new_records()
        for record in records:
            self._count_record(run, record)
        for trial in [*run.finished]:
            # Its lanes are healed by the manager, which may log that after the trial's end.
            if run.follower.ended or not run.armed[trial]:
                self._judge_trial(run, trial)

    def _count_record(self, run: _Run, record: Record) -> None:
        event, trial = record.event, record.trial
        match event:
            case events.RunStarted():
                run.began = record
            case events.CallFinished():
                self._add_count("calls_total", target=event.target, ok="true" if event.ok else "false")
            case events.FaultScheduled() | events.FaultInjected() | events.FaultWitnessed():
                self._add_count("faults_total", fault=event.fault, target=event.target, stage=STAGES[type(event)])
            case events.FaultArmed() if trial is not None:
                run.armed[trial] += 1
            case events.FaultHealed() if trial is not None:
                run.armed[trial] -= 1
            case events.PromptFinished() if trial is not None:
                run.finished.add(trial)
        # The run's last line belongs to no trial.
        if trial is not None and not isinstance(event, events.RunFinished):
            run.open[trial].append(record)

    def _judge_trial(self, run: _Run, trial: str) -> None:
        """Counts a trial that has ended, as the summary will."""
        # Here: judging loads most of the analysis, which no manager without scrapes needs.
        from chaoslab.analysis.measures.incidents import find_incidents
        from chaoslab.analysis.verdict.judge import judge_all_trials

        run.finished.discard(trial)
        records = run.open.pop(trial, [])
        # With the run's first line, as the judge reads the run's settings there.
        history = History([*([run.began] if run.began else []), *records])
        for verdict in judge_all_trials(history).values():
            self._add_count("trials_total", outcome=str(verdict.outcome))
        for one in find_incidents(history):
            self._add_count("incidents_total", fault=one.fault, target=one.target, ending=str(one.ending))
            if one.recovered:
                self._add_count("recoveries_total", fault=one.fault, target=one.target)
                self._add_count("recovery_seconds_total", one.duration_s, fault=one.fault, target=one.target)
