"""A run's tables as CSV (RFC 4180), those of `lab.load`. A cell that a spreadsheet would compute begins with '."""

import csv
import io
import math
from functools import partial
from typing import Any

from chaoslab.analysis.verdict.guard import Section
from chaoslab.reports._columns import COLUMNS
from chaoslab.reports.contents import Contents
from chaoslab.reports.text import make_one_line

TEXT = 2000
"""The most characters of a cell."""


def files(contents: Contents) -> dict[str, str]:
    """A file a table; a table whose measure failed is left out, and `figures` says why. `contents`: with the history of
    the whole run."""
    from chaoslab.reports.frames import Frames

    run = Frames(contents.history, contents.report)
    tables = {name: Section.build(partial(run.columns, name)) for name in COLUMNS}
    return {f"{name}.csv": _render_table(table.value.values) for name, table in tables.items() if not table.unknown}


def _render_table(columns: dict[str, list[Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows([_escape_formula(cell) for cell in row] for row in zip(*columns.values(), strict=True))
    return file.getvalue()


def _escape_formula(cell: Any) -> Any:
    """The cell; a text is put in one line, and not read as a formula."""
    if isinstance(cell, float) and math.isnan(cell):
        return None
    if not isinstance(cell, str):
        # As JSON spells them.
        return ("false", "true")[cell] if isinstance(cell, bool) else cell
    flat = make_one_line(cell, TEXT)
    # A spreadsheet computes what begins so: an agent's answer could be a formula.
    return f"'{flat}" if flat.startswith(("=", "+", "-", "@")) else flat
