"""The tables of a run that are written pack by pack while it goes on: `tables/trials/000001.parquet` and so on."""

from pathlib import Path

from chaoslab.base.files import replacing
from chaoslab.core.events import RunStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record, lines_of, parse_line
from chaoslab.record.log import lost
from chaoslab.reports._types import DataFrame
from chaoslab.reports.frames import NAMES, TABLES, Frames


class Tables:
    """Writes the tables of a run beside its log."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0
        self._started: list[Record] = []

    def add(self, lines: bytes) -> None:
        """Adds the rows of a pack's trials. A table without a row for it has no file for it. Raises LogLost: they
        cannot be written."""
        if not self._started:
            self._started = [
                record
                for line in lines_of(self._folder / "info.log")
                if (record := parse_line(line)) is not None and isinstance(record.event, RunStarted)
            ][:1]
        self._number += 1
        found = [record for line in lines.splitlines(keepends=True) if (record := parse_line(line)) is not None]
        frames = Frames(History([*self._started, *found], ordered=True))
        for name in NAMES:
            path = self._folder / TABLES / name / f"{self._number:06}.parquet"
            rows: DataFrame = getattr(frames, name)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if len(rows) or name == "trials":
                    with replacing(path) as part:
                        rows.to_parquet(part, engine="pyarrow", index=False)
            except OSError as error:
                raise lost(path, error) from error
