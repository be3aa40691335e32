"""Runs that are looked at from Python: their tables, charts and report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base import extras
from chaoslab.base.registry import did_you_mean
from chaoslab.record.batches import Batches, Unordered
from chaoslab.record.history import History
from chaoslab.record.runs import revision_of
from chaoslab.record.spoken import LABELS, OPINIONS
from chaoslab.reports.folder import LATEST, LOGS, matching, read, reported
from chaoslab.reports.frames import LOGGED, NAMES, TABLES, Columns, Frames, empty
from chaoslab.reports.joined import Joined

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from chaoslab.reports.report import Report


class Loaded(Frames):
    """A run from its log."""

    def chart(self, name: str) -> Figure:
        """One of the charts that `charts.py` draws, as a matplotlib figure: `lab.load("latest").chart("mttr")`; of
        several runs, one that lays them over each other, such as "pass_rate_vs_level". Raises LookupError: there is no
        such chart. Incomplete: matplotlib is not installed."""
        figures, known = self._figures(name)
        if name not in figures:
            hint = did_you_mean(str(name), known) if known else "these runs differ in no setting that all of them state"
            raise LookupError(f"there is no chart '{name!s:.60}' of this: {hint}")
        return figures[name]

    def _figures(self, name: str, /) -> tuple[Mapping[str, Figure], Collection[str]]:
        """At least the chart of this name, if there is one, and the names of all."""
        from chaoslab.reports.charts import draw, names

        return draw(self, only=name), names()

    def report(self) -> Report:
        """The report on the run, with its figures as values and `save("report.html")`. Raises ValueError: these are
        several runs."""
        from chaoslab.reports.report import Report

        return Report(self._source, known=self.measures)

    @property
    def _source(self) -> History | Path:
        return self.history


class Several(Joined, Loaded):
    """Several runs from their logs."""

    def _figures(self, _name: str, /) -> tuple[Mapping[str, Figure], Collection[str]]:
        from chaoslab.reports.charts import overlay

        figures = overlay(self)
        return figures, figures

    def report(self) -> Report:
        raise ValueError(f"these are {len(vars(self)['_each'])} runs: load one of them for a report")


class Kept(Loaded):
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
            whole = Loaded(self.history, self.known, self.revision)
            return {name: whole._table(name) for name in NAMES}
        return {name: columns.frame() for name, columns in made.items()}


def load(*runs: str | Path) -> Loaded:
    """Logs as pandas DataFrames, as in `lab.load("latest").trials`, and as charts. A missing value is `pd.NA`. `runs`:
    folders, names of runs in logs/, or patterns of either, as in `lab.load("logs/2026*")`; by default the latest. The
    column `run` tells several apart.

    Raises:
        LookupError, FileNotFoundError: there is no such run. Incomplete: pandas is not installed.
    """
    extras.check("lab.load", "frames")
    found = [opened(name) for run in runs or (LATEST,) for name in matching(str(run))]
    return found[0] if len(found) == 1 else Several(found)


def opened(name: str, *, logs: Path = LOGS) -> Loaded:
    """The run that `folder.read` finds by this name. Raises LookupError: as that."""
    known, source = reported(name, logs=logs)
    return Loaded(source, known) if isinstance(source, History) else Kept(source, known)


def _tables_there(folder: Path) -> bool:
    """True if the tables of a run are there and hold all its trials: it was not killed between a pack and its tables,
    and nobody has spoken of the answers since."""
    tables, packs = [*folder.glob(f"{TABLES}/trials/*.parquet")], [*folder.glob("info.*.log.zst")]
    later = any((folder / each).exists() for each in (LABELS, OPINIONS))
    return bool(tables) and len(tables) == len(packs) and not later


def _written(folder: Path, name: str) -> pd.DataFrame:
    """A table, one of `NAMES`, that was written while the run went on. Raises Incomplete: a package that reads it is
    not installed."""
    extras.check("reading the tables of a run", "parquet")
    import pandas as pd

    paths = sorted((folder / TABLES / name).glob("*.parquet"))
    parts = [pd.read_parquet(path, engine="pyarrow") for path in paths]
    return pd.concat(parts, ignore_index=True) if parts else empty(name)
