"""`chaoslab charts`: the charts of a run, or of several in one; `python charts.py` is the same."""

import argparse

from chaoslab.base.commandline import RUN_HELP, parse_path

HELP = "draw a run's charts, or overlay those of several runs"
EXAMPLE = "chaoslab charts latest latest~1 --out charts"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--out",
        type=parse_path,
        help="output folder (default: logs/<run>/charts, for the latest run also charts; several runs: charts)",
    )


def run(options: argparse.Namespace) -> int:
    from chaoslab.reports import charts

    return charts.main(options.runs, out=options.out)
