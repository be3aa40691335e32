"""`chaoslab manager`: the proxy manager alone."""

import argparse
from pathlib import Path

from chaoslab.base.commandline import host, path

HELP = "arm and heal the faults of the wire, for every run that an agent opens"
EXAMPLE = "chaoslab manager --verbose"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--host", type=host, default="127.0.0.1", help="where /status and /health are served (default: %(default)s)")
    add("--bind-host", type=host, default="127.0.0.1", help="where Toxiproxy listens (default: %(default)s)")
    add("--dial-host", type=host, default="127.0.0.1", help="where the agent finds Toxiproxy (default: %(default)s)")
    add("--state", type=path, default=Path("state/state.db"), help="shared state (default: %(default)s)")
    add("--logs", type=path, default=Path("logs"), help="where runs are (default: %(default)s)")
    add("--verbose", action="store_true", help="print a line for each fault")
    add("--lifeline", action="store_true", help="end when stdin closes")


def run(options: argparse.Namespace) -> int:
    from chaoslab.proxy_manager import command

    return command.run(options)
