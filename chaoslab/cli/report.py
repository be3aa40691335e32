"""`chaoslab report`: a run's summary and charts."""

from __future__ import annotations

import argparse

from chaoslab.base import extras
from chaoslab.base.commandline import RUN_HELP, refuse

HELP = "a run's figures and charts, as `chaoslab lab` leaves them"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help=RUN_HELP)
    parser.add_argument("--program", help="how the user calls this command here")


def run(options: argparse.Namespace) -> int:
    extras.check("chaoslab report", "charts")
    from chaoslab.execution.launch import leave
    from chaoslab.reports.folder import find

    try:
        folder = find(options.run)
    except LookupError as error:
        return refuse(error)
    return leave(folder.parent / folder.resolve().name, 0, program=options.program)
