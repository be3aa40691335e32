"""A run's tables as Parquet files, one a table, with the types of their columns: of a whole run (`lab.load`), or pack
by pack while it goes on, as in `tables/trials/000001.parquet`."""

from pathlib import Path

from chaoslab.base import extras
from chaoslab.base.files import replacing
from chaoslab.core.events import RunStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record, lines_of, parse_line
from chaoslab.record.log import lost
from chaoslab.reports._columns import COLUMNS
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


def write(run: Frames, folder: Path) -> list[Path]:
    """Writes `trials.parquet` and so on into the folder; each file is replaced as a whole. Raises Incomplete: pandas or
    pyarrow is not installed. OSError: a file could not be written."""
    extras.check("a Parquet file", "parquet")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in COLUMNS:
        path = folder / f"{name}.parquet"
        with replacing(path) as part:
            getattr(run, name).to_parquet(part, engine="pyarrow", index=False)
        paths.append(path)
    return paths
