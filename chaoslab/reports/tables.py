"""The tables of a run that are written pack by pack while it goes on: `tables/trials/000001.parquet` and so on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base import extras
from chaoslab.base.files import replacing
from chaoslab.core.events import RunStarted
from chaoslab.record.history import History
from chaoslab.record.lines import Record, lines_of, parse_line
from chaoslab.record.log import lost
from chaoslab.record.spoken import LABELS, OPINIONS

if TYPE_CHECKING:
    import pandas as pd

TABLES = "tables"
NAMES = ("trials", "calls", "faults", "effects", "usage", "incidents")
"""The tables whose rows depend on one trial each."""


class Tables:
    """Writes the tables of a run beside its log."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0
        self._started: list[Record] = []

    def add(self, lines: bytes) -> None:
        """Adds the rows of a pack's trials. A table without a row for it has no file for it.

        Raises:
            LogLost: they cannot be written.
        """
        from chaoslab.reports.frames import Frames

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
            rows: pd.DataFrame = getattr(frames, name)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if len(rows) or name == "trials":
                    with replacing(path) as part:
                        rows.to_parquet(part, engine="pyarrow", index=False)
            except OSError as error:
                raise lost(path, error) from error


def there(folder: Path) -> bool:
    """True if the tables of a run are there and hold all its trials: it was not killed between a pack and its tables,
    and nobody has spoken of the answers since."""
    tables, packs = [*folder.glob(f"{TABLES}/trials/*.parquet")], [*folder.glob("info.*.log.zst")]
    later = any((folder / each).exists() for each in (LABELS, OPINIONS))
    return bool(tables) and len(tables) == len(packs) and not later


def table(folder: Path, name: str) -> pd.DataFrame:
    """A table, one of `NAMES`, that was written while the run went on.

    Raises:
        Incomplete: a package that reads it is not installed.
    """
    extras.check("reading the tables of a run", "parquet")
    import pandas as pd

    from chaoslab.reports.frames import empty

    paths = sorted((folder / TABLES / name).glob("*.parquet"))
    parts = [pd.read_parquet(path, engine="pyarrow") for path in paths]
    return pd.concat(parts, ignore_index=True) if parts else empty(name)
