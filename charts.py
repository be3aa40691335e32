"""Draws the charts of a run: `python charts.py [logs/<run>] [--out charts]`; a thin door to chaoslab.reports.charts."""

from __future__ import annotations

import sys

from chaoslab.base.commandline import interrupted, open_streams
from chaoslab.reports.charts import main

if __name__ == "__main__":
    open_streams()
    try:
        code = main()
    except KeyboardInterrupt:
        code = interrupted()
    sys.exit(code)
