"""`chaoslab manager`: the proxy manager alone."""

import argparse
from pathlib import Path

from chaoslab.base.commandline import parse_host, parse_path
from chaoslab.cli._runs_written import add_logs_option

HELP = "arm and remove network faults, for every run that an agent opens"
EXAMPLE = "chaoslab manager --verbose"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--host",
        type=parse_host,
        default="127.0.0.1",
        help="where /status and /health are served (default: %(default)s)",
    )
    add("--bind-host", type=parse_host, default="127.0.0.1", help="where Toxiproxy listens (default: %(default)s)")
    add(
        "--dial-host",
        type=parse_host,
        default="127.0.0.1",
        help="where the agent finds Toxiproxy (default: %(default)s)",
    )
    add("--state", type=parse_path, default=Path("state/state.db"), help="shared state (default: %(default)s)")
    add_logs_option(parser)
    add("--verbose", action="store_true", help="print a line for each fault")
    add("--lifeline", action="store_true", help="end when stdin closes")


def run(options: argparse.Namespace) -> int:
    from chaoslab.proxy_manager import command

    return command.run_manager(options)
