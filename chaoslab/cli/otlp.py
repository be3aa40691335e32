"""`chaoslab otlp`: the trials of runs as traces for OpenTelemetry."""

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from chaoslab.base.commandline import LAB_DOWN, RUN_HELP, refuse

HELP = "send the trials of a run to an OpenTelemetry collector: traces and metrics, over OTLP/HTTP"
EXAMPLE = "chaoslab otlp latest --to http://localhost:4318"
STDIN = "-"


def _endpoint(text: str) -> str:
    from chaoslab.surfaces.otel.collector import parse_endpoint

    try:
        return parse_endpoint(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        nargs="?",
        default="latest",
        metavar="RUN",
        help=f"{RUN_HELP}. -: folders of runs on standard input, one a line, each sent while it is written",
    )
    parser.add_argument(
        "--to", type=_endpoint, metavar="URL", help="the collector's address (default: OTEL_EXPORTER_OTLP_ENDPOINT)"
    )


def add_live(parser: argparse.ArgumentParser) -> None:
    """Adds `--otlp` to a command that runs trials."""
    parser.add_argument(
        "--otlp",
        type=_endpoint,
        metavar="URL",
        help="send each trial to this OpenTelemetry collector when it is over (OTEL_EXPORTER_OTLP_ENDPOINT)",
    )


def sending(options: argparse.Namespace, logs: Path | None, work: Callable[[], int]) -> int:
    """The exit code of work whose trials are sent while it runs, as `_live` says."""
    try:
        connection = _live(options, logs)
    except ValueError as error:
        return refuse(error)
    with connection:
        return work()


def _live(options: argparse.Namespace, logs: Path | None) -> AbstractContextManager[None]:
    """A context in which the trials are sent to the collector that the options or the environment name, if any. Raises
    ValueError: the environment's variables cannot be read."""
    from contextlib import nullcontext

    from chaoslab.config.settings import inherited

    environment = inherited()
    named = options.otlp or environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    if not named or getattr(options, "dry_run", False) or getattr(options, "estimate", False):
        return nullcontext()
    from chaoslab.surfaces.otel import collector
    from chaoslab.surfaces.otel.export import send_runs_to

    if options.otlp and logs is None:
        raise ValueError("--otlp sends what is written into logs: leave --no-logs out")
    # Before the run: a wrong header should not be told at its end.
    collector.parse_headers(environment.get(collector.HEADERS, ""))
    return send_runs_to(options.otlp or collector.find_endpoint(environment))


def run(options: argparse.Namespace) -> int:
    from chaoslab.config.settings import inherited
    from chaoslab.surfaces.otel.collector import ENDPOINT, Collector, find_endpoint

    environment = inherited()
    try:
        base = options.to or find_endpoint(environment)
        if not base:
            return refuse(ValueError(f"name the collector, as in --to http://localhost:4318, or set {ENDPOINT}"))
        collector = Collector.build(base, environment)
    except ValueError as error:
        return refuse(error)
    if options.run == STDIN:
        from chaoslab.surfaces.otel.export import follow_runs

        follow_runs(sys.stdin, collector)
        return LAB_DOWN if collector.lost else 0
    return _sent(options.run, collector)


def _sent(name: str, collector: object) -> int:
    from chaoslab.reports import places
    from chaoslab.surfaces.otel.collector import Collector
    from chaoslab.surfaces.otel.export import Export

    assert isinstance(collector, Collector)
    try:
        history = places.read_history(name)
    except LookupError as error:
        return refuse(error)
    export = Export(collector, spoken=history.spoken)
    # Nothing goes on without it here.
    collector.tell = lambda line: print(line.removesuffix("; the run goes on without it"), file=sys.stderr)
    export.take(history.records)
    export.send(last=True)
    collector.close()
    if collector.lost:
        return LAB_DOWN
    print(
        f"{export.trials} {'trial' if export.trials == 1 else 'trials'} of run {history.run} sent to {collector.base}"
    )
    return 0
