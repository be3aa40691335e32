"""Sends the trials of a run to a collector: their spans, and the run's metrics."""

import logging
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan

from chaoslab import __version__
from chaoslab.analysis.measures.mttr import IncidentTimes
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.base.clock import system
from chaoslab.core.events import FaultInjected, FaultWitnessed, RunStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.surfaces.otel import _conventions
from chaoslab.surfaces.otel._spans import TrialSpans, prefix_attribute_names
from chaoslab.surfaces.otel.collector import METRICS, TRACES

BATCH = 512
"""The spans after which a batch is sent."""
REASON_MAX = 200
UNKNOWN = RunStarted(seed=None, settings={}, plan={}, prompts=0, now="1970-01-01T00:00:00Z", model="")


def _print_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Collector(logging.Handler):
    """A collector at an address, and the handler of what OpenTelemetry's exporters log: the first error is told, and
    nothing is sent after it. `timeout_s`: of a batch with its retries; None as the environment has it, or 10."""

    def __init__(
        self, base: str, *, timeout_s: float | None = None, tell: Callable[[str], object] = _print_to_stderr
    ) -> None:
        super().__init__(logging.ERROR)
        self.base, self.tell, self.lost = base, tell, False
        self.spans = OTLPSpanExporter(base + TRACES, timeout=timeout_s)
        self.metrics = OTLPMetricExporter(base + METRICS, timeout=timeout_s)
        logger = logging.getLogger("opentelemetry")
        logger.handlers, logger.propagate = [self], False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.lost:
            self.lost = True
            reason = " ".join(record.getMessage().split())[:REASON_MAX]
            self.tell(f"the collector at {self.base} failed: {reason}")


def send_run(history: History, collector: Collector) -> int:
    """Sends the run's trials in batches, and its metrics with the last; returns the number of trials."""
    run = history.find_first_event(RunStarted) or UNKNOWN
    name = history.run_name
    resource = Resource(prefix_attribute_names({"run": name}) | {"service.name": "chaoslab"}).merge(
        OTELResourceDetector().detect()
    )
    records_by_trial = defaultdict[str | None, list[Record]](list)
    for record in history.records:
        records_by_trial[record.trial].append(record)
    spans: list[ReadableSpan] = []
    verdicts = judge_all_trials(history)
    for trial, verdict in verdicts.items():
        if collector.lost:
            break
        spans += TrialSpans(run, name, trial, records_by_trial[trial]).build_spans(
            verdict, resource, now_ns=int(system.utc().timestamp() * 1e6) * 1000
        )
        if len(spans) >= BATCH:
            collector.spans.export(spans)
            spans = []
    if spans and not collector.lost:
        collector.spans.export(spans)
    if verdicts and not collector.lost:
        _send_metrics(history, [str(verdict.outcome) for verdict in verdicts.values()], collector, resource)
    return len(verdicts)


def _send_metrics(history: History, outcomes: Sequence[str], collector: Collector, resource: Resource) -> None:
    incidents = IncidentTimes()
    incidents.add_history(history)
    endings = Counter(str(incident.ending) for incident in incidents.found)
    mean_s = incidents.compute_mttr().overall.mean_s

    def observe_incidents(_: CallbackOptions) -> Iterator[Observation]:
        return (Observation(count, prefix_attribute_names({"ending": ending})) for ending, count in endings.items())

    def observe_mttr(_: CallbackOptions) -> Iterator[Observation]:
        if mean_s is not None:
            yield Observation(mean_s)

    # Without a thread: they are sent once.
    reader = PeriodicExportingMetricReader(collector.metrics, export_interval_millis=math.inf)
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    meter = provider.get_meter("chaoslab", __version__, _conventions.SCHEMA)
    trials = meter.create_counter(f"{_conventions.OWN}trials", "{trial}")
    for outcome, count in Counter(outcomes).items():
        trials.add(count, prefix_attribute_names({"outcome": outcome}))
    faults = meter.create_counter(f"{_conventions.OWN}faults", "{fault}")
    for kind, stage in ((FaultInjected, "injected"), (FaultWitnessed, "witnessed")):
        for _, event in history.find_events(kind):
            faults.add(1, prefix_attribute_names({"fault": event.fault, "target": event.target, "stage": stage}))
    meter.create_observable_counter(f"{_conventions.OWN}incidents", [observe_incidents], "{incident}")
    meter.create_observable_gauge(f"{_conventions.OWN}mttr", [observe_mttr], "s")
    provider.force_flush()
