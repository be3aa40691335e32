"""The tables of a run in a folder, of which no whole history is held."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.record.history import History
from chaoslab.record.runs import revision_of
from chaoslab.record.trial_stream import TrialStream, Unordered
from chaoslab.reports.frames import LOGGED, NAMES, Columns, Frames
from chaoslab.reports.places import LOGS, read, reported

if TYPE_CHECKING:
    import pandas as pd


class Kept(Frames):
    """A run in a folder. Its tables are made trials by trials; the whole log is held only for `history`."""

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
        return self._logged[name]

    @cached_property
    def _logged(self) -> Mapping[str, pd.DataFrame]:
        """The tables of the log's lines, all made in one reading."""
        made = {name: Columns(name) for name in NAMES}
        of_run = {"run": self.name, "revision": self.revision or None}
        try:
            for part in TrialStream(self._source):
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
