"""`chaoslab manager`: the proxy manager alone."""

import argparse
from pathlib import Path

from chaoslab.base.commandline import host, path

HELP = "arm and heal the faults of the wire, for every run that an agent opens"
EXAMPLE = "chaoslab manager --verbose"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", type=host, default="127.0.0.1", help="where /status and /health are served (default: %(default)s)"
    )
    parser.add_argument(
        "--bind-host", type=host, default="127.0.0.1", help="where Toxiproxy listens (default: %(default)s)"
    )
    parser.add_argument(
        "--dial-host", type=host, default="127.0.0.1", help="where the agent finds Toxiproxy (default: %(default)s)"
    )
    parser.add_argument(
        "--state", type=path, default=Path("state/state.db"), help="shared state (default: %(default)s)"
    )
    parser.add_argument("--logs", type=path, default=Path("logs"), help="where runs are (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="print a line for each fault")
    parser.add_argument("--lifeline", action="store_true", help="end when stdin closes")


def run(options: argparse.Namespace) -> int:
    from chaoslab.proxy_manager import command

    return command.run(options)
