"""Draws the charts of a run: `python charts.py [logs/<run>] [--out charts]`, as `chaoslab charts` does."""

from __future__ import annotations

import sys

from chaoslab.base import extras
from chaoslab.base.commandline import Parser, get_interrupt_exit_code, make_streams_safe, print_error
from chaoslab.cli import charts

if __name__ == "__main__":
    make_streams_safe()
    parser = Parser(prog="charts.py", description="Draws a run of the lab, or lays several over each other.")
    charts.arguments(parser)
    try:
        code = charts.run(parser.parse_args())
    except KeyboardInterrupt:
        code = get_interrupt_exit_code()
    except ModuleNotFoundError as error:
        code = print_error(extras.make_missing_core_error(error))
    sys.exit(code)
