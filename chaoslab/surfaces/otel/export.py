"""Sends the trials of a run to a collector, each when it is over: its spans, and the run's metrics so far. A
child process follows the log of each new run."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from chaoslab import __version__
from chaoslab.analysis.measures.mttr import IncidentTimes
from chaoslab.analysis.verdict.judge import judge
from chaoslab.core.events import FaultInjected, FaultWitnessed, PromptFinished, PromptStarted, RunFinished, RunStarted
from chaoslab.record import runs
from chaoslab.record.follow import Follower
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.spoken import SILENT, Spoken
from chaoslab.surfaces.otel import _conventions
from chaoslab.surfaces.otel._spans import Json, TrialSpans, render_attributes
from chaoslab.surfaces.otel.collector import METRICS, TRACES, Collector

BATCH = 512
"""The spans after which a batch is sent."""
EVERY_S = 5.0
"""The least seconds between two times that metrics are sent, but for the last."""
SCOPE = {"name": "chaoslab", "version": __version__}
CUMULATIVE = 2
UNKNOWN = RunStarted(seed=None, settings={}, plan={}, prompts=0, now="1970-01-01T00:00:00Z", model="")


@dataclass
class _Open:
    """A trial that is not sent yet. `ended`: its end has been read; `later`: and another trial began since, before
    which all that came of this one was written."""

    records: list[Record] = field(default_factory=list)
    ended: bool = False
    later: bool = False


class Export:
    """Takes a run's records as they come. `trials`: the number that was sent."""

    def __init__(self, collector: Collector, *, spoken: Spoken = SILENT) -> None:
        self._collector, self._spoken = collector, spoken
        self._run, self._name = UNKNOWN, ""
        self._open: dict[str, _Open] = {}
        self._outcomes: Counter[tuple[str]] = Counter()
        self._faults: Counter[tuple[str, str, str]] = Counter()
        self._outages = IncidentTimes()
        self._spans: list[Json] = []
        self._since_ns = self._now_ns()
        self._measured_s = 0.0
        self.trials = 0
        self.finished = False

    def take(self, records: Iterable[Record]) -> None:
        """Takes records in the order of their time, and sends batches of trials that are over."""
        for record in records:
            if record.trial is not None:
                self._take(record.trial, record)
            elif isinstance(record.event, RunStarted):
                self._run, self._name = record.event, record.run
            elif isinstance(record.event, RunFinished):
                self.finished = True

    def _take(self, trial: str, record: Record) -> None:
        trial_records = self._open.get(trial)
        if trial_records is None:
            trial_records = self._open[trial] = _Open()
        trial_records.records.append(record)
        kind = type(record.event)
        if kind is PromptFinished:
            trial_records.ended = True
        elif kind is PromptStarted:
            self._add_all()
            for open_trial in self._open.values():
                open_trial.later = open_trial.ended

    def _add_all(self, *, last: bool = False) -> None:
        """Makes the spans of the trials that nothing more is written of. `last`: of all."""
        for trial in [trial for trial, its in self._open.items() if last or its.later]:
            self._add(trial)

    def _add(self, trial: str) -> None:
        """Makes the spans of a trial and drops its records; sends what there is if it is a batch."""
        records = self._open.pop(trial).records
        history = History(records, spoken=self._spoken)
        if not history.trials:
            return  # an event of another writer that came after the trial was sent, or a log without its beginning
        verdict = judge(history, trial)
        trial_spans = TrialSpans(self._run, self._name or history.run, trial, history.records)
        self._spans += trial_spans.spans(verdict, now_ns=self._now_ns())
        self._outcomes[(str(verdict.outcome),)] += 1
        for kind, stage in ((FaultInjected, "injected"), (FaultWitnessed, "witnessed")):
            for _, event in history.of(kind):
                self._faults[event.fault, event.target, stage] += 1
        self._outages.take(history)
        self.trials += 1
        if len(self._spans) >= BATCH:
            self.send()

    def send(self, *, last: bool = False) -> None:
        """Sends the spans that wait, and the metrics if their time has come. `last`: trials that never ended too."""
        self._add_all(last=last)
        if self._spans:
            scope = {"scope": SCOPE, "spans": self._spans, "schemaUrl": _conventions.SCHEMA}
            self._collector.send(TRACES, {"resourceSpans": [{"resource": self._resource(), "scopeSpans": [scope]}]})
            self._spans = []
        now_s = self._collector.clock.monotonic()
        if self.trials and (last or now_s - self._measured_s >= EVERY_S):
            self._measured_s = now_s
            self._collector.send(METRICS, self._metrics())

    def _resource(self) -> Json:
        resource_fields = {"service.name": self._collector.service, f"{_conventions.OWN}run": self._name}
        return {"attributes": render_attributes(resource_fields)}

    def _metrics(self) -> Json:
        recovery = self._outages.result().overall
        endings = Counter(str(incident.ending) for incident in self._outages.found)
        metrics = [
            self._sum("trials", "{trial}", self._outcomes, ("outcome",)),
            self._sum("faults", "{fault}", self._faults, ("fault", "target", "stage")),
            self._sum("incidents", "{incident}", {(name,): count for name, count in endings.items()}, ("ending",)),
        ]
        if recovery.mean_s is not None:
            point = {"timeUnixNano": str(self._now_ns()), "asDouble": recovery.mean_s}
            metrics.append({"name": f"{_conventions.OWN}mttr", "unit": "s", "gauge": {"dataPoints": [point]}})
        scope = {"scope": SCOPE, "metrics": [metric for metric in metrics if metric], "schemaUrl": _conventions.SCHEMA}
        return {"resourceMetrics": [{"resource": self._resource(), "scopeMetrics": [scope]}]}

    def _sum(self, name: str, unit: str, counts: dict[Any, int], keys: tuple[str, ...]) -> Json:
        """A counter of the run so far; empty if nothing was counted."""
        now, since = str(self._now_ns()), str(self._since_ns)
        points = [
            {
                "attributes": render_attributes(
                    dict(zip((f"{_conventions.OWN}{key}" for key in keys), values, strict=True))
                ),
                "startTimeUnixNano": since,
                "timeUnixNano": now,
                "asInt": str(count),
            }
            for values, count in counts.items()
        ]
        data = {"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": True}
        return {"name": f"{_conventions.OWN}{name}", "unit": unit, "sum": data} if points else {}

    def _now_ns(self) -> int:
        return int(self._collector.clock.utc().timestamp() * 1e6) * 1000


