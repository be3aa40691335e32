"""`chaoslab tools`: the seven services alone."""

import argparse
from pathlib import Path

from chaoslab.base.commandline import host, path, whole_number
from chaoslab.config.settings import DEFAULT_NOW
from chaoslab.config.topology import BASE_PORT, SERVICES

HELP = "serve the tools over HTTP, each on its own port"
EXAMPLE = "chaoslab tools weather calculator --base-port 5001"
NEEDS = ("tools",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"any of {', '.join(SERVICES)}; none: all")
    parser.add_argument("--host", type=host, default="127.0.0.1", help="(default: %(default)s)")
    parser.add_argument(
        "--base-port", type=whole_number(1024, 60000), default=BASE_PORT, help="the first port (default: %(default)s)"
    )
    parser.add_argument("--logs", type=path, default=Path("logs"), help="where runs are (default: %(default)s)")
    parser.add_argument("--now", default=DEFAULT_NOW, help="what to call now (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="print a line for each request")
    parser.add_argument("--lifeline", action="store_true", help="end when stdin closes")


def run(options: argparse.Namespace) -> int:
    from chaoslab.flask_tools import command

    return command.run(options)
