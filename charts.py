"""Draws the charts of a run: `python charts.py [logs/<run>] [--out charts]`, as `chaoslab charts` does."""

from __future__ import annotations

import sys

from chaoslab.base import extras
from chaoslab.base.commandline import Parser, interrupted, open_streams, refuse
from chaoslab.cli import charts

if __name__ == "__main__":
    open_streams()
    parser = Parser(prog="charts.py", description="Draws a run of the lab, or lays several over each other.")
    charts.arguments(parser)
    try:
        code = charts.run(parser.parse_args())
    except KeyboardInterrupt:
        code = interrupted()
    except ModuleNotFoundError as error:
        code = refuse(extras.explain_missing_core(error))
    sys.exit(code)
