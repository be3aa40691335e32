"""`chaoslab summary`: a run's summary."""

from __future__ import annotations

import argparse

from chaoslab.base.commandline import RUN_HELP, refuse

HELP = "a run's figures in a table"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help=RUN_HELP)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import heard_outside_imports

    try:
        with heard_outside_imports():
            from chaoslab.analysis.run_report import RunReport
            from chaoslab.reports import folder, summary

            print(summary.render(RunReport.of(folder.read(options.run))))
    except LookupError as error:
        return refuse(error)
    return 0
