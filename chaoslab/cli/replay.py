"""`chaoslab replay`: a run again from its log."""

from __future__ import annotations

import argparse

from chaoslab.base import extras
from chaoslab.base.commandline import RUN_HELP, refuse

HELP = "run a run again from its log, in virtual time: is it the same?"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help=RUN_HELP)
    parser.add_argument(
        "--trial", action="append", default=[], metavar="K", help="only p3.r2, p3, 7 or 1-6; may be given again"
    )


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import heard_outside_imports

    extras.check("chaoslab replay", "virtual", "tools", "agent", install="lab")
    from chaoslab.config.settings import SettingError
    from chaoslab.execution.recorded_run import Unrepeatable
    from chaoslab.execution.replay import replay

    try:
        with heard_outside_imports():
            return replay(options.run, options.trial)
    except (LookupError, Unrepeatable, SettingError) as error:
        return refuse(error)
