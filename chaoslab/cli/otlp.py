"""`chaoslab otlp`: the trials of runs as traces for OpenTelemetry."""

import argparse

from chaoslab.base.commandline import LAB_DOWN, RUN_HELP, print_error

HELP = "send the trials of a run to an OpenTelemetry collector: traces and metrics, over OTLP/HTTP"
EXAMPLE = "chaoslab otlp latest --to http://localhost:4318"


def _parse_endpoint(text: str) -> str:
    from chaoslab.surfaces.otel.collector import parse_endpoint

    try:
        return parse_endpoint(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--to",
        type=_parse_endpoint,
        metavar="URL",
        help="the collector's address (default: OTEL_EXPORTER_OTLP_ENDPOINT)",
    )


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras
    from chaoslab.config.settings import copy_environment
    from chaoslab.surfaces.otel.collector import ENDPOINT, find_endpoint

    try:
        base = options.to or find_endpoint(copy_environment())
        if not base:
            return print_error(ValueError(f"name the collector, as in --to http://localhost:4318, or set {ENDPOINT}"))
        extras.require_extras("chaoslab otlp", "otel")
    except ValueError as error:
        return print_error(error)
    from chaoslab.reports import places
    from chaoslab.surfaces.otel.export import Collector, send_run

    try:
        history = places.read_history(options.run)
    except LookupError as error:
        return print_error(error)
    collector = Collector(base)
    trials = send_run(history, collector)
    if collector.lost:
        return LAB_DOWN
    print(f"{trials} {'trial' if trials == 1 else 'trials'} of run {history.run_name} sent to {base}")
    return 0
