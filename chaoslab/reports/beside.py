"""The HTML report beside the logs of a run that was made in Python."""

from __future__ import annotations

from pathlib import Path

from chaoslab.record.history import History
from chaoslab.reports import formats
from chaoslab.reports.contents import Contents


def left(logs: Path) -> str:
    """Writes the report of the latest run in `logs` into its folder. Returns a line on the place, or on the reason why
    there is none."""
    folder = logs / (logs / "latest").resolve().name
    try:
        texts = formats.files(formats.HTML, Contents.of(History.read(folder), where=str(folder)))
        (path,) = formats.write(texts, folder)
    except (formats.Missing, OSError) as error:
        return f"logs {folder}, without a report: {error}"
    return f"report {path}"
