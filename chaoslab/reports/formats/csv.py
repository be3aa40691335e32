"""A run's trials, calls and faults as CSV tables (RFC 4180). A cell that a spreadsheet would compute begins with '."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from chaoslab.core.events import CallFinished, FaultArmed, FaultInjected, FaultScheduled, FaultWitnessed
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.text import one_line

TEXT = 2000
"""The most characters of a cell."""
Cell = str | int | float | bool | None


def files(contents: Contents) -> dict[str, str]:
    """The three files. A call that was given up is neither ok nor not."""
    gone = contents.history.given_up
    return {
        "trials.csv": table(
            ("trial", "outcome", "seconds", "calls", "failed", "retries", "faults_met", "harm", "why", "prompt",
             "answer"),
            (
                (row.trial, str(row.outcome), row.seconds, row.calls, row.failed, row.retries,
                 " ".join(f"{fault}@{target}" for fault, target in row.met), "; ".join(row.harm), row.why, row.prompt,
                 row.answer)
                for row in contents.rows
            ),
        ),
        "calls.csv": table(
            ("trial", "t", "target", "tool", "request", "attempt", "ok", "status", "error", "duration_s", "bytes",
             "via", "given_up"),
            (
                (record.trial, record.t, e.target, e.tool, e.request, e.attempt, None if at in gone else e.ok, e.status,
                 e.error, None if math.isnan(e.duration_s) else e.duration_s, e.bytes, e.via, at in gone)
                for record, e, at in contents.history.placed(CallFinished)
            ),
        ),
        "faults.csv": table(
            ("trial", "fault", "injection", "target", "request", "attempt", "armed", "injected", "witnessed",
             "evidence"),
            _faults(contents),
        ),
    }  # fmt: skip


def _faults(contents: Contents) -> Iterable[Sequence[Cell]]:
    """A row per fault and attempt, in the order in which they were scheduled."""
    found: dict[tuple[Cell, ...], dict[str, str]] = {}
    for kind in (FaultScheduled, FaultArmed, FaultInjected, FaultWitnessed):
        for record, e in contents.history.of(kind):
            place: tuple[Cell, ...] = (record.trial, e.fault, e.injection, e.target, e.request, e.attempt)
            said = (e.changed or e.evidence) if isinstance(e, FaultWitnessed) else ""
            found.setdefault(place, {})[e.kind] = said
    for place, stages in found.items():
        reached = [kind.kind in stages for kind in (FaultArmed, FaultInjected, FaultWitnessed)]
        yield (*place, *reached, stages.get(FaultWitnessed.kind, ""))


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """The text of a file with this first line."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(header)
    writer.writerows([_safe(cell) for cell in row] for row in rows)
    return file.getvalue()


def _safe(cell: Cell) -> Cell:
    """The cell; a text is put in one line, and not read as a formula."""
    if not isinstance(cell, str):
        return ("false", "true")[cell] if isinstance(cell, bool) else cell
    flat = one_line(cell, TEXT)
    return f"'{flat}" if flat.startswith(("=", "+", "-", "@")) else flat
