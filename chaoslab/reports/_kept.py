"""The tables of a run in a folder, of which no whole history is held."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base import extras
from chaoslab.record.batches import Batches, Unordered
from chaoslab.record.history import History
from chaoslab.record.runs import revision_of
from chaoslab.record.spoken import OPINIONS
from chaoslab.reports._columns import COLUMNS
from chaoslab.reports.frames import LOGGED, NAMES, TABLES, Columns, Frames, empty
from chaoslab.reports.places import LOGS, read, reported

if TYPE_CHECKING:
    import pandas as pd


class Kept(Frames):
    """A run of this lab in a folder. Its tables are made batch by batch, or taken from those that were written while it
    went on; the whole log is held only for `history`."""

    def __init__(self, folder: Path, known: RunReport) -> None:
        vars(self).update(_folder=folder, known=known, revision=revision_of(folder))

    @cached_property
    def history(self) -> History:
        """The run's history, read when it is first asked for."""
        return read(str(self._source))

    @property
    def name(self) -> str:
        return self.measures.name

    @property
    def _source(self) -> Path:
        folder: Path = vars(self)["_folder"]
        return folder

    def _table(self, name: str) -> pd.DataFrame:
        if name not in NAMES:
            return super()._table(name)
        return _written(self._source, name) if _tables_there(self._source) else self._logged[name]

    @cached_property
    def _logged(self) -> Mapping[str, pd.DataFrame]:
        """The tables of the log's lines, all made in one reading."""
        made = {name: Columns(name) for name in NAMES}
        of_run = {"run": self.name, "revision": self.revision or None}
        try:
            for batch in Batches(self._source):
                part = History(batch.records, ordered=True)
                for name, columns in made.items():
                    columns.add({**of_run, **row} for row in LOGGED[name](self, part))
        except Unordered:
            whole = Frames(self.history, self.known, self.revision)
            return {name: whole._table(name) for name in NAMES}
        return {name: columns.frame() for name, columns in made.items()}


def frames_of(name: str, *, logs: Path = LOGS) -> Frames:
    """The tables of the run that `places.read` finds by this name. Raises LookupError: as that."""
    known, source = reported(name, logs=logs)
    return Frames(source, known) if isinstance(source, History) else Kept(source, known)


def _tables_there(folder: Path) -> bool:
    """True if the tables of a run are there and hold all its trials: it was not killed between a pack and its tables,
    and nobody has spoken of the answers since."""
    tables, packs = [*folder.glob(f"{TABLES}/trials/*.parquet")], [*folder.glob("info.*.log.zst")]
    return bool(tables) and len(tables) == len(packs) and not (folder / OPINIONS).exists()


def _written(folder: Path, name: str) -> pd.DataFrame:
    """A table, one of `NAMES`, that was written while the run went on. Raises Incomplete: a package that reads it is
    not installed."""
    extras.check("reading the tables of a run", "parquet")
    import pandas as pd

    paths = sorted((folder / TABLES / name).glob("*.parquet"))
    parts = [pd.read_parquet(path, engine="pyarrow") for path in paths]
    found = pd.concat(parts, ignore_index=True) if parts else empty(name)
    lacking = [each for each in COLUMNS[name] if each.name not in found]  # an earlier chaoslab wrote the table
    return found.assign(**{each.name: pd.array([None] * len(found), dtype=each.dtype) for each in lacking})
