"""The memory beside the logs as its page shows it, and the experiments that a plan proposes."""

import sqlite3
from pathlib import Path
from typing import Any

from chaoslab.base.jsonable import to_one_line
from chaoslab.reports.text import escape_and_shorten

TABLES = ("lessons", "components", "relations")
SHOWN, TEXT = 200, 300
"""The most rows of a table, and the most characters of a cell."""


def build_memory_view(logs: Path, subject: str) -> dict[str, Any]:
    """The tables of a memory, and the plan for a subject; that of the only one if it has no name. Raises LookupError:
    there is no memory, or it cannot be used, or knows no such subject; one line."""
    from chaoslab.memory.store import memory

    try:
        store = memory(logs)
        from chaoslab.memory.planning import plan  # an image may have no scenarios

        subjects = store.list_agents()
        subject = subject or (subjects[0] if len(subjects) == 1 else "")
        entries = [*plan(store, subject=subject)] if subject else []
        tables = [_make_table(name, *store.read_table(name), subject) for name in TABLES]
    except sqlite3.Error as error:
        raise LookupError(f"{logs / 'memory.db'} cannot be used: {error}") from None
    return {
        "subjects": subjects, "subject": subject, "tables": tables, "holds": f"{store!r}".partition(": ")[2][:-1],
        "entries": [
            {
                "what": str(entry.proposal.cell), "reason": entry.proposal.reason, "risk": str(entry.proposal.risk),
                "told": str(entry.proposal.prediction),
                "command": escape_and_shorten(entry.command, 10 * TEXT),
            }
            for entry in entries
        ],
    }  # fmt: skip


def _make_table(name: str, columns: list[str], rows: list[tuple[Any, ...]], subject: str) -> dict[str, Any]:
    """A table, of one subject if it is named."""
    if subject:
        at = columns.index("subject")
        rows = [(*row[:at], *row[at + 1 :]) for row in rows if row[at] == subject]
        columns = [*columns[:at], *columns[at + 1 :]]
    return {
        "name": name,
        "columns": columns,
        "rows": [[*map(_format_cell, row)] for row in rows[:SHOWN]],
        "of": len(rows),
    }


def _format_cell(value: Any) -> str:
    return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else to_one_line(str(value), TEXT)
