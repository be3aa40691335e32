"""`chaoslab steer`: has a run wait, go on or end, or take other chances."""

from __future__ import annotations

import argparse
from pathlib import Path

from chaoslab.base.commandline import RUN_HELP, filled, path, refuse

HELP = "have a run that goes on pause, resume or stop, or set its TOXIC_PROB or ERROR_PROB"
EXAMPLE = "chaoslab steer latest TOXIC_PROB=0.5"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=filled, metavar="RUN", help=RUN_HELP.removesuffix(" (default: latest)"))
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help="pause, resume, stop, TOXIC_PROB=0.3 or ERROR_PROB=0.3 (real time only)",
    )
    parser.add_argument("--logs", type=path, default=Path("logs"), help="where runs are (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    from chaoslab.record.steering import steer
    from chaoslab.reports.folder import find

    try:
        print(*steer(find(options.run, logs=options.logs).resolve(), options.words), sep="\n")
    except (LookupError, ValueError, OSError) as error:
        return refuse(error)
    return 0
