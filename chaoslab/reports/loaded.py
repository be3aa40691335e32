"""Runs that are looked at from Python: their tables, charts and report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base import extras
from chaoslab.base.registry import suggest_name
from chaoslab.reports.frames import Frames, JoinedRunFrames
from chaoslab.reports.places import LATEST, expand_run_pattern

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from chaoslab.reports.report import Report


class Loaded(Frames):
    """A run from its log."""

    def chart(self, name: str) -> Figure:
        """One of the charts that `charts.py` draws, as a matplotlib figure: `lab.load("latest").chart("mttr")`; of
        several runs, one that lays them over each other, such as "pass_rate_vs_level". Raises LookupError: there is no
        such chart. Incomplete: matplotlib is not installed."""
        figures, chart_names = self._draw_figures(name)
        if name not in figures:
            hint = (
                suggest_name(str(name), chart_names)
                if chart_names
                else "these runs differ in no setting that all of them state"
            )
            raise LookupError(f"there is no chart '{name!s:.60}' of this: {hint}")
        return figures[name]

    def _draw_figures(self, name: str, /) -> tuple[Mapping[str, Figure], Collection[str]]:
        """At least the chart of this name, if there is one, and the names of all."""
        from chaoslab.reports.charts import draw_charts, list_charts

        return draw_charts(self, only=name), list_charts()

    def report(self) -> Report:
        """The report on the run, with its figures as values and `save("report.html")`. Raises ValueError: these are
        several runs."""
        from chaoslab.reports.report import Report

        return Report(self._source, known=self.measures)


class SeveralRuns(JoinedRunFrames, Loaded):
    """Several runs from their logs."""

    def _draw_figures(self, _name: str, /) -> tuple[Mapping[str, Figure], Collection[str]]:
        # Drawing needs matplotlib, and a run's tables do not.
        from chaoslab.reports.charts import draw_multi_run_charts

        figures = draw_multi_run_charts(self)
        return figures, figures

    def report(self) -> Report:
        raise ValueError(f"these are {len(self._each)} runs: load one of them for a report")


def load(*runs: str | Path) -> Loaded:
    """Logs as pandas DataFrames, as in `lab.load("latest").trials`, and as charts. A missing value is `pd.NA`. `runs`:
    folders, names of runs in logs/, or patterns of either, as in `lab.load("logs/2026*")`; by default the latest. The
    column `run` tells several apart.

    Raises:
        LookupError, FileNotFoundError: there is no such run. Incomplete: pandas is not installed.
    """
    extras.require_module("lab.load", "pandas", "charts")
    loaded_runs = [Loaded.read(name) for run in runs or (LATEST,) for name in expand_run_pattern(str(run))]
    return loaded_runs[0] if len(loaded_runs) == 1 else SeveralRuns(loaded_runs)
