"""A run's trials, calls and faults as CSV tables (RFC 4180). A cell that a spreadsheet would compute begins with '."""

import csv
import io
import math
from collections.abc import Iterable, Sequence

from chaoslab.core.events import CallFinished, CallStarted, FaultArmed, FaultInjected, FaultScheduled, FaultWitnessed
from chaoslab.record.history import History
from chaoslab.reports.contents import Contents
from chaoslab.reports.text import one_line

TEXT = 2000
"""The most characters of a cell."""
Cell = str | int | float | bool | None


def files(contents: Contents) -> dict[str, str]:
    """The three files. `contents`: with the history of the whole run."""
    return {
        "trials.csv": table(
            ("trial", "outcome", "seconds", "calls", "failed", "retries", "faults_met", "harm", "why", "prompt",
             "answer"),
            (
                (row.trial, str(row.outcome), row.seconds, row.calls, row.failed, row.retries,
                 " ".join(f"{fault}@{target}" for fault, target in row.met), "; ".join(row.harm), row.why, row.prompt,
                 row.answer)
                for row in contents.all_rows
            ),
        ),
        "calls.csv": table(
            ("trial", "t", "target", "tool", "request", "attempt", "ok", "status", "error", "duration_s", "bytes",
             "via", "given_up"),
            _calls(contents.history),
        ),
        "faults.csv": table(
            ("trial", "fault", "injection", "target", "request", "attempt", "armed", "injected", "witnessed",
             "evidence"),
            _faults(contents),
        ),
    }  # fmt: skip


def _calls(history: History) -> Iterable[Sequence[Cell]]:
    """A row per attempt in the order of their ends, then those that did not end. One that was given up is neither ok
    nor not."""
    gone, ended = history.given_up, history.placed(CallFinished)
    for record, e, at in ended:
        yield (
            record.trial, record.t, e.target, e.tool, e.request, e.attempt, None if at in gone else e.ok, e.status,
            e.error, None if math.isnan(e.duration_s) else e.duration_s, e.bytes, e.via, at in gone,
        )  # fmt: skip
    known = {at for _, _, at in ended}
    for record, begun, at in history.placed(CallStarted):
        if at not in known:
            yield record.trial, None, begun.target, begun.tool, begun.request, begun.attempt, *[None] * 7


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