POLL_S = 0.25
PATIENCE_S = 30.0
"""The most seconds that a command waits at its end until its trials are sent."""


def follow_runs(folders: Iterable[str], collector: Collector) -> int:
    """Sends the runs whose folders come, one a line, while they are written. It ends when no more come and all that was
    written is sent. Returns the number of trials."""
    lines: SimpleQueue[str | None] = SimpleQueue()

    def read() -> None:
        for line in folders:
            lines.put(line)
        lines.put(None)

    Thread(target=read, daemon=True).start()
    under_way: dict[Follower, Export] = {}
    finished_exports: list[Export] = []
    more_runs = True
    while True:
        try:
            while more_runs:
                folder = lines.get_nowait()
                if folder is None:
                    more_runs = False
                elif folder.strip():
                    under_way[Follower(Path(folder.rstrip("\n")))] = Export(collector)
        except Empty:
            pass
        for follower, export in [*under_way.items()]:
            try:
                new_records = follower.new()
            except OSError as error:
                collector.tell(f"note: {error.filename or 'a log'} cannot be read: {error.strerror or error}")
                new_records, more_of_it = [], False
            else:
                export.take(new_records)
                more_of_it = bool(new_records) or (more_runs and not export.finished)
            export.send(last=not more_of_it)
            if not more_of_it:
                follower.close()
                del under_way[follower]
                finished_exports.append(export)
        if not more_runs and not under_way:
            return sum(export.trials for export in finished_exports)
        collector.clock.sleep(POLL_S)


@contextmanager
def send_runs_to(base: str) -> Iterator[None]:
    """A context in which each run that this process announces (`runs.announce`) is sent to a collector. `base`: its
    address; empty: none."""
    if not base:
        yield
        return
    read_end, write_end = os.pipe()
    program = (sys.executable, *(("-m",) if {"", str(Path.cwd())} & {*sys.path} else ("-P", "-m")))
    sender = subprocess.Popen(
        (*program, "chaoslab", "otlp", "-", "--to", base),
        stdin=read_end, stdout=subprocess.DEVNULL, start_new_session=True,  # a Ctrl-C is for the run alone
    )  # fmt: skip
    os.close(read_end)

    def tell(folder: Path) -> None:
        os.write(write_end, f"{folder.absolute()}\n".encode())

    runs.announced.append(tell)
    try:
        yield
    finally:
        runs.announced.remove(tell)
        os.close(write_end)
        try:
            sender.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            sender.kill()
            sender.wait()
            print(f"note: the collector at {base} is too slow: the last trials were not sent", file=sys.stderr)
