"""`chaoslab tools`: the seven services alone."""

import argparse

from chaoslab.base.commandline import make_integer_type, parse_host
from chaoslab.cli._runs_written import add_logs_option
from chaoslab.config.settings import DEFAULT_NOW
from chaoslab.config.topology import BASE_PORT, SERVICES

HELP = "serve the tools over HTTP, each on its own port"
EXAMPLE = "chaoslab tools weather calculator --base-port 5001"
NEEDS = ("tools",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"any of {', '.join(SERVICES)}; none: all")
    parser.add_argument("--host", type=parse_host, default="127.0.0.1", help="(default: %(default)s)")
    parser.add_argument(
        "--base-port",
        type=make_integer_type(1024, 60000),
        default=BASE_PORT,
        help="the first port (default: %(default)s)",
    )
    add_logs_option(parser)
    parser.add_argument("--now", default=DEFAULT_NOW, help="the time that counts as now (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="print a line for each request")
    parser.add_argument("--lifeline", action="store_true", help="end when stdin closes")


def run(options: argparse.Namespace) -> int:
    from chaoslab.flask_tools import command

    return command.serve_tools(options)
